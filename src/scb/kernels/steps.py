"""Whole steps of the paper's update, fused with the drawing of their mini-batches.

What a step would do to a column that its batch does not touch (soft-threshold, project) waits until the column is touched or
read. Then all that waits is done at once, without a pass over T for each step: see ``catch_up``.

A column all of whose samples are in one group of one part is updated on the spot, while it is in the cache, without a gradient
in memory. The others go through gradient buffers, which are added up once all parts are done.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from scb.kernels.fresh import GROUP, LANES, PARTS, collect, column_sum, differentiate, draw_batch, draw_group
from scb.kernels.tokens import CHUNK, FAST, token_scratch

_BLOCK = 64
KEPT = 256  # a column with at most this many survivors is caught up without a pass over T


class Rule(NamedTuple):
    """Hyperparameters of a stage. λ of column k is (lam + per_spread·√K_V)·per_column[k]; ``limit`` bounds ‖V‖ and each ‖a^(k)‖."""

    batch_size: int
    eta_V: float
    eta_A: float
    lam: float
    per_spread: float
    per_column: np.ndarray
    centred: bool
    limit: float
    mu: np.ndarray


@numba.njit(cache=True, fastmath=FAST)
def _survey(raw, offset, first, bound):
    """How many entries x lie within ``first`` and within ``bound``, above and below it, and the sum beyond it."""
    zeros = inside = up = 0
    far = 0.0
    for t in range(raw.size):
        x = raw[t] + offset
        size = abs(x)
        zeros += size <= first
        inside += size <= bound
        up += x > bound
        far += x * np.float64(size > bound)
    return zeros, inside, up, far


@numba.njit(cache=True, fastmath=FAST)
def _rewrite(raw, offset, first, common, move_up, move_down):
    for t in range(raw.size):
        x = raw[t] + offset
        moved = x + (move_up if x > 0 else move_down)
        raw[t] = common if abs(x) <= first else moved


@numba.njit(cache=True)
def catch_up(raw, offset, lams, where, band):
    """Apply x ← soft(x, λ) + c, c = (1 − 1ᵀ soft(x, λ))/T, for each λ in turn to the column x = raw + offset, into raw.

    Since 1ᵀx = 1, |c| ≤ λ, so one step moves an entry towards 0 by at most 2λ. Entries beyond 2Σλ therefore keep their sign and
    move together. Those within the first λ become equal at once. Only the ones between, kept in ``where`` and ``band``
    (scratch of T each), are followed one by one. Twin: ``reference.catch_up``.
    """
    T, first, bound = raw.size, lams[0], 2.0 * lams.sum()
    zeros = between = up = down = 0
    far = 0.0
    for start in range(0, T, _BLOCK):
        block = raw[start : min(start + _BLOCK, T)]
        z, inside, u, f = _survey(block, offset, first, bound)
        zeros, up, down, far = zeros + z, up + u, down + block.size - inside - u, far + f
        if inside > z:
            for t in range(start, start + block.size):
                x = raw[t] + offset
                if first < abs(x) <= bound:
                    where[between], band[between] = t, x
                    between += 1
    common = move_up = move_down = 0.0  # soft(x) = 0 for the entries that become equal, as it would be for common = 0
    for lam in lams:
        common -= min(max(common, -lam), lam)
        total = far - lam * (up - down) + zeros * common
        for i in range(between):
            band[i] -= min(max(band[i], -lam), lam)
            total += band[i]
        c = (1.0 - total) / T
        common += c
        far += c * (up + down) - lam * (up - down)
        move_up += c - lam
        move_down += c + lam
        for i in range(between):
            band[i] += c
    _rewrite(raw, offset, first, common, move_up, move_down)
    for i in range(between):
        raw[where[i]] = band[i]


@numba.njit(cache=True)
def catch_up_survivors(raw, offset, lams, survivors, band):
    """The same for a column that is ``offset`` but for its ``survivors``: no pass over T. Returns the new offset."""
    common, others = offset, raw.size - survivors.size
    for i in range(survivors.size):
        band[i] = raw[survivors[i]] + offset
    for lam in lams:
        common -= min(max(common, -lam), lam)
        total = others * common
        for i in range(survivors.size):
            band[i] -= min(max(band[i], -lam), lam)
            total += band[i]
        c = (1.0 - total) / raw.size
        common += c
        for i in range(survivors.size):
            band[i] += c
    for i in range(survivors.size):
        raw[survivors[i]] = band[i] - common
    return common


@numba.njit(cache=True, fastmath=FAST)
def _descend(raw, shift, g, coefficient, lam):
    """raw ← soft(raw + shift − coefficient·g, λ); its sum and sum of squares."""
    s = square = 0.0
    for t in range(raw.size):
        x = raw[t] + shift - coefficient * g[t]
        y = x - lam if x > lam else (x + lam if x < -lam else 0.0 * x)  # 0·x keeps a NaN
        raw[t] = y
        s += y
        square += y * y
    return s, square


@numba.njit(cache=True)
def _descend_directly(raw, offset, tokens, scores, coefficient, lam, centred, g, kept):
    """The same with g made from tokens and scores, a chunk at a time in the scratch ``g``; survivors go into ``kept``."""
    T, mean = raw.size, 0.0
    if centred:
        for start in range(0, T, CHUNK):
            part = g[: min(CHUNK, T - start)]
            part[:] = 0.0
            collect(tokens, scores, start, part)
            mean += column_sum(part) / T
    s = square = 0.0
    count = 0
    for start in range(0, T, CHUNK):
        part = g[: min(CHUNK, T - start)]
        part[:] = 0.0
        collect(tokens, scores, start, part)
        shift = offset + coefficient * mean
        more, squares = _descend(raw[start : start + part.size], shift, part, coefficient, lam)
        s, square = s + more, square + squares
        if squares != 0.0 and count <= KEPT:
            for t in range(start, start + part.size):
                if raw[t] != 0.0:
                    if count < KEPT:
                        kept[count] = t
                    count += 1
    kept[KEPT] = count if count <= KEPT else -1
    return s, square


@numba.njit(cache=True, fastmath=FAST)
def _step_V(V, gV, mu, rate):
    """V ← V − rate·(I − 11ᵀ/N) gV diag(1/μ)(I − μμᵀ/‖μ‖²); gV comes in parts that are added up here."""
    N, G, mean, inverse, square = mu.size, gV[0], np.zeros(mu.size), 1.0 / mu, (mu * mu).sum()
    for n in range(N):
        for p in range(1, len(gV)):
            for m in range(N):
                G[n, m] += gV[p, n, m]
        for m in range(N):
            mean[m] += G[n, m] / N
    for n in range(N):
        along = 0.0
        for m in range(N):
            along += G[n, m] - mean[m]
        for m in range(N):
            V[n, m] -= rate * ((G[n, m] - mean[m]) * inverse[m] - along / square * mu[m])


@numba.njit(cache=True)
def _spread(V, mu):
    """K_V = ‖V − μ1ᵀ‖_μ²."""
    s = 0.0
    for n in range(mu.size):
        for m in range(mu.size):
            s += mu[m] * (V[n, m] - mu[n]) ** 2
    return s


@numba.njit(cache=True)
def _wait_no_more(k, step, A, offset, done, kept, lams, rule, where, band):
    """Do to column k what it has been waiting for, so that it stands before ``step``."""
    if done[k] < step and lams[:step].max() > 0:
        waiting, count = lams[done[k] : step] * rule.per_column[k], kept[k, KEPT]
        if count >= 0:
            offset[k] = catch_up_survivors(A[:, k], offset[k], waiting, kept[k, :count], band)
        else:
            catch_up(A[:, k], offset[k], waiting, where, band)
            offset[k] = 0.0
    done[k] = step


@numba.njit(cache=True)
def _part_of_step(part, step, batch, law, rule, V, A, offset, done, kept, lams, tokens, where, band, G, gV):
    """One part of a step, by one thread: its summed loss and the largest ‖a‖² of the columns that it has updated."""
    T, N = A.shape
    scratch, chunk, labels = token_scratch(), np.empty(CHUNK), np.empty(GROUP, np.int64)
    mass, scores, lanes = np.empty((GROUP, N)), np.empty((GROUP, N)), np.empty((LANES, N))
    loss = largest = 0.0
    run = np.searchsorted(batch.runs, batch.parts[part])
    group = np.searchsorted(batch.groups, batch.parts[part])
    while batch.groups[group] < batch.parts[part + 1]:
        begin, end = batch.groups[group], batch.groups[group + 1]
        size = end - begin
        i, coming = begin, run
        while i < end:  # a column is caught up just before it is read, so that it is in the cache
            j, at = min(batch.runs[coming + 1], end), i - begin
            if batch.buffers[coming] < 0:
                _wait_no_more(batch.lasts[i], step, A, offset, done, kept, lams, rule, where, band)
            draw_group(i, j, batch, law, A, offset, tokens[at:], labels[at:], mass[at:], lanes, scratch)
            coming += 1
            i = j
        loss += differentiate(V, labels[:size], mass[:size], scores[:size], gV)
        i = begin
        while i < end:
            j, k = min(batch.runs[run + 1], end), batch.lasts[i]
            x, u = tokens[i - begin : j - begin], scores[i - begin : j - begin]
            if batch.buffers[run] < 0:
                coefficient = rule.eta_A / (rule.mu[k] * rule.batch_size)
                lam = lams[step] * rule.per_column[k]
                s, square = _descend_directly(A[:, k], offset[k], x, u, coefficient, lam, rule.centred, chunk, kept[k])
                offset[k], done[k], largest = (1.0 - s) / T, step + 1, max(largest, square)
            else:
                g = G[:, batch.buffers[run]]
                if i == batch.runs[run]:
                    g[:] = 0.0
                collect(x, u, 0, g)
            run += j == batch.runs[run + 1]
            i = j
        group += 1
    return loss, largest


@numba.njit(cache=True)
def _finish_column(run, step, batch, rule, A, offset, done, kept, lams, G):
    """Update the column of a run, the first of its column, from the gradient buffers of all its runs."""
    T, k = len(A), batch.lasts[batch.runs[run]]
    g = G[:, batch.buffers[run]]
    other = run + 1
    while other < batch.buffers.size and batch.lasts[batch.runs[other]] == k:
        g += G[:, batch.buffers[other]]
        other += 1
    coefficient = rule.eta_A / (rule.mu[k] * rule.batch_size)
    shift = offset[k] + (coefficient * column_sum(g) / T if rule.centred else 0.0)
    s, square = _descend(A[:, k], shift, g, coefficient, lams[step] * rule.per_column[k])
    offset[k], done[k], kept[k, KEPT] = (1.0 - s) / T, step + 1, -1
    return square


@numba.njit(cache=True, parallel=True)
def _parts_together(
    step, batch, law, rule, V, A, offset, done, kept, lams, tokens, where, band, G, gV, losses, largest
):
    for part in numba.prange(losses.size):
        own = tokens[part], where[part], band[part], G, gV[part]
        losses[part], largest[part] = _part_of_step(part, step, batch, law, rule, V, A, offset, done, kept, lams, *own)


@numba.njit(cache=True)
def _parts_in_turn(step, batch, law, rule, V, A, offset, done, kept, lams, tokens, where, band, G, gV, losses, largest):
    for part in range(losses.size):
        own = tokens[part], where[part], band[part], G, gV[part]
        losses[part], largest[part] = _part_of_step(part, step, batch, law, rule, V, A, offset, done, kept, lams, *own)


@numba.njit(cache=True)
def _flush(part, step, A, offset, done, kept, lams, rule, where, band):
    """Bring every ``PARTS``-th column up to date, and its offset into A."""
    for k in range(part, A.shape[1], PARTS):
        _wait_no_more(k, step, A, offset, done, kept, lams, rule, where, band)
        A[:, k] += offset[k]


@numba.njit(cache=True, parallel=True)
def _flush_together(step, A, offset, done, kept, lams, rule, where, band):
    for part in numba.prange(PARTS):
        _flush(part, step, A, offset, done, kept, lams, rule, where[part], band[part])


@numba.njit(cache=True)
def fused_steps(threads, keys, law, rule, V, A, token):
    """One step for each of ``keys`` on V (N, N) and A (T, N), in place.

    λ uses the K_V of the V before each step. Returns the number of steps done, which is smaller than the number of keys if V or
    A leaves the limit, and the mean loss of the last one. Twin: ``Fresh`` followed by ``recipes.stages.proximal_step``.
    """
    T, N = A.shape
    offset, done, lams = np.zeros(N), np.zeros(N, np.int64), np.zeros(keys.size)
    kept = np.full((N, KEPT + 1), -1)  # survivors of each column and how many; −1: not known
    G, gV = np.empty((0, T)).T, np.empty((PARTS, N, N))
    tokens, where, band = np.empty((PARTS, GROUP, T), token.dtype), np.empty((PARTS, T), np.int64), np.empty((PARTS, T))
    losses, largest = np.empty(PARTS), np.empty(PARTS)
    loss = 0.0
    for step in range(keys.size):
        lams[step] = rule.lam + (rule.per_spread * np.sqrt(_spread(V, rule.mu)) if rule.per_spread > 0 else 0.0)
        batch = draw_batch(keys[step], law, rule.batch_size, T, True)
        if batch.buffers.max() >= G.shape[1]:
            G = np.empty((batch.buffers.max() + 3, T)).T
        for run in range(batch.buffers.size):
            if batch.buffers[run] >= 0:
                _wait_no_more(batch.lasts[batch.runs[run]], step, A, offset, done, kept, lams, rule, where[0], band[0])
        parts = batch.parts.size - 1
        gV[:parts] = 0.0
        out = gV[:parts], losses[:parts], largest[:parts]
        state = V, A, offset, done, kept, lams, tokens, where, band, G
        if threads:
            _parts_together(step, batch, law, rule, *state, *out)
        else:
            _parts_in_turn(step, batch, law, rule, *state, *out)
        worst = out[2].max()
        for run in range(batch.buffers.size):
            if batch.buffers[run] >= 0 and done[batch.lasts[batch.runs[run]]] <= step:
                worst = max(worst, _finish_column(run, step, batch, rule, A, offset, done, kept, lams, G))
        _step_V(V, out[0], rule.mu, rule.eta_V / rule.batch_size)
        loss = out[1].sum() / rule.batch_size
        if not max((V * V).sum(), worst) < rule.limit**2:
            return step, loss
    if threads:
        _flush_together(keys.size, A, offset, done, kept, lams, rule, where, band)
    else:
        for part in range(PARTS):
            _flush(part, keys.size, A, offset, done, kept, lams, rule, where[part], band[part])
    return keys.size, loss
