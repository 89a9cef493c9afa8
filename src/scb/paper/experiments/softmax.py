"""A softmax and a linear transformer on the same task: T = 50, N = 10, sparsity 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from scb.jobs.job import Job, Rows, random_task, seed_of
from scb.jobs.table import concatenate
from scb.training.loop import train
from scb.training.recipes import softmax, tuned

RECIPES = {"softmax": softmax, "linear": tuned}
KEPT = ("step", "samples", "loss", "dist_V", "dist_A", "sim_V", "sim_A")


@dataclass(frozen=True)
class SoftmaxJob(Job):
    """One run: its history, or what it has learned."""

    label: ClassVar = {"experiment": "softmax", "job": "Job"}

    model: Literal["softmax", "linear"]
    replicate: int
    patterns: bool = False
    N: int = 10
    T: int = 50

    @property
    def seed(self) -> int:
        """One seed for the history and for the patterns: they come from the same run."""
        return seed_of(use="softmax", model=self.model, replicate=self.replicate)

    def run(self) -> Rows:
        """The history; or the entries of V and A, and of the true P and Q, if ``patterns`` are asked for."""
        task = random_task(self.N, self.T, 2, self.replicate)
        run = train(task, RECIPES[self.model](task), self.seed, every=20)
        if not self.patterns:
            return {name: run.history[name] for name in KEPT}
        matrices = {"V": run.V, "A": run.A, "P": task.P, "Q": task.Q}
        return concatenate([_entries(name, matrix) for name, matrix in matrices.items()])


def _entries(name: str, matrix: np.ndarray) -> dict[str, np.ndarray]:
    """One row for each entry of a matrix."""
    row, column = np.indices(matrix.shape).reshape(2, -1)
    return {"matrix": np.full(matrix.size, name), "row": row, "column": column, "value": matrix.ravel()}
