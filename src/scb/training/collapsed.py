"""The state of the collapsed simulation: (V, A) known by a few numbers and, where needed, by the entries that stand out of A.

Roundings and the simulation both work on it; neither ever sees a (T, N) array.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from scb.geometry import Array, Projection, projection_by_norms
from scb.task import Task
from scb.training.updates import soft_threshold


@dataclass
class Columns:
    """A as what stands out of it."""

    task: Task
    rng: np.random.Generator
    support: Array  # (Q, N), entries at the positions of the task
    common: Array  # (N,), the mean of all other entries but the survivors
    spread: Array  # (N,), their standard deviation; 0 once a proximal step has made them equal
    # column, value: survivors outside the support: the column that each is in, and its value
    column: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    value: Array = field(default_factory=lambda: np.empty(0))

    @classmethod
    def drawn(cls, task: Task, alpha: float, delta: float, rng: np.random.Generator) -> "Columns":
        """A point with given α_A and ‖Δ_A‖_μ. Δ_A has a uniform direction; its entries are drawn as normal, right to O(1/(NT))."""
        spread = delta / np.sqrt(task.N * task.T * task.mu)
        base = np.full(task.N, (1 - alpha) / task.T)
        support = base + alpha * task.weights + spread * rng.normal(size=task.weights.shape)
        return cls(task, rng, support=np.where(task.weights > 0, support, base), common=base, spread=spread)

    @property
    def others(self) -> NDArray[np.intp]:
        """(N,): how many entries have the common mean."""
        survivors = np.bincount(self.column, minlength=self.task.N)
        return self.task.T - (self.task.weights > 0).sum(axis=0) - survivors

    def sums(self) -> Array:
        """(N,): the sum of each column."""
        return self._total(self.value, self.support) + self.others * self.common

    def sums_of_squares(self) -> Array:
        """(N,): the sum of squares of each column."""
        return self._total(self.value**2, self.support**2) + self.others * (self.common**2 + self.spread**2)

    def _total(self, survivors: Array, support: Array) -> Array:
        total = np.bincount(self.column, survivors, minlength=self.task.N).astype(float)
        return total + np.where(self.task.weights > 0, support, 0.0).sum(axis=0)

    def constants(self) -> tuple[float, float]:
        """K_A and K_AQ."""
        mu, T = self.task.mu, self.task.T
        K_A = float(mu @ self.sums_of_squares()) - 1 / T
        K_AQ = float(mu @ (self.task.weights * self.support).sum(axis=0)) - 1 / T
        return K_A, K_AQ

    def keep_above(self, level: Array) -> None:
        """Set every entry below ``level`` (N,) to 0; equal entries stay equal."""
        fresh_column, fresh_value = self._emerge(self.common, self.spread, above=level, below=np.full(self.task.N, -np.inf))
        column = np.append(self.column, fresh_column)
        value = np.append(self.value, fresh_value)
        self._set_survivors(column, np.where(value >= level[column], value, 0.0))
        self.support = np.where(self.support >= level, self.support, 0.0)

    def descend(self, shrink: float, pull: float, noise: Array, lam: Array) -> None:
        """a ← Proj(soft(shrink·a + pull·q + noise·N(0, 1), λ)), entry by entry."""
        spread = np.hypot(shrink * self.spread, noise)
        fresh_column, fresh_value = self._emerge(shrink * self.common, spread, above=lam, below=-lam)
        value = shrink * self.value + noise[self.column] * self.rng.normal(size=self.value.shape)
        support = shrink * self.support + pull * self.task.weights + noise * self.rng.normal(size=self.support.shape)
        column = np.append(self.column, fresh_column)
        self._set_survivors(column, soft_threshold(np.append(value, fresh_value), lam[column]))
        self.support = soft_threshold(support, lam)
        self.project()

    def project(self) -> None:
        """Add the same to all entries of a column, so that it sums to 1."""
        shift = (1 - self.sums()) / self.task.T
        self.common = self.common + shift
        self.support = self.support + shift
        self.value = self.value + shift[self.column]

    def mirror(self) -> None:
        """2/T − a for every entry."""
        twice = 2 / self.task.T
        self.support = twice - self.support
        self.value = twice - self.value
        self.common = twice - self.common

    def normalize(self) -> None:
        """Divide each column by its sum; one without any mass becomes uniform."""
        mass = self.sums()
        some = mass > 0
        divisor = np.where(some, mass, 1.0)
        self.value = self.value / divisor[self.column]
        self.support = np.where(some, self.support / divisor, 1 / self.task.T)
        self.common = np.where(some, 0.0, 1 / self.task.T)

    def _set_survivors(self, column: NDArray[np.intp], value: Array) -> None:
        """Outside the support, let these entries be what is left, if they are not 0; all others become 0."""
        kept = value != 0
        self.column = column[kept]
        self.value = value[kept]
        self.common = np.zeros(self.task.N)
        self.spread = np.zeros(self.task.N)

    def _emerge(self, mean: Array, spread: Array, above: Array, below: Array) -> tuple[NDArray[np.intp], Array]:
        """Which of the other entries, N(mean, spread²) each, lie above or below two levels: their columns and values.

        How many do so is binomial, and by how much is a tail of the normal law; so only those are drawn.
        """
        random = spread > 0
        scale = np.where(random, spread, 1.0)
        left = self.others
        columns = []
        values = []
        for sign, level in ((1.0, above), (-1.0, below)):
            chance = np.where(random, ndtr(-sign * (level - mean) / scale), sign * mean > sign * level)
            count = self.rng.binomial(left, np.clip(chance, 0, 1))
            left = left - count
            column = np.repeat(np.arange(self.task.N), count)
            tail = -sign * ndtri(self.rng.random(column.size) * chance[column])
            columns.append(column)
            values.append(mean[column] + np.where(random[column], spread[column] * tail, 0.0))
        return np.concatenate(columns), np.concatenate(values)


@dataclass
class Collapsed:
    """Where a simulated run stands."""

    task: Task
    rng: np.random.Generator
    p: Projection  # α, K and ‖Δ‖ of the point, which are all that V is known by
    columns: Columns | None = None  # A entry by entry, from the first step or rounding that asks for entries; None before

    def entries(self) -> Columns:
        """A entry by entry, drawn from its law given ``p`` when asked for first."""
        if self.columns is None:
            self.columns = Columns.drawn(self.task, self.p.alpha_A, self.p.delta_A, self.rng)
        return self.columns

    def place(self, alpha_V: float, delta_V: float, K_A: float, K_AQ: float) -> None:
        """Move to the point with these numbers."""
        self.p = projection_by_norms(self.task, alpha_V, delta_V, K_A, K_AQ)

    def follow_entries(self) -> None:
        """Take K_A and K_AQ from the entries, after these have changed."""
        self.place(self.p.alpha_V, self.p.delta_V, *self.entries().constants())

    def mirror(self) -> None:
        """Go over to the mirror image, in which both signals are negated."""
        self.place(-self.p.alpha_V, self.p.delta_V, self.p.K_A, -self.p.K_AQ)
        if self.columns is not None:
            self.columns.mirror()
