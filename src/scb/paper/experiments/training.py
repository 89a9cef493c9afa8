"""Training with real mini-batches, with a new random task for every replicate, by the paper's
methods and with softmax attention."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from scb.jobs.job import Job, Rows, seed_of
from scb.jobs.table import Table, concatenate, pick
from scb.paper.experiments import history_of, shortened, task_of
from scb.task import Ensemble, Task
from scb.training.loop import train
from scb.training.recipes import Recipe, paper, sgd, softmax, tuned

STAGE_ONE = 400  # steps
METHODS: dict[str, Callable[..., Recipe]] = {
    "proximal": partial(paper, resolve_sign=False),
    "proximal, larger λ": partial(paper, lam=1e-4),
    "proximal, largest λ": partial(paper, lam=3e-4),
    "proximal, sign settled": paper,
    "SGD": partial(sgd, resolve_sign=False),
    "SGD, small η₂'": partial(sgd, resolve_sign=False, eta=(0.01, 0.001)),
    "SGD, sign settled": sgd,
}
"""Algorithm 1 as in the paper, λ = 1e-5; with larger λ and the sign resolved; SGD with the paper's
η₂ = 0.005 and η₂' = 0.001."""
SEEDED = ("N", "T", "replicate", "ensemble", "K_P", "batch_size", "rate")
SUMMARY = (
    "method",
    "K_P",
    "K_Q",
    "diverged",
    "step",
    "loss",
    "alpha_V",
    "alpha_A",
    "delta_A",
    "delta_V_worst",
    "dist_V",
    "dist_A",
)
SUMMARY += ("sim_A", "dist_V_star", "dist_A_star", "sim_A_star")
"""What the claims judge a run by."""


@dataclass(frozen=True)
class TrainingJob(Job):
    """One task, learned by all methods from the same Stage 1.

    ``rate`` multiplies all of the paper's step sizes; ``summary`` lists the steps of a run to keep
    instead of its whole history.
    """

    label: ClassVar = {"experiment": "training", "job": "Job"}
    usual: ClassVar = Job.usual | {"batch_size": 64, "rate": 1.0, "summary": ()}

    N: int = 3
    T: int = 5000
    methods: tuple[str, ...] = ("proximal", "SGD")
    replicate: int = 0
    steps: int = 1000
    every: int = 20
    ensemble: Ensemble = "strong"
    K_P: float | None = None
    batch_size: int = 64
    rate: float = 1.0
    summary: tuple[int, ...] = ()

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        steps = STAGE_ONE + len(self.methods) * (self.steps - STAGE_ONE)
        return self.batch_size * self.T * steps * (8e-10 if self.N == 3 else 1.8e-9) + 0.05

    @property
    def seed(self) -> int:
        """One seed for all methods, so they see the same samples in all tables."""
        known = {name: x for name, x in self.identity.items() if name in SEEDED}
        return seed_of(use="training", **known)

    @property
    def columns(self) -> dict[str, Any]:
        """The seed and all fields, except the methods, which have their own column, and the fields
        that say how rows are chosen."""
        return {
            name: value
            for name, value in super().columns.items()
            if name not in ("methods", "summary", "every")
        }

    def recipe(self, method: str, task: Task) -> Recipe:
        """The recipe of a method, with the batch and the step sizes of this job."""
        made = METHODS[method](task, batch_size=self.batch_size)
        steps = (STAGE_ONE, self.steps - STAGE_ONE)
        stages = [
            replace(stage, steps=n, eta_V=self.rate * stage.eta_V, eta_A=self.rate * stage.eta_A)
            for stage, n in zip(made.stages, steps, strict=False)
        ]
        return replace(made, stages=tuple(stages))

    def run(self) -> Rows:
        """The histories, one after another."""
        task = task_of(self)
        recipes = [self.recipe(method, task) for method in self.methods]
        first = train(
            task,
            replace(recipes[0], stages=recipes[0].stages[:1]),
            self.seed,
            every=self.every,
            judge=False,
        )
        tables = []
        for method, recipe in zip(self.methods, recipes, strict=True):
            run = train(task, recipe, self.seed, start=first, every=self.every, judge=False)
            facts = {
                "method": method,
                "K_P": task.K_P,
                "K_Q": task.K_Q,
                "diverged": run.diverged is not None,
            }
            length = len(run.history["step"])
            worst = {"delta_V_worst": np.maximum.accumulate(run.history["delta_V"])}
            table = (
                {name: np.full(length, fact) for name, fact in facts.items()} | run.history | worst
            )
            tables.append(summarised(table, self.summary) if self.summary else table)
        return concatenate(tables)


def summarised(history: Table, steps: tuple[int, ...]) -> Table:
    """The rows of these steps and of the last step, which is earlier if the run diverged, with the
    columns of ``SUMMARY``."""
    step = history["step"]
    chosen = np.isin(step, steps) | (np.arange(len(step)) == len(step) - 1)
    return shortened({name: history[name][chosen] for name in SUMMARY})


def lost_to_noise(runs: Table) -> NDArray[np.bool_]:
    """Whether A* is not within 0.1 of Q and not approaching it either, since ‖Δ_A‖_μ is not below
    the signal |α_A|·√K_Q."""
    found = runs["dist_A_star"] <= 0.1
    signal = np.abs(runs["alpha_A"]) * np.sqrt(runs["K_Q"])
    return ~found & ~(runs["delta_A"] < signal)


LATE = ("proximal, sign settled", "proximal, largest λ", "SGD, sign settled")


