"""The paper's first figure: distance to the truth for the proximal method and for SGD, from the same start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scb.recipes import Recipe, paper, sgd
from scb.task import Task
from scb.training import train

KEPT = ("step", "samples", "alpha_V", "alpha_A", "dist_V", "dist_A", "dist_V_star", "dist_A_star")


@dataclass(frozen=True)
class Config:
    """The paper's setting; every seed is a new random task and a new run."""

    N: int = 3
    T: int = 5000
    sparsity: int = 2
    lam: float = 1e-5
    seeds: int = 10

    def methods(self) -> dict[str, Callable[[Task], Recipe]]:
        """Name → recipe, in the order of the figure."""
        return {
            f"proximal, λ = {self.lam:g}": lambda task: paper(task, lam=self.lam),
            "SGD, η₂ = 0.005": lambda task: sgd(task),
            "SGD, η₂' = 0.001": lambda task: sgd(task, eta=(0.01, 0.001)),
        }


def run(config: Config, progress: Callable[[int, int], None] = lambda done, total: None) -> dict[str, np.ndarray]:
    """Long table with columns method, seed and those of ``KEPT``; one row an evaluation."""
    rows: dict[str, list[np.ndarray]] = {name: [] for name in ("method", "seed", *KEPT)}
    methods = config.methods()
    total = config.seeds * len(methods)
    for i in range(total):
        seed, name = i // len(methods), list(methods)[i % len(methods)]
        task = Task.random(config.N, config.T, config.sparsity, seed)
        history = train(task, methods[name](task), seed).history
        n = len(history["step"])
        rows["method"].append(np.full(n, name))
        rows["seed"].append(np.full(n, seed))
        for column in KEPT:
            rows[column].append(history[column])
        progress(i + 1, total)
    return {name: np.concatenate(parts) for name, parts in rows.items()}
