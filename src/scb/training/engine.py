"""Engines, which take a number of steps of one stage: ``Composed`` is the definition, ``Fused`` is
fast, and ``cuda.Cuda`` runs on a GPU.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb import metrics
from scb.arrays import Array
from scb.geometry import projector_row
from scb.geometry.columns import column_medians, column_sums
from scb.geometry.heads import apart, per_head, side_by_side, stacked_columns
from scb.inputs import InputError, shown
from scb.kernels.step.batch import LabelSampler
from scb.kernels.step.frozen import Frozen, FrozenDraws, frozen_gradient
from scb.kernels.step.fused import Hyperparameters, Looks, fused_steps, step_memory
from scb.kernels.step.share import Memory
from scb.model import LinearTransformer, OneLayerTransformer
from scb.task import Task
from scb.task.sampling import step_keys
from scb.task.sparse_columns import slots
from scb.training.answers import gradient as checked_gradient
from scb.training.answers import named, point
from scb.training.buffers import Buffers
from scb.training.sources import GradientSource
from scb.training.sources.sampled import Fresh
from scb.training.stages import Stage, State, StatefulRule
from scb.training.updates import precondition_V

# A run has diverged when ‖V‖ or the norm of a column of A reaches this, or is NaN.
LIMIT = 1e6
# Operations of one call of a kernel, a tenth of a second or so: Ctrl-C waits for its end.
WORK = 1 << 27
NO_STATE: State = MappingProxyType({})


class Taken(NamedTuple):
    """The result of an engine's steps."""

    V: Array  # (N, N), after the steps
    A: Array  # (T, N)
    steps: int  # fewer than asked for if the next one diverges
    loss: float  # of the last mini-batch
    samples: int
    state: State = NO_STATE  # what a stateful rule remembers after the steps
    looks: Looks | None = None  # at evaluations on the way, if the engine took steps beyond them
    sums: tuple[Array, Array] | None = None  # ``metrics.column_sums`` of A, if the engine has them


class Request(NamedTuple):
    """The steps that a run requests: the arguments of an engine's method ``take``. ``state`` is the
    memory of a stateful rule, or None at the beginning of a stage.
    """

    V: Array
    A: Array
    mu: Array
    stage: Stage
    seed: int
    steps: range
    state: State | None = None


@dataclass(frozen=True)
class Composed:
    """An engine that applies any gradient source and then the stage's update rule, step by step."""

    source: GradientSource
    transformer: type[OneLayerTransformer] = LinearTransformer

    def take(
        self,
        V: Array,
        A: Array,
        mu: Array,
        stage: Stage,
        seed: int,
        steps: range,
        state: State | None = None,
    ) -> Taken:
        """Take ``steps`` of a stage from V and the transformer's parameters A."""
        rule = stage.update
        remembers = isinstance(rule, StatefulRule)
        kept = NO_STATE if state is None else state
        if state is None and remembers:
            kept = rule.start(V, A)
        loss = np.nan
        samples = 0
        for done, key in enumerate(step_keys(seed, steps)):
            at = self.transformer(V, A)
            gradient = checked_gradient(
                self.source, self.source(V, at.attention, stage.batch_size, key), V, A
            )
            loss = gradient.loss
            samples += gradient.samples
            arguments = (V, A, gradient.V, at.pull_back(gradient.A), mu, stage)
            result = rule(*arguments, kept) if remembers else rule(*arguments)
            new_V, new_A, new_state = _checked_step(V, A, result, stage)
            with np.errstate(over="ignore", invalid="ignore"):
                squares = np.append(column_sums(np.square(new_A)), np.square(new_V).sum())
            if not (squares < LIMIT**2).all():
                return Taken(V, A, done, loss, samples, kept)
            V, A, kept = new_V, new_A, new_state
        return Taken(V, A, len(steps), loss, samples, kept)


def _checked_step(V: Array, A: Array, result: Any, stage: Stage) -> tuple[Array, Array, State]:
    """The V, A and state that a rule returns for (V, A), checked.

    They get the memory layout of a run that was saved and loaded, so that sums over them give the
    same bits.
    """
    what = f"the rule {named(stage.update)} of stage {stage.name!r}"
    state = NO_STATE
    if isinstance(stage.update, StatefulRule):
        if not isinstance(result, tuple) or len(result) != 3 or not isinstance(result[2], Mapping):
            raise InputError(
                f"{what} returns {shown(result)}: it must return V, A and its state, arrays by name"
            )
        *result, state = result
    new_V, new_A = point(what, result, V, A)
    # Steps of our own rules are NaN only where they diverge.
    own = stage.rule in ("proximal", "vanilla")
    if not own and (np.isnan(new_V).any() or np.isnan(new_A).any()):
        raise InputError(f"{what} returns NaN: V and A must be numbers")
    if new_V is not V:
        new_V = np.require(new_V, np.float64, ["C"])
    if new_A is not A:
        new_A = stacked_columns(new_A)
    return new_V, new_A, state


