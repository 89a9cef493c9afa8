"""The theorem's rates: the least number of samples of each stage of Algorithm 1 in real runs, with
one size varied at a time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log
from typing import Any, ClassVar, NamedTuple

import numpy as np

from scb.arrays import Array
from scb.geometry import (
    Projector,
    population_projection,
    threshold_normalize,
    threshold_project,
    trivial_V,
)
from scb.jobs.job import Job, Rows, random_task, seed_of
from scb.metrics import distance_A, distance_V
from scb.task import Ensemble, Task
from scb.training.loop import Device
from scb.training.many import train_many
from scb.training.recipes import Knowledge, Recipe
from scb.training.stages import Stage
from scb.training.starts import GivenStart, UniformAttention

BASE = {"N": 3, "T": 400, "sparsity": 2, "epsilon": 0.0025, "K_P": 0.4}
AXES = {
    "T": (100, 200, 400, 800, 1600, 3200, 6400, 12_800),
    "N": (3, 6, 12, 24, 48),
    "sparsity": (1, 2, 4, 8, 16),
    "epsilon": (0.01, 0.005, 0.0025, 0.00125, 0.000625),
    "K_P": (0.4, 0.2, 0.1, 0.05, 0.025),
}
PROJECTORS = {"euclidean": 3200, "mu": 12_800}
"""Projector → the largest T that is affordable: Stage 1 takes T² samples of T tokens each with the
paper's."""
Setting = tuple[float | str, ...]


def one_varied(
    base: Mapping[str, float], axes: Mapping[str, Sequence[float]], projectors: Iterable[str]
) -> tuple[Setting, ...]:
    """All sizes, in the order of ``BASE``, one varied at a time, each with a projector."""
    sizes = [{**base, axis: x}.values() for axis, xs in axes.items() for x in xs]
    return tuple(dict.fromkeys((*size, projector) for size in sizes for projector in projectors))


def _affordable(setting: Setting) -> bool:
    return int(setting[1]) <= PROJECTORS[str(setting[-1])]


SETTINGS = tuple(filter(_affordable, one_varied(BASE, AXES, PROJECTORS)))
SHORTER = tuple(setting for setting in SETTINGS if setting[-1] == "mu" or int(setting[1]) <= 1600)
"""``SETTINGS`` without the dearest."""
LONGER_BASE = BASE | {"T": 1600}
LONGER_AXES = {"N": (3, 6, 12, 24), "sparsity": (1, 2, 4, 8), "K_P": (0.4, 0.2, 0.1)}
LONGER = one_varied(LONGER_BASE, LONGER_AXES, PROJECTORS)
"""As ``SETTINGS``, around a T at which the sign decides how many samples Stage 1 needs."""
RUNS = 20
ENOUGH = 0.85  # the share of runs that have to succeed
# Of a search: some stages never succeed, whatever the batch, such as Stage 3 from an A that is too
# far off
LARGEST_BATCH = 1 << 14
LARGEST_ON_GPU = 1 << 18
NEVER = 1 << 30  # steps between evaluations that nobody asks for


class Point(NamedTuple):
    """The state of a run between stages."""

    task: Task
    V: Array  # (N, N)
    A: Array  # (T, N)
    steps: int  # of the stage that led here


@dataclass(frozen=True)
class SignalReaches:
    """Stop as soon as one of |α_V|, |α_A| has reached a level. This is the theorem's 𝒯₁, which is
    defined by the true P and Q."""

    task: Task
    level: float

    def __call__(self, V: Array, A: Array, mu: Array) -> bool:
        """Whether one has."""
        p = population_projection(self.task, V, A)
        return max(abs(p.alpha_V), abs(p.alpha_A)) >= self.level


@dataclass(frozen=True)
class MeanSignalReaches:
    """Stop as soon as (α_V + α_A)/2 has reached a level, which is how the paper ends Stage 2."""

    task: Task
    level: float

    def __call__(self, V: Array, A: Array, mu: Array) -> bool:
        """Whether it has."""
        p = population_projection(self.task, V, A)
        return p.alpha_V + p.alpha_A >= 2 * self.level


class Least(NamedTuple):
    """The result of a search for the least batch."""

    # ∞ if none up to the largest is enough; ``steps`` and ``samples`` are NaN then
    batch_size: float
    steps: float  # mean over the runs that succeeded
    points: list[Point]  # where these stand

    @property
    def samples(self) -> float:
        """The number of samples of one run."""
        return self.batch_size * self.steps


