"""What the thresholding-projection after Stage 1 does to α_A and ‖Δ_A‖_μ², against T."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scb.geometry import line_A, population_projection, project, threshold_project
from scb.jobs import job as jobs
from scb.jobs.job import random_task
from scb.jobs.table import Table


@dataclass(frozen=True)
class Job(jobs.Job):
    """A at α_A = 0.3 with noise as large as the lemma allows; threshold α_A/(6Q)."""

    T: int
    replicate: int
    N: int = 3
    alpha: float = 0.3

    def run(self) -> Table:
        """One row: α_A and ‖Δ_A‖_μ² before and after, and whether the support is right."""
        task = random_task(self.N, self.T, 2, self.replicate)
        rng = np.random.default_rng(self.seed)
        threshold = self.alpha / (6 * task.sparsity)
        noise = rng.normal(scale=threshold / 3 / np.sqrt(self.T), size=(self.T, task.N))
        A = project(line_A(task, self.alpha) + noise)
        rounded = threshold_project(A, threshold)
        before, after = (population_projection(task, task.P, x) for x in (A, rounded))
        return {
            "alpha_before": np.array([before.alpha_A]),
            "alpha_after": np.array([after.alpha_A]),
            "square_before": np.array([before.delta_A**2]),
            "square_after": np.array([after.delta_A**2]),
            "support": np.array([bool(((threshold <= A) == (task.Q > 0)).all())]),
        }


@dataclass(frozen=True)
class Config:
    """Sequence lengths and draws a length."""

    T: tuple[int, ...] = (100, 1000, 10_000, 100_000)
    seeds: int = 10

    def jobs(self) -> list[Job]:
        """Lengths, then replicates."""
        return [Job(T, i) for T in self.T for i in range(self.seeds)]