@dataclass(frozen=True)
class LateJob(Job):
    """One task, learned by methods with λ = 1e-5, 3e-4 and 0, for many more steps than the paper's
    1,000.
    """

    label: ClassVar = {"experiment": "training", "job": "LateJob"}

    replicate: int
    steps: int = 6000
    N: int = 3
    T: int = 5000
    ensemble: Ensemble = "strong"

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 64 * self.T * len(LATE) * self.steps * 8e-10

    def run(self) -> Rows:
        """One row per method: the distance and the loss at the end, the steps where each was least,
        and the loss where the distance was least.
        """
        size = {"N": self.N, "T": self.T, "ensemble": self.ensemble}
        job = TrainingJob(
            methods=LATE, replicate=self.replicate, steps=self.steps, every=50, **size
        )
        table = job.table(job.run())
        rows = []
        for method in LATE:
            history = pick(table, method=method)
            nearest = int(np.argmin(history["dist_A"]))
            row = {
                "method": method,
                "fitted": (history["alpha_V"] * history["alpha_A"]).max(),
                "dist_A_least": history["dist_A"][nearest],
                "dist_A": history["dist_A"][-1],
                "loss_nearest": history["loss"][nearest],
                "loss_least": history["loss"].min(),
                **{x: history[x][-1] for x in ("loss", "alpha_V", "alpha_A", "dist_A_star")},
            }
            rows.append({name: np.array([value]) for name, value in row.items()})
        return shortened(concatenate(rows))


@dataclass(frozen=True)
class SoftmaxJob(Job):
    """One run, which returns its history or what it has learned."""

    label: ClassVar = {"experiment": "softmax", "job": "Job"}
    seconds: ClassVar = 0.4

    model: Literal["softmax", "linear"]
    replicate: int
    patterns: bool = False
    N: int = 10
    T: int = 50

    @property
    def seed(self) -> int:
        """One seed for the history and for the patterns, which come from the same run."""
        return seed_of(use="softmax", model=self.model, replicate=self.replicate)

    def run(self) -> Rows:
        """The history or, if ``patterns`` are requested, the entries of V and A and of the true P
        and Q."""
        task = task_of(self)
        recipe = {"softmax": softmax, "linear": tuned}[self.model](task)
        run = train(task, recipe, self.seed, every=20, judge=False)
        if not self.patterns:
            return {
                name: run.history[name]
                for name in ("step", "samples", "loss", "dist_V", "dist_A", "sim_V", "sim_A")
            }
        tables = []
        for name, matrix in {"V": run.V, "A": run.A, "P": task.P, "Q": task.Q}.items():
            row, column = np.indices(matrix.shape).reshape(2, -1)
            tables.append(
                {
                    "matrix": np.full(matrix.size, name),
                    "row": row,
                    "column": column,
                    "value": matrix.ravel(),
                }
            )
        return concatenate(tables)


@dataclass(frozen=True)
class LastStageJob(Job):
    """Stages 1 and 2 of the tuned recipe, followed either by Stage 3 or by more of Stage 2 with the
    same number of steps and samples.
    """

    label: ClassVar = {"experiment": "last stage", "job": "Job"}
    seconds: ClassVar = 0.08

    last: Literal["normalised", "not normalised"]
    replicate: int
    N: int = 3
    T: int = 500

    @property
    def seed(self) -> int:
        """One seed for both variants, so they begin with the same run."""
        return seed_of(use="last stage", N=self.N, T=self.T, replicate=self.replicate)

    def run(self) -> Rows:
        """One row: the distances and the difference of the signals before and after the last
        stage."""
        task = task_of(self)
        recipe = tuned(task)
        one, two, three = recipe.stages
        if self.last == "not normalised":
            three = replace(
                two, name="3", steps=three.steps, batch_size=three.batch_size, enter=(), stop=None
            )
        recipe = replace(recipe, stages=(one, two, three))
        history = history_of(task, recipe, self.seed, every=50)
        before = np.flatnonzero(history["stage"] == 2)[-1]
        found = {}
        for when, i in (("before", before), ("after", -1)):
            found |= {
                f"{name}_{when}": history[name][i]
                for name in ("dist_V", "dist_A", "alpha_V", "alpha_A")
            }
        return found


@dataclass(frozen=True)
class PreconditionerJob(Job):
    """One attention vector of length T, with entries within ``spread`` of uniform, and with a₁ =
    ``first`` if ``first`` is not 0."""

    label: ClassVar = {"experiment": "preconditioner", "job": "Job"}
    usual: ClassVar = Job.usual | {"spread": 0.01}
    seconds: ClassVar = 0.01

    T: int
    first: float
    replicate: int
    spread: float = 0.01

    def run(self) -> Rows:
        """One row: the largest error of an entry of the paper's forms, relative to the largest
        entry."""
        rng = np.random.default_rng(self.seed)
        a = rng.uniform(1 - self.spread, 1 + self.spread, self.T)
        if self.first:
            a *= (1 - self.first) / a[1:].sum()
            a[0] = self.first
        a /= a.sum()
        M = np.diag(a) - np.outer(a, a)
        square = M @ M
        corner = np.zeros_like(M)
        corner[0, 0] = a[0] * (1 - a[0])
        forms = {
            "uniform": (np.eye(self.T) - 1 / self.T) / self.T**2,
            "printed": corner,
            "corrected": corner**2,
        }
        size = np.abs(square).max()
        return {name: np.abs(square - form).max() / size for name, form in forms.items()}
