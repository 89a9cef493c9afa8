"""Whole steps of the paper's update, fused with the drawing of their mini-batches; and the gradient of one mini-batch.

Numba compiles a function anew for every literal that it is called with. Where a literal stands below as ``np.int64(0)`` or
``np.bool_(True)``, that saves half of the compilation.
"""

from typing import NamedTuple

import numba
import numpy as np

from scb.kernels import REORDER
from scb.kernels.random import CHUNK, token_scratch
from scb.kernels.step.batch import LANES, SHARES, TILE, TaskLaw, Tile, add_scores, differentiate, draw_mini_batch, draw_samples
from scb.kernels.step.columns import SURVIVORS, apply_deferred_prox, column_sum, new_columns


class Hyperparameters(NamedTuple):
    """Those of a stage. λ of column k is (lam + per_spread·√K_V)·per_column[k]."""

    batch_size: int
    eta_V: float
    eta_A: float
    lam: float
    per_spread: float
    per_column: np.ndarray  # (N,)
    centred: bool  # whether the mean of each column's gradient is taken out before the proximal step
    limit: float  # a run has diverged once ‖V‖ or some ‖a^(k)‖ reaches it
    mu: np.ndarray  # (N,), of the preconditioner
    projector_row: np.ndarray  # (N,), the w of its projector H ↦ H − (Hμ)wᵀ


class Memory(NamedTuple):
    """What the shares of a step write to, each to its own; the first axis numbers them, but in ``accumulators``."""

    tokens: np.ndarray  # (SHARES, TILE, T)
    gV: np.ndarray  # (SHARES, N, N), summed gradients in V
    losses: np.ndarray  # (SHARES,), summed losses
    largest: np.ndarray  # (SHARES,), the largest ‖a‖² of the columns that were updated
    accumulators: np.ndarray  # (·, T), gradients of columns that are not updated in place


@numba.njit(cache=True)
def _new_memory(T, N, law, accumulators):
    tokens = np.empty((SHARES, TILE, T), law.tokens.table.dtype)
    return Memory(tokens, np.empty((SHARES, N, N)), np.empty(SHARES), np.empty(SHARES), np.empty((accumulators, T)))


@numba.njit(cache=True, fastmath=REORDER)
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
def _update_in_place(k, step, hyper, columns, tokens, scores, g):
    """Update column k from the tokens and scores of all its samples; a chunk of its gradient at a time is in ``g``. Its ‖·‖²."""
    raw = columns.raw[:, k]
    T = raw.size
    coefficient = hyper.eta_A / (hyper.mu[k] * hyper.batch_size)
    lam = columns.lams[step] * columns.lam_factor[k]
    mean = 0.0
    if hyper.centred:
        for start in range(0, T, CHUNK):
            chunk = g[: min(CHUNK, T - start)]
            chunk[:] = 0.0
            add_scores(tokens, scores, start, chunk)
            mean += column_sum(chunk) / T
    shift = columns.offset[k] + coefficient * mean
    s = square = 0.0
    count = 0
    for start in range(0, T, CHUNK):
        chunk = g[: min(CHUNK, T - start)]
        chunk[:] = 0.0
        add_scores(tokens, scores, start, chunk)
        s_here, square_here = _descend(raw[start : start + chunk.size], shift, chunk, coefficient, lam)
        s += s_here
        square += square_here
        if square_here != 0.0 and count <= SURVIVORS:
            for t in range(start, start + chunk.size):
                if raw[t] != 0.0:
                    if count < SURVIVORS:
                        columns.survivors[k, count] = t
                    count += 1
    columns.n_survivors[k] = count if count <= SURVIVORS else -1
    columns.offset[k] = (1.0 - s) / T
    columns.done[k] = step + 1
    return square


