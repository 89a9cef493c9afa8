"""The Gaussian simulation, collapsed: the laws of the signals and errors themselves, without (T, N) arrays.

With noise that is isotropic in ⟨·, ·⟩_μ (``gradients.gaussian``), a step acts on V through α_V and ‖Δ_V‖² alone. For λ = 0 the same
holds for A, and a step costs O(1). For λ > 0, a column of A is one common value plus the entries that a proximal step has left
above it: the support of Q and a few survivors of the noise. How many of the others pass ±λ is binomial, and by how much they
pass it is a tail of the normal law, so a step costs O(N·Q + survivors).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array, Projection, mu_inner, mu_norm, population_projection
from scb.task import Task
from scb.theory.dynamics import Noise, error_step, signal_step
from scb.theory.noise import noise_scales, residual_square
from scb.training.stages import (
    MeasuredNoise,
    Recipe,
    ResolveSign,
    Rounding,
    Stage,
    ThresholdNormalize,
    ThresholdProject,
    noise_quantile,
)
from scb.training.updates import soft_threshold

COLUMNS = (
    "step",
    "stage",
    "samples",
    "loss",
    "alpha_V",
    "alpha_A",
    "delta_V",
    "delta_A",
    "dist_V",
    "dist_A",
    "explicit",
)


@dataclass
class Columns:
    """A as what stands out of it.

    Attributes
    ----------
    support : (Q, N), entries at the positions of the task
    column, value : survivors elsewhere: the column that each is in, and its value
    common : (N,), the value of all other entries
    spread : (N,), the standard deviation of all other entries; 0 once a proximal step has made them equal
    """

    task: Task
    support: Array
    column: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    value: Array = field(default_factory=lambda: np.empty(0))
    common: Array = field(default_factory=lambda: np.empty(0))
    spread: Array = field(default_factory=lambda: np.empty(0))

    @classmethod
    def drawn(cls, task: Task, alpha: float, delta: float, rng: np.random.Generator) -> Columns:
        """A point with given α_A and ‖Δ_A‖_μ. Δ_A has a uniform direction; its entries are drawn as normal, right to O(1/(NT))."""
        spread = delta / np.sqrt(task.N * task.T * task.mu)
        base = np.full(task.N, (1 - alpha) / task.T)
        support = base + alpha * task.weights + spread * rng.normal(size=task.weights.shape)
        return cls(task, np.where(task.weights > 0, support, base), common=base, spread=spread)

    @property
    def others(self) -> NDArray[np.intp]:
        """(N,): how many entries have the common value."""
        survivors = np.bincount(self.column, minlength=self.task.N)
        return self.task.T - (self.task.weights > 0).sum(axis=0) - survivors

    def sums(self, power: int) -> Array:
        """(N,): sum of the entries of each column to the power 1 or 2."""
        total = np.bincount(self.column, self.value**power, minlength=self.task.N).astype(float)
        total += np.where(self.task.weights > 0, self.support**power, 0.0).sum(axis=0)
        return total + self.others * (self.common**power + (self.spread**2 if power == 2 else 0.0))

    def constants(self) -> tuple[float, float]:
        """K_A and K_AQ."""
        mu, T = self.task.mu, self.task.T
        return float(mu @ self.sums(2)) - 1 / T, float(mu @ (self.task.weights * self.support).sum(axis=0)) - 1 / T

    def keep_above(self, level: Array, rng: np.random.Generator) -> None:
        """Set every entry below ``level`` (N,) to 0; equal entries stay equal."""
        fresh_column, fresh_value = self._emerge(self.common, self.spread, level, np.full(self.task.N, -np.inf), rng)
        column, value = np.append(self.column, fresh_column), np.append(self.value, fresh_value)
        kept = value >= level[column]
        self.column, self.value = column[kept], value[kept]
        self.support = np.where(self.support >= level, self.support, 0.0)
        self.common, self.spread = np.zeros(self.task.N), np.zeros(self.task.N)

    def descend(self, shrink: float, pull: float, noise: Array, lam: Array, rng: np.random.Generator) -> None:
        """a ← Proj(soft(shrink·a + pull·q + noise·N(0, 1), λ)), entry by entry."""
        common, spread = shrink * self.common, np.hypot(shrink * self.spread, noise)
        fresh_column, fresh_value = self._emerge(common, spread, lam, -lam, rng)
        value = shrink * self.value + noise[self.column] * rng.normal(size=self.value.shape)
        column = np.append(self.column, fresh_column)
        value = soft_threshold(np.append(value, fresh_value), lam[column])
        support = shrink * self.support + pull * self.task.weights + noise * rng.normal(size=self.support.shape)
        self.column, self.value = column[value != 0], value[value != 0]
        self.support = soft_threshold(support, lam)
        self.common, self.spread = np.zeros(self.task.N), np.zeros(self.task.N)
        self.project()

    def project(self) -> None:
        """Add the same to all entries of a column, so that it sums to 1."""
        shift = (1 - self.sums(1)) / self.task.T
        self.common, self.support, self.value = (
            self.common + shift,
            self.support + shift,
            self.value + shift[self.column],
        )

    def mirror(self) -> None:
        """2/T − a for every entry."""
        twice = 2 / self.task.T
        self.support, self.value, self.common = twice - self.support, twice - self.value, twice - self.common

    def normalize(self, level: float, rng: np.random.Generator) -> None:
        """Thresholding-normalisation; a column without large entries becomes uniform."""
        self.keep_above(np.full(self.task.N, level), rng)
        mass = self.sums(1)
        divisor = np.where(mass > 0, mass, 1.0)
        self.support, self.value = self.support / divisor, self.value / divisor[self.column]
        empty = mass <= 0
        self.common = np.where(empty, 1 / self.task.T, 0.0)
        self.support = np.where(empty, 1 / self.task.T, self.support)

    def _emerge(
        self, mean: Array, spread: Array, above: Array, below: Array, rng: np.random.Generator
    ) -> tuple[NDArray[np.intp], Array]:
        """Which of the other entries, N(mean, spread²) each, lie above or below two levels, and where."""
        from scipy.special import ndtr, ndtri

        columns, values = [], []
        wide, left = np.where(spread > 0, spread, 1.0), self.others
        for sign, level in ((1.0, above), (-1.0, below)):
            chance = np.where(spread > 0, ndtr(-sign * (level - mean) / wide), sign * mean > sign * level)
            count = rng.binomial(left, np.clip(chance, 0, 1))
            left = left - count
            column = np.repeat(np.arange(self.task.N), count)
            tail = -sign * ndtri(rng.random(column.size) * chance[column])
            columns.append(column)
            values.append(mean[column] + np.where(spread[column] > 0, spread[column] * tail, 0.0))
        return np.concatenate(columns), np.concatenate(values)


def simulate(task: Task, recipe: Recipe, seed: int = 0, every: int = 10) -> dict[str, Array]:
    """The history of a run of ``recipe`` with Gaussian gradients: columns of ``COLUMNS``.

    The law is that of ``train(task, recipe, source=Gaussian(task))``. The sign, which is settled by skewness there, is settled by
    that of α_A here; a stage's ``stop`` is not asked.
    """
    rng = np.random.default_rng(seed)
    p, columns = _start(task, recipe), None
    rows, step, samples = [_row(task, p, 0, 1, recipe.samples, columns)], 0, recipe.samples
    for number, stage in enumerate(recipe.stages, start=1):
        p, columns = _enter(task, p, columns, stage, rng)
        for i in range(stage.steps):
            p = _step(task, p, columns, stage, rng)
            step, samples = step + 1, samples + stage.batch_size
            if i + 1 == stage.steps:
                p, columns = _round(task, p, columns, stage.leave, rng)
            if step % every == 0 or step == recipe.steps:
                rows.append(_row(task, p, step, number, samples, columns))
    return {name: np.array(values) for name, values in zip(COLUMNS, zip(*rows, strict=True), strict=True)}


def _start(task: Task, recipe: Recipe) -> Projection:
    """Where the recipe's initial point stands; a uniform A, which is one number seen as (T, N), is not written out."""
    if any(recipe.A.strides):
        return population_projection(task, recipe.V, recipe.A)
    U, centred = recipe.V - task.mu[:, None], task.P - task.mu[:, None]
    alpha_V = mu_inner(U, centred, task.mu) / task.K_P
    return _projection(task, alpha_V, mu_norm(U - alpha_V * centred, task.mu), 0.0, 0.0)


