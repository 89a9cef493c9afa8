"""Momentum for scb: a rule that remembers, a recipe with a schedule, a source of gradients, and a kind of sweep."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

import scb
from scb.arrays import Array
from scb.geometry import trivial_V
from scb.jobs.job import Job, Rows, random_task
from scb.model import Gradient, batch_gradient
from scb.training.roundings import ResolveSign
from scb.training.stages import Stage, State
from scb.training.starts import UniformAttention
from scb.training.updates import precondition_A, precondition_V


@dataclass(frozen=True)
class Momentum:
    """m ← βm + ∇̂l and (V, A) ← (V, A) − ηm, with the preconditioned gradients of Algorithm 1."""

    beta: float = 0.9

    def start(self, V: Array, A: Array) -> State:
        """Nothing has moved yet."""
        return {"V": np.zeros_like(V), "A": np.zeros_like(A)}

    def __call__(self, V: Array, A: Array, gV: Array, gA: Array, mu: Array, stage: Stage, state: State):
        """One step, from the plain gradients gV (N, N) and gA (T, N)."""
        m_V = self.beta * state["V"] + precondition_V(gV, mu, "mu")
        m_A = self.beta * state["A"] + precondition_A(gA, mu)
        return V - stage.eta_V * m_V, A - stage.eta_A * m_A, {"V": m_V, "A": m_A}


momentum = Momentum()


def heavy_ball(task: scb.Task, *, eta: float = 0.005, steps: int = 600, batch_size: int = 1024) -> scb.Recipe:
    """Momentum from the uniform start, with step sizes that fall to 0 in a straight line."""

    def falling(step: int) -> float:
        return eta * (1 - step / steps)

    stage = scb.Stage(
        name="heavy ball",
        steps=steps,
        eta_V=lambda step: falling(step) / task.K_Q,
        eta_A=lambda step: falling(step) / task.K_P,
        batch_size=batch_size,
        rule="momentum",
        leave=(ResolveSign(),),
    )
    return scb.Recipe("heavy_ball", UniformAttention(trivial_V(task.mu), task.T), task.mu, (stage,))


@dataclass(frozen=True)
class NoisyLabels:
    """Fresh samples of which one label in twenty is drawn from μ, whatever the context."""

    task: scb.Task

    def __call__(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """The mean gradient over ``batch_size`` samples at V (N, N) and A (T, N); ``key`` decides all that is random."""
        rng = np.random.default_rng(key)
        batch = scb.sample(self.task, batch_size, rng)
        noise = rng.choice(self.task.N, size=batch_size, p=self.task.mu).astype(batch.label.dtype)
        return batch_gradient(V, A, replace(batch, label=np.where(rng.random(batch_size) < 0.05, noise, batch.label)))


@dataclass(frozen=True)
class HeavyBallJob(Job):
    """Train on a random task with one β."""

    label: ClassVar = {"sweep": "heavy_ball"}

    T: int = 100
    beta: float = 0.9
    steps: int = 600
    replicate: int = 0

    def run(self) -> Rows:
        """One row: how far A is from Q, and whether that is enough."""
        task = random_task(3, self.T, 2, self.replicate)
        recipe = heavy_ball(task, steps=self.steps)
        stages = tuple(replace(stage, rule=Momentum(self.beta)) for stage in recipe.stages)
        run = scb.train(task, replace(recipe, stages=stages), self.seed, every=self.steps)
        return {"dist_A": float(run.history["dist_A"][-1]), "learned": run.verdict == "learned"}
