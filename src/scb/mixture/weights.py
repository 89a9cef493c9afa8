"""Maximum likelihood for the weights q with P fixed: a concave problem, in which contexts do not touch each other.

All contexts are climbed side by side, each by EM steps with its own squared extrapolation (as in ``em``), until each has its own
certificate. One pass over the rows serves a step of them all.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.mixture.data import Rows
from scb.mixture.law import Mixture, normalised
from scb.mixture.rows import RowTable

IDLE = 5  # steps without gain in likelihood or gap that are borne
LEAST_LEFT = 0.02  # part of what two EM steps make of a weight that a jump leaves of it, at least
_PASSES = 3  # over the rows in a step, at most


class WeightFit(NamedTuple):
    """Where the climb ended."""

    q: Array  # (K, s)
    logliks: Array  # (K,), the log-likelihood of each context's samples; 0 for a context that was not asked for


def fit_weights(
    rows: Rows, start: Mixture, *, tolerance: float = 0.02, steps: int = 2000, contexts: NDArray[np.bool_] | None = None
) -> WeightFit:
    """Climb in the weights of some contexts (K,), all unless given, until the gap of each is below ``tolerance`` nats.

    The gap is how much its log-likelihood can still gain, at most. Weights at 0 stay there.
    """
    columns = np.ascontiguousarray(start.columns)

    def evaluate(q: Array, asked: NDArray[np.bool_]) -> tuple[Array, Array]:
        return rows.total(RowTable.weight_gradients, Mixture(columns, np.ascontiguousarray(q)), asked)

    q = start.q.copy()
    asked = np.ones(len(q), bool) if contexts is None else contexts
    loglik, gq = evaluate(q, asked)
    gap = _gaps(q, gq)
    idle = np.zeros(len(q), np.int64)
    open_ = asked.copy()  # contexts that have not come to their end
    for _ in range(steps // _PASSES):
        open_ &= (gap > tolerance) & (idle <= IDLE)
        if not open_.any():
            break
        one = normalised(q * gq, 1, q)
        loglik_1, gq_1 = evaluate(one, open_)
        two = normalised(one * gq_1, 1, one)
        after = _jumped(q, one, two)
        loglik_after, gq_after = evaluate(after, open_)
        low = open_ & (loglik_after < loglik_1)
        if low.any():  # the jump is lower than the first step: the second, or the first if that is no better
            loglik_2, gq_2 = evaluate(two, low)
            better = low & (loglik_2 >= loglik_1)
            for chosen, (at, value, slope) in ((low, (one, loglik_1, gq_1)), (better, (two, loglik_2, gq_2))):
                after[chosen] = at[chosen]
                loglik_after[chosen] = value[chosen]
                gq_after[chosen] = slope[chosen]
        gap_after = _gaps(after, gq_after)
        idle += open_ & (loglik_after <= loglik) & (gap_after >= gap)
        q[open_] = after[open_]
        gq[open_] = gq_after[open_]
        loglik[open_] = loglik_after[open_]
        gap[open_] = gap_after[open_]
    return WeightFit(q, loglik)


def _gaps(q: Array, gq: Array) -> Array:
    """(K,): the largest derivative less the mean one, the Frank–Wolfe gap of each context."""
    return gq.max(axis=1) - (q * gq).sum(axis=1)


def _jumped(zero: Array, one: Array, two: Array) -> Array:
    """Along two EM steps x₀ → x₁ → x₂: x₀ + 2α(x₁ − x₀) + α²(x₂ − 2x₁ + x₀), with an α ≥ 1 for each context (K, s)."""
    first = one - zero
    second = two - 2 * one + zero
    along = np.sqrt((first**2).sum(axis=1, keepdims=True))
    length = np.sqrt((second**2).sum(axis=1, keepdims=True))
    alpha = np.maximum(np.divide(along, length, out=np.ones_like(length), where=length > 0), 1.0)
    return normalised(np.maximum(zero + 2 * alpha * first + alpha**2 * second, LEAST_LEFT * two), 1, two)
