"""Engines: how a number of steps of one stage is taken. ``Composed`` is the definition, ``Fused`` is fast."""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.kernels import may_run_parallel
from scb.kernels.random import ALL_BITS, fill_words
from scb.kernels.step.batch import Frozen, FrozenDraws, LabelLaw, frozen_gradient
from scb.kernels.step.fused import Hyperparameters, fused_steps
from scb.model import LinearTransformer, Transformer
from scb.task import Task
from scb.task.columns import slots
from scb.training.buffers import Buffers
from scb.training.sources import GradientSource
from scb.training.sources.fresh import Fresh
from scb.training.stages import STEPS, Stage
from scb.training.updates import precondition_V

LIMIT = 1e6  # a run has diverged when ‖V‖ or the norm of a column of A reaches this, or is NaN


class Taken(NamedTuple):
    """What an engine answers: where (V, A) stand after ``steps`` steps, the loss of the last mini-batch, and samples used.

    If ``steps`` is smaller than what was asked for, the next step diverges.
    """

    V: Array
    A: Array
    steps: int
    loss: float
    samples: int


class Engine(Protocol):
    """Takes steps of one stage; what is random in step i depends on (seed, i) alone."""

    def take(self, V: Array, A: Array, mu: Array, stage: Stage, seed: int, steps: range) -> Taken:
        """Take ``steps`` of a stage from (V, A); A are the parameters that the transformer has in its place."""
        ...


def step_keys(seed: int, steps: range) -> NDArray[np.uint64]:
    """The key of each step: it decides all that is random there. Keys are words of a stream that the seed chooses."""
    stream = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    keys = np.empty(len(steps), np.uint64)
    fill_words(stream, steps.start, ALL_BITS, keys)
    return keys


def bounded(V: Array, A: Array) -> bool:
    """Whether ‖V‖ and every ‖a^(k)‖ are below ``LIMIT``; False for NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.square(V).sum() < LIMIT**2) and bool((np.square(A).sum(axis=0) < LIMIT**2).all())


@dataclass(frozen=True)
class Composed:
    """Any gradient source, followed by the stage's update rule, step by step, for any transformer."""

    source: GradientSource
    transformer: type[Transformer] = LinearTransformer

    def take(self, V: Array, A: Array, mu: Array, stage: Stage, seed: int, steps: range) -> Taken:
        """Take ``steps`` of a stage from (V, A); A are the parameters that the transformer has in its place."""
        loss = np.nan
        samples = 0
        for done, key in enumerate(step_keys(seed, steps)):
            at = self.transformer(V, A)
            gradient = self.source(V, at.attention, stage.batch_size, key)
            loss = gradient.loss
            samples += gradient.samples
            after = STEPS[stage.rule](V, A, gradient.V, at.pull_back(gradient.A), mu, stage)
            if not bounded(*after):
                return Taken(V, A, done, loss, samples)
            V, A = after
        return Taken(V, A, len(steps), loss, samples)


