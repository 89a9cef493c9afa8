"""The paper's large simulations: population gradients plus Gaussian noise, at N = 100 and 500, T = 100,000."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from scb.jobs.job import Job, Rows, random_task
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
class GaussianJob(Job):
    """One simulated run."""

    label: ClassVar = {"experiment": "gaussian", "job": "Job"}

    N: int
    T: int = 100_000
    method: str = "proximal"
    batch_size: int = 64
    replicate: int = 0

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.05 if self.method == "SGD" else 0.5

    def run(self) -> Rows:
        """The history of the run."""
        task = random_task(self.N, self.T, 2, self.replicate)
        with np.errstate(over="ignore", invalid="ignore"):  # SGD with small batches diverges, and shows as NaN
            return simulate(task, recipe(task, self.method, self.batch_size), self.seed)
