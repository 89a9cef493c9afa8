"""How well P and the weights are known: standard errors from the Fisher information, and intervals.

An interval of a weight is wider than ±1.96 standard errors for three reasons. All weights of a
context are to lie in their intervals together. The parameters are estimated from the same n
samples, p of them, as in a regression: n − p degrees of freedom are left. And a position that was
not found would take weight from the others: a *background*, the distribution of the labels, is let
into the context, and the interval is the hull of what is likely without it and with it. So a
context with a single position of weight 1 has an interval, too.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from scb.arrays import Array
from scb.mixture.data import Rows
from scb.mixture.em import information_bytes
from scb.mixture.model import Mixture
from scb.mixture.profile import Limit
from scb.mixture.rows import RowTable
from scb.mixture.tuning import TUNING
from scb.theory.fisher import Information


def standard_errors(
    rows: Rows, at: Mixture, held: NDArray[np.bool_] | None = None
) -> tuple[Array, Array]:
    """Standard errors of P (N, C) and of q (K, 1 + s), from the Fisher information given the
    contexts and last tokens.

    Slot 0 of the mixture is the background; where there is no other slot, nothing is asked of it.
    The information is taken at P with half a count added to each entry, so that an entry estimated
    as 0 has a positive standard error, unless it is ``held`` (N, C): then it is known. NaN where
    there is no information: a token that never occurs at a position that matters, or weights that
    cannot be told apart; and everywhere if the blocks of the information would need more than 1 GB
    (N above about 300).
    """
    attended = _attended(at)
    if not _affordable(at) or not attended.any():
        return np.full(at.P.shape, np.nan), np.full(at.q.shape, np.nan)
    counts = label_counts(rows, at)
    information = _information(rows, at, counts, attended, held)
    of_P, of_q = information.variances()
    of_P[:, counts <= 0] = np.nan
    of_q[(attended > 0) & ~information.free_q] = np.nan
    return np.sqrt(of_P), np.sqrt(of_q)


def _attended(at: Mixture) -> Array:
    """The weights (K, 1 + s) of contexts that look at a position; 0 in the others."""
    return np.where((at.q[:, 1:] > 0).any(axis=1, keepdims=True), at.q, 0.0)


def _affordable(at: Mixture) -> bool:
    return information_bytes(at.P, at.q) <= TUNING.information_bytes


def label_counts(rows: Rows, at: Mixture) -> Array:
    """(C,): how many labels each column of P was estimated from."""
    derivatives = rows.total(RowTable.evaluate, at).columns[:, :-1]
    # The derivative in an entry that is 0 may be infinite.
    return np.multiply(at.P, derivatives, where=at.P > 0, out=np.zeros_like(at.P)).sum(axis=0)


def _information(
    rows: Rows, at: Mixture, counts: Array, q: Array, held: NDArray[np.bool_] | None
) -> Information:
    """The information at P with half a count more in each entry, and weights q (K, 1 + s)."""
    held = np.zeros(at.P.shape, bool) if held is None else held
    smooth = np.where(held, at.P, (at.P * counts + 0.5) / (counts + 0.5 * at.N))
    PP, Pq, qq = rows.total(
        RowTable.information, replace(at, columns=np.c_[smooth, at.background], q=q)
    )
    free_P = (np.einsum("omm->om", PP) > 0) & ~held
    return Information(PP, Pq, qq, free_P, (q > 0) & (np.einsum("kjj->kj", qq) > 0))


# ---------------------------------------------------------------------------------------- intervals


def weight_interval(
    weights: Array, errors: Array, limit: Limit | None, *, level: float, freedom: tuple[int, int]
) -> Array:
    """(s, 2): intervals that hold all s weights of one context together, at least with this chance.

    Where the background is not in the fit, ``limit`` says how large it may be, and what is left for
    the positions then; that they may lose so much is added to what their errors say, as independent
    errors are. ``freedom`` are samples and parameters.
    """
    reach = quantile(len(weights), limit is None, level, freedom)
    below = reach * errors
    above = reach * errors
    if limit is not None:
        lost = weights - limit.weights[: len(weights)]
        below = np.sqrt(below**2 + np.maximum(lost, 0.0) ** 2)
        above = np.sqrt(above**2 + np.minimum(lost, 0.0) ** 2)
    return np.clip(np.c_[weights - below, weights + above], 0.0, 1.0)


def quantile(number: int, background: bool, level: float, freedom: tuple[int, int]) -> float:
    """The half-width of an interval in standard errors, for a context with this many positions,
    with or without a background.
    """
    n, p = freedom
    left = max(n - p, 1)
    # One number says it all for two weights that sum to 1; beyond that, Bonferroni's inequality.
    together = number if number - 1 + int(background) > 1 else 1
    return float(stdtrit(left, 1 - (1 - level) / 2 / together) * np.sqrt(n / left))
