"""Random words from a counter, tokens with a given distribution from 16 random bits each, and
sequences of such tokens.

Word i of a stream is a hash of the stream's key and i (splitmix64), so any part of a stream can be
made anywhere, by any thread. Keys are random 64-bit numbers.

The distribution of tokens is exact, although most tokens need only 16 bits. The cumulative
distribution c_0 < c_1 < … < c_{N−2} < 1 is split as 65536·c_j = m_j + f_j. A word w of 16 bits
stands for a uniform in [w, w + 1)/65536: above c_j if w > m_j, below if w < m_j. Only a *tie* w =
m_j, which is one value in 65536 for each j, leaves the comparison open; then a fraction of 53 bits
from the same stream is compared with f_j.
"""

from typing import NamedTuple

import numpy as np

from scb.kernels.compiler import compiled

ALL_BITS = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
CHUNK = 1024  # positions at a time
_FEW = 8  # up to this many tokens, comparing with every threshold is quicker than a look-up
_FRACTIONS = 1 << 40  # where in a stream the fractions begin

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S1, _S2, _S3, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 1.0 / (1 << 53)


class TokenSampler(NamedTuple):
    """A distribution over tokens, ready for drawing."""

    whole: np.ndarray  # (N − 1,), m_j (uint16)
    fraction: np.ndarray  # (N − 1,), f_j
    # For each w without its last bits: the token, or ``unknown`` if some threshold is among them
    table: np.ndarray
    unknown: np.unsignedinteger
    shift: np.uint16  # how many last bits
    # Which bits of a word of four w are used; all, outside tests
    mask: np.uint64


class TokenScratch(NamedTuple):
    """Memory for drawing one chunk of tokens."""

    # Random words of 64 bits, each for four tokens ...
    words: np.ndarray
    # ... and the same memory as words of 16 bits
    w: np.ndarray
    # a byte for each token: whether it is tied ...
    ties: np.ndarray
    # ... and the same memory as words of 64 bits
    eights: np.ndarray


@compiled
def random_word(key, i):
    """Return word i of the stream ``key``. Twin: ``words``."""
    z = key + np.uint64(i) * _GOLDEN
    z = (z ^ (z >> _S1)) * _M1
    z = (z ^ (z >> _S2)) * _M2
    return z ^ (z >> _S3)


@compiled
def fill_words(key, start, mask, words):
    """Write the words start, start + 1, … of the stream ``key``, masked, into the uint64 array.
    Twin: ``words``.
    """
    for i in range(words.size):
        words[i] = random_word(key, start + i) & mask


@compiled
def to_unit(word):
    """Return a uniform number on [0, 1) with 53 bits."""
    return (word >> _S11) * _UNIT


@compiled
def choose(cumulative, u):
    """Return the first row whose cumulative probability exceeds u."""
    row = 0
    while u >= cumulative[row]:
        row += 1
    return row


@compiled
def first_above(ascending, value):
    """Return the first index at which an ascending array exceeds ``value``, or its size. Twin:
    ``np.searchsorted``.
    """
    begin = 0
    end = ascending.size
    while begin < end:
        middle = (begin + end) // 2
        if ascending[middle] > value:
            end = middle
        else:
            begin = middle + 1
    return begin


def token_sampler(mu, bits=16):
    """Return the distribution μ for ``draw_tokens``; with fewer ``bits``, more draws are left open,
    so tests can force the exact path.
    """
    unit = 1 << (16 - bits)
    scaled = np.cumsum(mu)[:-1] * 65536.0
    whole = np.minimum(np.floor(scaled / unit) * unit, 65536.0 - unit)
    token = np.min_scalar_type(len(mu) - 1)
    unknown = token.type(np.iinfo(token).max)
    shift = 1 if token == np.uint8 else 0  # a table of 32 or 128 KiB
    starts = np.arange(0, 65536, 1 << shift)
    below = np.searchsorted(whole, starts)
    through = np.searchsorted(whole, starts + (1 << shift))
    return TokenSampler(
        whole=whole.astype(np.uint16),
        fraction=(scaled - whole) / unit,
        table=np.where(below == through, below, unknown).astype(token),
        unknown=unknown,
        shift=np.uint16(shift),
        mask=np.uint64((65536 - unit) * 0x0001_0001_0001_0001),
    )


