"""Training with real mini-batches, every replicate on a random task of its own: by the paper's methods, and by the softmax."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from scb.jobs.job import Job, Rows, random_task, seed_of
from scb.jobs.table import concatenate
from scb.task import Task
from scb.training.loop import train
from scb.training.recipes import Recipe, paper, sgd, softmax, tuned

STAGE_ONE = 400  # steps
Steps = tuple[int, int, int]
METHODS: dict[str, Callable[[Task, Steps], Recipe]] = {
    "proximal": lambda task, steps: paper(task, steps=steps),
    "proximal, larger λ": lambda task, steps: paper(task, steps=steps, lam=1e-4),
    "literal": lambda task, steps: paper(task, steps=steps, resolve_sign=False),
    "SGD": lambda task, steps: sgd(task, steps=steps[:2]),
    "SGD, small η₂'": lambda task, steps: sgd(task, steps=steps[:2], eta=(0.01, 0.001)),
}
"""Algorithm 1 with λ = 1e-5 and with 1e-4, and without settling the sign; SGD with the paper's η₂ = 0.005 and η₂' = 0.001."""


@dataclass(frozen=True)
class TrainingJob(Job):
    """One task, by all methods, which have Stage 1 in common."""

    label: ClassVar = {"experiment": "training", "job": "Job"}

    N: int = 3
    T: int = 5000
    methods: tuple[str, ...] = ("proximal", "SGD")
    replicate: int = 0
    steps: int = 1000
    every: int = 20

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        steps = STAGE_ONE + len(self.methods) * (self.steps - STAGE_ONE)
        return 64 * self.T * steps * (1.2e-9 if self.N == 3 else 2.8e-9) + 0.05

    @property
    def seed(self) -> int:
        """One seed whatever the methods are, so that they see the same samples in all tables."""
        return seed_of(use="training", N=self.N, T=self.T, replicate=self.replicate)

    @property
    def columns(self) -> dict[str, Any]:
        """All fields but the methods, which are a column of their own, and the seed."""
        return {name: value for name, value in super().columns.items() if name != "methods"}

    def run(self) -> Rows:
        """The histories, one after the other."""
        task = random_task(self.N, self.T, 2, self.replicate)
        recipes = [METHODS[method](task, (STAGE_ONE, self.steps - STAGE_ONE, 0)) for method in self.methods]
        first = train(task, replace(recipes[0], stages=recipes[0].stages[:1]), self.seed, every=self.every)
        tables = []
        for method, recipe in zip(self.methods, recipes, strict=True):
            history = train(task, recipe, self.seed, start=first, every=self.every).history
            facts = {"method": method, "K_P": task.K_P, "K_Q": task.K_Q}
            tables.append({name: np.full(len(history["step"]), fact) for name, fact in facts.items()} | history)
        return concatenate(tables)


@dataclass(frozen=True)
class SoftmaxJob(Job):
    """One run: its history, or what it has learned."""

    label: ClassVar = {"experiment": "softmax", "job": "Job"}

    model: Literal["softmax", "linear"]
    replicate: int
    patterns: bool = False
    N: int = 10
    T: int = 50

    @property
    def seed(self) -> int:
        """One seed for the history and for the patterns: they come from the same run."""
        return seed_of(use="softmax", model=self.model, replicate=self.replicate)

    def run(self) -> Rows:
        """The history; or the entries of V and A, and of the true P and Q, if ``patterns`` are asked for."""
        task = random_task(self.N, self.T, 2, self.replicate)
        recipe = {"softmax": softmax, "linear": tuned}[self.model](task)
        run = train(task, recipe, self.seed, every=20)
        if not self.patterns:
            return {name: run.history[name] for name in ("step", "samples", "loss", "dist_V", "dist_A", "sim_V", "sim_A")}
        tables = []
        for name, matrix in {"V": run.V, "A": run.A, "P": task.P, "Q": task.Q}.items():
            row, column = np.indices(matrix.shape).reshape(2, -1)
            tables.append({"matrix": np.full(matrix.size, name), "row": row, "column": column, "value": matrix.ravel()})
        return concatenate(tables)


@dataclass(frozen=True)
class PreconditionerJob(Job):
    """One attention vector of length T: near uniform, or with a₁ = ``first`` and the rest about (1 − a₁)/T each."""

    label: ClassVar = {"experiment": "preconditioner", "job": "Job"}
    seconds: ClassVar = 0.1

    T: int
    first: float
    replicate: int

    def run(self) -> Rows:
        """One row: the largest error of an entry of the paper's forms, relative to the largest entry."""
        rng = np.random.default_rng(self.seed)
        a = rng.uniform(0.99, 1.01, self.T)
        if self.first:
            a *= (1 - self.first) / a[1:].sum()
            a[0] = self.first
        a /= a.sum()
        M = np.diag(a) - np.outer(a, a)
        square = M @ M
        corner = np.zeros_like(M)
        corner[0, 0] = a[0] * (1 - a[0])
        forms = {"uniform": (np.eye(self.T) - 1 / self.T) / self.T**2, "printed": corner, "corrected": corner**2}
        size = np.abs(square).max()
        return {name: np.abs(square - form).max() / size for name, form in forms.items()}
