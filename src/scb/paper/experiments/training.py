"""Training by the paper's methods with real mini-batches, every replicate on a random task of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scb.jobs import job as jobs
from scb.jobs.job import random_task, seed_of
from scb.jobs.table import Table, concatenate
from scb.task import Task
from scb.training.recipes import Recipe, paper, sgd

Steps = tuple[int, int, int]
METHODS: dict[str, Callable[[Task, Steps], Recipe]] = {
    "proximal": lambda task, steps: paper(task, steps=steps),
    "proximal, larger λ": lambda task, steps: paper(task, steps=steps, lam=1e-4),
    "literal": lambda task, steps: paper(task, steps=steps, resolve_sign=False),
    "SGD": lambda task, steps: sgd(task, steps=steps[:2]),
    "SGD, small η₂'": lambda task, steps: sgd(task, steps=steps[:2], eta=(0.01, 0.001)),
}
"""Algorithm 1 with λ = 1e-5 and with 1e-4, and without settling the sign; SGD with the paper's η₂ = 0.005 and η₂' = 0.001."""


STAGE_ONE = 400


@dataclass(frozen=True)
class Job(jobs.Job):
    """One task, by all methods, which have Stage 1 in common."""

    N: int
    T: int
    methods: tuple[str, ...]
    replicate: int
    steps: int
    every: int

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        steps = STAGE_ONE + len(self.methods) * (self.steps - STAGE_ONE)
        return 64 * self.T * steps * (1.2e-9 if self.N == 3 else 2.8e-9) + 0.05

    @property
    def seed(self) -> int:
        """The same whatever the methods are."""
        return seed_of(use="training", N=self.N, T=self.T, replicate=self.replicate)

    @property
    def columns(self) -> dict[str, Any]:
        """All but the methods, which are a column of their own."""
        return {name: value for name, value in super().columns.items() if name != "methods"}

    def run(self) -> Table:
        """The histories, one after the other."""
        from scb.training.loop import train

        task = random_task(self.N, self.T, 2, self.replicate)
        recipes = [METHODS[method](task, (STAGE_ONE, self.steps - STAGE_ONE, 0)) for method in self.methods]
        first = train(task, replace(recipes[0], stages=recipes[0].stages[:1]), self.seed, every=self.every)
        tables = []
        for method, recipe in zip(self.methods, recipes, strict=True):
            history = train(task, recipe, self.seed, start=first, every=self.every).history
            count = len(history["step"])
            facts = {"method": method, "K_P": task.K_P, "K_Q": task.K_Q}
            tables.append({name: np.full(count, fact) for name, fact in facts.items()} | history)
        return concatenate(tables)


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
        """Sizes, then replicates."""
        return [Job(N, self.T, self.methods, i, self.steps, self.every) for N in self.N for i in range(self.seeds)]
