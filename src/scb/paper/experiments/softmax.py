"""The dynamics of softmax attention (Section 5.2) beside the linear model with and without ℓ1,
against T."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from scb.geometry import line_V
from scb.jobs.job import Job, Rows, random_task
from scb.model import LinearTransformer, SoftmaxTransformer
from scb.task import Task
from scb.task.sampling import sample
from scb.training.loop import train
from scb.training.recipes import Recipe, paper, sgd, softmax

LEVELS = (0.1, 0.5, 0.8)


@dataclass(frozen=True)
class OneStepJob(Job):
    """One step from uniform attention on one mini-batch: the linear model with step size η, softmax
    with T²η."""

    label: ClassVar = {"experiment": "softmax dynamics", "job": "OneStepJob"}
    seconds: ClassVar = 0.1

    T: int
    # η·T: how far the step goes in units of the uniform attention 1/T
    size: float
    replicate: int
    N: int = 3
    batch_size: int = 64
    alpha: float = 0.2

    def run(self) -> Rows:
        """One row: ‖step of σ(w) − step of a‖ over ‖step of a‖, and the largest |entry| of the
        logits after the step."""
        task = random_task(self.N, self.T, 2, self.replicate)
        V = line_V(task, self.alpha)
        batch = sample(task, self.batch_size, self.seed, compiled=True)
        uniform = np.full((self.T, self.N), 1 / self.T, order="F")
        eta = self.size / self.T
        gradient = LinearTransformer(V, uniform).gradient(batch).A
        linear = -eta * (gradient - gradient.mean(axis=0))
        logits = (
            -(self.T**2) * eta * SoftmaxTransformer(V, np.zeros_like(uniform)).gradient(batch).A
        )
        soft = SoftmaxTransformer(V, logits).attention - uniform
        return {
            "error": np.linalg.norm(soft - linear) / np.linalg.norm(linear),
            "logits": np.abs(logits).max(),
        }


@dataclass(frozen=True)
class AttentionJob(Job):
    """One run from the uniform start: by softmax attention, by Algorithm 1 with λ = 1e-4, or by
    SGD, with the same batch.

    Softmax is tried with the step size for W of its recipe, and with a tenth of it.
    """

    label: ClassVar = {"experiment": "softmax dynamics", "job": "AttentionJob"}

    T: int
    method: Literal["softmax", "softmax, small η", "proximal", "SGD"]
    replicate: int
    N: int = 3
    batch_size: int = 64
    steps: int = 3000

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.5 + self.batch_size * self.steps * self.T * 1.5e-9

    def run(self) -> Rows:
        """One row: samples until α_A passes 0.1, 0.5 and 0.8 (∞ if it does not), ‖Δ_A‖_μ there
        (NaN), and both at the end."""
        task = random_task(self.N, self.T, 2, self.replicate)
        history = train(task, self._recipe(task), self.seed, every=10, judge=False).history
        row = {f"{name}_end": history[name][-1] for name in ("alpha_A", "delta_A", "sim_A")}
        for level in LEVELS:
            above = np.flatnonzero(history["alpha_A"] >= level)
            name = f"{round(100 * level)}"
            row[f"samples_{name}"] = history["samples"][above[0]] if above.size else np.inf
            row[f"delta_{name}"] = history["delta_A"][above[0]] if above.size else np.nan
        return row

    def _recipe(self, task: Task) -> Recipe:
        if self.method == "softmax":
            return softmax(task, steps=self.steps, batch_size=self.batch_size)
        if self.method == "softmax, small η":
            return softmax(task, steps=self.steps, batch_size=self.batch_size, eta_W=0.004)
        steps = (400, self.steps - 400)
        if self.method == "SGD":
            return sgd(task, steps=steps, batch_size=self.batch_size)
        return paper(task, steps=(*steps, 0), batch_size=self.batch_size, lam=1e-4)
