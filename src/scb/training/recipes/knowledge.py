"""What the paper takes as known, given or estimated from data."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scb.geometry import Array, centred_square
from scb.mixture.reading import as_data
from scb.mixture.spectral import spectral
from scb.task import Seed, Task
from scb.task.sampling import Batch, sample
from scb.training.stages import Stage

FALSE_POSITIONS = 1e-3  # a false position distorts K_Q more than a weak one that is missed


@dataclass(frozen=True)
class Knowledge:
    """The stationary law μ and the norms K_P and K_Q, which set the preconditioner and the step sizes."""

    mu: Array
    K_P: float
    K_Q: float
    samples: int = 0

    @classmethod
    def of(cls, task: Task, known: bool = True, seed: Seed = 0) -> "Knowledge":
        """The truth; or, if it is not ``known``, estimates from 4,000 fresh samples and nothing else of the task."""
        if known:
            return cls(task.mu, task.K_P, task.K_Q)
        return estimate(sample(task, 4000, seed), task.N)

    def stage(self, name: str, steps: int, eta: float, **rest: Any) -> Stage:
        """A stage with the step sizes of the paper, η_V = η/K_Q and η_A = η/K_P, unless ``rest`` has others."""
        rates: dict[str, Any] = {"eta_V": eta / self.K_Q, "eta_A": eta / self.K_P}
        return Stage(name, steps, **(rates | rest))


def estimate(data: Batch, N: int) -> Knowledge:
    """μ, K_P and K_Q from samples alone: the norms of the spectral estimates of P and Q.

    Tokens for which no position was found say nothing about K_Q, and are left out of its mean.
    """
    n, T = data.context.shape
    if n == 0:
        raise ValueError("the batch is empty: there must be at least 1 sample to estimate from")
    mu = np.bincount(data.context.ravel(), minlength=N) + np.bincount(data.last, minlength=N).astype(float)
    if (mu == 0).any():
        raise ValueError(f"token {int(np.argmin(mu))} never occurs in {n} samples: more samples are needed")
    mu /= mu.sum()
    found = spectral(as_data(data, N), FALSE_POSITIONS)
    squares = np.array([weights @ weights for weights in found.weights])  # (N,): ‖q^(k)‖², 0 without positions
    seen = squares > 0
    if not seen.any():
        # The least K_P that assumption (c) allows, and sparsity 1.
        return Knowledge(mu, K_P=float(mu @ mu), K_Q=1.0, samples=n)
    K_P = max(centred_square(found.P, mu), float(mu @ mu) / 2)
    K_Q = mu[seen] @ squares[seen] / mu[seen].sum() - 1 / T
    return Knowledge(mu, K_P=K_P, K_Q=float(np.clip(K_Q, 1 / T, 1.0)), samples=n)
