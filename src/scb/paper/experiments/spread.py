"""The least batch that finds the sign in Stage 1 as the stationary distribution departs from
uniform, which shows whether the T² is due to the task or to the projector.

The paper's projector lets through the noise r(1 − μ/‖μ‖²)ᵀ, which does not fall with T. If μ is
uniform, this noise is 0, and both projectors are the same.
"""

from dataclasses import dataclass, replace
from math import ceil, log
from typing import ClassVar, Literal

import numpy as np

from scb.geometry import Projector
from scb.jobs.job import Job, Rows, random_task, seed_of
from scb.paper.experiments import Gradients, history_of, shortened
from scb.paper.experiments.rates import SignalReaches
from scb.task import Task
from scb.task.chains import CONTRAST, random_transition
from scb.training.recipes import sgd

Chain = Literal["strong", "dense"]


def spread_task(N: int, T: int, spread: float, chain: Chain, replicate: int) -> Task:
    """A random task with max μ/min μ = ``spread`` and equally spaced logarithms of μ.

    "strong" has K_P ≥ 1.4‖μ‖², like the ensemble of that name; "dense" has a P of scaled random
    entries and no condition on K_P.
    """
    mu = spread ** (np.arange(N) / (N - 1))
    rng = np.random.default_rng(seed_of(use="spread", N=N, chain=chain, replicate=replicate))
    P = random_transition(mu / mu.sum(), CONTRAST if chain == "strong" else 0.0, rng)
    other = random_task(N, T, 2, replicate)
    return Task.sparse(P, other.positions, other.weights, T)


@dataclass(frozen=True)
class SpreadJob(Job):
    """Stage 1 in which only the drift can find the sign, at a multiple of a rough guess of the
    batch that this requires."""

    label: ClassVar = {"experiment": "spread", "job": "SpreadJob"}
    usual: ClassVar = {}

    T: int
    spread: float
    chain: Chain
    projector: Projector
    gradients: Gradients
    factor: float
    replicate: int
    N: int = 3
    eta: float = 0.05

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.04 if self.gradients == "simulated" else 0.05 + 1e-7 * self.T

    def run(self) -> Rows:
        """One row: the batch, whether α_A is positive once |α_A| or |α_V| is 0.1, α_A at that step,
        and the noise that the paper's projector lets through."""
        task = spread_task(self.N, self.T, self.spread, self.chain, self.replicate)
        mu = task.mu
        leak = max(float(np.sum(mu**3) / (mu @ mu) ** 2) - 1, 0.0)
        batch_size = self._batch_size(leak)
        alpha = self._end(task, batch_size)
        row = {"batch_size": batch_size, "right": alpha > 0, "alpha_A": alpha, "leak": leak}
        return shortened(row)

    def _batch_size(self, leak: float) -> int:
        """About T/33 with the μ-projector, and leak·T²/70 more with the paper's; 2.5 times that for
        a dense P, whose K_P is smaller."""
        each = 0.03 * self.T
        if self.projector == "euclidean":
            each += 0.014 * leak * self.T**2
        if self.chain == "dense":
            each *= 2.5
        return max(1, ceil(self.factor * each))

    def _end(self, task: Task, batch_size: int) -> float:
        recipe = sgd(
            task,
            eta=(self.eta, self.eta),
            # Noise-free growth, e^(ητ)/(2TK_Q), and some more
            steps=(ceil((log(2 * self.T * task.K_Q) + 4) / self.eta), 0),
            batch_size=batch_size,
            resolve_sign=False,
            projector=self.projector,
        )
        stop = SignalReaches(task, 0.1)
        if self.gradients == "real":
            stage = replace(recipe.stages[0], stop=stop, check_every=2)
            recipe = replace(recipe, stages=(stage,))
        history = history_of(task, recipe, self.seed, 2, self.gradients)
        signal = np.maximum(np.abs(history["alpha_V"]), np.abs(history["alpha_A"]))
        large = np.flatnonzero(signal >= stop.level)
        return float(history["alpha_A"][large[0] if large.size else -1])


LENGTHS = (500, 2000, 8000, 32_000)
SPREADS = (
    *((T, spread, "strong", "simulated") for spread in (1.0, 1.1, 1.2, 1.5, 2.0) for T in LENGTHS),
    *((T, spread, "dense", "simulated") for spread in (1.0, 1.2, 2.0) for T in LENGTHS),
    *((T, spread, "strong", "real") for spread in (1.0, 2.0) for T in LENGTHS[:2]),
)
"""(T, spread, chain, gradients)."""
FACTORS = (0.25, 0.5, 1.0, 2.0)
