"""What is done to (V, A) between stages, and when a stage may end early.

A rounding and a stop see what the learner sees, never the task: V, A and μ. A rounding with a method ``on_collapsed`` can do its
work on the collapsed state of the simulation as well.

The sign. (V, A) and its mirror (2μ1ᵀ − V, 2·11ᵀ/T − A) have the same V − μ1ᵀ times A − 11ᵀ/T, so they compute the same function up
to O(1/T). The drift that should decide between them is 1/(T·K_Q), far below the noise of a small batch. But Q is sparse and
nonnegative, so A − 11ᵀ/T = α_A(Q − 11ᵀ/T) + noise has few large entries, all of the sign of α_A.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scb.geometry import Array, threshold_normalize, threshold_project
from scb.theory.gaussian import noise_quantile

if TYPE_CHECKING:
    from scb.training.simulation import Collapsed

Rounding = Callable[[Array, Array, Array], tuple[Array, Array]]  # (V, A, μ) → (V, A), on entering or leaving a stage
Stop = Callable[[Array, Array, Array], bool]  # (V, A, μ) → whether a stage may end early


@dataclass(frozen=True)
class ResolveSign:
    """Take the mirror image if A is skewed to the left: what a stage does on leaving, to settle the sign.

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
        """(V, A) or its mirror."""
        return resolve_sign(V, A, mu)[:2]

    def on_collapsed(self, state: "Collapsed") -> None:
        """Take the mirror image if α_A < 0; skewness, which needs all entries, would say the same but for noise.

        Parameters
        ----------
        state : Collapsed
            The numbers to which the simulation has reduced (V, A).

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
    """Thresholding-projection at ``threshold``, or at what is measured as noise if that is None."""

    threshold: float | None = None

    def __call__(self, V: Array, A: Array, mu: Array) -> tuple[Array, Array]:
        """Only entries that stand out keep their value."""
        level = noise_threshold(A) + 1 / len(A) if self.threshold is None else self.threshold
        return V, threshold_project(A, level)

    def on_collapsed(self, state: "Collapsed") -> None:
        """Only entries that stand out are kept; the noise is known here."""
        N, T = state.task.N, state.task.T
        entries = state.entries()
        noise = entries.spread * noise_quantile(N * T) + 1 / T
        entries.keep_above(noise if self.threshold is None else np.full(N, self.threshold))
        entries.project()
        state.follow_entries()


@dataclass(frozen=True)
class ThresholdNormalize:
    """Thresholding-normalisation at ``threshold``, the Ω(1/Q) of the paper."""

    threshold: float

    def __call__(self, V: Array, A: Array, mu: Array) -> tuple[Array, Array]:
        """Columns become distributions over the entries that stand out."""
        return V, threshold_normalize(A, self.threshold)

    def on_collapsed(self, state: "Collapsed") -> None:
        """Columns become distributions over the entries that are kept."""
        entries = state.entries()
        entries.keep_above(np.full(state.task.N, self.threshold))
        entries.normalize()
        state.follow_entries()


@dataclass(frozen=True)
class SignalAbove:
    """Stop once the estimated signal reaches ``level``."""

    level: float

    def __call__(self, V: Array, A: Array, mu: Array) -> bool:
        """Whether it has."""
        return estimated_signal(A, mu) >= self.level


def mirror(V: Array, A: Array, mu: Array) -> tuple[Array, Array]:
    """(2μ1ᵀ − V, 2·11ᵀ/T − A): the same point with α_V and α_A negated."""
    return 2 * mu[:, None] - V, 2 / A.shape[0] - A


def skewness(A: Array) -> Array:
    """Skewness of the entries of A − 11ᵀ/T in each column: (N,); 0 where a column varies by rounding only."""
    found = np.zeros(A.shape[1])
    for k in range(A.shape[1]):  # a column at a time, to copy no more than that
        centred = A[:, k] - A[:, k].mean()
        scale = np.sqrt(np.square(centred).mean())
        if scale > 1e-14:
            found[k] = (centred**3).mean() / scale**3
    return found


def resolve_sign(V: Array, A: Array, mu: Array) -> tuple[Array, Array, bool]:
    """(V, A) or its mirror, whichever has columns of A skewed to the right in the μ-weighted mean; and whether it is the mirror."""
    if mu @ skewness(A) >= 0:
        return V, A, False
    return *mirror(V, A, mu), True


def noise_threshold(A: Array, false_positions: float = 0.01) -> Array:
    """(N,): above this, an entry of a column of A − 11ᵀ/T is hardly noise.

    Most entries of a column are nothing but noise; 1.4826·MAD is its standard deviation, and ``false_positions`` of N·T Gaussians
    exceed the threshold on average.
    """
    spread = 1.4826 * np.median(np.abs(A - np.median(A, axis=0)), axis=0)
    return spread * noise_quantile(A.size, false_positions) + 1e-12


def standing_out(A: Array, mu: Array) -> float:
    """An estimate of α_A without the truth: the μ-weighted mean, over columns, of the mass that stands out of the noise."""
    centred = A - np.median(A, axis=0)
    mass = np.where(np.abs(centred) > noise_threshold(A), centred, 0.0).sum(axis=0)
    return float(mu @ mass)


def estimated_signal(A: Array, mu: Array) -> float:
    """An estimate of |α_A|, which does not depend on whether (V, A) or its mirror image has been learned."""
    return abs(standing_out(A, mu))
