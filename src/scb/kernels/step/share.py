"""One share of a step: its samples are drawn and differentiated, and the columns that it has for
itself are updated.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.kernels.compiler import compiled
from scb.kernels.random import CHUNK, TokenScratch, first_above
from scb.kernels.step.batch import LANES, TILE, Tile, add_scores, differentiate, draw_samples
from scb.kernels.step.lazy_columns import SURVIVORS, apply_deferred_prox, column_sum
from scb.kernels.threads import MOST_SHARES


class Hyperparameters(NamedTuple):
    """The hyperparameters of a stage; λ of column k is (lam + per_spread·√K_V)·per_column[k]."""

    batch_size: int
    eta_V: float
    eta_A: float
    lam: float
    per_spread: float
    per_column: Array  # (N,)
    # Whether the mean of each column's gradient is taken out before the proximal step
    centred: bool
    # a run has diverged once ‖V‖ or some ‖a^(k)‖ reaches it
    limit: float
    mu: Array  # (N,), of the preconditioner
    # (N,), the w of its projector H ↦ H − (Hμ)wᵀ
    projector_row: Array


class Memory(NamedTuple):
    """The memory that the shares of a step write to; each share has its own place, which the first
    axis numbers, except in the last two arrays.

    The place of share i is 2i. If places were adjacent, the end of one and the beginning of the
    next would be in the same cache line, for which two threads would have to wait in turn.
    """

    tokens: NDArray[Any]  # (S, TILE, T)
    labels: NDArray[np.int64]  # (S, TILE)
    mass: Array  # (S, TILE, H·N)
    scores: Array  # (S, TILE, H·N)
    lanes: Array  # (S, LANES, N)
    # (S, CHUNK/4), these four are a ``TokenScratch`` for each share
    words: NDArray[np.uint64]
    w: NDArray[np.uint16]  # (S, CHUNK)
    ties: NDArray[np.uint8]  # (S, CHUNK)
    eights: NDArray[np.uint64]  # (S, CHUNK/8)
    chunk: Array  # (S, CHUNK)
    # (S, N, H·N), summed gradients in V
    gV: Array
    losses: Array  # (S,), summed losses
    # (S,), the largest ‖a‖² of the columns that were updated
    largest: Array
    # (·, H·T), gradients of columns that are not updated in place
    accumulators: Array
    # (·,), which column each belongs to where nothing is updated, or −1
    column: NDArray[np.int64]


def new_memory(T: int, N: int, heads: int, dtype: Any, accumulators: int) -> Memory:
    """Allocate memory for steps on columns of T positions for each head, with tokens of a given
    type.
    """
    S = 2 * MOST_SHARES
    words = np.empty((S, CHUNK // 4), np.uint64)
    eights = np.empty((S, CHUNK // 8), np.uint64)
    return Memory(
        tokens=np.empty((S, TILE, T), dtype),
        labels=np.empty((S, TILE), np.int64),
        mass=np.empty((S, TILE, heads * N)),
        scores=np.empty((S, TILE, heads * N)),
        lanes=np.empty((S, LANES, max(N, heads))),
        words=words,
        w=words.view(np.uint16),
        ties=eights.view(np.uint8),
        eights=eights,
        chunk=np.empty((S, CHUNK)),
        gV=np.empty((S, N, heads * N)),
        losses=np.empty(S),
        largest=np.empty(S),
        accumulators=np.empty((accumulators, heads * T)),
        column=np.full(accumulators, -1),
    )


@compiled
def _clear(values):
    for i in range(values.size):
        values[i] = 0.0


@compiled(reorder=True)
def descend(raw, shift, g, coefficient, lam):
    """Set raw ← soft(raw + shift − coefficient·g, λ), and return its sum and its sum of squares."""
    s = square = 0.0
    for t in range(raw.size):
        x = raw[t] + shift - coefficient * g[t]
        y = x - lam if x > lam else (x + lam if x < -lam else 0.0 * x)  # 0·x keeps a NaN
        raw[t] = y
        s += y
        square += y * y
    return s, square


@compiled(inline=True)
def _update_in_place(k, step, hyper, columns, tokens, scores, g):
    """Update column k from the tokens and scores of all its samples, and return its ‖·‖².

    The gradient is in ``g``, one chunk of positions at a time.
    """
    raw = columns.raw[:, k]
    T = tokens.shape[1]
    N = columns.raw.shape[1]
    coefficient = hyper.eta_A / (hyper.mu[k] * hyper.batch_size)
    lam = columns.lams[step] * columns.lam_factor[k]
    mean = 0.0
    if hyper.centred:
        for head in range(raw.size // T):
            for start in range(0, T, CHUNK):
                chunk = g[: min(CHUNK, T - start)]
                _clear(chunk)
                add_scores(tokens, scores, head * N, start, chunk)
                mean += column_sum(chunk) / raw.size
    shift = columns.offset[k] + coefficient * mean
    s = square = 0.0
    count = 0
    for head in range(raw.size // T):
        for start in range(0, T, CHUNK):
            chunk = g[: min(CHUNK, T - start)]
            _clear(chunk)
            add_scores(tokens, scores, head * N, start, chunk)
            begin = head * T + start
            s_here, square_here = descend(
                raw[begin : begin + chunk.size], shift, chunk, coefficient, lam
            )
            s += s_here
            square += square_here
            if square_here != 0.0 and count <= SURVIVORS:
                for t in range(begin, begin + chunk.size):
                    if raw[t] != 0.0:
                        if count < SURVIVORS:
                            columns.survivors[k, count] = t
                        count += 1
    columns.n_survivors[k] = count if count <= SURVIVORS else -1
    columns.offset[k] = (1.0 - s) / raw.size
    columns.done[k] = step + 1
    return square


@compiled(inline=True)
def _accumulate(tokens, scores, N, g):
    """Add the scores of all heads to the gradient g (H·T,) of a column."""
    T = tokens.shape[1]
    for head in range(g.size // T):
        # Not the literal 0, which would be another type.
        add_scores(tokens, scores, head * N, np.int64(0), g[head * T : (head + 1) * T])


@compiled(inline=True)
def take_share(share, step, batch, sampler, hyper, V, columns, memory):
    """Draw and differentiate one share of a mini-batch, and update the columns that need no
    accumulator.
    """
    place = 2 * share
    scratch = TokenScratch(
        memory.words[place], memory.w[place], memory.ties[place], memory.eights[place]
    )
    tile = Tile(
        memory.tokens[place],
        memory.labels[place],
        memory.mass[place],
        memory.scores[place],
        memory.lanes[place],
        scratch,
    )
    gV = memory.gV[place]
    gV[:] = 0.0
    loss = largest = 0.0
    first = first_above(batch.tiles, batch.shares[share] - 1)
    for number in range(first, first_above(batch.tiles, batch.shares[share + 1] - 1)):
        begin = batch.tiles[number]
        end = batch.tiles[number + 1]
        size = end - begin
        segments = range(
            first_above(batch.segments, begin) - 1, first_above(batch.segments, end - 1)
        )
        for segment in segments:
            i = max(batch.segments[segment], begin)
            j = min(batch.segments[segment + 1], end)
            # Bring the column up to date just before it is read, so that it is in the cache.
            if batch.accumulator[segment] < 0:
                apply_deferred_prox(batch.lasts[i], step, columns)
            draw_samples(i, j, batch, sampler, columns.raw, columns.offset, tile, i - begin)
        loss += differentiate(V, tile.labels[:size], tile.mass[:size], tile.scores[:size], gV)
        for segment in segments:
            i = max(batch.segments[segment], begin)
            j = min(batch.segments[segment + 1], end)
            tokens = tile.tokens[i - begin : j - begin]
            scores = tile.scores[i - begin : j - begin]
            if batch.accumulator[segment] < 0:
                k = batch.lasts[i]
                g = memory.chunk[place]
                largest = max(largest, _update_in_place(k, step, hyper, columns, tokens, scores, g))
            else:
                g = memory.accumulators[batch.accumulator[segment]]
                if i == batch.segments[segment]:
                    _clear(g)
                _accumulate(tokens, scores, columns.raw.shape[1], g)
    memory.losses[place] = loss
    memory.largest[place] = largest