@numba.njit(cache=True)
def _update_from_accumulators(segment, step, batch, hyper, columns, accumulators):
    """Update the column of a segment, the first of its column, from the accumulators of all its segments. Its ‖·‖²."""
    k = batch.lasts[batch.segments[segment]]
    raw = columns.raw[:, k]
    g = accumulators[batch.accumulator[segment]]
    other = segment + 1
    while other < batch.accumulator.size and batch.lasts[batch.segments[other]] == k:
        g += accumulators[batch.accumulator[other]]
        other += 1
    coefficient = hyper.eta_A / (hyper.mu[k] * hyper.batch_size)
    shift = columns.offset[k]
    if hyper.centred:
        shift += coefficient * column_sum(g) / raw.size
    s, square = _descend(raw, shift, g, coefficient, columns.lams[step] * columns.lam_factor[k])
    columns.offset[k] = (1.0 - s) / raw.size
    columns.done[k] = step + 1
    columns.n_survivors[k] = -1
    return square


@numba.njit(cache=True)
def _take_share(share, step, batch, law, hyper, V, columns, memory):
    """Draw and differentiate one share of a mini-batch, and update the columns that need no accumulator."""
    N = V.shape[0]
    labels = np.empty(TILE, np.int64)
    tile = Tile(memory.tokens[share], labels, np.empty((TILE, N)), np.empty((TILE, N)), np.empty((LANES, N)), token_scratch())
    chunk = np.empty(CHUNK)
    gV = memory.gV[share]
    gV[:] = 0.0
    loss = largest = 0.0
    for number in range(np.searchsorted(batch.tiles, batch.shares[share]), np.searchsorted(batch.tiles, batch.shares[share + 1])):
        begin = batch.tiles[number]
        end = batch.tiles[number + 1]
        size = end - begin
        segments = range(np.searchsorted(batch.segments, begin + 1) - 1, np.searchsorted(batch.segments, end))
        for segment in segments:
            i = max(batch.segments[segment], begin)
            if batch.accumulator[segment] < 0:  # brought up to date just before it is read, so that it is in the cache
                apply_deferred_prox(batch.lasts[i], step, columns)
            draw_samples(i, min(batch.segments[segment + 1], end), batch, law, columns.raw, columns.offset, tile, i - begin)
        loss += differentiate(V, tile.labels[:size], tile.mass[:size], tile.scores[:size], gV)
        for segment in segments:
            i = max(batch.segments[segment], begin)
            j = min(batch.segments[segment + 1], end)
            tokens = tile.tokens[i - begin : j - begin]
            scores = tile.scores[i - begin : j - begin]
            if batch.accumulator[segment] < 0:
                largest = max(largest, _update_in_place(batch.lasts[i], step, hyper, columns, tokens, scores, chunk))
            else:
                g = memory.accumulators[batch.accumulator[segment]]
                if i == batch.segments[segment]:
                    g[:] = 0.0
                add_scores(tokens, scores, np.int64(0), g)
    memory.losses[share] = loss
    memory.largest[share] = largest


@numba.njit(cache=True, parallel=True)
def _take_shares_in_parallel(step, batch, token_law, label_law, hyper, V, columns, memory):
    # A parallel loop takes no nested tuples, so the law comes in two. Its index is unsigned, another type for ``_take_share``.
    for share in numba.prange(batch.shares.size - 1):
        _take_share(np.int64(share), step, batch, TaskLaw(token_law, label_law), hyper, V, columns, memory)


@numba.njit(cache=True)
def _take_shares(parallel, step, batch, law, hyper, V, columns, memory):
    if parallel:
        _take_shares_in_parallel(step, batch, law.tokens, law.labels, hyper, V, columns, memory)
    else:
        for share in range(batch.shares.size - 1):
            _take_share(share, step, batch, law, hyper, V, columns, memory)


@numba.njit(cache=True)
def mini_batch_gradient(parallel, key, law, batch_size, V, raw, offset, gA):
    """Summed loss and gradient in V of a mini-batch drawn from the stream ``key``, at V and A = raw + offset.

    The summed gradient in A is added to gA (T, N), of which only the columns of last tokens are touched. The result does
    not depend on ``parallel``, nor on the number of threads. Twin: ``mini_batch_gradient``.
    """
    T, N = raw.shape
    batch = draw_mini_batch(key, law.labels.mu, batch_size, T, np.bool_(False))
    memory = _new_memory(T, N, law, batch.accumulator.size)
    # Where every segment has an accumulator, the shares of a step only differentiate: hyperparameters are not looked at.
    hyper = Hyperparameters(batch_size, 0.0, 0.0, 0.0, 0.0, np.ones(N), False, 0.0, np.ones(N), np.ones(N))
    _take_shares(parallel, np.int64(0), batch, law, hyper, V, new_columns(raw, offset, 1, hyper.per_column), memory)
    for segment in range(batch.accumulator.size):
        gA[:, batch.lasts[batch.segments[segment]]] += memory.accumulators[batch.accumulator[segment]]
    shares = batch.shares.size - 1
    gV = memory.gV[0].copy()
    for share in range(1, shares):
        gV += memory.gV[share]
    return memory.losses[:shares].sum(), gV


