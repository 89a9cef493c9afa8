"""Roundings, which change (V, A) between stages, and conditions on which a stage ends early.

Both are given V, A and μ, which the learner knows, and never the task. A rounding with a method
``on_collapsed`` can also be applied to the collapsed state of the simulation.

The sign needs a decision: (V, A) and its mirror image (2μ1ᵀ − V, 2·11ᵀ/T − A) have the same product
of V − μ1ᵀ and A − 11ᵀ/T, so they compute the same function up to O(1/√T), with a loss that differs
by O(1/T). The drift that should decide between them is 1/(T·K_Q), which is far below the noise of a
small batch. However, Q is sparse and nonnegative, so A − 11ᵀ/T = α_A(Q − 11ᵀ/T) + noise has few
large entries, all with the sign of α_A.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scb.arrays import Array
from scb.geometry import (
    project,
    rotate_heads,
    threshold_normalize,
    threshold_project,
)
from scb.geometry.columns import column_medians, places
from scb.geometry.gauge import standing_rows
from scb.geometry.heads import (
    left_factor,
    product_singular_values,
    right_factor,
    stacked_columns,
    triangular,
)
from scb.theory.gaussian import noise_quantile
from scb.training.collapsed import Collapsed

# What is added to a threshold: where there is no noise, rounding stands out of nothing
TINY = 1e-12

# (V, A, μ) → (V, A), on entering or leaving a stage
Rounding = Callable[[Array, Array, Array], tuple[Array, Array]]
# (V, A, μ) → whether a stage may end early
Stop = Callable[[Array, Array, Array], bool]


@dataclass(frozen=True)
class ResolveSign:
    """Replace (V, A) by its mirror image if the columns of A are skewed to the left.

    Examples
    --------
    >>> import scb
    >>> from scb.training.roundings import ResolveSign
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> mirror = 2 * task.mu[:, None] - task.P, 2 / task.T - task.Q
    >>> V, A = ResolveSign()(*mirror, task.mu)
    >>> bool(abs(A - task.Q).max() < 1e-12)
    True
    """

    def __call__(self, V: Array, A: Array, mu: Array) -> tuple[Array, Array]:
        """Return (V, A) or its mirror image."""
        return resolve_sign(V, A, mu)[:2]

    def on_collapsed(self, state: Collapsed) -> None:
        """Take the mirror image if α_A < 0.

        Skewness, which needs all entries, leads to the same decision apart from the effect of
        noise.

        Parameters
        ----------
        state : Collapsed
            The numbers that represent (V, A) in the simulation.

        Examples
        --------
        >>> import scb
        >>> from scb.training.simulation import simulate
        >>> task = scb.Task.random(3, 5000, 2, seed=0)
        >>> recipe = scb.recipes.paper(task, steps=(400, 10, 0))  # ends Stage 1 with ResolveSign
        >>> float(simulate(task, recipe, seed=1)["alpha_A"][-1]) > 0
        True
        """
        if state.p.alpha_A < 0:
            state.mirror()


@dataclass(frozen=True)
class ThresholdProject:
    """Set entries of A below a threshold to 0, then project the columns so that they sum to 1.

    Attributes
    ----------
    threshold : float, optional
        The threshold; by default, it is derived from the measured noise.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.training.roundings import ThresholdProject
    >>> A = np.array([[0.7], [0.2], [0.1]])
    >>> V, rounded = ThresholdProject(0.15)(np.eye(2), A, np.ones(2) / 2)
    >>> rounded.ravel().round(3)
    array([0.733, 0.233, 0.033])
    """

    threshold: float | None = None

    def __call__(self, V: Array, A: Array, mu: Array) -> tuple[Array, Array]:
        """Return V, and A with only the entries that stand out."""
        level = noise_threshold(A) + 1 / places(A) if self.threshold is None else self.threshold
        return V, threshold_project(A, level)

    def on_collapsed(self, state: Collapsed) -> None:
        """Keep only the entries that stand out; in the simulation, the noise need not be measured.

        Parameters
        ----------
        state : Collapsed
            The numbers that represent (V, A) in the simulation.

        Examples
        --------
        >>> import scb
        >>> from scb.training.simulation import simulate
        >>> task = scb.Task.random(3, 5000, 2, seed=0)
        >>> recipe = scb.recipes.tuned(task)
        >>> bool(simulate(task, recipe, seed=1)["alpha_A"][-1] > 0.9)
        True
        """
        N, T = state.task.N, state.task.T
        entries = state.entries()
        noise = entries.spread * noise_quantile(N * T) + 1 / T
        entries.keep_above(noise if self.threshold is None else np.full(N, self.threshold))
        entries.project()
        state.follow_entries()


@dataclass(frozen=True)
class ThresholdNormalize:
    """Set entries of A below a threshold to 0, then divide each column by its sum.

    Attributes
    ----------
    threshold : float
        The threshold, which is of order 1/Q in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.training.roundings import ThresholdNormalize
    >>> A = np.array([[0.7], [0.2], [0.1]])
    >>> V, rounded = ThresholdNormalize(0.15)(np.eye(2), A, np.ones(2) / 2)
    >>> rounded.ravel().round(3)
    array([0.778, 0.222, 0.   ])
    """

    threshold: float

    def __call__(self, V: Array, A: Array, mu: Array) -> tuple[Array, Array]:
        """Return V, and A with columns that are distributions over the entries that stand out."""
        return V, threshold_normalize(A, self.threshold)

    def on_collapsed(self, state: Collapsed) -> None:
        """Turn each column into a distribution over the entries that are kept.

        Parameters
        ----------
        state : Collapsed
            The numbers that represent (V, A) in the simulation.

        Examples
        --------
        >>> import scb
        >>> from scb.training.simulation import simulate
        >>> task = scb.Task.random(3, 5000, 2, seed=0)
        >>> recipe = scb.recipes.tuned(task)
        >>> bool(simulate(task, recipe, seed=1)["alpha_A"][-1] > 0.9)
        True
        """
        entries = state.entries()
        entries.keep_above(np.full(state.task.N, self.threshold))
        entries.normalize()
        state.follow_entries()


@dataclass(frozen=True)
class SignalAbove:
    """End a stage once the estimated signal reaches ``level``."""

    level: float

    def __call__(self, V: Array, A: Array, mu: Array) -> bool:
        """Return whether the estimated signal has reached the level."""
        return estimated_signal(A, mu) >= self.level


@dataclass(frozen=True)
class RotateHeads:
    """Rotate heads so that every position belongs to one head.

    Attributes
    ----------
    heads : int, optional
        The number of heads that matter; by default, all heads matter. Spare heads are set to V =
        μ1ᵀ and A = 0, and the other heads compute the nearest function that needs no spare heads.

    Examples
    --------
    >>> import scb
    >>> from scb.training.roundings import RotateHeads
    >>> task = scb.Task.random(4, 100, 2, heads=2)
    >>> V, A = RotateHeads()(task.P[::-1], task.Q[::-1], task.mu)
    >>> scb.metrics.match_heads(V, A, task).overlap.round(3)
    array([1., 1.])
    """

    heads: int | None = None

    def __call__(self, V: Array, A: Array, mu: Array) -> tuple[Array, Array]:
        """Return the heads in the sparse gauge, as ``scb.rotate_heads`` does."""
        V, A = rotate_heads(V, A, mu, heads=self.heads)
        return V, stacked_columns(project(A))


@dataclass(frozen=True)
class SingularValuesAbove:
    """End a stage once the singular values of the part that stands out from the noise reach these
    sizes.
    """

    levels: tuple[float, ...]

    def __call__(self, V: Array, A: Array, mu: Array) -> bool:
        """Return whether each singular value has reached its level."""
        values = standing_singular_values(V, A, mu)
        return bool((values[: len(self.levels)] >= self.levels).all())


def standing_singular_values(V: Array, A: Array, mu: Array) -> Array:
    """Return the singular values (H,) of Σ_h a_h ⊗ Ṽ_h over the positions that stand out."""
    H, T, N = A.shape
    right = right_factor(V, mu)
    rows = left_factor(A, mu) @ triangular(right).T  # (T·N, H)
    there = standing_rows(rows.reshape(T, N, H))
    left = left_factor(np.where(there, A - np.median(A, axis=1, keepdims=True), 0.0), mu)
    return product_singular_values(left, right)


def mirror(V: Array, A: Array, mu: Array) -> tuple[Array, Array]:
    """Return (2μ1ᵀ − V, 2·11ᵀ/T − A), the same point with both signals α_V and α_A negated."""
    return 2 * mu[:, None] - V, 2 / A.shape[0] - A


def skewness(A: Array) -> Array:
    """Return the skewness of each column of A, (N,), which is 0 for constant columns."""
    skew = np.zeros(A.shape[1])
    for k in range(A.shape[1]):  # a column at a time, to save memory
        centred = A[:, k] - A[:, k].mean()
        scale = np.sqrt(float(np.square(centred).mean()))
        if scale > 1e-14:
            # A product: powers take ten times as long
            skew[k] = float((centred * np.square(centred)).mean()) / scale**3
    return skew


def resolve_sign(V: Array, A: Array, mu: Array) -> tuple[Array, Array, bool]:
    """Return (V, A) or its mirror image, whichever has the larger μ-weighted mean skewness of A,
    and whether it is the mirror image.
    """
    if mu @ skewness(A) >= 0:
        return V, A, False
    return *mirror(V, A, mu), True


def spread_of(apart: Array) -> Array:
    """Return the standard deviation (N,) of the noise in each column, given the distances (T, N) of
    its entries from their centre; with several heads, the shape is (H, 1, N).

    Most entries of a column are pure noise, so 1.4826 times their median distance estimates its
    standard deviation.
    """
    return 1.4826 * column_medians(apart)


def noise_of(A: Array) -> tuple[Array, Array]:
    """Return the median of each column of A, and the standard deviation of its noise, (N,) each;
    with several heads, the shapes are (H, 1, N).
    """
    centre = column_medians(A)
    apart = A - centre
    return centre, spread_of(np.abs(apart, out=apart))


def noise_threshold(A: Array, false_positions: float = 0.01) -> Array:
    """Return the threshold (N,) above which an entry of a column of A − 11ᵀ/T is unlikely to be
    noise, as ``noise_of`` measures it; with several heads, one for each, (H, 1, N).

    On average, ``false_positions`` of N·T Gaussian entries exceed the threshold.
    """
    return noise_of(A)[1] * noise_quantile(A.size, false_positions) + TINY


def standing_out(A: Array, mu: Array) -> float:
    """Estimate α_A without knowing the truth, as the μ-weighted mean over columns of the mass that
    stands out from the noise. If A is on a GPU, this mass is computed there.
    """
    # Import lazily: Numba is slow to load.
    from scb.kernels.step.lazy_columns import mass_beyond

    quantile = noise_quantile(A.shape[0] * A.shape[1])
    if isinstance(A, np.ndarray):
        centre, spread = noise_of(A)
        mass = mass_beyond(np.asfortranarray(A), centre, spread * quantile + TINY)
    else:
        mass = A.mass_standing_out(quantile, TINY)
    return float(mu @ mass)


def estimated_signal(A: Array, mu: Array) -> float:
    """Estimate |α_A|, which is the same for (V, A) and its mirror image."""
    return abs(standing_out(A, mu))


# These work on arrays of CuPy as they do on those of NumPy.
ON_GPU = (ResolveSign, ThresholdProject, ThresholdNormalize)
