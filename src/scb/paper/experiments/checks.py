"""Small checks of single sentences: entries below −λ, the end of Stage 1 with noise, the error near
(1, 1), and the plan of the lemmas inside all assumptions."""

from dataclasses import dataclass
from math import ceil, log
from typing import ClassVar

import numpy as np

from scb.geometry import deviations, line_A, line_V, mu_norm
from scb.jobs.job import Job, Rows, seed_of
from scb.model import LinearTransformer
from scb.paper.experiments import history_of, task_of
from scb.paper.experiments.large import KEPT, PlanJob
from scb.paper.experiments.rates import NEVER
from scb.task import Ensemble
from scb.task.sampling import sample
from scb.theory.dynamics import population_step
from scb.training.loop import train
from scb.training.recipes import paper, sgd

MOST_SAMPLES = 10**12
"""Of a step: a stage takes no more."""


@dataclass(frozen=True)
class NegativeJob(Job):
    """The entries of A below −λ after the gradient step of a proximal step, in the paper's
    experiment."""

    label: ClassVar = {"experiment": "checks", "job": "NegativeJob"}
    seconds: ClassVar = 0.5

    step: int
    ensemble: Ensemble = "strong"
    replicate: int = 0
    N: int = 3
    T: int = 5000
    batch_size: int = 64
    lam: float = 1e-5

    def run(self) -> Rows:
        """One row: how many entries there are, how many lie below −λ, and the smallest entry
        divided by λ.
        """
        task = task_of(self)
        recipe = paper(task, steps=(400, self.step - 400, 0), lam=self.lam, resolve_sign=False)
        done = train(task, recipe, self.seed, every=NEVER, judge=False)
        batch = sample(task, self.batch_size, seed_of(use="one more", job=self.seed), compiled=True)
        gradient = LinearTransformer(done.V, done.A).gradient(batch).A
        moved = done.A - recipe.stages[1].at(0).eta_A * gradient / task.mu
        return {
            "entries": moved.size,
            "below": int((moved < -self.lam).sum()),
            "least": moved.min() / self.lam,
        }


@dataclass(frozen=True)
class StageOneEndJob(Job):
    """The signals at the end of a simulated Stage 1, with the batch of its main lemma and all
    constants set to 1.
    """

    label: ClassVar = {"experiment": "checks", "job": "StageOneEndJob"}
    seconds: ClassVar = 0.2

    T: int
    replicate: int
    N: int = 3

    def run(self) -> Rows:
        """One row: the batch size, and both signals at the first step at which one of them is
        1/(QN)."""
        task = task_of(self)
        eta = min(task.K_P, task.K_Q, 0.1)
        least = min(task.K_P, task.K_Q) ** 3
        batch_size = ceil(self.T**2 * task.sparsity**4 * self.N**5 / least)
        steps = ceil(2 * log(self.T) / eta)
        recipe = sgd(
            task, eta=(eta, eta), steps=(steps, 0), batch_size=batch_size, resolve_sign=False
        )
        history = history_of(task, recipe, self.seed, 1, "simulated")
        larger = np.maximum(history["alpha_V"], history["alpha_A"])
        end = int(np.argmax(larger >= 1 / (task.sparsity * self.N)))
        alpha_V, alpha_A = (float(history[name][end]) for name in ("alpha_V", "alpha_A"))
        return {
            "batch_size": batch_size,
            "K_Q": task.K_Q,
            "steps": end,
            "alpha_V": alpha_V,
            "alpha_A": alpha_A,
            "gap": abs(alpha_V - alpha_A),
            "sum": (alpha_V + alpha_A) * task.sparsity * self.N,
        }


@dataclass(frozen=True)
class ErrorDecayJob(Job):
    """Noiseless steps on whole matrices from near (1, 1), with a random error in both layers."""

    label: ClassVar = {"experiment": "checks", "job": "ErrorDecayJob"}
    seconds: ClassVar = 0.05

    replicate: int
    N: int = 3
    T: int = 500
    eta: float = 0.005
    steps: int = 400

    def run(self) -> Rows:
        """One row: the rates per step, in units of η, at which ‖Δ_V‖ and ‖Δ_A‖ fall."""
        task = task_of(self)
        rng = np.random.default_rng(self.seed)
        V, A = line_V(task, 0.9), line_A(task, 0.9)
        error_V = rng.normal(size=V.shape)
        error_V -= error_V.mean(axis=0) + (error_V @ task.mu)[:, None]
        error_A = rng.normal(size=A.shape)
        error_A -= error_A.mean(axis=0)
        V = V + 0.1 * error_V / mu_norm(error_V, task.mu)
        A = A + 0.1 * error_A / mu_norm(error_A, task.mu)
        before = [mu_norm(D, task.mu) for D in deviations(task, V, A)]
        for _ in range(self.steps):
            V, A = population_step(task, V, A, self.eta / task.K_Q, self.eta / task.K_P)
        after = [mu_norm(D, task.mu) for D in deviations(task, V, A)]
        rates = -np.log(np.divide(after, before)) / (self.eta * self.steps)
        return {"rate_V": rates[0], "rate_A": rates[1], "after_V": after[0], "after_A": after[1]}


@dataclass(frozen=True)
class PlannedJob(Job):
    """Algorithm 1 with the settings of ``scb plan``, at a size inside all assumptions and the range
    of ε. It is simulated, with batches of at most 10¹², which is less than planned.
    """

    label: ClassVar = {"experiment": "checks", "job": "PlannedJob"}
    seconds: ClassVar = 0.5

    replicate: int
    N: int = 3
    T: int = 100_000
    sparsity: int = 1
    epsilon: float = 0.09
    delta: float = 0.2

    def run(self) -> Rows:
        """A row for the end of each stage, with whether the task meets all assumptions."""
        task = task_of(self)
        plan = PlanJob(self.N, self.T, self.sparsity, self.epsilon, self.delta)
        recipe = plan.recipe(task, MOST_SAMPLES)
        history = history_of(task, recipe, self.seed, 5, "simulated")
        inside = all(found.holds for found in task.check().values()) and not plan.plan(task).warning
        ends = [np.flatnonzero(history["stage"] == stage)[-1] for stage in (1, 2, 3)]
        kept = {name: np.asarray(history[name], dtype=float)[ends] for name in KEPT}
        return kept | {"inside": np.full(3, inside)}
