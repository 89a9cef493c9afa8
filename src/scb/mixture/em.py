"""Maximum likelihood for a mixture on given slots: EM, accelerated, then Newton; monotone, with a
certificate.

The log-likelihood Σ_i log Σ_j q_j^(k) P[o_i, x_j] asks nothing of the contexts, so it holds for
sequences too. It is concave in P with q fixed, and in q with P fixed. EM steps with squared
extrapolation (``squarem``) come first. They are slow where entries of P go to 0, so Newton steps
follow (``newton``).
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.mixture.data import Rows
from scb.mixture.model import Mixture
from scb.mixture.newton import Point, newton_step, newton_step_by_products, revived
from scb.mixture.squarem import squared_em_step
from scb.mixture.tuning import TUNING, Tuning


class Fit(NamedTuple):
    """Where the climb ended."""

    mixture: Mixture
    # the certificate, in nats: how much the log-likelihood can still gain in P with q fixed, plus
    # in q with P fixed, at most (each is a concave problem). It is 0 exactly where the first-order
    # conditions hold
    gap: float
    # Log-likelihood at every accepted point; it never decreases
    path: list[float]

    @property
    def loglik(self) -> float:
        """Log-likelihood at the end."""
        return self.path[-1]


def maximise(
    rows: Rows,
    start: Mixture,
    *,
    tolerance: float = 0.02,
    steps: int = 2000,
    newton: bool = True,
    enough: float = np.inf,
    stall: float = 0.0,
    held: NDArray[np.bool_] | None = None,
    near: bool = False,
    tuning: Tuning = TUNING,
) -> Fit:
    """Climb until the gap is below ``tolerance``. The likelihood falls by rounding at most, and
    weights at 0 stay there.

    Parameters
    ----------
    rows, start : the data, and where the climb starts
    tolerance : the gap in nats that ends the climb
    steps : the number of steps that ends it too
    newton : whether Newton steps may follow the EM steps
    enough : a log-likelihood that ends it too, as does the prospect of not reaching it
    stall : a few steps that gain less than this together end it too
    held : (N, C), entries of P that stay 0
    near : whether the start is known to be close to the maximum; it is, too, where the gap is small
    tuning : how EM and Newton steps follow each other
    """
    start = replace(
        start, columns=np.ascontiguousarray(start.columns), q=np.ascontiguousarray(start.q)
    )
    climb = _Climb.begin(rows, start, held, newton, near, tuning)
    if not np.isfinite(climb.point.loglik):
        # A label of the data is impossible, which has no derivatives to climb by.
        return Fit(start, np.inf, climb.path)
    while not (
        climb.gap <= tolerance
        or climb.taken >= steps
        or climb.point.loglik >= enough
        or climb.gained(tuning.stall_steps) < stall
        or climb.gained(tuning.prospect_steps)
        < tuning.prospect * (enough - climb.path[-1])
        < np.inf
        or climb.exhausted
    ):
        climb.step()
    return Fit(climb.point.at, climb.gap, climb.path)


@dataclass
class _Climb:
    """Where a climb stands, and which kind of step it takes next: each kind is dearer than the one
    before it.
    """

    rows: Rows
    point: Point
    held: NDArray[np.bool_]
    tuning: Tuning
    dense: bool  # whether Newton steps are taken with matrices
    newton_from: float  # the number of steps after which Newton steps are tried
    path: list[float]
    gap: float
    taken: int = 0
    idle: int = 0  # steps without gain
    caution: int = 0  # of Newton steps with matrices
    exact: bool = False  # whether those without matrices are exact
    exact_steps: int = 0
    # After a Newton step failed, three times so many EM steps come before the next one
    pause: int = 1
    exhausted: bool = False  # whether no kind of step gains anything

    @classmethod
    def begin(
        cls,
        rows: Rows,
        start: Mixture,
        held: NDArray[np.bool_] | None,
        newton: bool,
        near: bool,
        tuning: Tuning,
    ) -> "_Climb":
        """At the start, with EM steps first, except where Newton steps are cheap and the maximum is
        near.
        """
        point = Point.of(rows, start)
        held = np.zeros(start.P.shape, bool) if held is None else held
        gap = point.gap(held)
        near = near or gap <= tuning.near
        dense = start.P.size * (start.P.shape[1] + start.q.size) ** 2 <= tuning.dense
        em_steps = tuning.em_steps_with_gauge if len(start.owners or ()) > 1 else tuning.em_steps
        if not near:
            em_steps = max(em_steps, tuning.em_steps_by_N * start.N**2)
        newton_from = np.inf if not newton else 0 if near and dense else em_steps
        return cls(rows, point, held, tuning, dense, newton_from, [point.loglik], gap)

    def gained(self, steps: int) -> float:
        """What the last steps gained together; infinite before so many were taken."""
        return self.path[-1] - self.path[-1 - steps] if len(self.path) > steps else np.inf

    def step(self) -> None:
        """Take one step; near the top, where only rounding is left, change to a dearer kind of
        step.
        """
        after = self._newton_step() if self.taken >= self.newton_from else None
        if after is None:
            after = self._em_step()
        if after.loglik <= self.point.loglik and after.gap(self.held) >= self.gap:
            self._note_idle()
        if self.exhausted:
            return
        self.point = after
        self.gap = after.gap(self.held)
        self.taken += 1
        self.path.append(max(after.loglik, self.path[-1]))

    def _newton_step(self) -> Point | None:
        if self.dense:
            after, self.caution = newton_step(self.rows, self.point, self.held, self.caution)
            return after
        self.exact_steps += self.exact
        self.exhausted = self.exact_steps > self.tuning.exact_steps
        return newton_step_by_products(self.rows, self.point, self.held, self.exact)

    def _em_step(self) -> Point:
        """Two EM steps and a jump, from a point in which no entry is lost for good, unless that
        costs likelihood.
        """
        if self.taken >= self.newton_from:
            self.newton_from = self.taken + 3 * self.pause
            self.pause *= 2
        after = squared_em_step(self.rows, revived(self.rows, self.point, self.held))
        if after.loglik < self.point.loglik:
            after = squared_em_step(self.rows, self.point)
        self.taken += 2
        return after

    def _note_idle(self) -> None:
        """Count steps without gain; after several of them, take the next dearer kind."""
        self.idle += 1
        if self.idle <= self.tuning.idle:
            return
        self.idle = 0
        if self.taken < self.newton_from < np.inf:
            self.newton_from = self.taken
        elif self.newton_from < np.inf and not self.dense and not self.exact:
            self.exact = True
        else:
            self.exhausted = True


def information_bytes(P: Array, q: Array) -> int:
    """Memory of the blocks of second derivatives, for P (N, C) and q (K, s)."""
    return 8 * P.size * (P.shape[1] + q.size)
