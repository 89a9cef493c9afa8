"""The paper's large simulations: population gradients plus Gaussian noise, at N = 100 and 500, T = 100,000."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from scb.jobs.job import Rows, random_task
from scb.paper.experiments.experiment import ExperimentJob
from scb.task import Task
from scb.training.recipes import Recipe, paper, sgd
from scb.training.simulation import simulate
from scb.training.stages import MeasuredNoise, ResolveSign, ThresholdProject

RATES = (0.02, 0.01, 0.01)
STEPS = (600, 300, 100)


def recipe(task: Task, method: str, batch_size: int) -> Recipe:
    """SGD, or Algorithm 1 with its rounding after Stage 1 and λ at 4.5 standard deviations of one entry's noise."""
    if method == "SGD":
        return sgd(task, eta=RATES[:2], steps=(STEPS[0], STEPS[1] + STEPS[2]), batch_size=batch_size)
    made = paper(task, eta=RATES, steps=STEPS, batch_size=batch_size)
    one, two, three = made.stages
    two = replace(two, lam=MeasuredNoise(4.5), centred=True, enter=(ResolveSign(), ThresholdProject()), leave=())
    return replace(made, stages=(one, two, three))


@dataclass(frozen=True)
class GaussianJob(ExperimentJob):
    """One simulated run."""

    label: ClassVar = ("gaussian", "Job")

    N: int
    T: int
    method: str
    batch_size: int
    replicate: int

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.05 if self.method == "SGD" else 0.5

    def run(self) -> Rows:
        """The history of the run."""
        task = random_task(self.N, self.T, 2, self.replicate)
        with np.errstate(over="ignore", invalid="ignore"):  # SGD with small batches diverges, and shows as NaN
            return simulate(task, recipe(task, self.method, self.batch_size), self.seed)


@dataclass(frozen=True)
class GaussianExperiment:
    """Sizes and, for each, the batch size; SGD with the experiment's 64 samples beside it."""

    sizes: tuple[tuple[int, int], ...] = ((100, 1 << 17), (500, 1 << 20))
    T: int = 100_000
    seeds: int = 10

    def jobs(self) -> list[GaussianJob]:
        """Sizes, then methods, then replicates."""
        return [
            GaussianJob(N=N, T=self.T, method=method, batch_size=batch_size, replicate=i)
            for N, large in self.sizes
            for method, batch_size in (("proximal", large), ("SGD", large), ("SGD", 64))
            for i in range(self.seeds)
        ]
