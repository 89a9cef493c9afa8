"""Draw a mini-batch, predict and differentiate in one pass.

Neither a (B, T) batch nor a dense (T, N) gradient is ever held: samples are sorted by their last token k, so that each
column of the gradient is built up on its own, and tokens outlive only their group of at most ``GROUP`` samples.

A column of A is kept as ``raw[:, k] + offset[k]``, so that the projection onto 1ᵀa = 1 changes one number.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from scb.kernels.tokens import FAST, draw_and_weigh, draw_tokens, token_scratch
from scb.kernels.words import ALL, fill_words, to_unit

PARTS = 4  # at most; more would serve more threads, but each has a gradient in V of its own
GROUP = 8
LANES = 8


class TaskLaw(NamedTuple):
    """A task, ready for drawing: the fields of ``TokenLaw``, cumulative μ (N,), positions, cumulative q and cumulative P."""

    whole: np.ndarray
    fraction: np.ndarray
    table: np.ndarray
    none: np.unsignedinteger
    shift: np.uint16
    mask: np.uint64
    mu: np.ndarray
    positions: np.ndarray
    q: np.ndarray
    P: np.ndarray


class Batch(NamedTuple):
    """A batch before its tokens are drawn, and who computes what. A *run* is the samples of one part with one last token.

    Attributes
    ----------
    lasts, keys, uniforms : (B,) ascending, (B,), (2, B): last tokens, streams of the tokens, what decides source and label
    parts : where each part begins, and the end. A part is one thread's work; parts depend on the sizes alone
    groups : where each group begins, and the end; a group holds whole runs, or a piece of a run longer than ``GROUP``
    runs : where each run begins, and the end
    buffers : for each run the column of the gradient buffer that it fills; −1 if its column needs none, because all its
        samples are in one group
    """

    lasts: np.ndarray
    keys: np.ndarray
    uniforms: np.ndarray
    parts: np.ndarray
    groups: np.ndarray
    runs: np.ndarray
    buffers: np.ndarray


@numba.njit(cache=True)
def draw_batch(key, law, batch_size, T, direct):
    """Everything random about a batch but its tokens, from the stream ``key``. Twin: ``reference.draw_batch``.

    ``direct`` says whether runs may do without a buffer.
    """
    words = np.empty(4 * batch_size, np.uint64)
    fill_words(key, 0, ALL, words)
    lasts, uniforms = np.empty(batch_size, np.int64), np.empty((2, batch_size))
    for i in range(batch_size):
        lasts[i] = np.searchsorted(law.mu, to_unit(words[i]), side="right")
        uniforms[0, i] = to_unit(words[batch_size + i])
        uniforms[1, i] = to_unit(words[2 * batch_size + i])
    lasts.sort()
    count = min(max(batch_size * T >> 18, 2), PARTS)
    parts = np.arange(count + 1) * batch_size // count
    if lasts.size and 16 * count <= np.unique(lasts).size:  # many columns: none is shared by two parts
        for p in range(1, count):
            while parts[p] < batch_size and lasts[parts[p]] == lasts[parts[p] - 1]:
                parts[p] += 1
    return _lay_out(lasts, words[3 * batch_size :], uniforms, parts, direct)


@numba.njit(cache=True)
def _lay_out(lasts, keys, uniforms, parts, direct):
    B = lasts.size
    runs, buffers, groups = np.empty(B + 1, np.int64), np.empty(B, np.int64), np.empty(B + 1, np.int64)
    run = group = used = 0
    for p in range(parts.size - 1):
        i = parts[p]
        begin = i  # of the current group
        while i < parts[p + 1]:
            j = i + 1
            while j < parts[p + 1] and lasts[j] == lasts[i]:
                j += 1
            runs[run] = i
            split = (i == parts[p] and i > 0 and lasts[i - 1] == lasts[i]) or (j < B and lasts[j] == lasts[i])
            if direct and not split and j - i <= GROUP:
                buffers[run] = -1
            else:
                buffers[run] = used
                used += 1
            run += 1
            if i == parts[p] or j - begin > GROUP:
                begin = i
                while begin < j:  # a new group; a long run makes several
                    groups[group] = begin
                    group += 1
                    if j - begin <= GROUP:
                        break
                    begin += GROUP
            i = j
    runs[run] = groups[group] = B
    return Batch(lasts, keys, uniforms, parts, groups[: group + 1], runs[: run + 1], buffers[:run])


@numba.njit(cache=True)
def _mass_by_scatter(raw, offset, tokens, lanes, mass):
    """mass[n] = Σ_t a_t [x_t = n]; neighbouring positions add into tables of their own, so that they need not wait."""
    lanes[:] = 0.0
    whole = tokens.size - tokens.size % LANES
    for t in range(0, whole, LANES):
        for lane in range(LANES):
            lanes[lane, tokens[t + lane]] += raw[t + lane] + offset
    for t in range(whole, tokens.size):
        lanes[0, tokens[t]] += raw[t] + offset
    for n in range(mass.size):
        mass[n] = lanes[:, n].sum()


@numba.njit(cache=True, fastmath=FAST)
def column_sum(a):
    """Σ_t a_t."""
    s = 0.0
    for t in range(a.size):
        s += a[t]
    return s


@numba.njit(cache=True)
def choose(cumulative, u):
    """The first row whose cumulative probability exceeds u."""
    row = 0
    while u >= cumulative[row]:
        row += 1
    return row


@numba.njit(cache=True, fastmath=FAST)
def _differentiate_one(V, o, a, u, gV):
    loss = 0.0
    for n in range(a.size):
        s = -np.float64(n == o)
        for m in range(a.size):
            s += V[n, m] * a[m]
        loss += 0.5 * s * s
        for m in range(a.size):
            u[m] += s * V[n, m]
            gV[n, m] += s * a[m]
    return loss


@numba.njit(cache=True, fastmath=FAST)
def _differentiate_four(V, o, mass, scores, gV):
    a0, a1, a2, a3 = mass[0], mass[1], mass[2], mass[3]
    u0, u1, u2, u3 = scores[0], scores[1], scores[2], scores[3]
    loss = 0.0
    for n in range(a0.size):
        v, g = V[n], gV[n]
        s0, s1, s2, s3 = -np.float64(n == o[0]), -np.float64(n == o[1]), -np.float64(n == o[2]), -np.float64(n == o[3])
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


@numba.njit(cache=True)
def differentiate(V, labels, mass, scores, gV):
    """With r = V·mass − e_o: scores = Vᵀr, gV += r·massᵀ for the samples of a group (one a row); the summed loss ½‖r‖².

    Four samples at a time, to read V and touch gV less often.
    """
    scores[:] = 0.0
    fours, loss = mass.shape[0] // 4 * 4, 0.0
    for i in range(0, fours, 4):
        loss += _differentiate_four(V, labels[i : i + 4], mass[i : i + 4], scores[i : i + 4], gV)
    for i in range(fours, mass.shape[0]):
        loss += _differentiate_one(V, labels[i], mass[i], scores[i], gV)
    return loss


@numba.njit(cache=True, fastmath=FAST)
def collect(tokens, scores, begin, g):
    """g[t] += Σ_i scores[i, x_i(begin + t)] for all t of g; four and two samples at a time to touch g less often."""
    i, end = 0, begin + g.size
    while i + 4 <= len(tokens):
        x0, x1 = tokens[i, begin:end], tokens[i + 1, begin:end]
        x2, x3 = tokens[i + 2, begin:end], tokens[i + 3, begin:end]
        u0, u1, u2, u3 = scores[i], scores[i + 1], scores[i + 2], scores[i + 3]
        for t in range(g.size):
            g[t] += (u0[x0[t]] + u1[x1[t]]) + (u2[x2[t]] + u3[x3[t]])
        i += 4
    if i + 2 <= len(tokens):
        x0, x1, u0, u1 = tokens[i, begin:end], tokens[i + 1, begin:end], scores[i], scores[i + 1]
        for t in range(g.size):
            g[t] += u0[x0[t]] + u1[x1[t]]
        i += 2
    if i < len(tokens):
        x0, u0 = tokens[i, begin:end], scores[i]
        for t in range(g.size):
            g[t] += u0[x0[t]]


@numba.njit(cache=True)
def draw_group(begin, end, batch, law, raw, offset, tokens, labels, mass, lanes, scratch):
    """Tokens, labels and attention's mass on each token, for the samples begin … end − 1."""
    total, k = 0.0, -1
    for i in range(end - begin):
        changed, k = batch.lasts[begin + i] != k, batch.lasts[begin + i]
        if mass.shape[1] > 3:
            draw_tokens(batch.keys[begin + i], law, scratch, tokens[i])
            _mass_by_scatter(raw[:, k], offset[k], tokens[i], lanes, mass[i])
        else:
            if changed:
                total = column_sum(raw[:, k]) + len(raw) * offset[k]
            s, u = draw_and_weigh(batch.keys[begin + i], law, scratch, tokens[i], raw[:, k], offset[k])
            mass[i, 0], mass[i, 1] = total - s, s if mass.shape[1] == 2 else s - u
            mass[i, -1] = u
        slot = choose(law.q[:, k], batch.uniforms[0, begin + i])
        labels[i] = choose(law.P[:, tokens[i, law.positions[slot, k]]], batch.uniforms[1, begin + i])


