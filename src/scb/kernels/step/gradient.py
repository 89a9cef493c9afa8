"""Draw the samples of a tile, predict, and differentiate."""

from typing import NamedTuple

import numba
import numpy as np

from scb.kernels import REORDER
from scb.kernels.random import TokenScratch, choose, draw_and_weigh, draw_tokens, token_scratch
from scb.kernels.step.batch import TILE

_LANES = 8


class Tile(NamedTuple):
    """Memory for the samples of one tile; a share fills and reads it again for each of its tiles."""

    tokens: np.ndarray  # (TILE, T)
    labels: np.ndarray  # (TILE,)
    mass: np.ndarray  # (TILE, N), attention's mass Xa on each token
    scores: np.ndarray  # (TILE, N), the derivative of the loss in the mass
    lanes: np.ndarray  # (_LANES, N), partial sums of the mass
    scratch: TokenScratch


@numba.njit(cache=True)
def new_tile(tokens, N):
    """A tile that keeps its tokens in ``tokens`` (TILE, T)."""
    labels = np.empty(TILE, np.int64)
    return Tile(tokens, labels, np.empty((TILE, N)), np.empty((TILE, N)), np.empty((_LANES, N)), token_scratch())


@numba.njit(cache=True)
def draw_samples(begin, end, batch, law, raw, offset, tile, first):
    """Tokens, labels and mass of the samples begin … end − 1, which share their last token, into the tile from row ``first`` on."""
    N = raw.shape[1]
    k = batch.lasts[begin]
    total = column_sum(raw[:, k]) + len(raw) * offset[k] if N <= 3 else 0.0
    for i in range(begin, end):
        row = first + i - begin
        tokens = tile.tokens[row]
        mass = tile.mass[row]
        if N > 3:
            draw_tokens(batch.keys[i], law.tokens, tile.scratch, tokens)
            _mass_by_scatter(raw[:, k], offset[k], tokens, tile.lanes, mass)
        else:
            above, last = draw_and_weigh(batch.keys[i], law.tokens, tile.scratch, tokens, raw[:, k], offset[k])
            mass[0] = total - above
            if N == 3:
                mass[1] = above - last
            mass[N - 1] = last
        slot = choose(law.labels.q[:, k], batch.uniforms[0, i])
        source = tokens[law.labels.positions[slot, k]]
        tile.labels[row] = choose(law.labels.P[:, source], batch.uniforms[1, i])


@numba.njit(cache=True)
def _mass_by_scatter(raw, offset, tokens, lanes, mass):
    """mass[n] = Σ_t a_t [x_t = n]; neighbouring positions add into tables of their own, so that they need not wait."""
    lanes[:] = 0.0
    whole = tokens.size - tokens.size % _LANES
    for t in range(0, whole, _LANES):
        for lane in range(_LANES):
            lanes[lane, tokens[t + lane]] += raw[t + lane] + offset
    for t in range(whole, tokens.size):
        lanes[0, tokens[t]] += raw[t] + offset
    for n in range(mass.size):
        mass[n] = lanes[:, n].sum()


@numba.njit(cache=True, fastmath=REORDER)
def column_sum(a):
    """Σ_t a_t."""
    s = 0.0
    for t in range(a.size):
        s += a[t]
    return s


@numba.njit(cache=True)
def differentiate(V, labels, mass, scores, gV):
    """With r = V·mass − e_o: scores = Vᵀr, gV += r·massᵀ for the samples of a tile (one a row); the summed loss ½‖r‖².

    Four samples at a time, to read V and touch gV less often.
    """
    scores[:] = 0.0
    fours = mass.shape[0] // 4 * 4
    loss = 0.0
    for i in range(0, fours, 4):
        loss += _differentiate_four(V, labels[i : i + 4], mass[i : i + 4], scores[i : i + 4], gV)
    for i in range(fours, mass.shape[0]):
        loss += _differentiate_one(V, labels[i], mass[i], scores[i], gV)
    return loss


@numba.njit(cache=True, fastmath=REORDER)
def _differentiate_one(V, o, a, u, gV):
    loss = 0.0
    for n in range(a.size):
        s = -1.0 if n == o else 0.0
        for m in range(a.size):
            s += V[n, m] * a[m]
        loss += 0.5 * s * s
        for m in range(a.size):
            u[m] += s * V[n, m]
            gV[n, m] += s * a[m]
    return loss


@numba.njit(cache=True, fastmath=REORDER)
def _differentiate_four(V, o, mass, scores, gV):
    a0, a1, a2, a3 = mass[0], mass[1], mass[2], mass[3]
    u0, u1, u2, u3 = scores[0], scores[1], scores[2], scores[3]
    loss = 0.0
    for n in range(a0.size):
        v = V[n]
        g = gV[n]
        s0 = -1.0 if n == o[0] else 0.0
        s1 = -1.0 if n == o[1] else 0.0
        s2 = -1.0 if n == o[2] else 0.0
        s3 = -1.0 if n == o[3] else 0.0
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


@numba.njit(cache=True, fastmath=REORDER)
def add_scores(tokens, scores, begin, g):
    """g[t] += Σ_i scores[i, x_i(begin + t)] for all t of g; four and two samples at a time to touch g less often."""
    i = 0
    end = begin + g.size
    while i + 4 <= len(tokens):
        x0, x1 = tokens[i, begin:end], tokens[i + 1, begin:end]
        x2, x3 = tokens[i + 2, begin:end], tokens[i + 3, begin:end]
        u0, u1, u2, u3 = scores[i], scores[i + 1], scores[i + 2], scores[i + 3]
        for t in range(g.size):
            g[t] += (u0[x0[t]] + u1[x1[t]]) + (u2[x2[t]] + u3[x3[t]])
        i += 4
    if i + 2 <= len(tokens):
        x0, x1 = tokens[i, begin:end], tokens[i + 1, begin:end]
        u0, u1 = scores[i], scores[i + 1]
        for t in range(g.size):
            g[t] += u0[x0[t]] + u1[x1[t]]
        i += 2
    if i < len(tokens):
        x0, u0 = tokens[i, begin:end], scores[i]
        for t in range(g.size):
            g[t] += u0[x0[t]]
