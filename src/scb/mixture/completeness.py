"""Whether a state lacks a position: the likelihood ratio of a background beside its positions, and
the tail of the score of that background.

If a state is complete, the ratio is 0 half the time and otherwise follows a χ² distribution with
one degree of freedom, in large samples. Where few labels determine each entry of P that tells the
background from the positions, large ratios are more frequent: with 4 to 8 labels for each entry, a
ratio that should occur in 1 of 100 states occurs in 2 or 3. The score of the background has a
distribution that can be computed instead. For independent contexts, the score, after what is
explained by changes of P and of the weights is subtracted, is a sum over samples whose labels are
independent given the contexts. The saddlepoint approximation (``levels``) yields its tail.
"""

from dataclasses import replace

import numpy as np

from scb.arrays import Array
from scb.mixture.arrays import Flags
from scb.mixture.data import Data, Rows
from scb.mixture.em import Fit, maximise
from scb.mixture.levels import gaussian_equivalent
from scb.mixture.model import Mixture, normalised
from scb.mixture.rows import RowTable
from scb.mixture.tuning import TUNING
from scb.mixture.weights import fit_weights
from scb.theory.fisher import Information
from scb.theory.gaussian import noise_quantile


def incomplete_from(states: int) -> float:
    """The likelihood ratio at which a background is kept because the state lacks a position.

    If no state lacks a position, the ratio is 0 half the time and otherwise follows a χ²
    distribution with one degree of freedom. In 1 of 20 fits, some state reaches the level by
    chance.
    """
    return noise_quantile(max(states, 2), 0.05) ** 2


def background_ratios(data: Data, rows: Rows, fit: Fit) -> Array:
    """(K,): twice the log-likelihood ratio for adding the background to the positions of each
    state; NaN for states without positions.

    The weight of a position that was not found goes to the background. Adding backgrounds in all
    states at once would show little: if no entry of P is near 0, a sharper P compensates for all of
    them. So each state is tested separately, with the other states taken to be complete. States
    that reach the level of ``incomplete_from`` keep their background, which makes P sharper. The
    other states are then tested again, until no further state reaches the level.

    With P fixed, the ratio is too small, by about the state's share of the samples. If the ratio
    may reach half of the level, P is fitted again. For independent contexts, a ratio that reaches
    the level is not larger than ``score_ratio`` says.
    """
    there = np.any(fit.mixture.q[:, 1:] > 0, axis=1)
    level = incomplete_from(len(there))
    ratios = np.where(there, 0.0, np.nan)
    shares = data.counts / data.n
    asked = there.copy()
    while asked.any():
        q = np.where(asked[:, None], _with_background(fit.mixture.q), fit.mixture.q)
        beside = fit_weights(rows, replace(fit.mixture, q=q), tolerance=TUNING.close / 10)
        gains = 2 * (beside.logliks - rows.total(RowTable.logliks, fit.mixture))
        ratios[asked] = (np.maximum(gains, 0.0) / np.maximum(1 - shares, TUNING.empty))[asked]
        for k in np.flatnonzero(asked & (ratios >= level / 2)).tolist():
            one = _fit_beside(rows, fit, beside.q, np.arange(len(there)) == k)
            ratios[k] = max(0.0, 2 * (one.loglik - fit.loglik))
            if data.independent and ratios[k] >= level:
                ratios[k] = min(ratios[k], score_ratio(rows, fit.mixture, k))
        new = asked & (ratios >= level)
        if not new.any():
            break
        fit = _fit_beside(rows, fit, beside.q, new)
        asked &= ~new
    return ratios


def _with_background(q: Array) -> Array:
    """(K, s): weights of which the background has a part that can grow."""
    return (1 - TUNING.background_left) * q + TUNING.background_left * np.eye(1, q.shape[1])


def _fit_beside(rows: Rows, fit: Fit, q: Array, states: Flags) -> Fit:
    """Maximum likelihood from a fit, in which some states (K,) have other weights (K, s)."""
    start = replace(fit.mixture, q=np.where(states[:, None], q, fit.mixture.q))
    return maximise(rows, start.lifted(), tolerance=TUNING.close / 10)


# ------------------------------------------------------------------------------------- the score


def score_ratio(rows: Rows, at: Mixture, k: int) -> float:
    """The square of the value that a standard Gaussian exceeds as rarely as noise exceeds the score
    of a background in state k; ∞ where the score has no distribution.

    ``at`` is the maximum of the likelihood without that background. Entries of P with less than
    half a label are taken to be 0: no label that occurred needs them.
    """
    labels = at.P * rows.total(RowTable.evaluate, at).P
    at = replace(at, P=normalised(np.where(labels < 0.5, 0.0, at.P), 0, at.P))
    direction = _background_direction(rows, at, k)
    if direction is None:
        return np.inf

    def sums(theta: float) -> Array:
        return rows.total(_score_sums, at, *direction, theta)

    return gaussian_equivalent(sums) ** 2


def _background_direction(rows: Rows, at: Mixture, k: int) -> tuple[Array, Array] | None:
    """How P (N, C) and the weights (K, s) move with the background of state k, scaled to 1 there;
    along this direction, the score is not correlated with those of P and the weights. Entries of P
    that are 0 stay 0.
    """
    q = np.where((at.q[:, 1:] > 0).any(axis=1, keepdims=True), at.q, 0.0)
    q[k] = (1 - TUNING.empty) * q[k] + TUNING.empty * np.eye(1, q.shape[1])[0]
    if 8 * at.P.size * (at.P.shape[1] + q.size) > TUNING.information_bytes:
        return None
    PP, Pq, qq = rows.total(RowTable.information, replace(at, q=q))
    free = (at.P > 0) & (np.einsum("omm->om", PP) > 0)
    inverse = Information(PP, Pq, qq, free, q > 0).inverse()
    if inverse is None:
        return None
    unit = np.zeros(q.shape)
    unit[k, 0] = 1.0
    in_P, in_q = inverse.solve(np.zeros(at.P.shape), unit)
    return in_P / in_q[k, 0], in_q / in_q[k, 0]


def _score_sums(rows: RowTable, at: Mixture, in_P: Array, in_q: Array, theta: float) -> Array:
    """(4,): the score along a direction, and its cumulant generating function at θ with its first
    two derivatives, all sums over the rows.
    """
    f, terms = _score_terms(rows, at, in_P, in_q)
    exponent = np.where(f > 0, theta * terms, -np.inf)
    top = exponent.max(axis=1, keepdims=True)
    p = f * np.exp(exponent - top)
    mass = p.sum(axis=1)
    mean = (p * terms).sum(axis=1) / mass
    variance = (p * terms**2).sum(axis=1) / mass - mean**2
    of_labels = terms[np.arange(len(f)), rows.label]
    sums = of_labels, top[:, 0] + np.log(mass), mean, variance
    return np.array([rows.weight @ each for each in sums])


def _score_terms(rows: RowTable, at: Mixture, in_P: Array, in_q: Array) -> tuple[Array, Array]:
    """(r, N) each: the probability of each label, and what it adds to the score along a direction,
    less the mean.
    """
    f = rows.distributions(at)
    up, down = (rows.distributions(replace(at, q=np.maximum(x, 0.0))) for x in (in_q, -in_q))
    positions = at.q * (np.arange(at.q.shape[1]) > 0)
    change = up - down + rows.distributions(replace(at, P=in_P, q=positions))
    terms = np.divide(change, f, where=f > 0, out=np.zeros_like(f))
    return f, terms - (f * terms).sum(axis=1, keepdims=True)
