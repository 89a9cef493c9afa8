"""The state of a simulated run: signals and errors in place of (V, A).

V is described by α_V, ‖Δ_V‖² and its part along û, a vector (N,), where û is the direction of the
rows in which the paper's projector lets more noise through. A is described by α_A and ‖Δ_A‖² while
λ = 0. With λ > 0, a column of A is one common value plus the entries that a proximal step has left
above it: the support of Q and a few survivors of the noise. The number of other entries that exceed
±λ is binomial, and the amounts by which they exceed it are drawn from a tail of the normal
distribution.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.geometry import Projection, projector_row
from scb.geometry.lines import projection_by_norms
from scb.task import Task
from scb.training.starts import GivenStart, UniformAttention
from scb.training.updates import soft_threshold


class SparseAttention:
    """The attention A as a common value per column plus the entries that differ from it.

    The attention starts at a given α_A and ‖Δ_A‖_μ.

    The direction of Δ_A at the start is uniform. Its entries are drawn as normal variables, which
    is exact up to O(1/(NT)).
    """

    def __init__(self, task: Task, alpha: float, delta: float, rng: np.random.Generator) -> None:
        self.task = task
        self.rng = rng
        # (N,), the mean of all entries but the support and the survivors
        self.common = np.full(task.N, (1 - alpha) / task.T)
        # (N,), their standard deviation; 0 after a proximal step
        self.spread = delta / np.sqrt(task.N * task.T * task.mu)
        support = (
            self.common + alpha * task.weights + self.spread * rng.normal(size=task.weights.shape)
        )
        # (Q, N), entries at the positions of the task
        self.support = np.where(task.weights > 0, support, self.common)
        # Of each survivor, an entry outside the support that stands out
        self.column = np.empty(0, dtype=np.intp)
        self.value = np.empty(0)  # of each survivor

    @property
    def others(self) -> NDArray[np.intp]:
        """The number of entries in each column that have the common mean, (N,)."""
        survivors = np.bincount(self.column, minlength=self.task.N)
        return self.task.T - (self.task.weights > 0).sum(axis=0) - survivors

    def sums(self) -> Array:
        """Return the sum of each column, (N,)."""
        return self._total(self.value, self.support) + self.others * self.common

    def _total(self, survivors: Array, support: Array) -> Array:
        total = np.bincount(self.column, survivors, minlength=self.task.N).astype(float)
        return total + np.where(self.task.weights > 0, support, 0.0).sum(axis=0)

    def constants(self) -> tuple[float, float]:
        """Return the constants K_A and K_AQ."""
        mu, T = self.task.mu, self.task.T
        squares = self._total(self.value**2, self.support**2) + self.others * (
            self.common**2 + self.spread**2
        )
        K_A = float(mu @ squares) - 1 / T
        K_AQ = float(mu @ (self.task.weights * self.support).sum(axis=0)) - 1 / T
        return K_A, K_AQ

    def keep_above(self, level: Array) -> None:
        """Set every entry below ``level`` (N,) to 0; equal entries stay equal."""
        fresh_column, fresh_value = self._emerge(
            self.common, self.spread, above=level, below=np.full(self.task.N, -np.inf)
        )
        column = np.append(self.column, fresh_column)
        value = np.append(self.value, fresh_value)
        self._set_survivors(column, np.where(value >= level[column], value, 0.0))
        self.support = np.where(self.support >= level, self.support, 0.0)

    def descend(self, shrink: float, pull: float, noise: Array, lam: Array) -> None:
        """Apply a ← Proj(soft(shrink·a + pull·q + noise·N(0, 1), λ)), entry by entry."""
        spread = np.hypot(shrink * self.spread, noise)
        fresh_column, fresh_value = self._emerge(
            shrink * self.common, spread, above=lam, below=-lam
        )
        value = shrink * self.value + noise[self.column] * self.rng.normal(size=self.value.shape)
        support = (
            shrink * self.support
            + pull * self.task.weights
            + noise * self.rng.normal(size=self.support.shape)
        )
        column = np.append(self.column, fresh_column)
        self._set_survivors(column, soft_threshold(np.append(value, fresh_value), lam[column]))
        self.support = soft_threshold(support, lam)
        self.project()

    def project(self) -> None:
        """Add the same number to all entries of a column, so that it sums to 1."""
        shift = (1 - self.sums()) / self.task.T
        self.common = self.common + shift
        self.support = self.support + shift
        self.value = self.value + shift[self.column]

    def mirror(self) -> None:
        """Replace every entry a by 2/T − a."""
        twice = 2 / self.task.T
        self.support = twice - self.support
        self.value = twice - self.value
        self.common = twice - self.common

    def normalize(self) -> None:
        """Divide each column by its sum; a column without any mass becomes uniform."""
        mass = self.sums()
        some = mass > 0
        divisor = np.where(some, mass, 1.0)
        self.value = self.value / divisor[self.column]
        self.support = np.where(some, self.support / divisor, 1 / self.task.T)
        self.common = np.where(some, 0.0, 1 / self.task.T)

    def _set_survivors(self, column: NDArray[np.intp], value: Array) -> None:
        """Keep those of these entries that are not 0; all others outside the support become 0."""
        kept = value != 0
        self.column = column[kept]
        self.value = value[kept]
        self.common = np.zeros(self.task.N)
        self.spread = np.zeros(self.task.N)

    def _emerge(
        self, mean: Array, spread: Array, above: Array, below: Array
    ) -> tuple[NDArray[np.intp], Array]:
        """Draw those of the other entries, N(mean, spread²) each, that lie above or below two
        levels. Returns their columns and values.

        Their number is binomial, and their values have the tail of a normal distribution.
        """
        from scipy.special import ndtr, ndtri

        random = spread > 0
        scale = np.where(random, spread, 1.0)
        left = self.others
        columns = []
        values = []
        for sign, level in ((1.0, above), (-1.0, below)):
            chance = np.where(
                random, ndtr(-sign * (level - mean) / scale), sign * mean > sign * level
            )
            count = self.rng.binomial(left, np.clip(chance, 0, 1))
            left = left - count
            column = np.repeat(np.arange(self.task.N), count)
            tail = -sign * ndtri(self.rng.random(column.size) * chance[column])
            columns.append(column)
            values.append(mean[column] + np.where(random[column], spread[column] * tail, 0.0))
        return np.concatenate(columns), np.concatenate(values)


@dataclass
class Collapsed:
    """The state of a simulated run."""

    task: Task
    rng: np.random.Generator
    # α, K and ‖Δ‖ of the point
    p: Projection
    # (N,), (V − μ1ᵀ)diag(μ)û: the part of V along û
    along: Array
    # A entry by entry, from the first step or rounding that needs entries; None before
    columns: SparseAttention | None = None

    @classmethod
    def at_start(cls, task: Task, start: GivenStart | UniformAttention, seed: int) -> "Collapsed":
        """Return the state of a run before its first step."""
        along = along_leak(start.V, task.mu)
        return cls(task, np.random.default_rng(seed), start.projection(task), along)

    @cached_property
    def leak(self) -> float:
        """The length of 1 − μ/‖μ‖², which says how much of the common noise the paper's projector
        lets through along û.
        """
        return leaking_direction(self.task.mu)[1]

    @cached_property
    def truth_along(self) -> Array:
        """The part of P along û, (N,)."""
        return along_leak(self.task.P, self.task.mu)

    def entries(self) -> SparseAttention:
        """Return A entry by entry; on first use it is drawn from its distribution given ``p``."""
        if self.columns is None:
            self.columns = SparseAttention(self.task, self.p.alpha_A, self.p.delta_A, self.rng)
        return self.columns

    def place(self, alpha_V: float, delta_V: float, K_A: float, K_AQ: float) -> None:
        """Set the state to the point with these signals, errors and constants."""
        self.p = projection_by_norms(self.task, alpha_V, delta_V, K_A, K_AQ)

    def follow_entries(self) -> None:
        """Take K_A and K_AQ from the entries, after these have changed."""
        self.place(self.p.alpha_V, self.p.delta_V, *self.entries().constants())

    def mirror(self) -> None:
        """Replace the state by its mirror image, in which both signals are negated."""
        self.place(-self.p.alpha_V, self.p.delta_V, self.p.K_A, -self.p.K_AQ)
        self.along = -self.along
        if self.columns is not None:
            self.columns.mirror()


def leaking_direction(mu: Array) -> tuple[Array, float]:
    """Return û (N,), the unit vector of ⟨·, ·⟩_μ along 1 − μ/‖μ‖², and the length of 1 − μ/‖μ‖².

    The length says how much noise the paper's projector lets through. For a uniform μ, the length
    is 0, and û is any unit vector orthogonal to 1.
    """
    leak = 1 - projector_row(mu, "euclidean")
    length = float(np.sqrt(mu @ leak**2))
    if length < 1e-9:
        leak = np.eye(len(mu))[0] - mu[0]
    return leak / np.sqrt(mu @ leak**2), length


def along_leak(V: Array, mu: Array) -> Array:
    """Return (V − μ1ᵀ)diag(μ)û, the part of V along û, (N,)."""
    return (V - mu[:, None]) @ (mu * leaking_direction(mu)[0])
