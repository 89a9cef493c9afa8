"""The need for ℓ1 (Section 3.3): Stage 2 with and without the proximal step, against T."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, log
from typing import ClassVar

from scb.geometry import line_A, line_V, population_projection
from scb.jobs.job import Job, Rows, random_task, seed_of
from scb.metrics import distance_A, distance_V
from scb.paper.experiments import task_of
from scb.paper.experiments.rates import NEVER, Point, least_batch
from scb.task import Task
from scb.training.loop import train
from scb.training.many import train_many
from scb.training.recipes import Knowledge, Recipe
from scb.training.schedules import MeasuredNoise
from scb.training.starts import GivenStart


def second_stage(task: Task, multiple: float, batch_size: int, eta: float) -> Recipe:
    """Stage 2 from the end of a perfect Stage 1, with α_V = α_A = 1/(QN) and no error, for as many
    steps as it would need without noise.

    λ is ``multiple`` standard deviations of one entry's noise in one step: 0 is SGD, and at 4 the
    noise of hardly any entry exceeds λ. All other settings are the same.
    """
    signal = min(0.5, 1 / (task.sparsity * task.N))
    stage = Knowledge.from_task(task).stage(
        "2",
        ceil((log(1 / signal) + 4) / eta),
        eta,
        lam=MeasuredNoise(multiple) if multiple else 0.0,
        batch_size=batch_size,
        centred=True,
        projector="mu",
    )
    return Recipe(
        "second stage", GivenStart(line_V(task, signal), line_A(task, signal)), task.mu, (stage,)
    )


@dataclass(frozen=True)
class StageTwoErrorJob(Job):
    """‖Δ_A‖² at the end of Stage 2, at one batch size for all T and all λ."""

    label: ClassVar = {"experiment": "regulariser", "job": "StageTwoErrorJob"}

    T: int
    multiple: float
    replicate: int
    N: int = 3
    batch_size: int = 4096
    eta: float = 0.1

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.1 + self.batch_size * 60 * self.T * 1.3e-9

    def run(self) -> Rows:
        """One row: signals, squared errors and squared distances."""
        task = task_of(self)
        done = train(
            task,
            second_stage(task, self.multiple, self.batch_size, self.eta),
            self.seed,
            every=NEVER,
            judge=False,
        )
        p = population_projection(task, done.V, done.A)
        return {
            "alpha_V": p.alpha_V,
            "alpha_A": p.alpha_A,
            "square_V": p.delta_V**2,
            "square_A": p.delta_A**2,
            "error_V": distance_V(task, done.V) ** 2,
            "error_A": distance_A(task, done.A) ** 2,
        }


@dataclass(frozen=True)
class StageTwoJob(Job):
    """The least batch with which Stage 2 alone, without any normalisation, brings both layers
    within ε in 85 % of twenty tasks."""

    label: ClassVar = {"experiment": "regulariser", "job": "StageTwoJob"}

    T: int
    multiple: float
    replicate: int
    N: int = 3
    epsilon: float = 0.04
    eta: float = 0.1
    runs: int = 20

    @property
    def cost(self) -> float:
        """Seconds, roughly: the batch of SGD grows with T."""
        return 1 + (1.2e-5 * self.T**2 if self.multiple == 0 else 0.01 * self.T)

    def run(self) -> Rows:
        """One row: batch, steps and samples."""
        found = least_batch(self._attempt, self._starts())
        return {"batch_size": found.batch_size, "steps": found.steps, "samples": found.samples}

    def _starts(self) -> Iterable[Point]:
        for run in range(self.runs):
            task = random_task(self.N, self.T, 2, self.replicate * self.runs + run)
            yield Point(task, task.P, task.Q, 0)  # the recipe has its own start

    def _attempt(self, points: list[Point], batch_size: int, runs: range) -> list[Point | None]:
        tasks = [point.task for point in points]
        recipes = [second_stage(task, self.multiple, batch_size, self.eta) for task in tasks]
        seeds = [
            seed_of(use="regulariser", job=self.seed, batch_size=batch_size, run=run)
            for run in runs
        ]
        ends: list[Point | None] = []
        done = train_many(tasks, recipes, seeds, every=NEVER, judge=False)
        for task, end in zip(tasks, done, strict=True):
            close = (
                end.diverged is None
                and max(distance_V(task, end.V), distance_A(task, end.A)) ** 2 <= self.epsilon
            )
            ends.append(Point(task, end.V, end.A, end.step) if close else None)
        return ends