@dataclass
class Fused:
    """Fresh samples of a task, with whole steps compiled into one.

    Proximal stages go through ``kernels.step.fused``; they take the samples that ``Composed(Fresh(task))`` takes, and the same
    steps to rounding. Where A is frozen, only the tokens that matter are drawn (``kernels.step.batch``): the law is the same, the
    random numbers are others. Other rules go through ``Composed``.
    """

    task: Task
    fresh: Fresh = field(init=False)
    _buffers: Buffers = field(init=False)
    _frozen: tuple[Array, Frozen] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.fresh = Fresh(self.task)
        self._buffers = Buffers((self.task.T, self.task.N))

    def take(self, V: Array, A: Array, mu: Array, stage: Stage, seed: int, steps: range) -> Taken:
        """Take ``steps`` of a stage from (V, A); A are the parameters that the transformer has in its place."""
        if stage.rule != "proximal":
            return Composed(self.fresh).take(V, A, mu, stage, seed, steps)
        take = self._frozen_steps if stage.eta_A == 0 else self._steps
        return take(V, A, mu, stage, step_keys(seed, steps))

    def _steps(self, V: Array, A: Array, mu: Array, stage: Stage, keys: NDArray[np.uint64]) -> Taken:
        constant, per_spread, per_column = stage.penalty.affine(mu, stage)
        # Integers and read-only arrays are other types to Numba, for which it would compile everything anew.
        hyper = Hyperparameters(
            batch_size=stage.batch_size,
            eta_V=float(stage.eta_V),
            eta_A=float(stage.eta_A),
            lam=float(constant),
            per_spread=float(per_spread),
            per_column=per_column,
            centred=stage.centred,
            limit=LIMIT,
            mu=np.require(mu, np.float64, ["C", "W"]),
        )
        new_V = np.array(V, order="C")
        new_A = self._buffers.copy(A)
        done, loss = fused_steps(may_run_parallel(), keys, self.fresh.law, hyper, new_V, new_A)
        if done < len(keys):  # what stands there now is beyond the limit: go again, up to the step before
            new_V[:] = V
            new_A[:] = A
            fused_steps(may_run_parallel(), keys[:done], self.fresh.law, hyper, new_V, new_A)
        return Taken(new_V, new_A, done, loss, min(done + 1, len(keys)) * stage.batch_size)

    def _frozen_steps(self, V: Array, A: Array, mu: Array, stage: Stage, keys: NDArray[np.uint64]) -> Taken:
        if self._frozen is None or self._frozen[0] is not A:
            self._frozen = A, freeze(self.task, A)
        frozen = self._frozen[1]
        law = self.fresh.law.labels
        B = stage.batch_size
        V = V.copy()
        loss = np.nan
        for done, key in enumerate(keys):
            draws = draw_frozen(self.task, law, frozen, B, np.random.default_rng(key))
            loss, gV, _ = frozen_gradient(draws, law, frozen, V)
            after = V - stage.eta_V / B * precondition_V(gV, mu)
            if not np.square(after).sum() < LIMIT**2:
                return Taken(V, A, done, loss / B, (done + 1) * B)
            V = after
        return Taken(V, A, len(keys), loss / B, len(keys) * B)


def draw_frozen(task: Task, law: LabelLaw, frozen: Frozen, B: int, rng: np.random.Generator) -> FrozenDraws:
    """What is random in B samples where A is frozen; tokens outside the active positions only by their numbers."""
    lasts = np.searchsorted(law.mu, rng.random(B), side="right")
    u_source = rng.random(B)
    u_label = rng.random(B)
    u_tokens = rng.random((B, len(frozen.value) + 1))
    if not frozen.common.any():  # the others have no weight: their numbers do not matter
        return FrozenDraws(lasts, u_source, u_label, u_tokens, np.zeros((B, len(law.mu)), np.int64))
    slot = (u_source >= law.q[:, lasts]).sum(axis=0)
    outside = task.T - frozen.counts[lasts]
    drawn_alone = frozen.source[slot, lasts] < 0  # a source outside is not among the numbers
    return FrozenDraws(lasts, u_source, u_label, u_tokens, rng.multinomial(outside - drawn_alone, task.mu))


def freeze(task: Task, A: Array) -> Frozen:
    """The columns of A as their few active positions and a common value (the median, which most positions have)."""
    T, N = A.shape
    common = np.median(A, axis=0)
    columns, rows = np.nonzero((common != A).T)  # column by column
    counts = np.bincount(columns, minlength=N)
    index = slots(counts)  # among the active ones of the column
    value = np.zeros((max(int(counts.max()), 1), N))
    value[index, columns] = A[rows, columns]
    active = np.append(columns * T + rows, N * T)  # ascending; the last is beyond every position
    wanted = np.arange(N) * T + task.positions
    at = np.searchsorted(active, wanted)
    source = np.where(active[at] == wanted, np.append(index, -1)[at], -1)
    return Frozen(counts, value, source, common)
