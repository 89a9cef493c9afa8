"""A mini-batch: its random parts, the division of its work, and the drawing and differentiation of
its samples.
"""

from typing import NamedTuple

import numpy as np

from scb.kernels.compiler import compiled
from scb.kernels.random import (
    TokenSampler,
    TokenScratch,
    choose,
    draw_and_weigh,
    draw_tokens,
    first_above,
    random_word,
    to_unit,
)
from scb.kernels.step.lazy_columns import column_sum
from scb.kernels.threads import MOST_SHARES

TILE = 8
# Neighbouring positions that add into tables of their own, so that they need not wait for each
# other
LANES = 8


class LabelSampler(NamedTuple):
    """The distributions of the last token k ~ μ, the source ~ q^(k) and the label ~ P[:, source],
    each of which needs one uniform number; a source is a head and a position.
    """

    mu: np.ndarray  # (N,), cumulative
    # (Q, N), where the sources of each k may be
    positions: np.ndarray
    # (Q, N), cumulative in each column
    q: np.ndarray
    # (N, H·N), the matrices of all heads side by side, cumulative in each column
    P: np.ndarray
    # (Q, N), where in P the matrix of a source's head begins
    first: np.ndarray


class TaskSampler(NamedTuple):
    """A task in the form that the kernels use to draw samples.

    Attributes
    ----------
    tokens : TokenSampler
        The distribution of the tokens.
    labels : LabelSampler
        The distributions of last tokens, sources and labels.

    Examples
    --------
    >>> import scb
    >>> from scb.training.sources.sampled import Fresh
    >>> Fresh(scb.Task.random(N=3, T=100, sparsity=2, seed=0)).sampler.labels.positions.shape
    (2, 3)
    """

    tokens: TokenSampler
    labels: LabelSampler


class MiniBatch(NamedTuple):
    """Everything that is random in a mini-batch except its tokens, and its division: where shares,
    tiles and segments begin and end.

    ``kernels.step`` has a drawing. A tile holds whole segments, or a piece of a segment longer than
    ``TILE``.
    """

    lasts: np.ndarray  # (B,), last tokens, ascending
    # (B,), the streams of the samples' tokens
    keys: np.ndarray
    # (2, B), what decides source and label
    uniforms: np.ndarray
    shares: np.ndarray  # which depend on the sizes alone, not on threads
    tiles: np.ndarray
    segments: np.ndarray
    # Of each segment, or −1: its column is updated in place
    accumulator: np.ndarray


class Tile(NamedTuple):
    """Memory for the samples of one tile, which a share reuses for each of its tiles."""

    tokens: np.ndarray  # (TILE, T)
    labels: np.ndarray  # (TILE,)
    # (TILE, H·N), attention's mass Xa on each token, head by head
    mass: np.ndarray
    # (TILE, H·N), the derivative of the loss in the mass
    scores: np.ndarray
    # (LANES, N), partial sums of the mass
    lanes: np.ndarray
    scratch: TokenScratch


@compiled
def share_count(batch_size, T):
    """Return the number of shares of a mini-batch; more shares would serve more threads, but each
    share has its own gradient in V.
    """
    return min(max(batch_size * T >> 18, 2), MOST_SHARES)


@compiled
def draw_mini_batch(key, mu, batch_size, T, in_place):
    """Draw everything that is random in a mini-batch except its tokens, from the stream ``key``.
    Twin: ``draw_mini_batch``.

    ``mu`` is cumulative. ``in_place`` says whether segments may do without an accumulator.
    """
    keys = np.empty(batch_size, np.uint64)
    uniforms = np.empty((2, batch_size))
    count_of = np.zeros(mu.size, np.int64)
    for i in range(batch_size):
        count_of[first_above(mu, to_unit(random_word(key, i)))] += 1
        uniforms[0, i] = to_unit(random_word(key, batch_size + i))
        uniforms[1, i] = to_unit(random_word(key, 2 * batch_size + i))
        keys[i] = random_word(key, 3 * batch_size + i)
    lasts = np.empty(batch_size, np.int64)
    i = different = 0
    for k in range(mu.size):
        different += count_of[k] > 0
        for _ in range(count_of[k]):
            lasts[i] = k
            i += 1
    count = share_count(batch_size, T)
    shares = np.empty(count + 1, np.int64)
    for share in range(count + 1):
        shares[share] = share * batch_size // count
    if different >= 16 * count:  # shares stay even if no column is split between two
        for share in range(1, count):
            while shares[share] < batch_size and lasts[shares[share]] == lasts[shares[share] - 1]:
                shares[share] += 1
    tiles, segments, accumulator = _lay_out(lasts, shares, in_place)
    return MiniBatch(lasts, keys, uniforms, shares, tiles, segments, accumulator)