@numba.njit(cache=True)
def _part(part, batch, law, V, raw, offset, tokens, G, gV):
    """One part of a batch, by one thread: its summed loss; fills its runs' columns of G (T, ·) and adds to its own gV."""
    N = raw.shape[1]
    scratch, labels = token_scratch(), np.empty(GROUP, np.int64)
    mass, scores, lanes = np.empty((GROUP, N)), np.empty((GROUP, N)), np.empty((LANES, N))
    loss = 0.0
    run = np.searchsorted(batch.runs, batch.parts[part])
    group = np.searchsorted(batch.groups, batch.parts[part])
    while batch.groups[group] < batch.parts[part + 1]:
        begin, end = batch.groups[group], batch.groups[group + 1]
        size = end - begin
        draw_group(begin, end, batch, law, raw, offset, tokens, labels, mass, lanes, scratch)
        loss += differentiate(V, labels[:size], mass[:size], scores[:size], gV)
        i = begin
        while i < end:
            j = min(batch.runs[run + 1], end)
            g = G[:, batch.buffers[run]]
            if i == batch.runs[run]:
                g[:] = 0.0
            collect(tokens[i - begin : j - begin], scores[i - begin : j - begin], 0, g)
            run += j == batch.runs[run + 1]
            i = j
        group += 1
    return loss


@numba.njit(cache=True, parallel=True)
def _parts_together(batch, law, V, raw, offset, tokens, G, gV, losses):
    for part in numba.prange(losses.size):
        losses[part] = _part(part, batch, law, V, raw, offset, tokens[part], G, gV[part])


@numba.njit(cache=True)
def fresh_columns(threads, batch, law, V, raw, offset, tokens, G, gV):
    """Summed loss of a batch; its gradients go to gV (parts, N, N), added, and to the columns of G (T, ·), replaced.

    ``tokens`` is scratch of shape (parts, GROUP, T). The result does not depend on ``threads``, nor on their number.
    Twin: ``reference.fresh_gradient``.
    """
    losses = np.empty(batch.parts.size - 1)
    if threads:
        _parts_together(batch, law, V, raw, offset, tokens, G, gV, losses)
    else:
        for part in range(losses.size):
            losses[part] = _part(part, batch, law, V, raw, offset, tokens[part], G, gV[part])
    return losses.sum()
