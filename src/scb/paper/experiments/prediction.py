"""Does the Gaussian simulation predict real gradients? The same stage, from the same point, by both."""

from __future__ import annotations

from dataclasses import dataclass

from scb.geometry import line_A, line_V
from scb.jobs import job as jobs
from scb.jobs.job import random_task
from scb.jobs.table import Table
from scb.training.recipes import Recipe
from scb.training.stages import GivenStart, Stage

KEPT = ("step", "alpha_V", "alpha_A", "delta_V", "delta_A", "loss")


@dataclass(frozen=True)
class Job(jobs.Job):
    """A stretch of Stage 2 from α_V = α_A = 0.3 on the population's lines, with λ > 0 or as SGD."""

    N: int
    T: int
    lam: float
    gradients: str
    replicate: int
    batch_size: int
    eta: float
    steps: int

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return (
            self.batch_size * self.T * self.steps * 3e-9 + 0.1
            if self.gradients == "real"
            else 0.05 + 1.5 * (self.lam > 0)
        )

    def run(self) -> Table:
        """Its history."""
        from scb.training.loop import train
        from scb.training.simulation import simulate

        task = random_task(self.N, self.T, 2, self.replicate)
        stage = Stage("2", self.steps, self.eta / task.K_Q, self.eta / task.K_P, self.lam, self.batch_size)
        recipe = Recipe("prediction", GivenStart(line_V(task, 0.3), line_A(task, 0.3)), task.mu, (stage,))
        if self.gradients == "real":
            history = train(task, recipe, self.seed, every=5).history
        else:
            history = simulate(task, recipe, self.seed, every=5)
        return {name: history[name] for name in KEPT}


@dataclass(frozen=True)
class Config:
    """A size well above the authors' largest real run (N = 20, T = 5,000)."""

    N: int = 40
    T: int = 10_000
    batch_size: int = 256
    eta: float = 8e-3
    steps: int = 30
    lams: tuple[float, ...] = (0.0, 8e-4)
    seeds: int = 10

    def jobs(self) -> list[Job]:
        """λ, then kind of gradients, then replicates."""
        return [
            Job(self.N, self.T, lam, gradients, i, self.batch_size, self.eta, self.steps)
            for lam in self.lams
            for gradients in ("real", "simulated")
            for i in range(self.seeds)
        ]
