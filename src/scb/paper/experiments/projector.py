"""The paper's projector and the μ-projector: the noise at the start, and the batch that Stage 1
needs to find the sign by its drift.

In Stage 1, α_V + α_A grows by the factor 1 + η per step, from a drift η/(T·K_Q) and the noise
η_V⟨h_V, P⟩_μ/K_P. So its sign is right with probability Φ(z) if B = z² η T² Var⟨h_V, P⟩_μ/(2 K_P²)
for the noise h_V of one sample. With the paper's projector the variance does not fall with T,
whereas with the μ-projector it is O(1/T), so B should grow like T² and like T, respectively.
"""

from dataclasses import dataclass
from math import ceil, log
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from scb.geometry import Projector, mu_norm, uniform_start
from scb.jobs.job import Job, Rows, seed_of
from scb.task import Task
from scb.task.sampling import step_keys
from scb.theory.expectations import expected_gradients
from scb.theory.noise import GradientNoise
from scb.training.loop import Device, train
from scb.training.recipes import paper
from scb.training.sources.sampled import Fresh
from scb.training.updates import precondition_V

GOAL = 0.85
"""The share of right signs that Stage 1 is asked for."""


def same_chain(N: int, T: int, replicate: int) -> Task:
    """A random task whose P and μ are the same for every T, so only T differs."""
    return Task.random(N, T, 2, seed_of(use="projector", N=N, replicate=replicate))


def sign_batch(task: Task, eta: float, projector: Projector, goal: float = GOAL) -> float:
    """The B with which Stage 1 should find the sign with probability ``goal``, judging by the noise
    at the start."""
    variance = GradientNoise(task, *uniform_start(task.mu, task.T), projector).variance_along_V(
        task.P
    )
    return float(NormalDist().inv_cdf(goal) ** 2 * eta * task.T**2 * variance / (2 * task.K_P**2))


@dataclass(frozen=True)
class StartNoiseJob(Job):
    """The noise of V's preconditioned gradient at V = μ1ᵀ and A = 11ᵀ/T."""

    label: ClassVar = {"experiment": "projector", "job": "StartNoiseJob"}

    T: int
    N: int = 3
    projector: Projector = "euclidean"
    replicate: int = 0
    batch_size: int = 64
    batches: int = 20

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.02 + 1.5e-9 * self.T * self.batch_size * self.batches

    def run(self) -> Rows:
        """One row: the mean of ‖h_V‖_μ² over mini-batches, its exact value, its limit for long T,
        and the B that it requires.
        """
        task = same_chain(self.N, self.T, self.replicate)
        mu = task.mu
        V, A = uniform_start(mu, self.T)
        mean = expected_gradients(task, V, A)[0]
        draws = [
            Fresh(task)(V, A, self.batch_size, key).V
            for key in step_keys(self.seed, range(self.batches))
        ]
        squares = [mu_norm(precondition_V(g - mean, mu, self.projector), mu) ** 2 for g in draws]
        leak = np.sum(mu**3) / (mu @ mu) ** 2 - 1 if self.projector == "euclidean" else 0.0
        return {
            "square": np.mean(squares),
            "exact": GradientNoise(task, V, A, self.projector).square_V() / self.batch_size,
            "limit": (1 - mu @ mu) * leak / self.batch_size,
            "asked": sign_batch(task, 0.01, self.projector),
        }


@dataclass(frozen=True)
class SignJob(Job):
    """Stage 1 with real gradients, in which only the drift can find the sign."""

    label: ClassVar = {"experiment": "projector", "job": "SignJob"}

    T: int = 5000
    batch_size: int = 64
    projector: Projector = "euclidean"
    replicate: int = 0
    N: int = 3
    eta: float = 0.01
    device: Device | None = None

    @property
    def steps(self) -> int:
        """The number of steps, at least twice what the population process needs."""
        return ceil(2 * log(10 * self.T) / self.eta)

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.03 + 0.25 * self.steps * self.batch_size * self.T * 1.3e-9

    def run(self) -> Rows:
        """One row: whether α_A is positive once the estimated signal is 0.1, α_A at that step, and
        the number of samples until then."""
        task = same_chain(self.N, self.T, self.replicate)
        recipe = paper(
            task,
            eta=(self.eta, self.eta, self.eta),
            steps=(self.steps, 0, 0),
            batch_size=self.batch_size,
            resolve_sign=False,
            projector=self.projector,
            signal=(0.1, None),
        )
        run = train(
            task, recipe, self.seed, device=self.device or "cpu", every=self.steps, judge=False
        )
        alpha = run.history["alpha_A"][-1]
        return {"right": alpha > 0, "alpha_A": alpha, "samples": run.samples}


LENGTHS = tuple(200 << i for i in range(7))  # 200 to 12,800
GUESSES = {
    "euclidean": (8, 25, 80, 320, 1300, 5000, 20_000),
    "mu": tuple(4 << i for i in range(7)),
}  # B, about what it takes
LADDER = tuple(
    (T, max(round(guess * factor), 4), projector)
    for projector, guesses in GUESSES.items()
    for T, guess in zip(LENGTHS, guesses, strict=True)
    for factor in ((0.5, 1, 2) if guess < 10_000 else (0.5, 1))
)
"""(T, batch_size, projector): batch sizes on both sides of the least that finds the sign with
probability ``GOAL``, η = 0.05."""
