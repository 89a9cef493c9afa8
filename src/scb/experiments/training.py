"""Training by the paper's methods with real mini-batches, every replicate on a random task of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scb.experiments import jobs
from scb.experiments.jobs import random_task, seed_of
from scb.experiments.tables import Table
from scb.recipes import Recipe, paper, sgd
from scb.task import Task

Steps = tuple[int, int, int]
METHODS: dict[str, Callable[[Task, Steps], Recipe]] = {
    "proximal": lambda task, steps: paper(task, steps=steps),
    "proximal, larger λ": lambda task, steps: paper(task, steps=steps, lam=1e-4),
    "literal": lambda task, steps: paper(task, steps=steps, resolve_sign=False),
    "SGD": lambda task, steps: sgd(task, steps=steps[:2]),
    "SGD, small η₂'": lambda task, steps: sgd(task, steps=steps[:2], eta=(0.01, 0.001)),
}
"""Algorithm 1 with λ = 1e-5 and with 1e-4, and without settling the sign; SGD with the paper's η₂ = 0.005 and η₂' = 0.001."""


@dataclass(frozen=True)
class Job(jobs.Job):
    """One run; methods share the task and the random numbers of a replicate, so that Stage 1 is the same."""

    N: int
    T: int
    method: str
    replicate: int
    steps: int
    every: int

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 64 * self.T * self.steps * (0.9e-9 if self.N == 3 else 2.5e-9) + 0.05

    @property
    def seed(self) -> int:
        """The same for all methods."""
        return seed_of(use="training", N=self.N, T=self.T, replicate=self.replicate)

    def run(self) -> Table:
        """The history."""
        from scb.training import train

        task = random_task(self.N, self.T, 2, self.replicate)
        recipe = METHODS[self.method](task, (400, self.steps - 400, 0))
        history = train(task, recipe, self.seed, every=self.every).history
        return {"K_P": history["step"] * 0 + task.K_P, "K_Q": history["step"] * 0 + task.K_Q, **history}


@dataclass(frozen=True)
class Config:
    """N and T of the tasks, which methods, how many steps (400 of them in Stage 1) and how many replicates."""

    N: tuple[int, ...] = (3,)
    T: int = 5000
    methods: tuple[str, ...] = tuple(METHODS)
    steps: int = 1000
    every: int = 20
    seeds: int = 10

    def jobs(self) -> list[Job]:
        """Sizes, then methods, then replicates."""
        return [
            Job(N, self.T, method, i, self.steps, self.every)
            for N in self.N
            for method in self.methods
            for i in range(self.seeds)
        ]
