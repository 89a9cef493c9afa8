"""The population process: on its lines, in two dimensions, through Stage 1, and near (1, 1)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

import numpy as np

from scb.geometry import Array, deviations, mu_norm, population_projection, uniform_start
from scb.jobs import job as jobs
from scb.jobs.job import random_task
from scb.jobs.table import Table
from scb.theory.dynamics import population_recursion, population_step


@dataclass(frozen=True)
class LineJob(jobs.Job):
    """Noiseless steps on whole matrices beside the recursion in two dimensions, as it holds and as it is printed."""

    N: int
    T: int
    replicate: int
    eta: float = 0.01
    steps: int = 1500

    def run(self) -> Table:
        """Every 50 steps: signals, distance to the lines, and the two recursions."""
        task = random_task(self.N, self.T, 2, self.replicate)
        V, A = uniform_start(task.mu, task.T)
        rates = self.eta / task.K_Q, self.eta / task.K_P
        path = population_recursion(task.K_P, task.K_Q, task.T, *rates, self.steps)
        rows = []
        for step in range(1, self.steps + 1):
            V, A = population_step(task, V, A, *rates)
            if step % 50 == 0:
                p = population_projection(task, V, A)
                D_V, D_A = deviations(task, V, A)
                off = max(mu_norm(D_V, task.mu), mu_norm(D_A, task.mu))
                rows.append((step, p.alpha_V, p.alpha_A, off, *path[step], *self._printed(p.alpha_V, p.alpha_A, task)))
        names = ("step", "alpha_V", "alpha_A", "off_line", "recursion_V", "recursion_A", "printed_V", "printed_A")
        return dict(zip(names, np.array(rows).T, strict=True))

    def _printed(self, a_V: float, a_A: float, task) -> tuple[float, float]:
        """One step of the matrix form as it is printed, without the identity."""
        gap = 1 - a_A * a_V
        return self.eta * gap * a_A + self.eta * (1 - a_V) / (task.K_Q * self.T), self.eta * gap * a_V


@dataclass(frozen=True)
class StageOneJob(jobs.Job):
    """Steps until α_V + α_A passes 0.2."""

    T: int
    eta: float = 0.01
    K_P: float = 0.5
    K_Q: float = 0.5

    def run(self) -> Table:
        """One row: steps, and |α_V − α_A| there."""
        most = ceil(3 * log(self.T) / self.eta) + 1000
        path = population_recursion(self.K_P, self.K_Q, self.T, self.eta / self.K_Q, self.eta / self.K_P, most)
        at = int(np.argmax(path.sum(axis=1) >= 0.2))
        return {"steps": np.array([at]), "gap": np.abs(path[at : at + 1, 0] - path[at : at + 1, 1])}


@dataclass(frozen=True)
class NearOneJob(jobs.Job):
    """From (1 + δ, 1 − δ) and from (1 − δ, 1 − δ): how fast difference and sum go to their limits; and with A normalised."""

    T: int
    direction: str
    eta: float = 0.005
    delta: float = 0.1
    K_P: float = 0.5
    K_Q: float = 0.5
    steps: int = 2000

    def run(self) -> Table:
        """Every 20 steps: both signals."""
        start = {"difference": (1 + self.delta, 1 - self.delta), "sum": (1 - self.delta, 1 - self.delta)}
        eta_A = self.eta / self.K_P
        if self.direction == "normalised":
            start["normalised"], eta_A = (1 + self.delta, 1.0), 0.0
        path = population_recursion(
            self.K_P, self.K_Q, self.T, self.eta / self.K_Q, eta_A, self.steps, start[self.direction]
        )
        at = np.arange(0, self.steps + 1, 20)
        return {"step": at, "alpha_V": path[at, 0], "alpha_A": path[at, 1]}


def residual(rows: Table, direction: str) -> Array:
    """What has to vanish on the way from one of the starting points of ``NearOneJob``."""
    if direction == "difference":
        return np.abs(rows["alpha_V"] - rows["alpha_A"]) / 2
    if direction == "sum":
        return np.abs(1 - (rows["alpha_V"] + rows["alpha_A"]) / 2)
    return np.abs(1 - rows["alpha_V"])


@dataclass(frozen=True)
class Config:
    """Which part: "line", "stage 1" or "near one"."""

    part: str
    sizes: tuple[tuple[int, int], ...] = ((3, 5000), (10, 1000))
    seeds: int = 3
    T: tuple[int, ...] = (10**2, 10**3, 10**4, 10**5, 10**6, 10**7, 10**8)

    def jobs(self) -> list[jobs.Job]:
        """The jobs of this part."""
        if self.part == "line":
            return [LineJob(N, T, i) for N, T in self.sizes for i in range(self.seeds)]
        if self.part == "stage 1":
            return [StageOneJob(T) for T in self.T]
        return [NearOneJob(5000, direction) for direction in ("difference", "sum", "normalised")]