def _enter(
    task: Task, p: Projection, columns: Columns | None, stage: Stage, rng: np.random.Generator
) -> tuple[Projection, Columns | None]:
    """What a stage does on entering; and A entry by entry from its first proximal step on."""
    if stage.rule != "proximal":
        raise ValueError(f"rule = {stage.rule!r} in stage {stage.name!r}: only 'proximal' stages can be simulated")
    p, columns = _round(task, p, columns, stage.enter, rng)
    if columns is None and stage.eta_A and (isinstance(stage.lam, MeasuredNoise) or stage.lam > 0):
        columns = Columns.drawn(task, p.alpha_A, p.delta_A, rng)
    return p, columns


def _round(
    task: Task, p: Projection, columns: Columns | None, roundings: tuple[Rounding, ...], rng: np.random.Generator
) -> tuple[Projection, Columns | None]:
    for rounding in roundings:
        if isinstance(rounding, ResolveSign):
            if p.alpha_A < 0:
                p = _projection(task, -p.alpha_V, p.delta_V, p.K_A, -p.K_AQ)
                if columns is not None:
                    columns.mirror()
            continue
        columns = columns or Columns.drawn(task, p.alpha_A, p.delta_A, rng)
        if isinstance(rounding, ThresholdProject):
            noise = columns.spread * noise_quantile(task.N * task.T) + 1 / task.T
            columns.keep_above(noise if rounding.threshold is None else np.full(task.N, rounding.threshold), rng)
            columns.project()
        elif isinstance(rounding, ThresholdNormalize):
            columns.normalize(rounding.threshold, rng)
        else:
            raise ValueError(f"{rounding} cannot be simulated: only the roundings of scb.recipes.stages can")
        p = _projection(task, p.alpha_V, p.delta_V, *columns.constants())
    return p, columns