class Fused:
    """An engine that draws fresh samples of a task in steps that are compiled as a whole.

    Proximal stages go through ``kernels.step.fused``; they use the samples that
    ``Composed(Fresh(task))`` uses, and take the same steps up to rounding. Where A is frozen, only
    the tokens that matter are drawn (``kernels.step.frozen``): the distribution is the same, but
    the random numbers differ. Other rules go through ``Composed``.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.fresh = Fresh(task)
        self._buffers = Buffers((task.T, task.N))  # with one head
        # The A that was frozen last, and its columns
        self._frozen: tuple[Array, Frozen, tuple[Array, Array]] | None = None
        # The stage that was stepped last, with μ, its hyperparameters and the memory of its steps
        self._stage: tuple[Stage, Array, Hyperparameters, Memory] | None = None

    def take(
        self,
        V: Array,
        A: Array,
        mu: Array,
        stage: Stage,
        seed: int,
        steps: range,
        state: State | None = None,
    ) -> Taken:
        """Take ``steps`` of a stage from (V, A)."""
        if stage.rule != "proximal":
            return Composed(self.fresh).take(V, A, mu, stage, seed, steps, state)
        if self.task.heads > 1 or V.ndim == 3:
            return self._head_steps(V, A, mu, stage, step_keys(seed, steps))
        take = self._frozen_steps if stage.eta_A == 0 else self._steps
        return take(V, A, mu, stage, step_keys(seed, steps))

    def far(self, stage: Stage, every: int) -> int:
        """Return the number of steps to request at once, which is a multiple of ``every``."""
        together = stage.rule == "proximal" and self.task.heads == 1
        return every * (stage.steps + 1) if together else every

    def take_looking(self, asked: Request, every: int) -> Taken:
        """Take the steps of a request, and look at the run where they pass multiples of ``every``.

        The result has the bits of steps that are requested from one multiple to the next.
        """
        V, A, mu, stage, seed, steps, _ = asked
        looks = range(every - steps.start % every, len(steps), every)
        if not looks:
            return self.take(*asked)
        take = self._frozen_steps if stage.eta_A == 0 else self._steps
        return take(V, A, mu, stage, step_keys(seed, steps), looks)

    def _head_steps(
        self, V: Array, A: Array, mu: Array, stage: Stage, keys: NDArray[np.uint64]
    ) -> Taken:
        """Steps of several heads: their V side by side and their A below each other are one."""
        stacked = A.reshape(-1, self.task.N)
        if self._buffers.shape != stacked.shape:
            self._buffers = Buffers(stacked.shape)
        taken = self._steps(side_by_side(V), stacked, mu, stage, keys)
        new_V = apart(taken.V, len(per_head(V))).reshape(V.shape)
        new_A = taken.A.reshape(A.shape) if stage.eta_A else A
        return taken._replace(V=new_V, A=new_A)

    def _steps(
        self,
        V: Array,
        A: Array,
        mu: Array,
        stage: Stage,
        keys: NDArray[np.uint64],
        looks: range = range(0),
    ) -> Taken:
        if self._stage is None or self._stage[0] is not stage or self._stage[1] is not mu:
            heads = V.shape[1] // len(V)
            memory = step_memory(self.fresh.sampler, stage.batch_size, self.task.T, heads)
            self._stage = stage, mu, hyperparameters(stage, mu), memory
        hyper, memory = self._stage[2:]
        new_V = np.array(V, np.float64, order="C")
        new_A = self._buffers.copy(A)
        if len(keys) == 0:
            return Taken(new_V, new_A, 0, np.nan, 0)
        work = stage.batch_size * (self.task.T + self.task.N) + new_A.size + new_V.size
        together = max(1, WORK // (work * looks.step))
        ends = np.array([*looks, len(keys)])
        threshold = self.task.weight_threshold
        seen = []
        done = 0
        loss = np.nan
        for i in range(0, len(ends), together):
            some = ends[i : i + together] - done
            now = keys[done : done + some[-1]]
            part, loss, found = fused_steps(
                now, self.fresh.sampler, hyper, new_V, new_A, memory, some, threshold
            )
            seen.append(found._replace(steps=found.steps + done))
            done += part
            if part < len(now):
                break
        found = Looks(*map(np.concatenate, zip(*seen, strict=True))) if looks else seen[0]
        on_the_way = found.first(len(looks)) if looks else None
        if done < len(keys):
            # V and A are now beyond the limit: repeat the steps before.
            before = range(looks.start, min(looks.stop, done), looks.step)
            taken = self._steps(V, A, mu, stage, keys[:done], before)
            samples = (done + 1) * stage.batch_size
            return taken._replace(loss=loss, samples=samples, looks=on_the_way)
        sums = found.moments[-1], found.on_support[-1]
        return Taken(new_V, new_A, done, loss, done * stage.batch_size, NO_STATE, on_the_way, sums)

    def _frozen_steps(
        self,
        V: Array,
        A: Array,
        mu: Array,
        stage: Stage,
        keys: NDArray[np.uint64],
        looks: range = range(0),
    ) -> Taken:
        if self._frozen is None or self._frozen[0] is not A:
            self._frozen = A, freeze(self.task, A), metrics.column_sums(self.task, A)
        _, frozen, sums = self._frozen
        sampler = self.fresh.sampler.labels
        B = stage.batch_size
        V = np.array(V, np.float64, order="C")  # one type for Numba
        loss = np.nan
        seen = []
        done = 0
        for key in keys:
            if done in looks:
                seen.append((done, loss / B, V, *sums))
            draws = draw_frozen(self.task, sampler, frozen, B, np.random.default_rng(key))
            loss, gV, _ = frozen_gradient(draws, sampler, frozen, V)
            after = V - stage.eta_V / B * precondition_V(gV, mu, stage.projector)
            if not np.vdot(after, after) < LIMIT**2:
                break
            V = after
            done += 1
        samples = min(done + 1, len(keys)) * B
        on_the_way = Looks(*map(np.array, zip(*seen, strict=True))) if seen else None
        return Taken(V, A, done, loss / B, samples, NO_STATE, on_the_way, sums)


def hyperparameters(stage: Stage, mu: Array) -> Hyperparameters:
    """Return the hyperparameters of a stage in the form that compiled steps use."""
    constant, per_spread, per_column = stage.affine_levels(mu)
    # To Numba, integers and read-only arrays are other types, for which it would compile all again.
    return Hyperparameters(
        batch_size=int(stage.batch_size),
        eta_V=float(stage.eta_V),
        eta_A=float(stage.eta_A),
        lam=float(constant),
        per_spread=float(per_spread),
        per_column=np.require(per_column, np.float64, ["C", "W"]),
        centred=bool(stage.centred),
        limit=LIMIT,
        mu=np.require(mu, np.float64, ["C", "W"]),
        projector_row=projector_row(mu, stage.projector),
    )


def draw_frozen(
    task: Task, sampler: LabelSampler, frozen: Frozen, B: int, rng: np.random.Generator
) -> FrozenDraws:
    """Draw everything that is random in B samples where A is frozen; tokens outside the active
    positions are only counted.
    """
    # One call: calls take longer here than numbers
    uniforms = rng.random((len(frozen.value) + 4, B))
    lasts = np.searchsorted(sampler.mu, uniforms[0], side="right")
    u_source = uniforms[1]
    u_label = uniforms[2]
    u_tokens = uniforms[3:].reshape(B, -1)
    if not frozen.common.any():  # the others have no weight, and their numbers do not matter
        rest = np.zeros((B, task.N), np.int64)
    else:
        left = task.T - frozen.counts[lasts]
        if frozen.source.min() < 0:
            slot = (u_source >= sampler.q[:, lasts]).sum(axis=0)
            # a source outside is drawn by itself, and not among the numbers
            left -= frozen.source[slot, lasts] < 0
        rest = rng.multinomial(left, task.mu)
    return FrozenDraws(lasts, u_source, u_label, u_tokens, rest)


def freeze(task: Task, A: Array) -> Frozen:
    """Return the columns of A, each as its few active positions and a common value (the median,
    which most positions have).
    """
    T, N = A.shape
    common = column_medians(A)
    columns, rows = np.nonzero((common != A).T)  # column by column
    counts = np.bincount(columns, minlength=N)
    index = slots(counts)  # among the active ones of the column
    value = np.zeros((max(int(counts.max()), 1), N))
    value[index, columns] = A[rows, columns]
    # Ascending; the last is beyond every position
    active = np.append(columns * T + rows, N * T)
    wanted = np.arange(N) * T + task.positions
    at = np.searchsorted(active, wanted)
    source = np.where(active[at] == wanted, np.append(index, -1)[at], -1)
    return Frozen(counts, value, source, common)
