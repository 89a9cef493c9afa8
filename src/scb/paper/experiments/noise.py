"""The noise of one mini-batch gradient in A: its square and its largest entry against T."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scb.geometry import line_A, line_V, mu_norm
from scb.jobs.job import Job, Rows, random_task
from scb.theory.expectations import expected_gradients
from scb.training.sources.fresh import Fresh


@dataclass(frozen=True)
class NoiseJob(Job):
    """One mini-batch of 64 at α_V = α_A = 0.5."""

    label: ClassVar = {"experiment": "noise", "job": "Job"}

    T: int
    replicate: int
    N: int = 3

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.02 + 3e-7 * self.T

    def run(self) -> Rows:
        """One row: ‖h_A‖_μ², the largest |entry| of h, and its mean square, where h is the noise of the gradient a unit of μ_k."""
        task = random_task(self.N, self.T, 2, 0)
        V = line_V(task, 0.5)
        A = line_A(task, 0.5)
        drawn = Fresh(task)(V, A, 64, np.random.default_rng(self.seed))
        h = (drawn.A - expected_gradients(task, V, A)[1]) / task.mu
        h -= h.mean(axis=0)
        return {"square": mu_norm(h, task.mu) ** 2, "largest": np.abs(h).max(), "entry": np.square(h).mean()}
