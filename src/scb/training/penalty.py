"""λ, the level of the soft threshold in a proximal step: a fixed number, or a multiple of the noise that the step has."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scb.geometry import Array
from scb.theory.noise import residual_variance

if TYPE_CHECKING:
    from scb.training.stages import Stage


class Penalty(ABC):
    """How λ is chosen in each step of a stage, one level for each column of A."""

    @property
    @abstractmethod
    def size(self) -> float:
        """The number that all levels are proportional to; where it is 0, no level is ever positive."""

    @abstractmethod
    def levels(self, K_V: float, mu: Array, stage: "Stage") -> Array:
        """(N,): λ of each column in a step from a V with ‖V − μ1ᵀ‖_μ² = K_V."""

    @abstractmethod
    def affine(self, mu: Array, stage: "Stage") -> tuple[float, float, Array]:
        """(c, s, w) with levels (c + s·√K_V)·w, all that a compiled step has to know; w is (N,)."""


@dataclass(frozen=True)
class Fixed(Penalty):
    """One λ for every step and column."""

    lam: float

    @property
    def size(self) -> float:
        """λ itself."""
        return self.lam

    def levels(self, K_V: float, mu: Array, stage: "Stage") -> Array:
        """(N,): λ, N times."""
        return np.full(len(mu), self.lam)

    def affine(self, mu: Array, stage: "Stage") -> tuple[float, float, Array]:
        """λ as a constant."""
        return self.lam, 0.0, np.ones(len(mu))


@dataclass(frozen=True)
class MeasuredNoise(Penalty):
    """λ as ``multiple`` standard deviations of one coordinate's noise in one step, η_A √(K_V ρ / (B μ_k)), for each column k.

    K_V is that of the current V, and ρ ≤ (1 − ‖μ‖²)/(N − 1) its largest value, from the start of training.
    """

    multiple: float

    @property
    def size(self) -> float:
        """The multiple."""
        return self.multiple

    def levels(self, K_V: float, mu: Array, stage: "Stage") -> Array:
        """(N,): the multiple of the noise at this K_V."""
        rho = residual_variance(1 - float(mu @ mu), len(mu))
        return self.multiple * stage.eta_A * np.sqrt(K_V * rho / (stage.batch_size * mu))

    def affine(self, mu: Array, stage: "Stage") -> tuple[float, float, Array]:
        """√K_V times the levels at K_V = 1."""
        return 0.0, 1.0, self.levels(1.0, mu, stage)


def as_penalty(lam: float | Penalty) -> Penalty:
    """A plain number as a fixed λ; anything else as it is."""
    return lam if isinstance(lam, Penalty) else Fixed(lam)
