"""The benefit of ℓ1, judged where Algorithm 1 ends: Stage 2 with λ = 0 or λ > 0, judged at its end
and again after thresholding-normalisation and Stage 3.

There is a reason why ℓ1 may not be needed. Without ℓ1, one entry of A off the support is noise of
variance about ηρ/(2BK_Pμ_k), whatever T is. ‖Δ_A‖² is a sum over NT such entries and grows like T.
But the threshold 1/(6Q) acts on the entries one by one, and requires only that the largest entry be
below it: B ∝ log(NT). T then matters only for stability: a step on V multiplies V − μ1ᵀ by 1 −
η_V‖A‖_μ², and ‖A‖_μ² contains ‖Δ_A‖².
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import ClassVar

import numpy as np

from scb.arrays import Array
from scb.geometry import population_projection
from scb.jobs.job import Job, Rows, seed_of
from scb.metrics import distance_A, distance_V
from scb.paper.experiments import Gradients, history_of, shortened, task_of
from scb.paper.experiments.rates import NEVER
from scb.paper.experiments.regulariser import second_stage
from scb.task import Ensemble, Task
from scb.theory.gaussian import noise_quantile
from scb.training.loop import Device, train
from scb.training.recipes import Knowledge, Recipe
from scb.training.roundings import ThresholdNormalize

GOALS = tuple((ending, epsilon) for ending in ("stage 2", "the end") for epsilon in (0.04, 0.0025))
"""(where a run is judged, ε)."""
LAST_BATCH = 1024  # of Stage 3, in all runs
SMALLEST = 16
LARGEST = 1 << 26  # the batches of a search


@dataclass(frozen=True)
class Ends:
    """The results of one run: ‖Δ_A‖_μ² and the largest entry off the support after Stage 2, and the
    squared distances after Stage 2 and at the end."""

    diverged: bool
    square_A: float = np.nan
    largest: float = np.nan
    stage_V: float = np.nan
    stage_A: float = np.nan
    end_V: float = np.nan
    end_A: float = np.nan

    def within(self, ending: str, epsilon: float) -> bool:
        """Whether both squared distances are at most ε at that point."""
        pair = (self.end_V, self.end_A) if ending == "the end" else (self.stage_V, self.stage_A)
        return not self.diverged and max(pair) <= epsilon


def to_the_end(task: Task, multiple: float, batch_size: int, eta: float) -> Recipe:
    """The Stage 2 of ``second_stage``, followed by thresholding-normalisation and Stage 3."""
    recipe = second_stage(task, multiple, batch_size, eta)
    last = Knowledge.from_task(task).stage(
        "3",
        ceil(6 / eta),
        eta,
        eta_A=0.0,
        batch_size=LAST_BATCH,
        projector="mu",
        enter=(ThresholdNormalize(task.weight_threshold),),
    )
    return replace(recipe, stages=(*recipe.stages, last))


def simulated_ends(task: Task, recipe: Recipe, seed: int) -> Ends:
    """The simulated run, whose cost does not depend on the batch size."""
    try:
        history = history_of(task, recipe, seed, 1, "simulated")
    except OverflowError:  # of a power of a float of Python
        return Ends(diverged=True)
    two = np.flatnonzero(history["stage"] == 1)[-1]
    if not np.isfinite(history["dist_A"][two]):
        return Ends(diverged=True)
    after, end = (
        {name: float(history[name][i]) for name in ("dist_V", "dist_A", "delta_A")}
        for i in (two, -1)
    )
    delta = after["delta_A"]
    # Of entries that are all noise: what the largest of NT normal variables exceeds in half of
    # the runs
    entries = task.N * task.T
    largest = delta / np.sqrt(entries * task.mu.min()) * noise_quantile(entries, np.log(2))
    return Ends(
        diverged=False,
        square_A=delta**2,
        largest=largest if recipe.stages[0].lam == 0 else np.nan,
        stage_V=after["dist_V"] ** 2,
        stage_A=after["dist_A"] ** 2,
        end_V=end["dist_V"] ** 2,
        end_A=end["dist_A"] ** 2,
    )


def real_ends(task: Task, recipe: Recipe, seed: int, device: Device) -> Ends:
    """The run with real mini-batches."""
    options = {"device": device, "every": NEVER, "judge": False}
    two = train(task, replace(recipe, stages=recipe.stages[:1]), seed, **options)
    if two.diverged is not None:
        return Ends(diverged=True)
    end = train(task, recipe, seed, start=two, **options)
    return Ends(
        diverged=end.diverged is not None,
        square_A=population_projection(task, two.V, two.A).delta_A ** 2,
        largest=_largest_off_support(task, two.A),
        stage_V=distance_V(task, two.V) ** 2,
        stage_A=distance_A(task, two.A) ** 2,
        end_V=distance_V(task, end.V) ** 2,
        end_A=distance_A(task, end.A) ** 2,
    )


def _largest_off_support(task: Task, A: Array) -> float:
    others = np.array(A)
    others[task.positions, np.arange(task.N)] = -np.inf
    return float(others.max())


@dataclass(frozen=True)
class EndJob(Job):
    """One run at one batch size, with real or simulated gradients."""

    label: ClassVar = {"experiment": "to the end", "job": "EndJob"}
    usual: ClassVar = {"device": None}

    T: int
    multiple: float
    batch_size: int
    gradients: Gradients
    ensemble: Ensemble = "strong"
    replicate: int = 0
    N: int = 3
    eta: float = 0.1
    device: Device | None = None

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        if self.gradients == "simulated":
            return 0.02 + 3e-8 * self.T
        return 0.1 + (self.batch_size + LAST_BATCH) * 60 * self.T * 1.3e-9

    def run(self) -> Rows:
        """One row: the fields of ``Ends``."""
        task = task_of(self)
        recipe = to_the_end(task, self.multiple, self.batch_size, self.eta)
        if self.gradients == "simulated":
            return shortened(vars(simulated_ends(task, recipe, self.seed)))
        return shortened(vars(real_ends(task, recipe, self.seed, self.device or "cpu")))


@dataclass(frozen=True)
class LeastEndJob(Job):
    """One task, simulated: the least batch size of Stage 2 for each of ``GOALS``."""

    label: ClassVar = {"experiment": "to the end", "job": "LeastEndJob"}
    usual: ClassVar = {}

    N: int
    T: int
    multiple: float
    eta: float
    ensemble: Ensemble
    replicate: int

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        noise = {0.0: 0.0, 1.0: 1e-5}.get(self.multiple, 2e-7) * self.N * self.T / 3
        return (0.3 + 5e-7 * self.N * self.T / 3 + 5 * noise) * 0.1 / self.eta

    def run(self) -> Rows:
        """One row per goal: the least batch, the ``samples`` of Stage 2 with this batch, ‖Δ_A‖_μ²
        with it, and the least batch from which runs do not diverge.
        """
        task = task_of(self)
        runs = self._search(task)
        steps = second_stage(task, self.multiple, SMALLEST, self.eta).stages[0].steps
        stable, _ = least(runs, lambda ends: not ends.diverged)
        found = [least(runs, lambda ends, goal=goal: ends.within(*goal)) for goal in GOALS]
        count = len(GOALS)
        return {
            "K_P": np.full(count, task.K_P),
            "ending": np.array([ending for ending, _ in GOALS]),
            "epsilon": np.array([epsilon for _, epsilon in GOALS]),
            "batch_size": np.array([batch for batch, _ in found]),
            "samples": np.array([batch * steps for batch, _ in found]),
            "square_A": np.array([ends.square_A for _, ends in found]),
            "stable": np.full(count, stable),
        }

    def _search(self, task: Task) -> list[tuple[int, Ends]]:
        """Runs with batches that double until each goal is met twice in a row."""
        runs: list[tuple[int, Ends]] = []
        batch = SMALLEST
        while batch <= LARGEST:
            recipe = to_the_end(task, self.multiple, batch, self.eta)
            seed = seed_of(use="to the end", job=self.seed, batch_size=batch)
            runs.append((batch, simulated_ends(task, recipe, seed)))
            last = runs[-2:]
            if len(last) == 2 and all(ends.within(*goal) for _, ends in last for goal in GOALS):
                break
            batch *= 2
        return runs


def least(runs: list[tuple[int, Ends]], good: Callable[[Ends], bool]) -> tuple[float, Ends]:
    """The least batch for which its run and the run with the next batch are good, and its run; ∞ if
    there is no such batch.
    """
    for (batch, first), (_, second) in pairwise(runs):
        if good(first) and good(second):
            return float(batch), first
    return np.inf, Ends(diverged=True)


LENGTHS = (4000, 16_000, 64_000, 256_000, 1_000_000)
TWO = ("strong", "dirichlet")
SEARCHED = (
    *((N, T, multiple, 0.1) for N in (3, 10) for T in LENGTHS for multiple in (0.0, 3.0)),
    *((3, T, multiple, 0.02) for T in LENGTHS[::2] for multiple in (0.0, 3.0)),
    *((3, T, 1.0, 0.1) for T in LENGTHS[:2]),
)
"""(N, T, multiple, eta): λ = 3σ is our rule; 1σ, which leaves many survivors, is slow to
simulate."""
ENDS = (
    *((T, B, "simulated") for T in LENGTHS for B in (64, 256, 1024, 4096)),
    *((4000, B, "real") for B in (256, 1024)),
    (16_000, 256, "real"),
)
"""(T, batch_size, gradients)."""
