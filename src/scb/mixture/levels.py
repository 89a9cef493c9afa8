"""Levels above which a score is too large to be noise, from the tail of a sum of independent,
bounded, skewed terms.

If position t has no effect on the label, its tokens are iid μ whatever the labels are, so a score
Σ_i w_i·u_i[x_it] has the cumulant generating function K(θ) = Σ_i log Σ_m μ_m exp(θ w_i u_i[m])
exactly. For rare tokens and sharp P, such sums are far from Gaussian in the tail that matters,
about five standard deviations from the mean, but the saddlepoint approximation (Lugannani and Rice
1980) holds there.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from scb.arrays import Array, Ints
from scb.mixture.tuning import TUNING


class ScoreNoise:
    """The distribution of a score, which is a sum over samples whose tokens are iid μ.

    A sample of row i adds ``terms[i, m]`` if its token is m; row i has ``weight[i]`` samples.
    """

    def __init__(self, terms: Array, weight: Array, mu: Array) -> None:
        terms = terms[np.ix_(weight > 0, mu > 0)]
        self.weight = weight[weight > 0]
        self.mu = mu[mu > 0]
        self.centred = terms - (terms @ self.mu)[:, None]

    @property
    def variance(self) -> float:
        """The variance of the score."""
        return float(self.weight @ (self.centred**2 @ self.mu))

    def cumulants(self, theta: float) -> Array:
        """(3,): K(θ) and its first two derivatives, which are sums over the rows."""
        exponent = theta * self.centred
        top = exponent.max(axis=1)
        p = self.mu * np.exp(exponent - top[:, None])
        mass = p.sum(axis=1)
        mean = (p * self.centred).sum(axis=1) / mass
        variance = (p * self.centred**2).sum(axis=1) / mass - mean**2
        return np.array([self.weight @ terms for terms in (top + np.log(mass), mean, variance)])


def variances(noise_of: Callable[[int], ScoreNoise], states: int) -> Array:
    """(K,): the variances of the scores of K states."""
    return np.array([noise_of(k).variance for k in range(states)])


def cumulants(noise_of: Callable[[int], ScoreNoise], states: Ints, theta: Array) -> Array:
    """(r, 3): K(θ), K'(θ) and K''(θ) of the scores of some states (r,), each at its own θ."""
    return np.array(
        [noise_of(k).cumulants(x) for k, x in zip(states.tolist(), theta.tolist(), strict=True)]
    )


def noise_levels(noises: Sequence[ScoreNoise], z: float) -> Array:
    """(K,): the score that each noise exceeds as rarely as a Gaussian exceeds z standard
    deviations; ∞ if it never does.
    """
    noise_of = noises.__getitem__
    variance = variances(noise_of, len(noises))
    return score_levels(variance, np.full(len(noises), z), partial(cumulants, noise_of))


def score_levels(variance: Array, z: Array, cumulants: Callable[[Ints, Array], Array]) -> Array:
    """(K,): for each of K states the level that its score exceeds as rarely as a Gaussian exceeds
    z[k] standard deviations; ∞ if it never does.

    At each θ, the saddlepoint approximation yields the score K'(θ) and the value r* that a standard
    Gaussian exceeds with the same probability:

        r* = r + log(u/r)/r  with  r = √(2(θK'(θ) − K(θ)))  and  u = θ√K''(θ).

    The level of a state is K'(θ) where r* = z. The search starts at the θ of a Gaussian score and
    multiplies it by z/r*. All states are searched in parallel. ``cumulants`` receives the remaining
    states and their θ, and may add up partitions on other machines.
    """
    levels = np.full(len(z), np.inf)
    spread = np.sqrt(variance)
    active = np.flatnonzero(spread > 0)
    theta = np.zeros(len(z))
    theta[active] = z[active] / spread[active]
    for _ in range(TUNING.level_steps):
        if active.size == 0:
            break
        K, slope, curvature = cumulants(active, theta[active]).T
        r = np.sqrt(np.maximum(2 * (theta[active] * slope - K), 1e-12))
        u = theta[active] * np.sqrt(np.maximum(curvature, TUNING.tiny))
        r_star = r + np.log(np.maximum(u, 1e-12) / r) / r
        wanted = z[active]
        error = np.abs(r_star - wanted)
        # If the steps run out, what is nearly right counts as the level.
        levels[active] = np.where(error < TUNING.level_tolerance, slope, np.inf)
        theta[active] *= np.clip(wanted / np.maximum(r_star, 1e-9), 0.5, 2.0)
        going_on = error >= TUNING.level_precision * wanted
        never = going_on & (theta[active] * spread[active] > TUNING.largest_tilt)
        levels[active[never]] = np.inf
        active = active[going_on & ~never]
    return levels
