"""A softmax and a linear transformer on the same task: T = 50, N = 10, sparsity 2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scb.jobs import job as jobs
from scb.jobs.job import random_task, seed_of
from scb.jobs.table import Table
from scb.training.recipes import softmax, tuned

RECIPES = {"softmax": softmax, "linear": tuned}
KEPT = ("step", "samples", "loss", "dist_V", "dist_A", "sim_V", "sim_A")


@dataclass(frozen=True)
class Job(jobs.Job):
    """One run: its history, or what it has learned."""

    model: str
    replicate: int
    patterns: bool = False
    N: int = 10
    T: int = 50

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 1.0

    @property
    def seed(self) -> int:
        """The same for the history and the patterns."""
        return seed_of(use="softmax", model=self.model, replicate=self.replicate)

    def run(self) -> Table:
        """The history; or the entries of V and A, and of the true P and Q, if ``patterns`` are asked for."""
        from scb.training.loop import train

        task = random_task(self.N, self.T, 2, self.replicate)
        run = train(task, RECIPES[self.model](task), self.seed, every=20)
        if not self.patterns:
            return {name: run.history[name] for name in KEPT}
        matrices = {"V": run.V, "A": run.A, "P": task.P, "Q": task.Q}
        rows, columns = zip(*(np.indices(m.shape).reshape(2, -1) for m in matrices.values()), strict=True)
        return {
            "matrix": np.concatenate([np.full(m.size, name) for name, m in matrices.items()]),
            "row": np.concatenate(rows),
            "column": np.concatenate(columns),
            "value": np.concatenate([m.ravel() for m in matrices.values()]),
        }


@dataclass(frozen=True)
class Config:
    """How many replicates; or the learned patterns of the first one."""

    seeds: int = 10
    patterns: bool = False

    def jobs(self) -> list[Job]:
        """Softmax, then linear."""
        return [Job(model, i, self.patterns) for model in RECIPES for i in range(1 if self.patterns else self.seeds)]
