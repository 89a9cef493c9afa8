"""Which score is too large to be noise: the tail of a sum of independent, bounded, skewed terms.

Where position t has no part in the label, its tokens are iid μ whatever the labels are, so that a score Σ_i w_i·u_i[x_it] has the
cumulant generating function K(θ) = Σ_i log Σ_m μ_m exp(θ w_i u_i[m]) exactly. For rare tokens and sharp P such sums are far from
Gaussian where it matters, five standard deviations out; the saddlepoint approximation holds there (Lugannani and Rice 1980).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from scb.geometry import Array

_STEPS, _CLOSE = 60, 1e-6
Cumulants = Array
"""(3,): K(θ), K'(θ), K''(θ)."""


@dataclass(frozen=True)
class Noise:
    """A score as a sum of terms: rows (r, N) that hold u[m] for every token m, less their mean, with their weights (r,)."""

    centred: Array
    weight: Array
    mu: Array

    @classmethod
    def of(cls, terms: Array, weight: Array, mu: Array) -> Noise:
        """From terms (r, N) that need not be centred; ``weight`` (r,) says how many samples have each row."""
        terms, weight, mu = terms[np.ix_(weight > 0, mu > 0)], weight[weight > 0], mu[mu > 0]
        return cls(terms - (terms @ mu)[:, None], weight, mu)

    @property
    def variance(self) -> float:
        """Of the score."""
        return float(self.weight @ (self.centred**2 @ self.mu))

    def cumulants(self, theta: float) -> Cumulants:
        """K(θ) and its first two derivatives: sums over the rows."""
        exponent = theta * self.centred
        top = exponent.max(axis=1)
        p = self.mu * np.exp(exponent - top[:, None])
        mass = p.sum(axis=1)
        mean = (p * self.centred).sum(axis=1) / mass
        variance = (p * self.centred**2).sum(axis=1) / mass - mean**2
        return np.array([self.weight @ (top + np.log(mass)), self.weight @ mean, self.weight @ variance])

    def level(self, z: float) -> float:
        """The score that noise exceeds as rarely as a Gaussian exceeds z standard deviations; ∞ if it never does."""
        search = level_search(self.variance, z)
        try:
            theta = next(search)
            while True:
                theta = search.send(self.cumulants(theta))
        except StopIteration as end:
            return end.value


def score_level(terms: Array, weight: Array, mu: Array, z: float) -> float:
    """``Noise.level`` of terms (r, N), where ``weight`` (r,) samples have each row."""
    return Noise.of(terms, weight, mu).level(z)


def level_search(variance: float, z: float) -> Generator[float, Cumulants, float]:
    """Asks for the cumulants at one θ after the other, and returns the level: they may be summed anywhere."""
    spread = float(np.sqrt(variance))
    if spread == 0:
        return np.inf
    theta, slope, r = z / spread, np.inf, 0.0
    for _ in range(_STEPS):
        slope, r = _saddlepoint(theta, *(yield theta))
        if abs(r - z) < _CLOSE * z:
            return slope
        theta *= float(np.clip(z / max(r, 1e-9), 0.5, 2.0))
        if theta * spread > 1e4:  # every sample at its largest is not enough
            return np.inf
    return slope if abs(r - z) < 0.05 else np.inf


def _saddlepoint(theta: float, K: float, slope: float, curvature: float) -> tuple[float, float]:
    """K'(θ), and the signed root r* = r + log(u/r)/r, whose Gaussian tail is that of the sum at K'(θ)."""
    r = float(np.sqrt(max(2 * (theta * slope - K), 1e-12)))
    u = theta * np.sqrt(max(curvature, 1e-300))
    return float(slope), r + float(np.log(max(u, 1e-12) / r)) / r
