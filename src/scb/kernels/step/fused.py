"""Whole steps of the paper's update, fused with the drawing of their mini-batches; and the gradient
of one mini-batch.

There is one kernel, ``take_steps``, which Python calls on one or more threads
(``kernels.threads``). A step is a turn: the caller prepares it, any free thread draws and
differentiates shares of its mini-batch, and the caller adds up and updates. Results do not depend
on which thread took which share.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.kernels.compiler import compiled
from scb.kernels.step.batch import TILE, TaskSampler, draw_mini_batch, share_count
from scb.kernels.step.lazy_columns import apply_deferred_prox, column_sum, moments_of, new_columns
from scb.kernels.step.share import Hyperparameters, Memory, descend, new_memory, take_share
from scb.kernels.threads import (
    MOST_SHARES,
    OVER,
    await_shares,
    await_turn,
    hand_in,
    open_turn,
    run_together,
    take,
    thread_count,
)

# Tokens: a step with fewer is over before another thread has come to help
SHORT = 1 << 15


class Looks(NamedTuple):
    """The quantities that evaluations need of a run at several moments between its steps."""

    steps: NDArray[np.int64]  # (E,), how many had been taken
    losses: Array  # (E,), of the last mini-batches
    V: Array  # (E, N, N)
    moments: Array  # (E, 4, N), the sums of ``metrics.column_sums``
    on_support: Array  # (E, sparsity, N)

    @classmethod
    def room(cls, steps: NDArray[np.int64], sampler: TaskSampler, V: Array) -> "Looks":
        """Allocate memory for looks after so many steps."""
        E = len(steps)
        Q, N = sampler.labels.positions.shape
        sums = np.empty((E, 4, N)), np.empty((E, Q, N))
        return cls(steps, np.empty(E), np.empty((E, *V.shape)), *sums)

    def first(self, count: int) -> "Looks":
        """Return the first looks."""
        return Looks._make(array[:count] for array in self)


@compiled(inline=True)
def _update_from_accumulators(segment, step, batch, hyper, columns, accumulators):
    """Update the column of a segment, the first of its column, from the accumulators of all its
    segments. Its ‖·‖².
    """
    k = batch.lasts[batch.segments[segment]]
    raw = columns.raw[:, k]
    g = accumulators[batch.accumulator[segment]]
    other = segment + 1
    while other < batch.accumulator.size and batch.lasts[batch.segments[other]] == k:
        part = accumulators[batch.accumulator[other]]
        for t in range(g.size):
            g[t] += part[t]
        other += 1
    coefficient = hyper.eta_A / (hyper.mu[k] * hyper.batch_size)
    shift = columns.offset[k]
    if hyper.centred:
        shift += coefficient * column_sum(g) / raw.size
    s, square = descend(raw, shift, g, coefficient, columns.lams[step] * columns.lam_factor[k])
    columns.offset[k] = (1.0 - s) / raw.size
    columns.done[k] = step + 1
    columns.n_survivors[k] = -1
    return square


@compiled(reorder=True)
def _step_V(V, G, mean, inverse, mu, projector_row, rate):
    """V ← V − rate·(I − 11ᵀ/N) G diag(1/μ)(I − μwᵀ) in each head, w the ``projector_row``; mean and
    inverse are memory. The new ‖V‖².
    """
    N = mu.size
    square = 0.0
    for first in range(0, V.shape[1], N):
        for m in range(N):
            mean[m] = 0.0
            inverse[m] = 1.0 / mu[m]
        for n in range(N):
            g = G[n, first : first + N]
            for m in range(N):
                mean[m] += g[m] / N
        for n in range(N):
            v = V[n, first : first + N]
            g = G[n, first : first + N]
            along = 0.0
            for m in range(N):
                along += g[m] - mean[m]
            for m in range(N):
                v[m] -= rate * ((g[m] - mean[m]) * inverse[m] - along * projector_row[m])
                square += v[m] * v[m]
    return square


@compiled
def _lam(hyper, V):
    """lam + per_spread·√K_V, where K_V = ‖V − μ1ᵀ‖_μ², the largest of all heads."""
    if hyper.per_spread == 0.0:
        return hyper.lam
    largest = 0.0
    for first in range(0, V.shape[1], V.shape[0]):
        spread = 0.0
        for n in range(V.shape[0]):
            for m in range(V.shape[0]):
                spread += hyper.mu[m] * (V[n, first + m] - hyper.mu[n]) ** 2
        largest = max(largest, spread)
    return hyper.lam + hyper.per_spread * np.sqrt(largest)


@compiled
def _add_up(shares, losses, largest, gV):
    """Sums and maxima over the shares, all into the place of the first."""
    for place in range(2, 2 * shares, 2):
        losses[0] += losses[place]
        largest[0] = max(largest[0], largest[place])
        for n in range(gV.shape[1]):
            for m in range(gV.shape[2]):
                gV[0, n, m] += gV[place, n, m]


@compiled(inline=True)
def _finish_columns(share, shares, look, columns, positions, threshold, looks):
    """Bring every column of a share up to date, its offset into raw, and look at it."""
    for k in range(share, columns.raw.shape[1], shares):
        apply_deferred_prox(k, looks.steps[look], columns)
        raw = columns.raw[:, k]
        for t in range(raw.size):
            raw[t] += columns.offset[k]
        columns.offset[k] = 0.0
        columns.n_survivors[k] = -1
        sums = moments_of(raw, 1.0 / raw.size, threshold)
        for i in range(4):
            looks.moments[look, i, k] = sums[i]
        for i in range(positions.shape[0]):
            looks.on_support[look, i, k] = raw[positions[i, k]]


@compiled(inline=True)
def _prepare(step, batch, hyper, V, columns):
    """Before the shares of a step: its λ, and the columns that several shares read."""
    columns.lams[step] = _lam(hyper, V)
    for segment in range(batch.accumulator.size):
        if batch.accumulator[segment] >= 0:
            apply_deferred_prox(batch.lasts[batch.segments[segment]], step, columns)


@compiled(inline=True)
def _conclude(step, shares, update, batch, hyper, V, columns, memory):
    """After the shares of a step: add up, and update V and the columns that have accumulators, or
    say whose these are. Whether all stays below the limit.
    """
    _add_up(shares, memory.losses, memory.largest, memory.gV)
    if not update:
        memory.column[batch.accumulator] = batch.lasts[batch.segments[:-1]]
        return True
    largest = memory.largest[0]
    for segment in range(batch.accumulator.size):
        if (
            batch.accumulator[segment] >= 0
            and columns.done[batch.lasts[batch.segments[segment]]] <= step
        ):
            square = _update_from_accumulators(
                segment, step, batch, hyper, columns, memory.accumulators
            )
            largest = max(largest, square)
    scratch = memory.mass[0]
    rate = hyper.eta_V / hyper.batch_size
    square = _step_V(V, memory.gV[0], scratch[0], scratch[1], hyper.mu, hyper.projector_row, rate)
    return square < hyper.limit**2 and largest < hyper.limit**2


@compiled
def take_steps(me, team, update, keys, sampler, hyper, V, columns, memory, threshold, looks):
    """Do one thread's part of one step for each of ``keys``, on V and the columns of A in place,
    and write down ``looks`` after so many steps as they say, the last of them after all.

    λ uses the K_V of the V before each step. Returns the number of steps done, which is smaller
    than the number of keys if V or A reaches the limit. Without ``update`` there is one key, whose
    mini-batch is only differentiated, and no look. Twin: the source ``Fresh``, followed by
    ``stages.proximal_step``.
    """
    # The caller (me = 0) and the helpers go through the same loop, so that there is one compiled
    # version of what a share does.
    T = memory.tokens.shape[2]
    B = hyper.batch_size
    labels = sampler.labels
    shares = share_count(B, T)
    mine = np.empty(MOST_SHARES, np.bool_)
    # A turn is a step, or beyond the last step a look, before which deferred steps are applied.
    turn = np.int64(0)
    step = np.int64(0)
    look = np.int64(0)
    drawn = np.int64(0)  # the step whose batch this is
    batch = draw_mini_batch(keys[0], labels.mu, B, T, update)
    bounded = True
    while True:
        if me == 0:
            if not bounded or (step == keys.size and look == looks.steps.size):
                break
            looking = look < looks.steps.size and looks.steps[look] == step
            turn = keys.size + look if looking else step
            if not looking:
                if drawn != turn:
                    batch = draw_mini_batch(keys[turn], labels.mu, B, T, update)
                    drawn = turn
                _prepare(turn, batch, hyper, V, columns)
            open_turn(team, turn, shares)
        elif not await_turn(me, team):
            break
        for i in range(shares):
            share = i if me == 0 else shares - 1 - i
            mine[share] = take(team, share)
            if not mine[share]:
                continue
            if me > 0:
                turn = team.turn[0]
                # A batch follows from its key: a helper makes its own copy.
                if drawn != turn and turn < keys.size:
                    batch = draw_mini_batch(keys[turn], labels.mu, B, T, update)
                    drawn = turn
            if turn < keys.size:
                take_share(share, turn, batch, sampler, hyper, V, columns, memory)
            else:
                at = turn - keys.size
                _finish_columns(share, shares, at, columns, labels.positions, threshold, looks)
            hand_in(me, team, share)
        if me == 0:
            await_shares(team, mine[:shares])
            if turn < keys.size:
                bounded = _conclude(turn, shares, update, batch, hyper, V, columns, memory)
                step += bounded
            else:
                looks.losses[look] = memory.losses[0] / B
                looks.V[look] = V
                look += 1
    if me == 0:
        open_turn(team, np.int64(OVER), np.int64(0))  # literals would be other types
    return step


def _sizes(V: Array, A: Array) -> tuple[int, int, int]:
    """T, N and the number of heads of V (N, H·N) and A (H·T, N)."""
    heads = V.shape[1] // V.shape[0]
    return A.shape[0] // heads, A.shape[1], heads


def _threads(batch_size: int, T: int) -> int:
    """How many threads a step may use."""
    return 1 if batch_size * T < SHORT else min(thread_count(), share_count(batch_size, T))


def step_memory(sampler: TaskSampler, batch_size: int, T: int, heads: int = 1) -> Memory:
    """Allocate memory for the steps of a task with a batch size, for one caller at a time."""
    N = len(sampler.labels.mu)
    # Segments that have an accumulator are longer than a tile, or lie on either side of a border
    # between shares.
    accumulators = min(N, batch_size // (TILE + 1)) + 2 * (MOST_SHARES - 1)
    return new_memory(T, N, heads, sampler.tokens.table.dtype, accumulators)


def fused_steps(
    keys: NDArray[np.uint64],
    sampler: TaskSampler,
    hyper: Hyperparameters,
    V: Array,
    A: Array,
    memory: Memory | None = None,
    ends: NDArray[np.int64] | None = None,
    threshold: float = np.inf,
) -> tuple[int, float, Looks]:
    """Take one step for each of the ``keys``, at least one, on V (N, H·N) and A (H·T, N), in place,
    with the ``step_memory`` of an earlier call if it is given, because allocating memory takes
    time.

    Returns the number of steps done, which is smaller than the number of keys if V or A reaches the
    limit, the mean loss of the last step, and looks after as many steps as ``ends`` say, the last
    of them after all; ``threshold`` is that of ``column_moments``. All columns are up to date
    there, so that the bits are those of a call for the steps from each end to the next.
    """
    ends = np.array([keys.size]) if ends is None else ends
    looks = Looks.room(ends, sampler, V)
    T, N, heads = _sizes(V, A)
    columns = new_columns(A, np.zeros(N), keys.size, hyper.per_column)
    if memory is None:
        memory = step_memory(sampler, hyper.batch_size, T, heads)
    threads = _threads(hyper.batch_size, T)
    arguments = (True, keys, sampler, hyper, V, columns, memory, threshold, looks)
    done = run_together(take_steps, threads, *arguments)
    if done < keys.size:
        looks = looks.first(int((ends <= done).sum()))
    return done, memory.losses[0] / hyper.batch_size, looks


def mini_batch_gradient(
    key: np.uint64,
    sampler: TaskSampler,
    batch_size: int,
    V: Array,
    raw: Array,
    offset: Array,
    gA: Array,
) -> tuple[float, Array]:
    """Return the summed loss and gradient in V (N, H·N) of a mini-batch drawn from the stream
    ``key``, at V and A = raw + offset.

    The summed gradient in A is added to gA (H·T, N), of which only the columns of last tokens are
    touched. The result does not depend on the number of threads. Twin: ``mini_batch_gradient``.
    """
    T, N, heads = _sizes(V, raw)
    ones = np.ones(N)
    # Only the batch size is used where nothing is updated.
    hyper = Hyperparameters(
        int(batch_size),
        0.0,
        0.0,
        0.0,
        0.0,
        ones,
        centred=False,
        limit=np.inf,
        mu=ones,
        projector_row=ones,
    )
    columns = new_columns(raw, offset, 1, ones)
    accumulators = min(N, batch_size) + MOST_SHARES - 1
    memory = new_memory(T, N, heads, sampler.tokens.table.dtype, accumulators)
    keys = np.full(1, key, np.uint64)
    threads = _threads(hyper.batch_size, T)
    looks = Looks.room(np.empty(0, np.int64), sampler, V)
    arguments = (False, keys, sampler, hyper, V, columns, memory, np.inf, looks)
    run_together(take_steps, threads, *arguments)
    for k, g in zip(memory.column, memory.accumulators, strict=True):
        if k >= 0:
            gA[:, k] += g
    return memory.losses[0], memory.gV[0]
