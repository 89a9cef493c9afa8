"""The uncertainty of P and of the weights: standard errors from the Fisher information, and
intervals.

An interval of a weight is wider than ±1.96 standard errors for three reasons. First, all weights of
a state must lie in their intervals simultaneously. Second, the p parameters are estimated from the
same n samples, so n − p degrees of freedom are left, as in a regression. Third, a position that was
not found would take weight from the others. Therefore the background is added to the state, and the
interval is the hull of the likely values without and with the background. So even a state with a
single position of weight 1 has an interval.

The largest plausible weight of the background is found from the profile of the log-likelihood:
everything else is fitted again at each weight. Second derivatives at a weight of 0 would not
suffice, because the likelihood is far from a parabola there if P has entries near 0.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from scb.arrays import Array, Flags
from scb.mixture.data import Rows
from scb.mixture.em import climb_by_em
from scb.mixture.model import Mixture
from scb.mixture.rows import RowTable
from scb.mixture.tuning import TUNING
from scb.theory.fisher import Information

# Finds the standard errors of P and q at a mixture: ``standard_errors`` or ``unknown_errors``
Errors = Callable[..., tuple[Array, Array]]


def standard_errors(
    rows: Rows, at: Mixture, held: Flags | None = None, of_P: bool = True
) -> tuple[Array, Array]:
    """Standard errors of P (N, C) and of q (K, 1 + s), from the Fisher information given the
    contexts and last tokens.

    Slot 0 of the mixture is the background; where there is no other slot, it has no standard error.
    The information is taken at P with half a count added to each entry, so an entry estimated as 0
    has a positive standard error, unless it is ``held`` (N, C) and therefore known. Standard errors
    are NaN where there is no information: for a token that never occurs at a position that matters,
    and for weights that cannot be distinguished. All of them are NaN if the blocks of the
    information would need more than 1 GB (N above about 300). Those of P are also NaN if nobody
    asks for them, which takes about half the time.
    """
    q = _weights_beside_positions(at)
    block_bytes = 8 * at.P.size * (at.P.shape[1] + q.size)
    if block_bytes > TUNING.information_bytes or not q.any():
        return unknown_errors(rows, at)
    information = smooth_information(rows, at, held)
    in_P, in_q = information.variances(of_P)
    in_P[:, label_counts(rows, at) <= 0] = np.nan
    in_q[(q > 0) & ~information.free_q] = np.nan
    return np.sqrt(in_P), np.sqrt(in_q)


def unknown_errors(rows: Rows, at: Mixture, held: Flags | None = None) -> tuple[Array, Array]:
    """NaN for all standard errors of P (N, C) and of q (K, 1 + s), in no time."""
    return np.full(at.P.shape, np.nan), np.full(at.q.shape, np.nan)


def smooth_information(rows: Rows, at: Mixture, held: Flags | None = None) -> Information:
    """The Fisher information at P with half a count added to each entry that is not ``held``."""
    q = _weights_beside_positions(at)
    held = np.zeros(at.P.shape, bool) if held is None else held
    counts = label_counts(rows, at)
    free = np.count_nonzero(~held.all(axis=1))  # labels
    smooth = np.where(held, at.P, (at.P * counts + 0.5) / (counts + 0.5 * free))
    PP, Pq, qq = rows.total(RowTable.information, replace(at, P=smooth, q=q))
    free_P = (np.einsum("omm->om", PP) > 0) & ~held
    free_q = (q > 0) & (np.einsum("kjj->kj", qq) > 0)
    return Information(PP, Pq, qq, free_P, free_q)


def _weights_beside_positions(at: Mixture) -> Array:
    """(K, s): the weights of states that look at a position; 0 in the others."""
    return np.where((at.q[:, 1:] > 0).any(axis=1, keepdims=True), at.q, 0.0)


def label_counts(rows: Rows, at: Mixture) -> Array:
    """(C,): the number of labels from which each column of P was estimated."""
    derivatives = rows.total(RowTable.evaluate, at).P
    # The derivative in an entry that is 0 may be infinite.
    return np.multiply(at.P, derivatives, where=at.P > 0, out=np.zeros_like(at.P)).sum(axis=0)


# --------------------------------------------------------------------- the weight of the background


class Limit(NamedTuple):
    """The point where the profile of a state has fallen as far as allowed."""

    background: float  # its weight
    # (s,), the weights of the slots 1, 2, … there
    weights: Array


def background_limit(rows: Rows, at: Mixture, k: int, drop: float, everywhere: bool) -> Limit:
    """The largest weight of the background in state k at which twice the log-likelihood is ``drop``
    below its maximum, and the weights of the positions there. The search starts from a maximum of
    the likelihood without that background.

    P can absorb what all states lack. So if one state is known to lack a position, all states may
    lack one, and the background is added ``everywhere``.
    """
    top = rows.total(RowTable.evaluate, at).loglik
    fit = at
    if everywhere:
        q = np.where(at.q[:, :1] < 1, (1 - TUNING.profile_trace) * at.q, at.q)
        q[:, 0] += np.where(at.q[:, 0] < 1, TUNING.profile_trace, 0.0)
        fit, loglik = _fit_with(rows, replace(at, q=q), k, 0.0)
        top = max(top, loglik)
    # A weight that is not ruled out and one that is; beside each, how far twice the log-likelihood
    # has fallen below the top there
    inner = 0.0, 0.0
    outer = 1.0, np.inf
    weight, most = TUNING.profile_range
    for _ in range(TUNING.profile_tries):
        fit, loglik = _fit_with(rows, fit, k, weight)
        inner = inner[0], inner[1] + 2 * max(0.0, loglik - top)
        top = max(top, loglik)
        fallen = 2 * (top - loglik)
        if abs(fallen - drop) < TUNING.profile_close or (fallen < drop and weight >= most):
            break
        if fallen < drop:
            inner = weight, fallen
        else:
            outer = weight, fallen
        if np.isinf(outer[1]):
            weight = min(2 * weight, most)
        else:
            # The profile falls about as a parabola: its root is a line.
            a, b, c = (np.sqrt(x) for x in (inner[1], outer[1], drop))
            part = (c - a) / (b - a) if b > a else 0.5
            weight = inner[0] + np.clip(part, 0.1, 0.9) * (outer[0] - inner[0])
    return Limit(weight, fit.q[k, 1:].copy())


def _fit_with(rows: Rows, start: Mixture, k: int, weight: float) -> tuple[Mixture, float]:
    """EM in which the background of state k keeps its weight; the fit and its log-likelihood."""

    def constrain(at: Mixture) -> Mixture:
        q = at.q.copy()
        q[k, 1:] *= (1 - weight) / q[k, 1:].sum()
        q[k, 0] = weight
        return replace(at, q=q)

    point = climb_by_em(
        rows,
        constrain(start).lifted(),
        TUNING.profile_steps,
        constrain=constrain,
        least_gain=TUNING.profile_gain,
    )
    return point.at, point.loglik


# ---------------------------------------------------------------------------------------- intervals


def weight_interval(weights: Array, below: Array, above: Array, limit: Limit | None) -> Array:
    """(s, 2): the intervals of the s weights of one state, from how far they reach below and above
    the weights.

    If the background is not in the fit, ``limit`` says how large its weight may be and what weight
    then remains for the positions. This possible loss is added in the same way as an independent
    error.
    """
    if limit is not None:
        lost = weights - limit.weights[: len(weights)]
        below = np.sqrt(below**2 + np.maximum(lost, 0.0) ** 2)
        above = np.sqrt(above**2 + np.minimum(lost, 0.0) ** 2)
    return np.clip(np.c_[weights - below, weights + above], 0.0, 1.0)


def quantile(number: int, background: bool, level: float, freedom: tuple[int, int]) -> float:
    """The half-width of an interval in standard errors, for a state with the given number of
    positions, with or without a background.
    """
    n, p = freedom
    left = max(n - p, 1)
    # One number says it all for two weights that sum to 1; beyond that, Bonferroni's inequality.
    together = number if number - 1 + int(background) > 1 else 1
    return float(stdtrit(left, 1 - (1 - level) / 2 / together) * np.sqrt(n / left))
