"""A softmax and a linear transformer on the same task; and the matrix that preconditions the gradients of the softmax."""

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


@dataclass(frozen=True)
class PreconditionerJob(Job):
    """One attention vector of length T: near uniform, or with a₁ = ``first`` and the rest about (1 − a₁)/T each."""

    label: ClassVar = {"experiment": "preconditioner", "job": "Job"}
    seconds: ClassVar = 0.1

    T: int
    first: float
    replicate: int

    def run(self) -> Rows:
        """One row: the largest error of an entry of the paper's forms, relative to the largest entry."""
        rng = np.random.default_rng(self.seed)
        a = rng.uniform(0.99, 1.01, self.T)
        if self.first:
            a *= (1 - self.first) / a[1:].sum()
            a[0] = self.first
        a /= a.sum()
        M = np.diag(a) - np.outer(a, a)
        square = M @ M
        forms = {
            "uniform": (np.eye(self.T) - 1 / self.T) / self.T**2,
            "printed": self._corner(a[0] * (1 - a[0])),
            "corrected": self._corner((a[0] * (1 - a[0])) ** 2),
        }
        size = np.abs(square).max()
        return {name: np.abs(square - form).max() / size for name, form in forms.items()}

    def _corner(self, value: float) -> np.ndarray:
        matrix = np.zeros((self.T, self.T))
        matrix[0, 0] = value
        return matrix