# (points, batch size, numbers of the runs) → where the stage ends for each, or None if it fails
Attempt = Callable[[list[Point], int, range], list[Point | None]]


def least_batch(
    attempt: Attempt,
    points: Iterable[Point],
    largest: int = LARGEST_BATCH,
    together: int = 1,
) -> Least:
    """The least batch, in steps of √2, with which a stage succeeds in 85 % of the runs that begin
    at the given points; ``together`` runs are attempted at a time.

    The batch is doubled until it is large enough, or until it exceeds ``largest``. Then a batch
    between the last two is tried.
    """
    begin = list(points)
    if not begin:
        return Least(np.inf, np.nan, [])
    batch = 1
    while (ends := _succeed(attempt, begin, batch, together)) is None:
        batch *= 2
        if batch > largest:
            return Least(np.inf, np.nan, [])
    between = round(batch / np.sqrt(2))
    if batch > 2 and (smaller := _succeed(attempt, begin, between, together)) is not None:
        batch, ends = between, smaller
    return Least(float(batch), float(np.mean([end.steps for end in ends])), ends)


def _succeed(attempt: Attempt, begin: list[Point], batch: int, together: int) -> list[Point] | None:
    """Where the runs that succeed end; None as soon as too many have failed."""
    allowed = len(begin) - ceil(ENOUGH * len(begin))
    ends: list[Point] = []
    for run in range(0, len(begin), together):
        some = range(run, min(run + together, len(begin)))
        ends += [end for end in attempt(begin[run : some.stop], batch, some) if end is not None]
        if some.stop - len(ends) > allowed:
            return None
    return ends


