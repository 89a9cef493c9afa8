"""A fast simulation of training with Gaussian gradients, which follows signals and errors instead
of (T, N) arrays.

The noise is that of the source ``Gaussian``. On V it is isotropic in ⟨·, ·⟩_μ except along one
direction û of the rows, in which the Euclidean projector lets more of it through. So the state of V
is α_V, ‖Δ_V‖² and its part along û, a vector (N,). For λ = 0 the state of A is α_A and ‖Δ_A‖², and
a step costs O(N). For λ > 0, a column of A is one common value plus the entries that a proximal
step has left above it: the support of Q and a few survivors of the noise. The number of other
entries that exceed ±λ is binomial, and the amounts by which they do are drawn from a tail of the
normal sampler, so that a step costs O(N·Q + survivors).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from scb.arrays import Array
from scb.geometry import Projection, projector_row
from scb.geometry.lines import projection_by_norms, root
from scb.inputs import InputError
from scb.model import LinearTransformer
from scb.task import Task
from scb.theory.dynamics import StepNoise, error_step, signal_step
from scb.theory.gaussian import common_noise, noise_scales, residual_square
from scb.training.roundings import Rounding
from scb.training.stages import Recipe, Stage
from scb.training.updates import soft_threshold


class Columns:
    """The attention A as a common value per column plus the entries that differ from it, starting
    at given α_A and ‖Δ_A‖_μ.

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
        """a ← Proj(soft(shrink·a + pull·q + noise·N(0, 1), λ)), entry by entry."""
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
        """Add the same to all entries of a column, so that it sums to 1."""
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
        """Keep these entries outside the support, as far as they are not 0; all others become 0."""
        kept = value != 0
        self.column = column[kept]
        self.value = value[kept]
        self.common = np.zeros(self.task.N)
        self.spread = np.zeros(self.task.N)

    def _emerge(
        self, mean: Array, spread: Array, above: Array, below: Array
    ) -> tuple[NDArray[np.intp], Array]:
        """Which of the other entries, N(mean, spread²) each, lie above or below two levels: their
        columns and values.

        How many do so is binomial, and by how much is a tail of the normal distribution; so only
        those are drawn.
        """
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
    # A entry by entry, from the first step or rounding that asks for entries; None before
    columns: Columns | None = None

    @cached_property
    def leak(self) -> float:
        """How much of the common noise the Euclidean projector lets through along û: ‖1 −
        μ/‖μ‖²‖_μ.
        """
        return leaking_direction(self.task.mu)[1]

    @cached_property
    def truth_along(self) -> Array:
        """The part of P along û, (N,)."""
        return (self.task.P - self.task.mu[:, None]) @ (
            self.task.mu * leaking_direction(self.task.mu)[0]
        )

    def entries(self) -> Columns:
        """Return A entry by entry; on first use it is drawn from its distribution given ``p``."""
        if self.columns is None:
            self.columns = Columns(self.task, self.p.alpha_A, self.p.delta_A, self.rng)
        return self.columns

    def round(self, roundings: tuple[Rounding, ...]) -> None:
        """Apply to this state what roundings do to (V, A); raise an InputError for one that cannot
        be applied.
        """
        for rounding in roundings:
            on_collapsed = getattr(rounding, "on_collapsed", None)
            if on_collapsed is None:
                raise InputError(
                    f"{rounding} cannot be simulated: only roundings that have on_collapsed can"
                )
            on_collapsed(self)

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
"""Columns of a history; ``explicit`` is how many survivors of the noise A has outside the support."""


def simulate(task: Task, recipe: Recipe, seed: int = 0, every: int = 10) -> dict[str, Array]:
    """Simulate a run with Gaussian gradients.

    The history has the same distribution as that of ``train(task, recipe, source=Gaussian(task))``,
    with two differences: the sign is resolved by that of α_A instead of by skewness, and the
    ``stop`` of a stage is ignored.

    Parameters
    ----------
    task : Task
        The task.
    recipe : Recipe
        A recipe of proximal stages of the linear transformer.
    seed : int, default 0
        The seed.
    every : int, default 10
        Steps between two rows.

    Returns
    -------
    dict of (rows,) arrays
        The history: step, stage, samples, signals and errors.

    Examples
    --------
    >>> import scb
    >>> from scb.training.simulation import simulate
    >>> task = scb.Task.random(N=3, T=100, sparsity=2, seed=0)
    >>> history = simulate(task, scb.recipes.tuned(task), seed=1)
    >>> bool(history["alpha_A"][-1] > 0.9)
    True
    """
    # The theory of the dynamics is that of their steps
    only = "only 'proximal' stages of the linear transformer can be simulated"
    if recipe.transformer is not LinearTransformer:
        raise InputError(f"recipe {recipe.name!r} trains a {recipe.transformer.__name__}: {only}")
    for stage in recipe.stages:
        if stage.rule != "proximal":
            raise InputError(f"rule = {stage.rule!r} in stage {stage.name!r}: {only}")
    along = (recipe.start.V - task.mu[:, None]) @ (task.mu * leaking_direction(task.mu)[0])
    state = Collapsed(task, np.random.default_rng(seed), recipe.start.projection(task), along)
    step = 0
    samples = recipe.samples
    rows = [_row(state, step, 1, samples)]
    for number, stage in enumerate(recipe.stages, start=1):
        state.round(stage.enter)
        for i in range(stage.steps):
            now = stage.at(i)
            if now.eta_A and now.levels(1.0, task.mu).any():
                state.entries()  # from here on, A is followed entry by entry
            _step(state, now)
            step += 1
            samples += stage.batch_size
            if i + 1 == stage.steps:
                state.round(stage.leave)
            if step % every == 0 or step == recipe.steps:
                rows.append(_row(state, step, number, samples))
    return {
        name: np.array(values)
        for name, values in zip(COLUMNS, zip(*rows, strict=True), strict=True)
    }


