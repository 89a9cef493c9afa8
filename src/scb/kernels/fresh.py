"""Draw a mini-batch, predict and differentiate in one pass.

Neither a (B, T) batch nor a dense (T, N) gradient is ever held: samples are sorted by their last token k, so that each
column of the gradient is built up on its own, and tokens outlive only their group of ``GROUP`` samples.
"""

from __future__ import annotations

import numba
import numpy as np

from scb.kernels.tokens import CHUNK, draw_tokens

GROUP = 8
LANES = 8
_FAST = {
    "reassoc",
    "contract",
    "nsz",
}  # sums may be reordered, so that they vectorise; NaN and infinity stay what they are


@numba.njit(cache=True, fastmath=_FAST)
def _mass_by_comparison(a, tokens, mass):
    """mass[n] = Σ_t a_t [x_t = n] for few tokens n, from the sums over x_t ≥ n."""
    above = a.sum()
    for n in range(mass.size - 1):
        s = 0.0
        for t in range(tokens.size):
            s += a[t] * np.float64(tokens[t] > n)
        mass[n] = above - s
        above = s
    mass[-1] = above


@numba.njit(cache=True)
def _mass_by_scatter(a, tokens, lanes, mass):
    """The same for many tokens; neighbouring positions add into tables of their own, so that they need not wait."""
    lanes[:] = 0.0
    whole = tokens.size - tokens.size % LANES
    for t in range(0, whole, LANES):
        for lane in range(LANES):
            lanes[lane, tokens[t + lane]] += a[t + lane]
    for t in range(whole, tokens.size):
        lanes[0, tokens[t]] += a[t]
    for n in range(mass.size):
        mass[n] = lanes[:, n].sum()


@numba.njit(cache=True)
def _choose(cumulative, u):
    row = 0
    while u >= cumulative[row]:
        row += 1
    return row


@numba.njit(cache=True, fastmath=_FAST)
def _differentiate(V, labels, mass, r, scores, gV):
    """r = V·mass − e_o, scores = Vᵀr, gV += r·massᵀ for a group of samples (one a row); the summed loss."""
    loss = 0.0
    samples, N = mass.shape
    scores[:] = 0.0
    for n in range(N):
        for i in range(samples):
            s = 0.0
            for m in range(N):
                s += V[n, m] * mass[i, m]
            s -= 1.0 if labels[i] == n else 0.0
            r[i, n] = s
            loss += 0.5 * s * s
        for i in range(samples):
            s = r[i, n]
            for m in range(N):
                scores[i, m] += s * V[n, m]
                gV[n, m] += s * mass[i, m]
    return loss


@numba.njit(cache=True, fastmath=_FAST)
def _collect(tokens, scores, g):
    """g[t] += Σ_i scores[i, x_it] over samples that share a column; four and two at a time to touch g less often."""
    i = 0
    while i + 4 <= len(tokens):
        x0, x1, x2, x3 = tokens[i], tokens[i + 1], tokens[i + 2], tokens[i + 3]
        u0, u1, u2, u3 = scores[i], scores[i + 1], scores[i + 2], scores[i + 3]
        for t in range(g.size):
            g[t] += (u0[x0[t]] + u1[x1[t]]) + (u2[x2[t]] + u3[x3[t]])
        i += 4
    if i + 2 <= len(tokens):
        x0, x1, u0, u1 = tokens[i], tokens[i + 1], scores[i], scores[i + 1]
        for t in range(g.size):
            g[t] += u0[x0[t]] + u1[x1[t]]
        i += 2
    if i < len(tokens):
        x0, u0 = tokens[i], scores[i]
        for t in range(g.size):
            g[t] += u0[x0[t]]


@numba.njit(cache=True)
def _part(lasts, keys, uniforms, law, positions, cumulative_q, cumulative_p, V, A, buffers, token, G, gV):
    """One part of a batch, by one thread: its summed loss; adds to its own columns of G (T, ·) and its own gV."""
    T, N = A.shape
    words, ties = np.empty(CHUNK // 4, np.uint64), np.empty(CHUNK, np.uint8)
    tokens, labels = np.empty((GROUP, T), token.dtype), np.empty(GROUP, np.int64)
    mass, r, scores = np.empty((GROUP, N)), np.empty((GROUP, N)), np.empty((GROUP, N))
    lanes = np.empty((LANES, N))
    loss = 0.0
    for first in range(0, lasts.size, GROUP):
        size = min(GROUP, lasts.size - first)
        for i in range(size):
            k = lasts[first + i]
            draw_tokens(keys[first + i], law, words, ties, tokens[i])
            if N <= 3:
                _mass_by_comparison(A[:, k], tokens[i], mass[i])
            else:
                _mass_by_scatter(A[:, k], tokens[i], lanes, mass[i])
            slot = _choose(cumulative_q[:, k], uniforms[first + i, 0])
            labels[i] = _choose(cumulative_p[:, tokens[i, positions[slot, k]]], uniforms[first + i, 1])
        loss += _differentiate(V, labels[:size], mass[:size], r[:size], scores[:size], gV)
        i = 0
        while i < size:
            j = i + 1
            while j < size and buffers[first + j] == buffers[first + i]:
                j += 1
            _collect(tokens[i:j], scores[i:j], G[:, buffers[first + i]])
            i = j
    return loss


@numba.njit(cache=True, parallel=True)
def fresh_columns(
    parts, lasts, keys, uniforms, law, positions, cumulative_q, cumulative_p, V, A, buffers, token, G, gV
):
    """Losses (parts,) of a batch; adds gradients to gV (parts, N, N) and to the columns of G (T, ·).

    Sample i has last token ``lasts[i]`` (ascending), tokens from the stream ``keys[i]``, source and label by ``uniforms[i]``,
    and adds to column ``buffers[i]`` of G, which belongs to one part and one k. ``parts`` holds where each part begins, and
    the end; it does not depend on the number of threads, and nor does the result. Twin: ``reference.fresh_gradient``.
    """
    losses = np.empty(parts.size - 1)
    for part in numba.prange(parts.size - 1):
        own = slice(parts[part], parts[part + 1])
        losses[part] = _part(
            lasts[own],
            keys[own],
            uniforms[own],
            law,
            positions,
            cumulative_q,
            cumulative_p,
            V,
            A,
            buffers[own],
            token,
            G,
            gV[part],
        )
    return losses