@dataclass(frozen=True)
class RateJob(Job):
    """Twenty random tasks, from the uniform start through all three stages; each stage uses the
    least batch that is large enough for it.

    Stage 1, which follows the paper to the letter without any trick for the sign, ends at 𝒯₁, when
    max(α_V, α_A) is 1/(QN). It succeeds if the signal is positive and a threshold tells the
    positions of Q from all others. Stage 2 begins with the thresholding-projection at λ₀ =
    1/(6Q²N), has λ = η√ε/(2Q), and ends when (α_V + α_A)/2 = 0.95. It succeeds if ‖A − Q‖_μ² ≤ ε
    after the thresholding-normalisation at 1/(6Q). Stage 3 trains V alone for log(1/ε)/η steps, and
    succeeds if ‖V − P‖_μ² ≤ ε.
    """

    label: ClassVar = {"experiment": "rates", "job": "RateJob"}

    N: int = 3
    T: int = 400
    sparsity: int = 2
    epsilon: float = 0.0025
    K_P: float = 0.4
    projector: Projector = "euclidean"
    replicate: int = 0
    eta: float = 0.02
    runs: int = RUNS
    ensemble: Ensemble = "strong"
    device: Device | None = None

    @property
    def cost(self) -> float:
        """Seconds, roughly, as measured."""
        sizes = 3 + 3e-4 * self.T + 0.25 * (self.N - 3) + 0.1 * self.sparsity**2
        return (
            (sizes + 6e-6 * self.T**2 if self.projector == "euclidean" else sizes)
            * self.runs
            / RUNS
        )

    @property
    def signal(self) -> float:
        """The signal at which Stage 1 ends: 1/(QN), but at most 1/2."""
        return min(0.5, 1 / (self.sparsity * self.N))

    @property
    def check_every(self) -> int:
        """The number of steps in which a signal grows by about a tenth."""
        return max(1, round(0.1 / self.eta))

    def run(self) -> Rows:
        """One row: the batch, steps and samples of each stage, the total number of samples, the
        mean K_Q of the tasks that pass Stage 1, and the share of runs within ε at the end."""
        # (largest batch, runs at a time): on the processor one by one, to stop once too many failed
        limits = (LARGEST_BATCH, 1) if self.device is None else (LARGEST_ON_GPU, self.runs)
        first = least_batch(self._stage_one, self._starts(), *limits)
        second = least_batch(self._stage_two, first.points, *limits)
        third = least_batch(self._stage_three, second.points, *limits)
        row: dict[str, float] = {}
        for number, found in enumerate((first, second, third), start=1):
            row |= {
                f"batch_{number}": found.batch_size,
                f"steps_{number}": found.steps,
                f"samples_{number}": found.samples,
            }
        K_Q = float(np.mean([point.task.K_Q for point in first.points])) if first.points else np.nan
        row["samples"] = first.samples + second.samples + third.samples
        return row | {"K_Q": K_Q, "succeeded": len(third.points) / self.runs}

    def _starts(self) -> Iterable[Point]:
        for run in range(self.runs):
            task = self._task(self.replicate * self.runs + run)
            yield Point(task, trivial_V(task.mu), np.broadcast_to(1 / self.T, (self.T, self.N)), 0)

    def _task(self, number: int) -> Task:
        """A random task; if its μ does not allow K_P, which is at most 1 − ‖μ‖², another one."""
        size = (self.N, self.T, self.sparsity)
        mu = random_task(*size, number, self.ensemble).mu
        if 1 - float(mu @ mu) <= self.K_P:
            return self._task(number + 1000)
        return random_task(*size, number, self.ensemble, self.K_P)

    def _train(self, points: list[Point], stages: list[Stage], runs: range) -> list[Point | None]:
        """The stages from these points on; None where one diverges."""
        recipes = []
        seeds = []
        for point, stage, run in zip(points, stages, runs, strict=True):
            uniform = stage.name == "1"
            start = UniformAttention(point.V, self.T) if uniform else GivenStart(point.V, point.A)
            recipes.append(Recipe("rates", start, point.task.mu, (stage,)))
            parts = {"stage": stage.name, "batch_size": stage.batch_size, "run": run}
            seeds.append(seed_of(use="rates", job=self.seed, **parts))
        tasks = [point.task for point in points]
        device = self.device or "cpu"
        ends = train_many(tasks, recipes, seeds, device=device, every=NEVER, judge=False)
        return [
            None if end.diverged else Point(task, end.V, end.A, end.step)
            for task, end in zip(tasks, ends, strict=True)
        ]

    def _stage(self, name: str, task: Task, steps: float, batch_size: int, **rest: Any) -> Stage:
        """A stage of Algorithm 1 for a task."""
        return Knowledge.from_task(task).stage(
            name,
            ceil(steps),
            self.eta,
            batch_size=batch_size,
            projector=self.projector,
            check_every=self.check_every,
            **rest,
        )

    def _stage_one(self, points: list[Point], batch_size: int, runs: range) -> list[Point | None]:
        stages = []
        for point in points:
            # Noise-free growth, e^(ητ)/(2TK_Q), and some more
            steps = (log(2 * self.T * point.task.K_Q) + 4) / self.eta
            stop = SignalReaches(point.task, self.signal)
            stages.append(self._stage("1", point.task, steps, batch_size, stop=stop))

        def succeeds(end: Point) -> bool:
            p = population_projection(end.task, end.V, end.A)
            return max(p.alpha_V, p.alpha_A) >= self.signal and separates(end.task, end.A)

        ends = self._train(points, stages, runs)
        return [end if end is not None and succeeds(end) else None for end in ends]

    def _stage_two(self, points: list[Point], batch_size: int, runs: range) -> list[Point | None]:
        steps = (log(1 / self.signal) + 6) / self.eta
        lam = self.eta * np.sqrt(self.epsilon) / (2 * self.sparsity)
        begin = []
        stages = []
        for point in points:
            rounded = threshold_project(point.A, self.signal * point.task.weight_threshold)
            begin.append(point._replace(A=rounded))
            rest = {"lam": lam, "stop": MeanSignalReaches(point.task, 0.95)}
            stages.append(self._stage("2", point.task, steps, batch_size, **rest))
        ends: list[Point | None] = []
        for end in self._train(begin, stages, runs):
            if end is not None:
                A = np.asfortranarray(threshold_normalize(end.A, end.task.weight_threshold))
                end = end._replace(A=A) if distance_A(end.task, A) ** 2 <= self.epsilon else None
            ends.append(end)
        return ends

    def _stage_three(self, points: list[Point], batch_size: int, runs: range) -> list[Point | None]:
        steps = log(1 / self.epsilon) / self.eta
        stages = [self._stage("3", point.task, steps, batch_size, eta_A=0.0) for point in points]
        return [
            end if end is not None and distance_V(end.task, end.V) ** 2 <= self.epsilon else None
            for end in self._train(points, stages, runs)
        ]


def separates(task: Task, A: Array) -> bool:
    """Whether in every column all entries on the support of q^(k) are larger than all other
    entries."""
    for k, support in enumerate(task.support):
        others = np.delete(A[:, k], support)
        if others.size and A[support, k].min() <= others.max():
            return False
    return True
