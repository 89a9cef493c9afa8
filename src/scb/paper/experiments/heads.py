"""Several heads: when each singular value is learned, where equal heads stop, which heads are
learned, and what becomes of spare heads.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from scb.arrays import Array
from scb.geometry import function_distance, function_singular_values, mu_norm, rotate_heads
from scb.jobs.job import Job, Rows, seed_of
from scb.metrics import match_heads
from scb.paper.experiments.training import shortened
from scb.task import Ensemble, Task
from scb.theory.expectations import expected_preconditioned_gradients
from scb.theory.heads import factorisation_loss, least_loss, predicted_times
from scb.training.starts import random_start

Start = Literal["random", "equal", "spare", "sparse"]
Heads = tuple[Array, Array]  # V (H, N, N) and A (H, T, N)


def heads_task(N: int, T: int, heads: int, replicate: int, ensemble: Ensemble = "strong") -> Task:
    """Random task number ``replicate`` with singular values of at least a fifth of the first."""
    name = {"use": "heads", "N": N, "heads": heads, "ensemble": ensemble, "replicate": replicate}
    draw = 0
    while True:
        seed = seed_of(**name, draw=draw)
        task = Task.random(N, T, 2, seed, ensemble=ensemble, heads=heads)
        if task.singular_values[-1] >= task.singular_values[0] / 5:
            return task
        draw += 1


@dataclass(frozen=True)
class HeadsJob(Job):
    """Training without noise from a small start: heads that differ, heads that are equal, one head
    more than the task has, or heads that differ with an ℓ₁ penalty once the function is learned.
    """

    label: ClassVar = {"experiment": "heads", "job": "HeadsJob"}
    seconds: ClassVar = 2.0

    heads: int
    start: Start
    N: int = 3
    T: int = 500
    ensemble: Ensemble = "strong"
    replicate: int = 0

    def run(self) -> Rows:
        """A row for each singular value of the task, with the predicted and the measured number of
        steps to half of it, and with measures of the heads and of the function of the whole run."""
        task = heads_task(self.N, self.T, self.heads, self.replicate, self.ensemble)
        mu, sigma = task.mu, task.singular_values
        seed = seed_of(use="heads, start", replicate=self.replicate)
        first = random_start(mu, self.T, self.heads + (self.start == "spare"), seed, size=1e-3)
        eta = 0.02 / sigma[0]
        predicted = predicted_times(task, first.V, first.A, eta, eta)
        V = np.repeat(first.V[:1], self.heads, axis=0) if self.start == "equal" else first.V
        steps = int(3 * predicted[-1])
        (V, A), measured = _descended(task, (V, first.A), eta, steps)
        if self.start == "sparse":
            V, A = _made_sparse(task, (V, A), eta, 4 * steps)
        learned = function_singular_values(V, A, mu)
        row = {
            "slope": predicted @ measured / (predicted @ predicted),
            "dist": function_distance((V, A), (task.P, task.Q), mu),
            "second": learned[1] / sigma[1],
            "above_one_head": factorisation_loss(task, V, A) - least_loss(task, heads=1),
            "left_over": learned[self.heads] / sigma[-1] if self.start == "spare" else np.nan,
            "overlap": match_heads(V, A, task).overlap.min(),
            "rotated": match_heads(*rotate_heads(V, A, mu, heads=self.heads), task).overlap.min(),
        }
        found = {"number": np.arange(1, self.heads + 1), "sigma": sigma}
        found |= {"predicted": predicted, "measured": measured}
        return shortened(found | {name: np.full(self.heads, x) for name, x in row.items()})


def _descended(task: Task, heads: Heads, eta: float, steps: int) -> tuple[Heads, Array]:
    """Heads after gradient steps, and when each singular value had come to half of the task's."""
    V, A = heads
    measured = np.full(task.heads, np.nan)
    for step in range(steps):
        if np.isnan(measured).any():
            values = function_singular_values(V, A, task.mu)
            new = np.isnan(measured) & (values[: task.heads] >= task.singular_values / 2)
            measured[new] = step
        gV, gA = expected_preconditioned_gradients(task, V, A)
        V, A = V - eta * gV, A - eta * gA
    return (V, A), measured


def _made_sparse(task: Task, heads: Heads, eta: float, steps: int) -> Heads:
    """Heads after proximal steps with a penalty λ‖A‖₁, where every ‖V_h − μ1ᵀ‖_μ is kept at the
    mean of all, so that A holds the sizes; λ falls to 0."""
    V, A = heads
    mean = task.mu[:, None]
    scale = mu_norm(V - mean, task.mu).mean()
    for lam in np.linspace(0.05 * task.singular_values[0], 0, steps):
        gV, gA = expected_preconditioned_gradients(task, V, A)
        V, A = V - eta * gV, A - eta * gA
        sizes = mu_norm(V - mean, task.mu)[:, None, None] / scale
        V, A = mean + (V - mean) / sizes, A * sizes
        A = np.sign(A) * np.maximum(np.abs(A) - eta * lam, 0)
    return V, A
