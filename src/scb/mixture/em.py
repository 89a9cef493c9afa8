"""Maximum likelihood for a mixture on given slots: accelerated EM steps, then Newton steps, with a
monotone likelihood and a certificate.

The log-likelihood Σ_i log Σ_j q_j^(k) P[o_i, x_j] assumes nothing about the contexts, so it holds
for sequences too. It is concave in P with q fixed, and in q with P fixed. EM steps with squared
extrapolation (SQUAREM, Varadhan and Roland 2008) come first. EM is slow where entries of P tend to
0, so Newton steps follow (``newton``).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scb.arrays import Array, Flags
from scb.kernels.em import em_update, squared_jump
from scb.mixture.data import Rows
from scb.mixture.model import Mixture
from scb.mixture.newton import Point, newton_step, newton_step_by_products, revived
from scb.mixture.tuning import TUNING, Tuning


class Fit(NamedTuple):
    """The point where the climb ended."""

    mixture: Mixture
    # The certificate, in nats: how much the log-likelihood can still gain in P with q fixed, plus
    # in q with P fixed, at most (each is a concave problem). It is 0 exactly where the first-order
    # conditions hold
    gap: float
    # Log-likelihood at every accepted point; it never decreases
    path: list[float]

    @property
    def loglik(self) -> float:
        """The log-likelihood at the end."""
        return self.path[-1]


def last_gap(P: Array) -> float:
    """The gap, in nats, at which a last fit of the matrices P has converged."""
    return max(TUNING.last_gap, TUNING.last_gap_per_entry * P.size)


def maximise(
    rows: Rows,
    start: Mixture,
    *,
    tolerance: float = 0.02,
    steps: int = 2000,
    enough: float = np.inf,
    stall: float = 0.0,
    held: Flags | None = None,
    near: bool = False,
    hopeless: Callable[[Fit], bool] | None = None,
    tuning: Tuning = TUNING,
) -> Fit:
    """Increase the likelihood until the gap is at most ``tolerance``.

    The likelihood never decreases, except by rounding errors, and weights that are 0 stay 0.

    Parameters
    ----------
    rows, start : the data, and the point where the climb starts
    tolerance : the climb ends when the gap, in nats, is at most this value
    steps : the climb also ends after this number of steps
    enough : the climb also ends at this log-likelihood, or if it seems out of reach
    stall : the climb also ends when a few steps together gain less than this
    held : (N, C), entries of P that stay 0
    near : whether the start is known to be close to the maximum, which is also assumed if the gap
        is small
    hopeless : asked every ``tuning.em_steps`` steps: whether the climb should end there
    tuning : how EM and Newton steps follow each other
    """
    climb = _Climb(rows, start, held, near, tuning)
    asked = 0
    if not np.isfinite(climb.point.loglik):
        # A label of the data is impossible, so there are no derivatives to climb by.
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
        if hopeless is not None and climb.taken >= asked + tuning.em_steps:
            if hopeless(climb.fit):
                break
            asked = climb.taken
    return climb.fit


class _Climb:
    """The state of a climb, and which kind of step it takes next; each kind costs more than the one
    before it.

    EM steps come first, except where Newton steps are cheap and the maximum is near.
    """

    def __init__(
        self,
        rows: Rows,
        start: Mixture,
        held: Flags | None,
        near: bool,
        tuning: Tuning,
    ) -> None:
        self.rows = rows
        self.tuning = tuning
        self.held = np.zeros(start.P.shape, bool) if held is None else held
        self.point = Point.from_rows(rows, start)
        self.gap = self.point.gap(self.held)
        self.path = [self.point.loglik]
        self.taken = 0  # steps
        # Whether Newton steps are taken with matrices
        self.dense = start.P.size * (start.P.shape[1] + start.q.size) ** 2 <= tuning.dense
        em_steps = tuning.em_steps_with_gauge if len(start.owners or ()) > 1 else tuning.em_steps
        near = near or self.gap <= tuning.near
        # In several places a Newton step takes no more round trips than an EM step.
        if not near and not rows.divided:
            em_steps = max(em_steps, min(tuning.em_steps_by_N * start.N**2, tuning.most_em_steps))
        # The number of steps after which Newton steps are tried
        self.newton_from = 0 if near and self.dense else em_steps
        # EM steps after a failed Newton step, in units of 3
        self.pause = 1
        self.caution = 0  # of Newton steps with matrices
        # The number of exact Newton steps without matrices; None before they begin
        self.exact: int | None = None
        self.idle = 0  # steps without gain
        self.exhausted = False  # whether no kind of step gains anything

    @property
    def fit(self) -> Fit:
        """Where the climb is."""
        return Fit(self.point.at, self.gap, self.path)

    def gained(self, steps: int) -> float:
        """What the last steps gained together; infinite before so many were taken."""
        return self.path[-1] - self.path[-1 - steps] if len(self.path) > steps else np.inf

    def step(self) -> None:
        """Take one step. Near the top, where only rounding is left, change to a costlier kind."""
        after = self._newton_step() if self.taken >= self.newton_from else None
        if after is None:
            after = self._em_step()
        gap = after.gap(self.held)
        if after.loglik <= self.point.loglik and gap >= self.gap:
            self._note_idle()
        if self.exhausted:
            return
        self.point = after
        self.gap = gap
        self.taken += 1
        self.path.append(max(after.loglik, self.path[-1]))

    def _newton_step(self) -> Point | None:
        if self.dense:
            after, self.caution = newton_step(self.rows, self.point, self.held, self.caution)
            return after
        if self.exact is not None:
            self.exact += 1
            self.exhausted = self.exact > self.tuning.exact_steps
        return newton_step_by_products(self.rows, self.point, self.held, self.exact is not None)

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
        """Count steps without gain; after several of them, take the next costlier kind."""
        self.idle += 1
        if self.idle <= self.tuning.idle:
            return
        self.idle = 0
        if self.taken < self.newton_from:
            self.newton_from = self.taken
        elif not self.dense and self.exact is None:
            self.exact = 0
        else:
            self.exhausted = True


# ------------------------------------------------------- EM steps with squared extrapolation


def climb_by_em(
    rows: Rows,
    start: Mixture,
    steps: int,
    *,
    constrain: Callable[[Mixture], Mixture] = lambda at: at,
    least_gain: float = 0.0,
) -> Point:
    """Take extrapolated EM steps, until one gains less than ``least_gain`` nats.

    ``constrain`` restores what a step must not change.
    """
    point = Point.from_rows(rows, start)
    for _ in range(steps):
        before = point.loglik
        point = squared_em_step(rows, point, constrain)
        if point.loglik - before < least_gain:
            break
    return point


def squared_em_step(
    rows: Rows, point: Point, constrain: Callable[[Mixture], Mixture] = lambda at: at
) -> Point:
    """Two EM steps and a jump along them, or the better of the two steps if the jump leads below
    the first.

    For steps x₀ → x₁ → x₂ the jump goes to x₀ + 2α(x₁ − x₀) + α²(x₂ − 2x₁ + x₀) with α = ‖x₁ −
    x₀‖/‖x₂ − 2x₁ + x₀‖ ≥ 1, and keeps at least a part of x₂.
    """
    one = Point.from_rows(rows, constrain(em_step(point)))
    two = constrain(em_step(one))
    P = np.empty(two.P.shape)
    q = np.empty(two.q.shape)
    steps = (x for at in (point.at, one.at, two) for x in (at.P, at.q))
    squared_jump(*map(np.ascontiguousarray, steps), TUNING.least_kept, P, q)
    ahead = replace(two, P=P, q=q)
    jump = Point.from_rows(rows, constrain(ahead))
    if jump.loglik >= one.loglik:
        return jump
    return max(Point.from_rows(rows, two), one, key=lambda place: place.loglik)


def em_step(point: Point) -> Mixture:
    """One EM step: normalised expected counts. Columns that are never used stay unchanged."""
    at = point.at
    P = np.empty(at.P.shape)
    q = np.empty(at.q.shape)
    em_update(*map(np.ascontiguousarray, (at.P, at.q)), point.gP, point.gq, P, q)
    return replace(at, P=P, q=q)
