"""Engines: how a number of steps of one stage is taken. ``Composed`` is the definition, ``Fused`` is fast."""

from __future__ import annotations

from dataclasses import dataclass, field
from sys import getrefcount
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.kernels import threads
from scb.model import LinearTransformer, Transformer
from scb.task import Task
from scb.task.columns import slots
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
        """``steps`` of a stage from (V, A); A are the parameters that the transformer has in its place."""
        ...


def step_keys(seed: int, steps: range) -> NDArray[np.uint64]:
    """The keys of the streams from which the steps of a run are drawn: words of a stream that the seed chooses."""
    stream = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    from scb.kernels.words import ALL, fill_words

    keys = np.empty(len(steps), np.uint64)
    fill_words(stream, steps.start, ALL, keys)
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
        """As ``Engine.take``."""
        loss, samples = np.nan, 0
        for done, step in enumerate(steps):
            at = self.transformer(V, A)
            gradient = self.source(V, at.attention, stage.batch_size, np.random.default_rng([seed, step]))
            loss, samples = gradient.loss, samples + gradient.samples
            after = STEPS[stage.rule](V, A, gradient.V, at.pull_back(gradient.A), mu, stage)
            if not bounded(*after):
                return Taken(V, A, done, loss, samples)
            V, A = after
        return Taken(V, A, len(steps), loss, samples)


@dataclass
class Fused:
    """Fresh samples of a task, with whole steps compiled into one.

    Proximal stages go through ``kernels.steps``. Where A is frozen, only the tokens that matter are drawn (``kernels.frozen``): the
    law is the same, the random numbers are others. Other rules go through ``Composed``.
    """

    task: Task
    fresh: Fresh = field(init=False)
    _frozen: tuple[Array, Any] | None = field(init=False, default=None)
    _handed_out: list[Array] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.fresh = Fresh(self.task)

    def take(self, V: Array, A: Array, mu: Array, stage: Stage, seed: int, steps: range) -> Taken:
        """As ``Engine.take``."""
        if stage.rule != "proximal":
            return Composed(self.fresh).take(V, A, mu, stage, seed, steps)
        take = self._frozen_steps if stage.eta_A == 0 else self._steps
        return take(V, A, mu, stage, step_keys(seed, steps))

    def _steps(self, V: Array, A: Array, mu: Array, stage: Stage, keys: NDArray[np.uint64]) -> Taken:
        from scb.kernels.steps import Rule, fused_steps

        rule = Rule(
            stage.batch_size, stage.eta_V, stage.eta_A, *stage.penalty.affine(mu, stage), stage.centred, LIMIT, mu
        )
        new_V, new_A = np.array(V, order="C"), self._copy(A)
        done, loss = fused_steps(threads(), keys, self.fresh.law, rule, new_V, new_A, self.fresh.token)
        if done < len(keys):  # what stands there now is beyond the limit: go again, up to the step before
            new_V[:], new_A[:] = V, A
            fused_steps(threads(), keys[:done], self.fresh.law, rule, new_V, new_A, self.fresh.token)
        return Taken(new_V, new_A, done, loss, min(done + 1, len(keys)) * stage.batch_size)

    def _copy(self, A: Array) -> Array:
        """A copy of A, in an array handed out before if nobody holds it any more: fresh pages can cost as much as the steps."""
        for array in self._handed_out:
            if array.shape == A.shape and getrefcount(array) == 3:  # here in the list, as ``array``, and as an argument
                np.copyto(array, A)
                return array
        self._handed_out = [*self._handed_out[-1:], np.array(A, order="F")]
        return self._handed_out[-1]

    def _frozen_steps(self, V: Array, A: Array, mu: Array, stage: Stage, keys: NDArray[np.uint64]) -> Taken:
        from scb.kernels.frozen import frozen_gradient

        if self._frozen is None or self._frozen[0] is not A:
            self._frozen = A, freeze(self.task, A)
        frozen, law, B, N = self._frozen[1], self.fresh.law, stage.batch_size, self.task.N
        outside = self.task.T - frozen.counts
        mass, labels, scores = np.empty((B, N)), np.empty(B, np.int64), np.empty((B, N))
        V, loss = V.copy(), np.nan
        for done, key in enumerate(keys):
            rng = np.random.default_rng(key)
            lasts = np.searchsorted(law.mu, rng.random(B), side="right")
            u_source, u_label, u_tokens = rng.random(B), rng.random(B), rng.random((B, len(frozen.value) + 1))
            slots = (u_source >= law.q[:, lasts]).sum(axis=0)
            left = outside[lasts] - (frozen.source[slots, lasts] < 0)
            rest = rng.multinomial(left, self.task.mu) if frozen.common.any() else np.zeros((B, N), np.int64)
            gV = np.zeros((N, N))
            random = lasts, u_tokens, u_source, u_label, rest
            loss = frozen_gradient(*random, law.mu, law.q, law.P, frozen, V, mass, labels, scores, gV)
            after = V - stage.eta_V / B * precondition_V(gV, mu)
            if not np.square(after).sum() < LIMIT**2:
                return Taken(V, A, done, loss / B, (done + 1) * B)
            V = after
        return Taken(V, A, len(keys), loss / B, len(keys) * B)


def freeze(task: Task, A: Array) -> Any:
    """The columns of A as their few active positions and a common value (the median, which most positions have)."""
    from scb.kernels.frozen import Frozen

    common = np.median(A, axis=0)
    rows, columns = np.nonzero(common != A)
    counts = np.bincount(columns, minlength=task.N)
    order = np.lexsort((rows, columns))
    rows, columns = rows[order], columns[order]
    slot = slots(counts)
    value = np.zeros((max(int(counts.max()), 1), task.N))
    value[slot, columns] = A[rows, columns]
    index = dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), slot.tolist(), strict=True))
    pairs = np.stack([task.positions, np.broadcast_to(np.arange(task.N), task.positions.shape)], axis=-1)
    source = np.array([[index.get((int(t), int(k)), -1) for t, k in row] for row in pairs])
    return Frozen(counts, value, source, common)