@numba.njit(cache=True, fastmath=REORDER)
def _step_V(V, gV, mu, projector_row, rate):
    """V ← V − rate·(I − 11ᵀ/N) gV diag(1/μ)(I − μwᵀ), w the ``projector_row``; gV comes in shares that are added up here."""
    N = mu.size
    G = gV[0]
    mean = np.zeros(N)
    inverse = 1.0 / mu
    for n in range(N):
        for share in range(1, len(gV)):
            for m in range(N):
                G[n, m] += gV[share, n, m]
        for m in range(N):
            mean[m] += G[n, m] / N
    for n in range(N):
        along = 0.0
        for m in range(N):
            along += G[n, m] - mean[m]
        for m in range(N):
            V[n, m] -= rate * ((G[n, m] - mean[m]) * inverse[m] - along * projector_row[m])


@numba.njit(cache=True)
def _finish_column(k, step, columns):
    """Bring column k up to date, and its offset into raw."""
    apply_deferred_prox(k, step, columns)
    columns.raw[:, k] += columns.offset[k]


@numba.njit(cache=True, parallel=True)
def _finish_columns_in_parallel(step, columns):
    for k in numba.prange(columns.offset.size):
        _finish_column(np.int64(k), step, columns)


@numba.njit(cache=True)
def fused_steps(parallel, keys, law, hyper, V, A):
    """One step for each of ``keys`` on V (N, N) and A (T, N), in place.

    λ uses the K_V of the V before each step. Returns the number of steps done, which is smaller than the number of keys if V or
    A reaches the limit, and the mean loss of the last one. Twin: the source ``Fresh``, followed by ``stages.proximal_step``.
    """
    T, N = A.shape
    columns = new_columns(A, np.zeros(N), keys.size, hyper.per_column)
    # Segments that have an accumulator are longer than a tile, or lie on either side of a border between shares.
    memory = _new_memory(T, N, law, min(N, hyper.batch_size // (TILE + 1)) + 2 * (SHARES - 1))
    loss = 0.0
    for step in range(keys.size):
        columns.lams[step] = hyper.lam
        if hyper.per_spread > 0:
            spread = 0.0  # K_V = ‖V − μ1ᵀ‖_μ²
            for n in range(N):
                for m in range(N):
                    spread += hyper.mu[m] * (V[n, m] - hyper.mu[n]) ** 2
            columns.lams[step] += hyper.per_spread * np.sqrt(spread)
        batch = draw_mini_batch(keys[step], law.labels.mu, hyper.batch_size, T, np.bool_(True))
        for segment in range(batch.accumulator.size):
            if batch.accumulator[segment] >= 0:  # several shares may read these columns, so none may change them
                apply_deferred_prox(batch.lasts[batch.segments[segment]], step, columns)
        _take_shares(parallel, step, batch, law, hyper, V, columns, memory)
        shares = batch.shares.size - 1
        largest = memory.largest[:shares].max()
        for segment in range(batch.accumulator.size):
            if batch.accumulator[segment] >= 0 and columns.done[batch.lasts[batch.segments[segment]]] <= step:
                square = _update_from_accumulators(segment, step, batch, hyper, columns, memory.accumulators)
                largest = max(largest, square)
        _step_V(V, memory.gV[:shares], hyper.mu, hyper.projector_row, hyper.eta_V / hyper.batch_size)
        loss = memory.losses[:shares].sum() / hyper.batch_size
        if not max((V * V).sum(), largest) < hyper.limit**2:
            return step, loss
    if parallel:
        _finish_columns_in_parallel(keys.size, columns)
    else:
        for k in range(N):
            _finish_column(k, keys.size, columns)
    return keys.size, loss