def token_scratch():
    """Allocate memory for ``draw_tokens``."""
    words = np.empty(CHUNK // 4, np.uint64)
    eights = np.empty(CHUNK // 8, np.uint64)
    return TokenScratch(words, words.view(np.uint16), eights.view(np.uint8), eights)


@compiled
def draw_tokens(key, sampler, scratch, tokens):
    """Fill ``tokens`` from the stream ``key``. Twin: ``draw_tokens``."""
    w = scratch.w
    for start in range(0, tokens.size, CHUNK):
        chunk = tokens[start : min(start + CHUNK, tokens.size)]
        fill_words(key, start // 4, sampler.mask, scratch.words)
        if sampler.whole.size < _FEW:
            _count_thresholds_below(w, sampler.whole, chunk, scratch.ties)
        else:
            _look_up(w, sampler.table, sampler.unknown, sampler.shift, chunk, scratch.ties)
        _settle_ties(key, start, sampler, scratch, chunk)


@compiled
def _look_up(w, table, unknown, shift, tokens, ties):
    """tokens by the table, and ties where it does not say; a function of its own, since fields of a
    tuple slow the loops down.
    """
    for t in range(tokens.size):
        tokens[t] = table[w[t] >> shift]
    for t in range(tokens.size):
        ties[t] = np.uint8(tokens[t] == unknown)


@compiled(inline=True)
def draw_and_weigh(key, sampler, scratch, tokens, raw, offset):
    """Fill ``tokens`` if there are two or three kinds of token, and sum a = raw + offset over them
    while the words are in the cache.

    Returns Σ_t a_t [x_t ≥ 1] and Σ_t a_t [x_t = N − 1].
    """
    words, w, ties, eights = scratch
    first = sampler.whole[0]
    final = sampler.whole[sampler.whole.size - 1]
    above = last = 0.0
    for start in range(0, tokens.size, CHUNK):
        chunk = tokens[start : min(start + CHUNK, tokens.size)]
        a = raw[start : min(start + CHUNK, tokens.size)]
        fill_words(key, start // 4, sampler.mask, words)
        _count_thresholds_below(w, sampler.whole, chunk, ties)
        above_here, last_here = _weigh(a, offset, w, first, final)
        above += above_here
        last += last_here
        tied = np.uint64(0)
        for i in range(eights.size):
            tied |= eights[i]
        if tied != 0:
            # Take out what ties have counted, ...
            for t in range(chunk.size):
                if ties[t]:
                    if w[t] > first:
                        above -= a[t] + offset
                    if w[t] > final:
                        last -= a[t] + offset
            _settle_ties(key, start, sampler, scratch, chunk)
            # ... and count them again, now that they are settled
            for t in range(chunk.size):
                if ties[t]:
                    if chunk[t] >= 1:
                        above += a[t] + offset
                    if chunk[t] >= sampler.whole.size:
                        last += a[t] + offset
    return above, last


@compiled
def _count_thresholds_below(w, whole, tokens, ties):
    """tokens = Σ_j [w > m_j], and ties where w equals some m_j.

    Two thresholds at a time and without branches: comparisons are added as bytes, because only then
    do the loops vectorise.
    """
    m = whole[0]
    n = whole[min(1, whole.size - 1)]
    second = np.uint8(whole.size > 1)
    for t in range(tokens.size):  # the first two thresholds write, the others add
        tokens[t] = np.uint8(w[t] > m) + (np.uint8(w[t] > n) & second)
    for t in range(ties.size):
        ties[t] = np.uint8(w[t] == m) | np.uint8(w[t] == n)
    for j in range(2, whole.size, 2):
        m = whole[j]
        n = whole[min(j + 1, whole.size - 1)]
        second = np.uint8(whole.size > j + 1)
        for t in range(tokens.size):
            tokens[t] += np.uint8(w[t] > m) + (np.uint8(w[t] > n) & second)
        for t in range(ties.size):
            ties[t] |= np.uint8(w[t] == m) | np.uint8(w[t] == n)


@compiled
def _settle_ties(key, start, sampler, scratch, tokens):
    """Redo, exactly, every token of a chunk that is tied."""
    whole = sampler.whole
    w = scratch.w
    ties = scratch.ties
    for i in range((tokens.size + 7) // 8):
        # Most chunks have hardly a tie: look at eight tokens at a time
        if scratch.eights[i] == 0:
            continue
        for t in range(8 * i, min(8 * i + 8, tokens.size)):
            if ties[t] == 0:
                continue
            cell = np.int64(w[t] >> sampler.shift)
            # a neighbour that the table knows is near
            while cell > 0 and sampler.table[cell] == sampler.unknown:
                cell -= 1
            token = np.int64(0)
            if sampler.table[cell] != sampler.unknown:
                token = np.int64(sampler.table[cell])
            while token < whole.size and whole[token] < w[t]:
                token += 1
            if token < whole.size and whole[token] == w[t]:
                u = to_unit(random_word(key, _FRACTIONS + start + t))
                while token < whole.size and whole[token] == w[t] and u >= sampler.fraction[token]:
                    token += 1
            tokens[t] = token


@compiled(reorder=True)
def _weigh(raw, offset, w, m, n):
    """Σ a_t [w_t > m] and Σ a_t [w_t > n] for a = raw + offset."""
    s = u = 0.0
    for t in range(raw.size):
        a = raw[t] + offset
        s += a if w[t] > m else 0.0
        u += a if w[t] > n else 0.0
    return s, u


@compiled
def continue_lags(tokens, start, cumulative_q, lags, cumulative_p, first, u):
    """Fill ``tokens[start:]`` one after the other, each from a source among those before it. Twin:
    ``continue_lags``.

    Slot j of state k looks ``lags[j, k]`` tokens back. If it finds token m there, it takes column
    ``first[j, k] + m`` of cumulative_p; lag 0 is the background, column ``first[j, k]``. The state
    is the previous token, or 0 where cumulative_q has one column. u[i] holds the two uniforms of
    token start + i.
    """
    states = cumulative_q.shape[1]
    for i in range(start, tokens.size):
        k = tokens[i - 1] if states > 1 else 0
        slot = choose(cumulative_q[:, k], u[i - start, 0])
        lag = lags[slot, k]
        column = first[slot, k]
        if lag > 0:
            column += tokens[i - lag]
        tokens[i] = choose(cumulative_p[:, column], u[i - start, 1])