def _step(state: Collapsed, stage: Stage) -> None:
    """One step: V, and A where it is collapsed, by the lemmas on the dynamics; a sparse A entry by
    entry.
    """
    task, p, columns = state.task, state.p, state.columns
    scale_V, scale_A = noise_scales(task, p, stage.batch_size)
    h_along, noise = _draw_noise(state, stage, scale_V, scale_A)
    alpha_V, alpha_A = signal_step(task, p, stage.eta_V, stage.eta_A, noise)
    delta_V2, delta_A2 = error_step(task, p, stage.eta_V, stage.eta_A, noise)
    if columns is None:
        K_A = alpha_A**2 * task.K_Q + delta_A2
        K_AQ = alpha_A * task.K_Q
    else:
        if stage.eta_A:
            columns.descend(
                shrink=1 - stage.eta_A * p.K_V,
                pull=stage.eta_A * p.K_VP,
                noise=stage.eta_A * scale_A / np.sqrt(task.mu),
                lam=stage.levels(p.K_V, task.mu),
            )
        K_A, K_AQ = columns.constants()
    # V − μ1ᵀ ← (1 − η_V‖A‖_μ²)(V − μ1ᵀ) + η_V⟨A, Q⟩_μ (P − μ1ᵀ) − η_V h_V, seen along û.
    pull = (p.K_AQ + 1 / task.T) * state.truth_along - h_along
    state.along = state.along + stage.eta_V * (pull - (p.K_A + 1 / task.T) * state.along)
    state.place(alpha_V, np.sqrt(max(delta_V2, 0.0)), K_A, K_AQ)


def leaking_direction(mu: Array) -> tuple[Array, float]:
    """Return û (N,), the unit vector of ⟨·, ·⟩_μ along 1 − μ/‖μ‖², and the length of 1 − μ/‖μ‖².

    The length says how much noise the Euclidean projector lets through. For a uniform μ it is 0,
    and û is any unit vector orthogonal to 1.
    """
    leak = 1 - projector_row(mu, "euclidean")
    length = float(np.sqrt(mu @ leak**2))
    if length < 1e-9:
        leak = np.eye(len(mu))[0] - mu[0]
    return leak / np.sqrt(mu @ leak**2), length


def _draw_noise(
    state: Collapsed, stage: Stage, scale_V: float, scale_A: float
) -> tuple[Array, StepNoise]:
    """The noise of V along û, (N,), and the numbers through which all of it enters a step.

    Across û and on A the noise is isotropic: its parts along the truth and along what else there is
    are normal, the rest is χ².
    """
    task, p, rng = state.task, state.p, state.rng
    normal = rng.normal(size=task.N)
    h_along = scale_V * (normal - normal.mean())
    if stage.projector == "euclidean":
        h_along += state.leak * common_noise(task, p, stage.batch_size, rng)
    truth = state.truth_along
    K_across = max(task.K_P - truth @ truth, 0.0)  # of P across û
    # Of V across û: its α there
    signal = (p.K_VP - state.along @ truth) / K_across if K_across > 1e-12 else 0.0
    # The norm of what else V has across û
    other = root(float(p.K_V - state.along @ state.along - signal**2 * K_across))
    # Along the truth and along the other part, for V (across û) and A
    x, y = rng.normal(size=(2, 2))
    dimensions = ((task.N - 1) * (task.N - 2), task.N * (task.T - 1))
    rest_V, rest_A = (rng.chisquare(left - 2) if left > 2 else 0.0 for left in dimensions)
    if dimensions[0] == 0:
        x[0] = y[0] = 0.0
    along_truth = scale_V * np.sqrt(K_across) * x[0]
    noise = StepNoise(
        along_P=h_along @ truth + along_truth,
        along_Q=scale_A * np.sqrt(task.K_Q) * x[1],
        along_V=h_along @ (state.along - p.alpha_V * truth)
        + (signal - p.alpha_V) * along_truth
        + scale_V * other * y[0],
        along_A=scale_A * p.delta_A * y[1],
        square_V=h_along @ h_along + scale_V**2 * (x[0] ** 2 + y[0] ** 2 + rest_V),
        square_A=scale_A**2 * (x[1] ** 2 + y[1] ** 2 + rest_A),
    )
    return h_along, noise


def _row(state: Collapsed, step: int, stage: int, samples: int) -> tuple:
    """One row of the history, in the order of ``COLUMNS``."""
    task, p = state.task, state.p
    loss = 0.5 * residual_square(task, p)
    dist_V = np.hypot((1 - p.alpha_V) * np.sqrt(task.K_P), p.delta_V)
    dist_A = np.hypot((1 - p.alpha_A) * np.sqrt(task.K_Q), p.delta_A)
    explicit = 0 if state.columns is None else state.columns.value.size
    return (
        step,
        stage,
        samples,
        loss,
        p.alpha_V,
        p.alpha_A,
        p.delta_V,
        p.delta_A,
        dist_V,
        dist_A,
        explicit,
    )
