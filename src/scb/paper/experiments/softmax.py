"""The dynamics of softmax attention (Section 5.2), compared with the linear model with and without
ℓ1, against T."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from scb.geometry import line_V
from scb.jobs.job import Job, Rows
from scb.jobs.table import Table
from scb.model import LinearTransformer, SoftmaxTransformer
from scb.paper.experiments import history_of, shortened, task_of
from scb.task import Ensemble, Task
from scb.task.sampling import sample
from scb.training.recipes import Recipe, paper, sgd, softmax

LEVELS = (0.1, 0.5, 0.8)
POWERS = {"T^0.5": 0.5, "T": 1.0, "T^1.5": 1.5, "T^2": 2.0, "equivalent": 2.0}
"""How the step size of W grows with T; "equivalent" is the paper's: T² times the step size of A in
the linear model."""


def passed_levels(history: Table) -> dict[str, float]:
    """The samples until α_A passes ``LEVELS`` (∞ if it does not), ‖Δ_A‖_μ at those steps (NaN if it
    does not), and both at the end."""
    row = {f"{name}_end": history[name][-1] for name in ("alpha_A", "delta_A", "sim_A")}
    for level in LEVELS:
        above = np.flatnonzero(history["alpha_A"] >= level)
        name = f"{round(100 * level)}"
        row[f"samples_{name}"] = history["samples"][above[0]] if above.size else np.inf
        row[f"delta_{name}"] = history["delta_A"][above[0]] if above.size else np.nan
    return row


@dataclass(frozen=True)
class OneStepJob(Job):
    """One step from uniform attention on one mini-batch, in the linear model with step size η and
    in the softmax model with T²η."""

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
        """One row: how far the steps of the two models differ, ‖softmax's step − linear
        step‖/‖linear step‖, and the largest |entry| of the logits after the step."""
        task = task_of(self)
        V = line_V(task, self.alpha)
        batch = sample(task, self.batch_size, self.seed, compiled=True)
        uniform = np.full((self.T, self.N), 1 / self.T, order="F")
        eta = self.size / self.T
        gradient = LinearTransformer(V, uniform).gradient(batch).A
        # Columns of A keep their sum of 1
        linear_step = -eta * (gradient - gradient.mean(axis=0))
        # Logits of 0 are uniform attention
        logit_gradient = SoftmaxTransformer(V, np.zeros_like(uniform)).gradient(batch).A
        logits = -(self.T**2) * eta * logit_gradient
        softmax_step = SoftmaxTransformer(V, logits).attention - uniform
        return {
            "error": np.linalg.norm(softmax_step - linear_step) / np.linalg.norm(linear_step),
            "logits": np.abs(logits).max(),
        }


@dataclass(frozen=True)
class AttentionJob(Job):
    """One run from the uniform start with softmax attention, with Algorithm 1 at λ = 1e-4, or with
    SGD, all with the same batch size.

    Softmax is tried with the step size of W from its recipe and with a tenth of this step size.
    """

    label: ClassVar = {"experiment": "softmax dynamics", "job": "AttentionJob"}

    T: int
    method: Literal["softmax", "softmax, small η", "proximal", "SGD"]
    replicate: int
    N: int = 3
    batch_size: int = 64
    steps: int = 3000
    ensemble: Ensemble = "strong"

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.5 + self.batch_size * self.steps * self.T * 1.5e-9

    def run(self) -> Rows:
        """One row: the samples until α_A passes 0.1, 0.5 and 0.8 (∞ if it does not), ‖Δ_A‖_μ at
        those steps (NaN if it does not), and both at the end."""
        task = task_of(self)
        return passed_levels(history_of(task, self._recipe(task), self.seed, every=10))

    def _recipe(self, task: Task) -> Recipe:
        if self.method == "softmax":
            return softmax(task, steps=self.steps, batch_size=self.batch_size)
        if self.method == "softmax, small η":
            return softmax(task, steps=self.steps, batch_size=self.batch_size, eta_W=0.004)
        steps = (400, self.steps - 400)
        if self.method == "SGD":
            return sgd(task, steps=steps, batch_size=self.batch_size)
        return paper(task, steps=(*steps, 0), batch_size=self.batch_size, lam=1e-4)


@dataclass(frozen=True)
class StepJob(Job):
    """One run of softmax attention from the uniform start, with a step size of W that grows like a
    power of T.

    At T = 50, all powers have the recipe's step size, 0.04·N·T. The step size "equivalent" is
    T²η/K_P·N: near uniform attention, its steps equal those of the linear model with η = 0.01.
    """

    label: ClassVar = {"experiment": "softmax dynamics", "job": "StepJob"}
    usual: ClassVar = {}

    T: int
    step: str
    steps: int
    ensemble: Ensemble
    replicate: int
    N: int = 3
    batch_size: int = 64

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return self.steps * (1.5e-4 + self.batch_size * self.T * 9e-10)

    def run(self) -> Rows:
        """One row: the step size of W, and when α_A passes the levels."""
        task = task_of(self)
        eta_W = 0.04 * (self.T / 50) ** (POWERS[self.step] - 1)
        if self.step == "equivalent":
            eta_W = self.T * 0.01 / task.K_P
        recipe = softmax(task, steps=self.steps, batch_size=self.batch_size, eta_W=eta_W)
        history = history_of(task, recipe, self.seed, every=5)
        used = {"power": POWERS[self.step], "eta_W": recipe.stages[0].eta_A}
        return shortened(used | passed_levels(history))


STEPS = tuple(
    (T, step, 6000 if power <= 1 and T >= 500 else 3000)
    for T in (50, 158, 500, 1580, 5000)
    for step, power in POWERS.items()
)
"""(T, step, steps): small steps are given more of them."""
