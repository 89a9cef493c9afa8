"""Noise in A against T: the noise of one mini-batch gradient, and the effect of the
thresholding-projection after Stage 1 on the noise."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scb.geometry import line_A, line_V, mu_norm, population_projection, project, threshold_project
from scb.jobs.job import Job, Rows, random_task
from scb.paper.experiments import task_of
from scb.theory.expectations import expected_gradients
from scb.training.sources.sampled import Fresh


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
        return 0.003 + 2e-7 * self.T

    def run(self) -> Rows:
        """One row: ‖h_A‖_μ², the largest |entry| of h, and the mean square of its entries, where h
        is the noise of the gradient per unit of μ_k.
        """
        # One task, many batches: the noise of a batch, not of tasks
        task = random_task(self.N, self.T, 2, 0)
        V = line_V(task, 0.5)
        A = line_A(task, 0.5)
        key = np.random.default_rng(self.seed).integers(0, 1 << 64, dtype=np.uint64)
        drawn = Fresh(task)(V, A, 64, key)
        h = (drawn.A - expected_gradients(task, V, A)[1]) / task.mu
        h -= h.mean(axis=0)  # the projection takes the mean of a column away
        return {
            "square": mu_norm(h, task.mu) ** 2,
            "largest": np.abs(h).max(),
            "entry": np.square(h).mean(),
        }


@dataclass(frozen=True)
class RoundingJob(Job):
    """A at α_A = 0.3 with noise as large as the lemma allows; the threshold is α_A/(6Q)."""

    label: ClassVar = {"experiment": "rounding", "job": "Job"}
    seconds: ClassVar = 0.005

    T: int
    replicate: int
    N: int = 3
    alpha: float = 0.3

    def run(self) -> Rows:
        """One row: α_A and ‖Δ_A‖_μ² before and after, and whether the support is right."""
        task = task_of(self)
        rng = np.random.default_rng(self.seed)
        # a third of the least entry on the support, about α/(2Q)
        threshold = self.alpha / (6 * task.sparsity)
        noise = rng.normal(scale=threshold / 3 / np.sqrt(self.T), size=(self.T, task.N))
        A = project(line_A(task, self.alpha) + noise)
        before = population_projection(task, task.P, A)
        after = population_projection(task, task.P, threshold_project(A, threshold))
        return {
            "alpha_before": before.alpha_A,
            "alpha_after": after.alpha_A,
            "square_before": before.delta_A**2,
            "square_after": after.delta_A**2,
        }


@dataclass(frozen=True)
class SeparationJob(Job):
    """A at α_A = α_V = ``alpha`` with the Δ_A that hides the support best among those of the size
    that α_V = margin·(Q/T + Q√N‖Δ_A‖_μ) allows.

    All of Δ_A is in the column of the rarest token, whose entries have the least weight in ‖·‖_μ.
    Half of its squared size raises a position outside the support, and half lowers the weakest
    position on the support.
    """

    label: ClassVar = {"experiment": "separation", "job": "Job"}
    seconds: ClassVar = 0.002

    margin: float
    replicate: int
    T: int = 1000
    N: int = 3
    alpha: float = 0.3

    def run(self) -> Rows:
        """One row: ‖Δ_A‖_μ after the projection, and whether every true entry is above every other
        entry."""
        task = task_of(self)
        Q = task.sparsity
        size = (self.alpha / self.margin - Q / self.T) / (Q * np.sqrt(self.N))
        k = int(np.argmin(task.mu))
        off = int(np.flatnonzero(task.Q[:, k] == 0)[0])
        weakest = task.positions[np.argmin(task.weights[:, k]), k]
        A = line_A(task, self.alpha)
        entry = size / np.sqrt(2 * task.mu[k])
        A[off, k] += entry
        A[weakest, k] -= entry
        true = task.Q[:, k] > 0
        moved = population_projection(task, task.P, project(A))
        return {"delta_A": moved.delta_A, "separated": bool(A[true, k].min() > A[~true, k].max())}