def _step(task: Task, p: Projection, columns: Columns | None, stage: Stage, rng: np.random.Generator) -> Projection:
    """One step: V, and A where it is collapsed, by the lemmas on the dynamics; a sparse A entry by entry."""
    scale_V, scale_A = noise_scales(task, p.K_V, p.K_VP, p.K_A, p.K_AQ, stage.batch_size)
    x, y = rng.normal(size=(2, 2))  # along the line and along Δ, for V and A
    square_V = scale_V**2 * (x[0] ** 2 + y[0] ** 2 + _chi2((task.N - 1) ** 2 - 2, rng))
    square_A = scale_A**2 * (x[1] ** 2 + y[1] ** 2 + _chi2(task.N * (task.T - 1) - 2, rng))
    noise = Noise(
        along_P=scale_V * np.sqrt(task.K_P) * x[0],
        along_Q=scale_A * np.sqrt(task.K_Q) * x[1],
        along_V=scale_V * p.delta_V * y[0],
        along_A=scale_A * p.delta_A * y[1],
        square_V=square_V,
        square_A=square_A,
    )
    alpha_V, alpha_A = signal_step(task, p, stage.eta_V, stage.eta_A, noise)
    delta_V2, delta_A2 = error_step(task, p, stage.eta_V, stage.eta_A, noise)
    if columns is None:
        K_A, K_AQ = alpha_A**2 * task.K_Q + delta_A2, alpha_A * task.K_Q
    else:
        if stage.eta_A:
            lam = _lam(task, stage, p.K_V)
            sd = stage.eta_A * scale_A / np.sqrt(task.mu)
            columns.descend(1 - stage.eta_A * p.K_V, stage.eta_A * p.K_VP, sd, lam, rng)
        K_A, K_AQ = columns.constants()
    return _projection(task, alpha_V, np.sqrt(max(delta_V2, 0.0)), K_A, K_AQ)


def _lam(task: Task, stage: Stage, K_V: float) -> Array:
    if isinstance(stage.lam, MeasuredNoise):
        return stage.lam.at(K_V, task.mu, stage)
    return np.full(task.N, stage.lam)


def _chi2(degrees: int, rng: np.random.Generator) -> float:
    return rng.chisquare(degrees) if degrees > 0 else 0.0


def _projection(task: Task, alpha_V: float, delta_V: float, K_A: float, K_AQ: float) -> Projection:
    alpha_A = K_AQ / task.K_Q
    delta_A = np.sqrt(max(K_A - alpha_A**2 * task.K_Q, 0.0))
    K_V = alpha_V**2 * task.K_P + delta_V**2
    return Projection(alpha_V, alpha_A, K_V, alpha_V * task.K_P, K_A, K_AQ, float(delta_V), float(delta_A))


def _row(task: Task, p: Projection, step: int, stage: int, samples: int, columns: Columns | None) -> tuple:
    loss = 0.5 * residual_square(task, p.K_V, p.K_VP, p.K_A, p.K_AQ)
    dist_V = np.hypot((1 - p.alpha_V) * np.sqrt(task.K_P), p.delta_V)
    dist_A = np.hypot((1 - p.alpha_A) * np.sqrt(task.K_Q), p.delta_A)
    explicit = 0 if columns is None else columns.value.size
    return step, stage, samples, loss, p.alpha_V, p.alpha_A, p.delta_V, p.delta_A, dist_V, dist_A, explicit
