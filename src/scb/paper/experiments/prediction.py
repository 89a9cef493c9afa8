"""Does the Gaussian simulation predict real gradients? The same stage, from the same point, by both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from scb.geometry import line_A, line_V
from scb.jobs.job import Job, Rows, random_task
from scb.training.loop import train
from scb.training.recipes import Recipe
from scb.training.simulation import simulate
from scb.training.stages import Stage

KEPT = ("step", "alpha_V", "alpha_A", "delta_V", "delta_A", "loss")


@dataclass(frozen=True)
class PredictionJob(Job):
    """A stretch of Stage 2 from α_V = α_A = 0.3 on the population's lines, with λ > 0 or as SGD.

    Sizes are well above the authors' largest real run (N = 20, T = 5,000).
    """

    label: ClassVar = {"experiment": "prediction", "job": "Job"}

    N: int = 40
    T: int = 10_000
    lam: float = 8e-4
    gradients: Literal["real", "simulated"] = "real"
    replicate: int = 0
    batch_size: int = 256
    eta: float = 8e-3
    steps: int = 30

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        if self.gradients == "real":
            return self.batch_size * self.T * self.steps * 3e-9 + 0.1
        return 1.55 if self.lam > 0 else 0.05

    def run(self) -> Rows:
        """The history of the stretch."""
        task = random_task(self.N, self.T, 2, self.replicate)
        stage = Stage("2", self.steps, self.eta / task.K_Q, self.eta / task.K_P, self.lam, self.batch_size)
        recipe = Recipe("prediction", line_V(task, 0.3), line_A(task, 0.3), task.mu, (stage,))
        if self.gradients == "real":
            history = train(task, recipe, self.seed, every=5).history
        else:
            history = simulate(task, recipe, self.seed, every=5)
        return {name: history[name] for name in KEPT}
