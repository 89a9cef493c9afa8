"""Which score is too large to be noise: the tail of a sum of independent, bounded, skewed terms.

Where position t has no part in the label, its tokens are iid μ whatever the labels are, so that a
score Σ_i w_i·u_i[x_it] has the cumulant generating function K(θ) = Σ_i log Σ_m μ_m exp(θ w_i
u_i[m]) exactly. For rare tokens and sharp P such sums are far from Gaussian where it matters, five
standard deviations out; the saddlepoint approximation holds there (Lugannani and Rice 1980).
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array

_STEPS = 60
# Relative: a level whose tail is this near to the one asked for is found
_CLOSE = 1e-6
# In standard deviations: good enough when the steps are used up
_NEARLY = 0.05
# θ in units of 1/σ: every sample at its largest is not enough
_HOPELESS = 1e4


class ScoreNoise:
    """A score as a sum of terms (r, N), u[m] for every token m; ``weight`` (r,) says how many
    samples have each row of them.
    """

    def __init__(self, terms: Array, weight: Array, mu: Array) -> None:
        terms = terms[np.ix_(weight > 0, mu > 0)]
        self.weight = weight[weight > 0]
        self.mu = mu[mu > 0]
        self.centred = terms - (terms @ self.mu)[:, None]

    @property
    def variance(self) -> float:
        """Variance of the score."""
        return float(self.weight @ (self.centred**2 @ self.mu))

    def cumulants(self, theta: float) -> Array:
        """(3,): K(θ) and its first two derivatives, which are sums over the rows."""
        exponent = theta * self.centred
        top = exponent.max(axis=1)
        p = self.mu * np.exp(exponent - top[:, None])
        mass = p.sum(axis=1)
        mean = (p * self.centred).sum(axis=1) / mass
        variance = (p * self.centred**2).sum(axis=1) / mass - mean**2
        return np.array(
            [self.weight @ (top + np.log(mass)), self.weight @ mean, self.weight @ variance]
        )


def variances(noise_of: Callable[[int], ScoreNoise], contexts: int) -> Array:
    """(K,): the variances of the scores of K contexts."""
    return np.array([noise_of(k).variance for k in range(contexts)])


def cumulants(
    noise_of: Callable[[int], ScoreNoise], contexts: NDArray[np.int64], theta: Array
) -> Array:
    """(r, 3): K(θ), K'(θ) and K''(θ) of the scores of some contexts (r,), each at its own θ."""
    return np.array(
        [noise_of(k).cumulants(x) for k, x in zip(contexts.tolist(), theta.tolist(), strict=True)]
    )


def noise_levels(noises: Sequence[ScoreNoise], z: float) -> Array:
    """(K,): the score that each noise exceeds as rarely as a Gaussian exceeds z standard
    deviations; ∞ if it never does.
    """
    noise_of = noises.__getitem__
    return score_levels(
        variances(noise_of, len(noises)), np.full(len(noises), z), partial(cumulants, noise_of)
    )


def score_levels(
    variance: Array, z: Array, cumulants: Callable[[NDArray[np.int64], Array], Array]
) -> Array:
    """(K,): what the scores of K contexts reach as rarely as Gaussians z (K,) standard deviations;
    ∞ if never.

    All are searched for side by side; the cumulants are sums, which may be taken anywhere. The
    level is K'(θ) for the θ at which the signed root r* = r + log(u/r)/r, whose Gaussian tail is
    that of the sum at K'(θ), is z. θ starts where it would be for a Gaussian, and is scaled by how
    far r* is off.
    """
    levels = np.full(len(z), np.inf)
    spread = np.sqrt(variance)
    active = np.flatnonzero(spread > 0)
    theta = np.zeros(len(z))
    theta[active] = z[active] / spread[active]
    for _ in range(_STEPS):
        if active.size == 0:
            return levels
        K, slope, curvature = cumulants(active, theta[active]).T
        r = np.sqrt(np.maximum(2 * (theta[active] * slope - K), 1e-12))
        u = theta[active] * np.sqrt(np.maximum(curvature, 1e-300))
        r = r + np.log(np.maximum(u, 1e-12) / r) / r
        wanted = z[active]
        found = np.abs(r - wanted) < _CLOSE * wanted
        # What is nearly right stands as an answer until a better one comes, or none ever does.
        levels[active] = np.where(np.abs(r - wanted) < _NEARLY, slope, np.inf)
        theta[active] *= np.clip(wanted / np.maximum(r, 1e-9), 0.5, 2.0)
        hopeless = ~found & (theta[active] * spread[active] > _HOPELESS)
        levels[active[hopeless]] = np.inf
        active = active[~found & ~hopeless]
    return levels
