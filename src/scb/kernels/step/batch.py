"""A mini-batch before its tokens are drawn, and how its work is divided."""

from typing import NamedTuple

import numba
import numpy as np

from scb.kernels.random import ALL_BITS, TokenLaw, fill_words, to_unit

SHARES = 4  # at most; more would serve more threads, but each has a gradient in V of its own
TILE = 8


class LabelLaw(NamedTuple):
    """What decides the last token k ~ μ, the source ~ q^(k) and the label ~ P[:, source], each by one uniform."""

    mu: np.ndarray  # (N,), cumulative
    positions: np.ndarray  # (Q, N), where the sources of each k may be
    q: np.ndarray  # (Q, N), cumulative in each column
    P: np.ndarray  # (N, N), cumulative in each column


class TaskLaw(NamedTuple):
    """A task, ready for drawing."""

    tokens: TokenLaw
    labels: LabelLaw


class MiniBatch(NamedTuple):
    """All that is random in a mini-batch but its tokens, and its division, which ``kernels.step`` draws.

    ``shares``, ``tiles`` and ``segments`` hold where each begins, and the end. A share is one thread's work; shares depend on the
    sizes alone, not on threads. A segment is the samples of one share with one last token. A tile holds whole segments, or a piece
    of a segment longer than ``TILE``.
    """

    lasts: np.ndarray  # (B,), last tokens, ascending
    keys: np.ndarray  # (B,), the streams of the samples' tokens
    uniforms: np.ndarray  # (2, B), what decides source and label
    shares: np.ndarray
    tiles: np.ndarray
    segments: np.ndarray
    accumulator: np.ndarray  # of each segment, or −1: its column is updated in place


@numba.njit(cache=True)
def draw_mini_batch(key, mu, batch_size, T, in_place):
    """Everything random about a mini-batch but its tokens, from the stream ``key``. Twin: ``draw_mini_batch``.

    ``mu`` is cumulative. ``in_place`` says whether segments may do without an accumulator.
    """
    words = np.empty(4 * batch_size, np.uint64)
    fill_words(key, 0, ALL_BITS, words)
    lasts = np.empty(batch_size, np.int64)
    uniforms = np.empty((2, batch_size))
    for i in range(batch_size):
        lasts[i] = np.searchsorted(mu, to_unit(words[i]), side="right")
        uniforms[0, i] = to_unit(words[batch_size + i])
        uniforms[1, i] = to_unit(words[2 * batch_size + i])
    lasts.sort()
    shares = _share_out(lasts, T)
    tiles, segments, accumulator = _lay_out(lasts, shares, in_place)
    return MiniBatch(lasts, words[3 * batch_size :], uniforms, shares, tiles, segments, accumulator)


@numba.njit(cache=True)
def _share_out(lasts, T):
    """Where shares of about equal size begin, and the end."""
    B = lasts.size
    count = min(max(B * T >> 18, 2), SHARES)
    shares = np.arange(count + 1) * B // count
    touched = min(B, 1)
    for i in range(1, B):
        if lasts[i] != lasts[i - 1]:
            touched += 1
    if touched >= 16 * count:  # shares stay even if no column is split between two
        for share in range(1, count):
            while shares[share] < B and lasts[shares[share]] == lasts[shares[share] - 1]:
                shares[share] += 1
    return shares


@numba.njit(cache=True)
def _lay_out(lasts, shares, in_place):
    """Tiles, segments and accumulators of the shares."""
    B = lasts.size
    tiles = np.empty(B + 1, np.int64)
    segments = np.empty(B + 1, np.int64)
    accumulator = np.empty(B, np.int64)
    tile = segment = used = 0
    for share in range(shares.size - 1):
        begin = i = shares[share]  # begin: of the current tile
        while i < shares[share + 1]:
            j = i + 1
            while j < shares[share + 1] and lasts[j] == lasts[i]:
                j += 1
            segments[segment] = i
            split = (i == shares[share] and i > 0 and lasts[i - 1] == lasts[i]) or (j < B and lasts[j] == lasts[i])
            if in_place and not split and j - i <= TILE:
                accumulator[segment] = -1
            else:
                accumulator[segment] = used
                used += 1
            segment += 1
            if i == shares[share] or j - begin > TILE:
                begin = i
                while begin < j:  # a new tile; a long segment makes several
                    tiles[tile] = begin
                    tile += 1
                    if j - begin <= TILE:
                        break
                    begin += TILE
            i = j
    segments[segment] = tiles[tile] = B
    return tiles[: tile + 1], segments[: segment + 1], accumulator[:segment]