@compiled
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
            split = (i == shares[share] and i > 0 and lasts[i - 1] == lasts[i]) or (
                j < B and lasts[j] == lasts[i]
            )
            if in_place and not split and j - i <= TILE:
                accumulator[segment] = -1
            else:
                accumulator[segment] = used
                used += 1
            segment += 1
            if i == shares[share] or j - begin > TILE:
                # a new tile; a long segment makes several
                for begin in range(i, j, TILE):
                    tiles[tile] = begin
                    tile += 1
            i = j
    segments[segment] = tiles[tile] = B
    return tiles[: tile + 1], segments[: segment + 1], accumulator[:segment]


@compiled(inline=True)
def draw_samples(begin, end, batch, sampler, raw, offset, tile, first):
    """Draw the samples begin … end − 1, which share their last token k: their tokens, the mass Xa
    that column a = raw + offset puts on each token, and their labels, into the tile from ``first``.

    With several heads, a column has T entries for each head, and a mass has N entries for each
    head.
    """
    N = raw.shape[1]
    T = tile.tokens.shape[1]
    k = batch.lasts[begin]
    shift = offset[k]
    for i in range(begin, end):
        row = first + i - begin
        tokens = tile.tokens[row]
        if N > 3:
            draw_tokens(batch.keys[i], sampler.tokens, tile.scratch, tokens)
        for head in range(raw.shape[0] // T):
            a = raw[head * T : (head + 1) * T, k]
            mass = tile.mass[row, head * N : (head + 1) * N]
            if N > 3:
                _weigh_in_lanes(a, shift, tokens, tile.lanes, mass)
                continue
            # Above is the mass on tokens 1 and up, last on N − 1; the first head draws in this pass
            if head == 0:
                above, last = draw_and_weigh(
                    batch.keys[i], sampler.tokens, tile.scratch, tokens, a, shift
                )
            else:
                above, last = _weigh_drawn(a, shift, tokens, N - 1)
            if i == begin:
                # The mass on all tokens together, which up to three tokens gives that on token 0
                tile.lanes[0, head] = column_sum(a) + T * shift
            mass[0] = tile.lanes[0, head] - above
            if N == 3:
                mass[1] = above - last
            mass[N - 1] = last
        # The source is a position of the support; the label follows from its token and its head
        slot = choose(sampler.labels.q[:, k], batch.uniforms[0, i])
        source = tokens[sampler.labels.positions[slot, k]] + sampler.labels.first[slot, k]
        tile.labels[row] = choose(sampler.labels.P[:, source], batch.uniforms[1, i])


@compiled(inline=True)
def _weigh_in_lanes(a, shift, tokens, lanes, mass):
    """The mass of a + shift on each token, added up in lanes."""
    N = mass.size
    for lane in range(LANES):
        for n in range(N):
            lanes[lane, n] = 0.0
    whole = tokens.size - tokens.size % LANES
    for t in range(0, whole, LANES):
        for lane in range(LANES):
            lanes[lane, tokens[t + lane]] += a[t + lane] + shift
    for t in range(whole, tokens.size):
        lanes[0, tokens[t]] += a[t] + shift
    for n in range(N):
        mass[n] = 0.0
        for lane in range(LANES):
            mass[n] += lanes[lane, n]


@compiled(reorder=True)
def _weigh_drawn(a, shift, tokens, top):
    """The mass of a + shift on tokens 1 and up, and on token ``top``."""
    above = last = 0.0
    for t in range(a.size):
        x = a[t] + shift
        above += x * np.float64(tokens[t] >= 1)
        last += x * np.float64(tokens[t] == top)
    return above, last


@compiled(inline=True)
def differentiate(V, labels, mass, scores, gV):
    """With r = V·mass − e_o: scores = Vᵀr, gV += r·massᵀ for the samples of a tile, one per row;
    returns the summed loss ½‖r‖².

    Four samples at a time, to read V and touch gV less often.
    """
    for i in range(mass.shape[0]):
        for n in range(mass.shape[1]):
            scores[i, n] = 0.0
    fours = mass.shape[0] // 4 * 4
    loss = 0.0
    for i in range(0, fours, 4):
        loss += _differentiate_four(V, labels, mass, scores, i, gV)
    for i in range(fours, mass.shape[0]):
        loss += _differentiate_one(V, labels[i], mass[i], scores[i], gV)
    return loss


@compiled(reorder=True)
def _differentiate_one(V, o, a, u, gV):
    loss = 0.0
    for n in range(V.shape[0]):
        s = -1.0 if n == o else 0.0
        for m in range(a.size):
            s += V[n, m] * a[m]
        loss += 0.5 * s * s
        for m in range(a.size):
            u[m] += s * V[n, m]
            gV[n, m] += s * a[m]
    return loss


@compiled(reorder=True)
def _differentiate_four(V, o, mass, scores, i, gV):
    a0, a1, a2, a3 = mass[i], mass[i + 1], mass[i + 2], mass[i + 3]
    u0, u1, u2, u3 = scores[i], scores[i + 1], scores[i + 2], scores[i + 3]
    loss = 0.0
    for n in range(V.shape[0]):
        v = V[n]
        g = gV[n]
        s0 = -1.0 if n == o[i] else 0.0
        s1 = -1.0 if n == o[i + 1] else 0.0
        s2 = -1.0 if n == o[i + 2] else 0.0
        s3 = -1.0 if n == o[i + 3] else 0.0
        for m in range(v.size):
            s0 += v[m] * a0[m]
            s1 += v[m] * a1[m]
            s2 += v[m] * a2[m]
            s3 += v[m] * a3[m]
        loss += 0.5 * ((s0 * s0 + s1 * s1) + (s2 * s2 + s3 * s3))
        for m in range(v.size):
            u0[m] += s0 * v[m]
            u1[m] += s1 * v[m]
            u2[m] += s2 * v[m]
            u3[m] += s3 * v[m]
        for m in range(v.size):
            g[m] += (s0 * a0[m] + s1 * a1[m]) + (s2 * a2[m] + s3 * a3[m])
    return loss


@compiled(reorder=True)
def add_scores(tokens, scores, first, begin, g):
    """g[t] += Σ_i scores[i, first + x_i(begin + t)] for all t of g; four and two samples at a time
    to touch g less often. The scores of a head begin at ``first``.
    """
    i = 0
    end = begin + g.size
    while i + 4 <= len(tokens):
        x0, x1 = tokens[i, begin:end], tokens[i + 1, begin:end]
        x2, x3 = tokens[i + 2, begin:end], tokens[i + 3, begin:end]
        u0, u1, u2, u3 = (
            scores[i, first:],
            scores[i + 1, first:],
            scores[i + 2, first:],
            scores[i + 3, first:],
        )
        for t in range(g.size):
            g[t] += (u0[x0[t]] + u1[x1[t]]) + (u2[x2[t]] + u3[x3[t]])
        i += 4
    if i + 2 <= len(tokens):
        x0, x1 = tokens[i, begin:end], tokens[i + 1, begin:end]
        u0, u1 = scores[i, first:], scores[i + 1, first:]
        for t in range(g.size):
            g[t] += u0[x0[t]] + u1[x1[t]]
        i += 2
    if i < len(tokens):
        x0, u0 = tokens[i, begin:end], scores[i, first:]
        for t in range(g.size):
            g[t] += u0[x0[t]]
