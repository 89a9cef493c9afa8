"""Maximum likelihood for the weights q with P fixed: a concave problem, in which states do not
affect each other.

All states climb in parallel, each until it has its own certificate; one pass over the rows serves
one step of all states. A step goes to the maximum of the quadratic model, by non-negative least
squares (Kim, Carbonetto, Stephens and Anitescu 2020), or is an EM step if the quadratic step does
not climb.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scb.arrays import Array, Flags
from scb.mixture.data import Rows
from scb.mixture.model import Mixture, normalised
from scb.mixture.rows import RowTable
from scb.mixture.tuning import TUNING


class WeightFit(NamedTuple):
    """The point where the climb ended."""

    q: Array  # (K, s)
    # (K,), the log-likelihood of each state's samples; 0 for a state that was not asked for
    logliks: Array


def fit_weights(
    rows: Rows,
    start: Mixture,
    *,
    tolerance: float = 0.02,
    steps: int = 600,
    asked: Flags | None = None,
) -> WeightFit:
    """Climb in the weights of some states (K,), by default of all states, until the gap of each
    state is below ``tolerance`` nats.

    The gap is the most that the log-likelihood of a state can still gain. Weights at 0 stay at 0.
    """
    asked = np.ones(len(start.q), bool) if asked is None else asked
    climb = _Climb(rows, start, asked)
    for _ in range(steps):
        open_ = asked & (climb.gap > tolerance) & (climb.idle <= TUNING.idle)
        if not open_.any():
            break
        climb.step(open_)
    return WeightFit(climb.q, climb.loglik)


class _Climb:
    """The point that each state has reached: its weights, the log-likelihood and derivatives there,
    and its gap.
    """

    def __init__(self, rows: Rows, start: Mixture, asked: Flags) -> None:
        self.rows = rows
        self.start = start
        self.used = start.q > 0  # weights at 0 stay there
        self.q = start.q.copy()
        self.loglik, self.gq, self.qq = self.evaluate(self.q, asked)
        self.gap = _gaps(self.q, self.gq)
        self.idle = np.zeros(len(self.q), np.int64)

    def evaluate(self, q: Array, asked: Flags) -> tuple[Array, Array, Array]:
        """Log-likelihoods (K,), derivatives (K, s), and minus the second ones (K, s, s)."""
        at = replace(self.start, q=q)
        loglik, gq, qq = self.rows.total(RowTable.weight_curvature, at, asked)
        return loglik, np.where(self.used, gq, 0.0), qq

    def move(self, chosen: Flags, q: Array, at: tuple[Array, Array, Array]) -> None:
        """Move some states to other weights, with what was evaluated there."""
        loglik, gq, _ = at
        gap = _gaps(q, gq)
        self.idle += chosen & (loglik <= self.loglik) & (gap >= self.gap)
        mine = self.q, self.gap, self.loglik, self.gq, self.qq
        for old, new in zip(mine, (q, gap, *at), strict=True):
            old[chosen] = new[chosen]

    def step(self, open_: Flags) -> None:
        """Go towards the maximum of each quadratic model, as far as the likelihood rises."""
        ahead = self.q.copy()
        for k in np.flatnonzero(open_).tolist():
            ahead[k, self.used[k]] = self.best_of_the_model(k)
        pending = open_.copy()
        size = 1.0
        while pending.any() and size > TUNING.shortest:
            moved = np.maximum(self.q + size * (ahead - self.q), TUNING.least_weight)
            trial = np.where(self.used, moved, 0.0)
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

        used = self.used[k]
        H = self.qq[k][np.ix_(used, used)]
        # A label is impossible, or a slot says nothing: EM goes on.
        if not np.isfinite(H).all() or (np.diag(H) <= 0).any():
            return self.q[k, used]
        scale = 1 / np.sqrt(np.diag(H))
        slope = scale * (2 * self.gq[k, used] - (self.q[k] * self.gq[k]).sum())
        scaled = H * scale * scale[:, None] + TUNING.weight_ridge * np.eye(len(H))
        factor = np.linalg.cholesky(scaled)
        return scale * nnls(factor.T, np.linalg.solve(factor, slope))[0]


def _gaps(q: Array, gq: Array) -> Array:
    """(K,): the largest derivative less the mean one, the Frank–Wolfe gap of each state."""
    return gq.max(axis=1) - (q * gq).sum(axis=1)
