"""Verdicts on whether a run has learned its task, based on held-out samples or on the true P and Q.

At (P, Q), the expected preconditioned gradients vanish; elsewhere, they show how far away (P, Q)
is: with S = ‖A‖_μ² and K_V = ‖V − μ1ᵀ‖_μ²

    E∇̂_V l = S(V − μ1ᵀ) − ⟨Q, A⟩_μ (P − μ1ᵀ)        E∇̂_A l = K_V(A − 11ᵀ/T) − K_VP(Q − 11ᵀ/T),

so E∇̂_V l / S is V − P if A = Q, and A − E∇̂_A l / K_V is Q if V = P. The noise of two independent
estimates g and g' of a gradient cancels on average in ⟨g, g'⟩_μ, which therefore measures squared
distances well below the noise of either estimate.

Besides its samples, the judge knows what Algorithm 1 knows: μ, K_P, and the number of positions
that matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.geometry import centred_square, mu_inner, mu_norm, threshold_normalize
from scb.geometry.columns import column_medians
from scb.geometry.products import root
from scb.theory.gaussian import noise_quantile, residual_variance
from scb.training.roundings import TINY, spread_of
from scb.training.sources import GradientSource
from scb.training.updates import precondition_A, precondition_V

GOOD = "learned"
UNDECIDED = "undecided"
TOLERANCE = 0.05
"""The largest ‖V − P‖_μ and ‖A − Q‖_μ that count as learned."""
# No run takes this many steps, so that their keys give samples that it was not trained on.
HELD_OUT = 1 << 40


class Distance(NamedTuple):
    """A distance, and the standard error of its square, which is 0 if the distance is exact."""

    value: float
    error: float = 0.0

    def within(self, tolerance: float) -> bool:
        """Return whether the distance is at most the tolerance, with an allowance for noise."""
        return self.value**2 + 2 * self.error <= tolerance**2

    def beyond(self, tolerance: float) -> bool:
        """Return whether the distance exceeds the tolerance by more than noise explains."""
        return self.value**2 - 2 * self.error > tolerance**2

    def __str__(self) -> str:
        return f"{self.value:.2g}"


class Findings(NamedTuple):
    """The quantities that a verdict on (V, A) is based on.

    Attributes
    ----------
    share : the ratio K_V / K_P, which is α_V² up to noise
    signal : α_A, or its estimate from the entries of A that stand out from the noise, 0 if none
    does
    dist_V, dist_A, dist_A_star : the distances ‖V − P‖_μ and ‖A − Q‖_μ, and the latter for A
    thresholded and normalised
    """

    share: float
    signal: float
    dist_V: Distance
    dist_A: Distance
    dist_A_star: Distance


def verdict_on(f: Findings, tolerance: float = TOLERANCE) -> str:
    """Return "learned", or what is wrong: one of a few fixed phrases, followed by numbers."""
    if 0.5 <= f.share <= 2 and f.dist_V.within(tolerance) and f.dist_A.within(tolerance):
        return GOOD
    if f.signal < 0:
        return (
            f"sign unresolved: (V, A) is the mirror image of the truth, "
            f"with a signal of {f.signal:.2g}"
        )
    if f.signal == 0:
        return f"too slow: nothing in A stands out of the noise yet, and V has {f.share:.2g} of K_P"
    if f.dist_A_star.within(tolerance):
        return (
            f"learned up to normalisation: ‖A* − Q‖ is about {f.dist_A_star},"
            f" while (V, A) itself is {_fault(f, tolerance)}"
        )
    return _fault(f, tolerance)


def _fault(f: Findings, tolerance: float) -> str:
    """What is wrong with a point of the right sign: either α_V α_A, by which the model predicts, is
    far from 1, or there is too much noise.
    """
    if f.signal * root(f.share) < 0.5:
        return f"too slow: the signal has come to {f.signal:.2g}, and V has {f.share:.2g} of K_P"
    distances = ("‖V − P‖", f.dist_V), ("‖A − Q‖", f.dist_A)
    name, worst = max(distances, key=lambda named: named[1].value)
    if worst.beyond(tolerance) or f.share > 2:
        return f"too noisy: {name} is about {worst}, more than {tolerance:g}"
    return (
        f"{UNDECIDED}: {name} is about {worst}, and the held-out samples are too few to tell that"
        f" from {tolerance:g}: give more judge_samples"
    )


def by_truth(last: Mapping[str, float], tolerance: float = TOLERANCE) -> str:
    """Return the verdict that is based on the true P and Q.

    Parameters
    ----------
    last : dict of float
        The last row of a history. The history of a simulation has no normalised A.
    tolerance : float
        The largest distance that counts as learned.

    Returns
    -------
    str

    Examples
    --------
    >>> from scb.training.verdict import by_truth
    >>> by_truth({"alpha_V": 1, "alpha_A": 1, "dist_V": 0.01, "dist_A": 0.01, "dist_A_star": 0.01})
    'learned'
    """
    distances = (
        Distance(float(last.get(name, np.inf))) for name in ("dist_V", "dist_A", "dist_A_star")
    )
    return verdict_on(
        Findings(float(last["alpha_V"]) ** 2, float(last["alpha_A"]), *distances), tolerance
    )


class Judgement(NamedTuple):
    """The result of judging a run by held-out samples.

    Attributes
    ----------
    verdict : "learned", or what is wrong
    dist_V, dist_A : estimates of ‖V − P‖_μ and ‖A − Q‖_μ
    samples : the number of held-out samples
    """

    verdict: str
    dist_V: float
    dist_A: float
    samples: int


@dataclass(frozen=True)
class HeldOut:
    """A judge that assesses (V, A) by the gradients on two held-out batches.

    Parameters
    ----------
    batch_size : the number of samples in each batch
    K_P : the constant ‖P − μ1ᵀ‖_μ² of the task; a V whose K_V is below half of it, or above twice,
    has not learned P
    sparsity : the largest number of positions that a token attends to
    tolerance : the largest distance that counts as learned
    """

    batch_size: int
    K_P: float
    sparsity: int
    tolerance: float = TOLERANCE

    @classmethod
    def sized(cls, mu: Array, K_P: float, sparsity: int, tolerance: float = TOLERANCE) -> "HeldOut":
        """Make a judge with batches so large that the standard errors of squared distances are an
        eighth of tolerance².

        At the truth, these errors are (N − 1)ρ/(‖Q‖_μ² B) for V and √N·Qρ/(K_P B) for the mass of A
        at the positions that are seen.
        """
        N = len(mu)
        rho = residual_variance(1 - float(mu @ mu), N)
        # ‖Q‖_μ² is 1/Q at least
        per_sample = max((N - 1) * rho * sparsity, sqrt(N) * sparsity * rho / K_P)
        return cls(ceil(8 * per_sample / tolerance**2), K_P, sparsity, tolerance)

    def __call__(
        self, V: Array, A: Array, mu: Array, source: GradientSource, keys: NDArray[np.uint64]
    ) -> Judgement:
        """Judge (V, A) by the gradients that ``source`` returns for two keys."""
        one, two = (source(V, A, self.batch_size, key) for key in keys)
        there = np.asarray(mu, like=A)  # beside A, which may be an array of CuPy
        square_A = mu_inner(A, A, there)
        K_V = centred_square(V, mu)
        steps_V = [precondition_V(g.V, mu, "mu") / square_A for g in (one, two)]
        dist_V = self._distance_V(V, steps_V, mu)
        # If the noise cannot be measured, the distances must do.
        signal = 1.0
        stands_out: Any = np.ones_like(A, dtype=bool)
        if self._is_sparse(A):
            centred, stands_out = _standing_out(A)
            columns, rows = np.nonzero(stands_out.T)
            signal = float(there[columns] @ centred[rows, columns])
        dist_A = dist_A_star = Distance(np.inf)
        if K_V > 1e-12:
            estimates = [precondition_A(g.A, there) for g in (one, two)]
            for estimate in estimates:
                estimate /= -K_V
                estimate += A
            scale = root(self.K_P / K_V)
            dist_A = self._distance_A(A, stands_out, estimates, scale, there)
            star = threshold_normalize(A, 1 / (6 * self.sparsity))
            if self._is_sparse(A):
                stands_out = _standing_out(star)[1]
            dist_A_star = self._distance_A(star, stands_out, estimates, scale, there)
        verdict = verdict_on(
            Findings(K_V / self.K_P, signal, dist_V, dist_A, dist_A_star), self.tolerance
        )
        return Judgement(verdict, dist_V.value, dist_A.value, one.samples + two.samples)

    def _is_sparse(self, A: Array) -> bool:
        """Whether most entries of a column are noise, so that the noise can be measured by them."""
        return 4 * self.sparsity <= len(A)

    def _distance_V(self, V: Array, steps: list[Array], mu: Array) -> Distance:
        """‖V − P‖_μ from two independent estimates (N, N) of V − μ1ᵀ − γ(P − μ1ᵀ).

        The factor γ = ⟨Q, A⟩_μ / ‖A‖_μ² differs from 1 where A ≠ Q, and training makes V too small
        by the same factor. The known K_P tells how large P is.
        """
        centred = V - mu[:, None]
        one, two = (centred - step for step in steps)
        # Far from the truth the factor is noise, and the distance is large whatever it is.
        factor = np.clip(root(mu_inner(one, two, mu) / self.K_P), 0.5, 2.0)
        return distance(centred - one / factor, centred - two / factor, mu, (len(mu) - 1) ** 2)

    def _distance_A(
        self, A: Array, there: Any, estimates: list[Array], scale: float, mu: Array
    ) -> Distance:
        """‖A − Q‖_μ from two independent estimates of βQ + (1 − β)11ᵀ/T, β = K_VP/K_V, all (T, N).

        All but a few of the T·N entries are noise: looked at is ``there`` (T, N), where A stands
        out, and where the first estimate does; elsewhere Q is taken to be 0. But a small weight may
        be hidden there. Where V has learned P up to its scale, β is ``scale`` = √(K_P/K_V), so that
        the mass of Q at the positions that are seen is known, and what a column lacks is the hidden
        weight. The distance counts it as if it stood at one position. Where most positions matter,
        all are looked at.
        """
        T, N = A.shape
        if self._is_sparse(A):
            apart = np.abs(estimates[0] - A)
            there = there | (apart > spread_of(apart) * noise_quantile(A.size) + TINY)
        columns, rows = np.nonzero(there.T)
        found = [(estimate[rows, columns] - (1 - scale) / T) / scale for estimate in estimates]
        errors = [A[rows, columns] - one for one in found]
        seen = distance(errors[0], errors[1], mu[columns], max(len(rows), 1))
        masses: list[Any] = [np.bincount(columns, one, minlength=N) for one in found]
        hidden = distance(1 - masses[0], 1 - masses[1], mu, N)
        elsewhere = mu_norm(np.where(there, 0.0, A), mu)
        value = sqrt(seen.value**2 + hidden.value**2 + elsewhere**2)
        return Distance(value, float(np.hypot(seen.error, hidden.error)))


def _standing_out(A: Array) -> tuple[Array, NDArray[np.bool_]]:
    """A less the median of each column, and whether that stands out of the noise, (T, N) each."""
    centred = A - column_medians(A)
    apart = np.abs(centred)
    return centred, apart > spread_of(apart) * noise_quantile(A.size) + TINY


def distance(one: Array, two: Array, mu: Array, dimensions: int) -> Distance:
    """Estimate ‖x‖_μ from two independent estimates (…, N) of x, given the dimension of their
    noise.
    """
    one, two = (x.reshape(prod(x.shape[:-1]), x.shape[-1]) for x in (one, two))
    square = mu_inner(one, two, mu)
    noise = mu_norm(one - two, mu) / np.sqrt(2)
    value = root(square)
    return Distance(value, float(noise * np.hypot(noise, np.sqrt(2) * value) / np.sqrt(dimensions)))
