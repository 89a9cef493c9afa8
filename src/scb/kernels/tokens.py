"""Tokens with a given law from 16 random bits each, and exact: where 16 bits do not decide, 53 more are drawn.

The cumulative law c_0 < c_1 < … < c_{N−2} < 1 is split as 65536·c_j = m_j + f_j. A word w of 16 bits stands for a uniform
in [w, w + 1)/65536: above c_j if w > m_j, below if w < m_j. Only w = m_j, one value in 65536 for each j, leaves it open; then
a fraction of 53 bits from the same stream is compared with f_j.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from scb.kernels.words import ALL, fill_words, to_unit

CHUNK = 1024
# Sums may be reordered, so that they vectorise; NaN and infinity stay what they are.
FAST = {"reassoc", "contract", "nsz"}
FEW = 8  # up to this many tokens, comparing with every threshold is quicker than a look-up
FRACTIONS = 1 << 40  # where in a stream the fractions begin


class TokenLaw(NamedTuple):
    """A law over tokens, ready for drawing.

    Attributes
    ----------
    whole, fraction : (N − 1,), m_j (uint16) and f_j
    table : for each value of w without its last bits: the token, or ``none`` if some threshold is among them
    shift : how many last bits
    mask : which bits of a word of four w are used; all, outside tests
    """

    whole: np.ndarray
    fraction: np.ndarray
    table: np.ndarray
    none: np.unsignedinteger
    shift: np.uint16
    mask: np.uint64


def token_law(mu, bits=16):
    """The law μ for ``draw_tokens``; fewer ``bits`` leave more draws open, so that tests can force the exact path."""
    unit = 1 << (16 - bits)
    scaled = np.cumsum(mu)[:-1] * 65536.0
    whole = np.minimum(np.floor(scaled / unit) * unit, 65536.0 - unit)
    token = np.min_scalar_type(len(mu) - 1)
    none, shift = token.type(np.iinfo(token).max), 1 if token == np.uint8 else 0  # a table of 32 or 128 KiB
    starts = np.arange(0, 65536, 1 << shift)
    below, through = np.searchsorted(whole, starts), np.searchsorted(whole, starts + (1 << shift))
    table = np.where(below == through, below, none).astype(token)
    mask = np.uint64((65536 - unit) * 0x0001_0001_0001_0001)
    return TokenLaw(whole.astype(np.uint16), (scaled - whole) / unit, table, none, np.uint16(shift), mask)


@numba.njit(cache=True)
def _compare(w, whole, tokens, ties):
    """tokens = Σ_j [w > m_j] by comparing with every threshold, two at a time; ties where w equals one."""
    m, n = whole[0], whole[min(1, whole.size - 1)]
    second = np.uint8(whole.size > 1)
    for t in range(tokens.size):
        tokens[t] = np.uint8(w[t] > m) + (np.uint8(w[t] > n) & second)
    for t in range(ties.size):
        ties[t] = np.uint8(w[t] == m) | np.uint8(w[t] == n)
    for j in range(2, whole.size, 2):
        m, n = whole[j], whole[min(j + 1, whole.size - 1)]
        second = np.uint8(whole.size > j + 1)
        for t in range(tokens.size):
            tokens[t] += np.uint8(w[t] > m) + (np.uint8(w[t] > n) & second)
        for t in range(ties.size):
            ties[t] |= np.uint8(w[t] == m) | np.uint8(w[t] == n)


@numba.njit(cache=True)
def _look_up(w, table, none, shift, tokens, ties):
    """The same by a look-up; ties where the table does not say."""
    for t in range(tokens.size):
        tokens[t] = table[w[t] >> shift]
    for t in range(tokens.size):
        ties[t] = np.uint8(tokens[t] == none)


@numba.njit(cache=True)
def _settle(key, start, w, law, tokens, ties):
    """Redo, exactly, every token of a chunk that is tied."""
    whole, eights, fraction = law.whole, ties.view(np.uint64), np.empty(1, np.uint64)
    for i in range((tokens.size + 7) // 8):
        if eights[i] == 0:
            continue
        for t in range(8 * i, min(8 * i + 8, tokens.size)):
            if ties[t] == 0:
                continue
            cell = np.int64(w[t] >> law.shift)
            while cell > 0 and law.table[cell] == law.none:
                cell -= 1
            token = 0 if law.table[cell] == law.none else np.int64(law.table[cell])
            while token < whole.size and whole[token] < w[t]:
                token += 1
            if token < whole.size and whole[token] == w[t]:
                fill_words(key, FRACTIONS + start + t, ALL, fraction)
                u = to_unit(fraction[0])
                while token < whole.size and whole[token] == w[t] and u >= law.fraction[token]:
                    token += 1
            tokens[t] = token


@numba.njit(cache=True)
def draw_tokens(key, law, scratch, tokens):
    """Fill ``tokens`` from the stream ``key``. Twin: ``reference.draw_tokens``."""
    words, ties = scratch
    w = words.view(np.uint16)
    for start in range(0, tokens.size, CHUNK):
        part = tokens[start : min(start + CHUNK, tokens.size)]
        fill_words(key, start // 4, law.mask, words)
        if law.whole.size < FEW:
            _compare(w, law.whole, part, ties)
        else:
            _look_up(w, law.table, law.none, law.shift, part, ties)
        _settle(key, start, w, law, part, ties)


@numba.njit(cache=True, fastmath=FAST)
def _weigh(raw, offset, w, m, n):
    """Σ a_t [w_t > m] and Σ a_t [w_t > n] for a = raw + offset."""
    s = u = 0.0
    for t in range(raw.size):
        a = raw[t] + offset
        s += a if w[t] > m else 0.0
        u += a if w[t] > n else 0.0
    return s, u


@numba.njit(cache=True)
def draw_and_weigh(key, law, scratch, tokens, raw, offset):
    """``draw_tokens`` for two or three tokens, and Σ_t a_t [x_t ≥ 1] and Σ_t a_t [x_t ≥ 2], while the words are in the cache."""
    words, ties = scratch
    w, m, n = words.view(np.uint16), law.whole[0], law.whole[law.whole.size - 1]
    s = u = 0.0
    for start in range(0, tokens.size, CHUNK):
        part, a = tokens[start : min(start + CHUNK, tokens.size)], raw[start : min(start + CHUNK, tokens.size)]
        fill_words(key, start // 4, law.mask, words)
        _compare(w, law.whole, part, ties)
        more, most = _weigh(a, offset, w, m, n)
        s, u = s + more, u + most
        if _any(ties):
            for t in range(part.size):  # take out what ties have counted, ...
                if ties[t]:
                    s, u = s - (a[t] + offset) * (w[t] > m), u - (a[t] + offset) * (w[t] > n)
            _settle(key, start, w, law, part, ties)
            for t in range(part.size):  # ... and count them again, now that they are settled
                if ties[t]:
                    s, u = s + (a[t] + offset) * (part[t] >= 1), u + (a[t] + offset) * (part[t] >= law.whole.size)
    return s, u


@numba.njit(cache=True)
def _any(ties):
    found = np.uint64(0)
    for word in ties.view(np.uint64):
        found |= word
    return found != 0


@numba.njit(cache=True)
def token_scratch():
    """What ``draw_tokens`` needs beside its tokens."""
    return np.empty(CHUNK // 4, np.uint64), np.empty(CHUNK, np.uint8)
