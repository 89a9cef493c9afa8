"""Maximum likelihood for the weights q with P fixed: a concave problem, in which contexts do not
touch each other.

All contexts are climbed side by side, each until it has its own certificate; one pass over the rows
serves a step of them all. Where there are few slots, a step goes to the maximum of the quadratic
model, by non-negative least squares (Kim, Carbonetto, Stephens and Anitescu 2020); where there are
many, it is an EM step with squared extrapolation (as in ``em``).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.mixture.data import Rows
from scb.mixture.model import Mixture, normalised
from scb.mixture.rows import RowTable
from scb.mixture.squarem import extrapolated
from scb.mixture.tuning import TUNING

_PASSES = 3  # over the rows in a step, at most

Flags = NDArray[np.bool_]


class WeightFit(NamedTuple):
    """Where the climb ended."""

    q: Array  # (K, s)
    # (K,), the log-likelihood of each context's samples; 0 for a context that was not asked for
    logliks: Array


def fit_weights(
    rows: Rows,
    start: Mixture,
    *,
    tolerance: float = 0.02,
    steps: int = 2000,
    contexts: Flags | None = None,
) -> WeightFit:
    """Climb in the weights of some contexts (K,), all unless given, until the gap of each is below
    ``tolerance`` nats.

    The gap is how much its log-likelihood can still gain, at most. Weights at 0 stay there.
    """
    climb = _Climb(rows, start, np.ones(len(start.q), bool) if contexts is None else contexts)
    step = climb.newton_step if start.q.shape[1] <= TUNING.few_slots else climb.squared_step
    for _ in range(steps // _PASSES):
        open_ = climb.asked & (climb.gap > tolerance) & (climb.idle <= TUNING.idle)
        if not open_.any():
            break
        step(open_)
    return WeightFit(climb.q, climb.loglik)


class _Climb:
    """Where each context stands: its weights, its log-likelihood and derivatives there, and its
    gap.
    """

    def __init__(self, rows: Rows, start: Mixture, asked: Flags) -> None:
        self.rows = rows
        self.columns = np.ascontiguousarray(start.columns)
        self.asked = asked
        self.used = start.q > 0  # weights at 0 stay there
        self.q = start.q.copy()
        self.loglik, self.gq, self.qq = self.evaluate(self.q, asked)
        self.gap = _gaps(self.q, self.gq)
        self.idle = np.zeros(len(self.q), np.int64)

    def evaluate(self, q: Array, asked: Flags) -> tuple[Array, Array, Array | None]:
        """Log-likelihoods (K,) and derivatives (K, s); minus the second ones (K, s, s) where there
        are few slots.
        """
        at = Mixture(self.columns, np.ascontiguousarray(q))
        if q.shape[1] > TUNING.few_slots:
            return *self.rows.total(RowTable.weight_gradients, at, asked), None
        loglik, gq, qq = self.rows.total(RowTable.weight_curvature, at, asked)
        return loglik, np.where(self.used, gq, 0.0), qq

    def move(self, chosen: Flags, q: Array, at: tuple[Array, Array, Array | None]) -> None:
        """Contexts go to another place, with what was evaluated there."""
        loglik, gq, qq = at
        gap = _gaps(q, gq)
        self.idle += chosen & (loglik <= self.loglik) & (gap >= self.gap)
        self.q[chosen] = q[chosen]
        self.loglik[chosen] = loglik[chosen]
        self.gq[chosen] = gq[chosen]
        self.gap[chosen] = gap[chosen]
        if self.qq is not None and qq is not None:
            self.qq[chosen] = qq[chosen]

    def newton_step(self, open_: Flags) -> None:
        """Towards the maximum of each quadratic model, as far as the likelihood rises."""
        ahead = self.q.copy()
        for k in np.flatnonzero(open_).tolist():
            ahead[k, self.used[k]] = self.best_of_the_model(k)
        pending = open_.copy()
        size = 1.0
        while pending.any() and size > TUNING.shortest:
            trial = np.where(
                self.used, np.maximum(self.q + size * (ahead - self.q), TUNING.least_weight), 0.0
            )
            trial /= trial.sum(axis=1, keepdims=True)
            at = self.evaluate(trial, pending)
            risen = pending & (at[0] > self.loglik)
            self.move(risen, trial, at)
            pending &= ~risen
            size /= 4
        if pending.any():
            after = normalised(self.q * self.gq, 1, self.q)
            self.move(pending, after, self.evaluate(after, pending))

    def best_of_the_model(self, k: int) -> Array:
        """The weights y ≥ 0 of the slots in use that maximise the model of log-likelihood − n·Σy
        about q; at its top Σy = 1.

        With H minus the second derivatives and g the first, H·q = g, and the model is (2g − n)ᵀy −
        yᵀHy/2: a least-squares problem with the Cholesky factor of H, in coordinates that make its
        diagonal 1.
        """
        from scipy.optimize import nnls

        assert self.qq is not None
        used = self.used[k]
        H = self.qq[k][np.ix_(used, used)]
        # a label is impossible, or a slot says nothing: EM goes on
        if not np.isfinite(H).all() or (np.diag(H) <= 0).any():
            return self.q[k, used]
        scale = 1 / np.sqrt(np.diag(H))
        slope = scale * (2 * self.gq[k, used] - (self.q[k] * self.gq[k]).sum())
        factor = np.linalg.cholesky(
            H * scale * scale[:, None] + TUNING.weight_ridge * np.eye(len(H))
        )
        return scale * nnls(factor.T, np.linalg.solve(factor, slope))[0]

    def squared_step(self, open_: Flags) -> None:
        """Two EM steps and a jump along them; less where the jump is lower than the first of them."""
        one = normalised(self.q * self.gq, 1, self.q)
        at_one = self.evaluate(one, open_)
        two = normalised(one * at_one[1], 1, one)
        [jump] = extrapolated([(self.q, one, two)], axis=1)
        after = normalised(jump, 1, two)
        at_after = self.evaluate(after, open_)
        low = open_ & (at_after[0] < at_one[0])
        self.move(open_ & ~low, after, at_after)
        if low.any():  # the second step, or the first if that is no better
            at_two = self.evaluate(two, low)
            better = low & (at_two[0] >= at_one[0])
            self.move(better, two, at_two)
            self.move(low & ~better, one, at_one)


def _gaps(q: Array, gq: Array) -> Array:
    """(K,): the largest derivative less the mean one, the Frank–Wolfe gap of each context."""
    return gq.max(axis=1) - (q * gq).sum(axis=1)
