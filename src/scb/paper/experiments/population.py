"""The population process: on its lines, in two dimensions, through Stage 1, and near (1, 1)."""

from dataclasses import dataclass
from math import ceil, inf, log
from typing import ClassVar, Literal

import numpy as np

from scb.arrays import Array
from scb.geometry import deviations, mu_norm, population_projection, uniform_start
from scb.jobs.job import Job, Rows
from scb.jobs.table import Table
from scb.paper.experiments import task_of
from scb.theory.dynamics import population_recursion, population_step


@dataclass(frozen=True)
class LineJob(Job):
    """Noiseless steps on whole matrices, and the recursion in two dimensions, as it holds and as it
    is printed."""

    label: ClassVar = {"experiment": "population", "job": "LineJob"}
    seconds: ClassVar = 0.1

    N: int
    T: int
    replicate: int
    eta: float = 0.01
    steps: int = 1500

    def run(self) -> Rows:
        """Every 50 steps: signals, distance to the lines, and the two recursions."""
        task = task_of(self)
        V, A = uniform_start(task.mu, task.T)
        rates = self.eta / task.K_Q, self.eta / task.K_P
        path = population_recursion(task.K_P, task.K_Q, task.T, *rates, self.steps)
        rows = []
        for step in range(1, self.steps + 1):
            V, A = population_step(task, V, A, *rates)
            if step % 50 == 0:
                p = population_projection(task, V, A)
                off_line = max(mu_norm(D, task.mu) for D in deviations(task, V, A))
                # The matrix form as it is printed lacks the identity: one step of it
                gap = 1 - p.alpha_A * p.alpha_V
                printed_V = self.eta * gap * p.alpha_A + self.eta * (1 - p.alpha_V) / (
                    task.K_Q * self.T
                )
                printed_A = self.eta * gap * p.alpha_V
                rows.append(
                    (step, p.alpha_V, p.alpha_A, off_line, *path[step], printed_V, printed_A)
                )
        names = (
            "step",
            "alpha_V",
            "alpha_A",
            "off_line",
            "recursion_V",
            "recursion_A",
            "printed_V",
            "printed_A",
        )
        return dict(zip(names, np.array(rows).T, strict=True))


@dataclass(frozen=True)
class StageOneJob(Job):
    """Steps until α_V + α_A passes 0.2."""

    label: ClassVar = {"experiment": "population", "job": "StageOneJob"}
    seconds: ClassVar = 0.02

    T: int
    eta: float = 0.01
    K_P: float = 0.5
    K_Q: float = 0.5

    def run(self) -> Rows:
        """One row: the number of steps, both signals at that point, their difference, and the
        larger signal after the same number of steps without the drift."""
        most = ceil(3 * log(self.T) / self.eta) + 1000  # about log T/η are enough
        rates = self.eta / self.K_Q, self.eta / self.K_P
        path = population_recursion(self.K_P, self.K_Q, self.T, *rates, most)
        steps = int(np.argmax(path.sum(axis=1) >= 0.2))
        alpha_V, alpha_A = path[steps]
        undrifted = population_recursion(self.K_P, self.K_Q, inf, *rates, steps)
        gap = np.abs(alpha_V - alpha_A)
        return {
            "steps": steps,
            "gap": gap,
            "alpha_V": alpha_V,
            "alpha_A": alpha_A,
            "undrifted": np.abs(undrifted).max(),
        }


@dataclass(frozen=True)
class NearOneJob(Job):
    """How fast the difference and the sum of the signals approach their limits from (1 + δ, 1 − δ)
    and from (1 − δ, 1 − δ), also with A normalised."""

    label: ClassVar = {"experiment": "population", "job": "NearOneJob"}
    seconds: ClassVar = 0.01

    T: int = 5000
    direction: Literal["difference", "sum", "normalised"] = "difference"
    eta: float = 0.005
    delta: float = 0.1
    K_P: float = 0.5
    K_Q: float = 0.5
    steps: int = 2000

    def run(self) -> Rows:
        """Every 20 steps: both signals."""
        more = 1 + self.delta
        less = 1 - self.delta
        start = {"difference": (more, less), "sum": (less, less), "normalised": (more, 1.0)}[
            self.direction
        ]
        eta_A = 0.0 if self.direction == "normalised" else self.eta / self.K_P
        path = population_recursion(
            self.K_P, self.K_Q, self.T, self.eta / self.K_Q, eta_A, self.steps, start
        )
        step = np.arange(0, self.steps + 1, 20)
        return {"step": step, "alpha_V": path[step, 0], "alpha_A": path[step, 1]}


def residual(rows: Table, direction: str) -> Array:
    """The quantity that must vanish along the run from one of the starting points of
    ``NearOneJob``."""
    if direction == "difference":
        return np.abs(rows["alpha_V"] - rows["alpha_A"]) / 2
    if direction == "sum":
        return np.abs(1 - (rows["alpha_V"] + rows["alpha_A"]) / 2)
    return np.abs(1 - rows["alpha_V"])
