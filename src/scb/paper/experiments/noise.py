"""The noise of one mini-batch gradient in A: its square and its largest entry against T."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scb.geometry import line_A, line_V, mu_norm
from scb.jobs import job as jobs
from scb.jobs.job import random_task
from scb.jobs.table import Table
from scb.theory.expectations import expected_gradients


@dataclass(frozen=True)
class Job(jobs.Job):
    """One mini-batch of 64 at α_V = α_A = 0.5."""

    T: int
    replicate: int
    N: int = 3

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.02 + 3e-7 * self.T

    def run(self) -> Table:
        """One row: ‖h_A‖_μ², the largest |entry| of h, and its mean square, where h is the noise of the gradient a unit of μ_k."""
        from scb.training.sources.fresh import Fresh

        task = random_task(self.N, self.T, 2, 0)
        V, A = line_V(task, 0.5), line_A(task, 0.5)
        key = np.random.default_rng(self.seed).integers(0, 1 << 64, dtype=np.uint64)
        drawn = Fresh(task)(V, A, 64, key)
        h = (drawn.A - expected_gradients(task, V, A)[1]) / task.mu
        h -= h.mean(axis=0)
        return {
            "square": np.array([mu_norm(h, task.mu) ** 2]),
            "largest": np.array([np.abs(h).max()]),
            "entry": np.array([np.square(h).mean()]),
        }


@dataclass(frozen=True)
class Config:
    """Sequence lengths and mini-batches a length."""

    T: tuple[int, ...] = (100, 1000, 10_000, 100_000)
    seeds: int = 20

    def jobs(self) -> list[Job]:
        """Lengths, then replicates."""
        return [Job(T, i) for T in self.T for i in range(self.seeds)]
