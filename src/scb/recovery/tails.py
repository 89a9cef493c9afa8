"""Which score is too large to be noise: the tail of a sum of independent, bounded, skewed terms.

Where position t has no part in the label, its tokens are iid μ whatever the labels are, so that a score Σ_i w_i·u_i[x_it] has the
cumulant generating function K(θ) = Σ_i log Σ_m μ_m exp(θ w_i u_i[m]) exactly. For rare tokens and sharp P such sums are far from
Gaussian where it matters, five standard deviations out; the saddlepoint approximation holds there (Lugannani and Rice 1980).
"""

from __future__ import annotations

import numpy as np

from scb.norms import Array

_STEPS, _CLOSE = 60, 1e-6


def score_level(terms: Array, weight: Array, mu: Array, z: float) -> float:
    """The score that noise exceeds as rarely as a Gaussian exceeds z standard deviations; ∞ if it never does.

    Parameters
    ----------
    terms : (r, N), a row holds u[m] for every token m
    weight : (r,), how many samples have this row
    """
    terms, weight, mu = terms[np.ix_(weight > 0, mu > 0)], weight[weight > 0], mu[mu > 0]
    centred = terms - (terms @ mu)[:, None]
    spread = float(np.sqrt(weight @ (centred**2 @ mu)))
    if spread == 0:
        return np.inf
    theta, slope, r = z / spread, np.inf, 0.0
    for _ in range(_STEPS):
        slope, r = _saddlepoint(centred, weight, mu, theta)
        if abs(r - z) < _CLOSE * z:
            return slope
        theta *= float(np.clip(z / max(r, 1e-9), 0.5, 2.0))
        if theta * spread > 1e4:  # every sample at its largest is not enough
            return np.inf
    return slope if abs(r - z) < 0.05 else np.inf


def _saddlepoint(centred: Array, weight: Array, mu: Array, theta: float) -> tuple[float, float]:
    """K'(θ), and the signed root r* = r + log(u/r)/r, whose Gaussian tail is that of the sum at K'(θ)."""
    exponent = theta * centred
    top = exponent.max(axis=1)
    p = mu * np.exp(exponent - top[:, None])
    mass = p.sum(axis=1)
    mean = (p * centred).sum(axis=1) / mass
    variance = (p * centred**2).sum(axis=1) / mass - mean**2
    K, slope, curvature = weight @ (top + np.log(mass)), float(weight @ mean), float(weight @ variance)
    r = float(np.sqrt(max(2 * (theta * slope - K), 1e-12)))
    u = theta * np.sqrt(max(curvature, 1e-300))
    return slope, r + float(np.log(max(u, 1e-12) / r)) / r
