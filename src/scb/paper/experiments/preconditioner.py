"""The matrix (diag(a) − aaᵀ)² of the softmax transformer near uniform and near sparse attention, beside the paper's forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scb.jobs.job import Job, Rows


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
