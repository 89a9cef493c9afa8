"""Maximum likelihood for a mixture on given slots: EM, accelerated, then Newton; monotone, with a certificate.

The log-likelihood Σ_i log Σ_j q_j^(k) P[o_i, x_j] asks nothing of the contexts, so it holds for sequences too. It is concave in
P with q fixed, and in q with P fixed. EM steps with squared extrapolation (SQUAREM, Varadhan and Roland 2008) come first. They
are slow where entries of P go to 0, so Newton steps follow (``newton``).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.mixture.data import Rows
from scb.mixture.law import Mixture, normalised
from scb.mixture.newton import Point, newton_step, newton_step_by_products, revived
from scb.mixture.weights import IDLE, LEAST_LEFT

INFORMATION_BYTES = 1 << 30  # memory that second derivatives may take
_EM_STEPS = 36  # before Newton's first, at least
_EM_STEPS_WITH_GAUGE = 60  # where there are several matrices, among which the likelihood is nearly flat, and Newton errs longer
_EM_STEPS_BY_N = 0.24  # times N², where that is more: only Newton's steps get dearer with N
_NEAR = 1.0  # nats: where the gap is smaller, the start is close to the maximum, and Newton's steps are taken from the first on
_EXACT_STEPS = 25  # Newton's exact steps without matrices, at most
_STALL_STEPS = 10
_HOPE_STEPS = 5
_HOPE = 0.05
_DENSE = 1e7  # multiplications up to which a Newton step is taken with matrices


class Fit(NamedTuple):
    """Where the climb ended."""

    mixture: Mixture
    # the certificate, in nats: how much the log-likelihood can still gain in P with q fixed, plus in q with P fixed, at most
    # (each is a concave problem). It is 0 exactly where the first-order conditions hold
    gap: float
    path: list[float]  # log-likelihood at every accepted point; it never decreases

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
    enough: float = np.inf,  # a log-likelihood that ends it too; so do five steps that gain a twentieth of what is missing, or less
    stall: float = 0.0,  # ten steps that gain less than this together end it too
    held: NDArray[np.bool_] | None = None,  # (N, C), entries of P that stay 0
    near: bool = False,  # whether the start is known to be close to the maximum; it is, too, where the gap is small
) -> Fit:
    """Climb until the gap is below ``tolerance``. The likelihood falls by rounding at most, and weights at 0 stay there."""
    start = replace(start, columns=np.ascontiguousarray(start.columns), q=np.ascontiguousarray(start.q))
    held = np.zeros(start.P.shape, bool) if held is None else held
    point = Point.of(rows, start)
    path = [point.loglik]
    if not np.isfinite(point.loglik):  # a label of the data is impossible, which has no derivatives to climb by
        return Fit(start, np.inf, path)
    taken = 0
    idle = 0
    small = start.P.size * (start.P.shape[1] + start.q.size) ** 2 <= _DENSE
    newton_from = _em_steps_first(start, small, near or point.gap(held) <= _NEAR)
    caution = 0  # of Newton's steps with matrices
    exact = False  # whether those without are to be exact
    exact_steps = 0
    pause = 1  # after Newton failed, three times so many EM steps go by before it is tried again
    while (gap := point.gap(held)) > tolerance and taken < steps and point.loglik < enough:
        if len(path) > _STALL_STEPS and path[-1] - path[-1 - _STALL_STEPS] < stall:
            break
        if len(path) > _HOPE_STEPS and path[-1] - path[-1 - _HOPE_STEPS] < _HOPE * (enough - path[-1]) < np.inf:
            break
        after = None
        if newton and taken >= newton_from:
            if small:
                after, caution = newton_step(rows, point, held, caution)
            else:
                after = newton_step_by_products(rows, point, held, exact)
                if exact:
                    exact_steps += 1
        if exact_steps > _EXACT_STEPS:
            break
        if after is None:
            if taken >= newton_from:
                newton_from = taken + 3 * pause
                pause = 2 * pause
            after = _squared(rows, revived(rows, point, held))
            if after.loglik < point.loglik:  # what was brought back cost likelihood
                after = _squared(rows, point)
            taken += 2
        if after.loglik <= point.loglik and after.gap(held) >= gap:
            idle += 1  # near the top, where only rounding is left: what comes next is dearer
            if idle > IDLE:
                if newton and taken < newton_from:
                    newton_from = taken
                elif newton and not small and not exact:
                    exact = True
                else:
                    break
                idle = 0
        point = after
        taken += 1
        path.append(max(point.loglik, path[-1]))
    return Fit(point.at, gap, path)


def _em_steps_first(start: Mixture, small: bool, near: bool) -> float:
    """How many EM steps come before Newton's first; none where that is taken with matrices, from close by."""
    if near and small:
        return 0
    least = _EM_STEPS_WITH_GAUGE if len(start.owners or ()) > 1 else _EM_STEPS
    return least if near else max(least, _EM_STEPS_BY_N * start.N**2)


def information_bytes(P: Array, q: Array) -> int:
    """Memory of the blocks of second derivatives, for P (N, C) and q (K, s)."""
    return 8 * P.size * (P.shape[1] + q.size)


def _em(point: Point) -> Mixture:
    """One EM step: expected counts, normalised; columns that are never used stay as they are."""
    at = point.at
    P = normalised(at.P * point.gP, 0, at.P)
    return at.moved(P, normalised(at.q * point.gq, 1, at.q))


def _squared(rows: Rows, point: Point) -> Point:
    """Two EM steps x₀ → x₁ → x₂ and a jump along them, if that is no lower than the first of them; else the two steps.

    The jump is to x₀ + 2α(x₁ − x₀) + α²(x₂ − 2x₁ + x₀), α = ‖x₁ − x₀‖/‖x₂ − 2x₁ + x₀‖ ≥ 1, made positive and normalised again.
    """
    one = Point.of(rows, _em(point))
    two = _em(one)
    points = [(point.at.columns, one.at.columns, two.columns), (point.at.q, one.at.q, two.q)]
    first = [b - a for a, b, _ in points]
    second = [c - 2 * b + a for a, b, c in points]
    along, length = (np.sqrt(sum(float((x**2).sum()) for x in step)) for step in (first, second))
    alpha = max(1.0, along / length) if length > 0 else 1.0
    columns, q = (
        np.maximum(a + 2 * alpha * x + alpha**2 * y, LEAST_LEFT * c) for (a, _, c), x, y in zip(points, first, second, strict=True)
    )
    columns = normalised(columns, 0, two.columns)
    columns[:, -1] = two.background
    jump = Point.of(rows, replace(two, columns=columns, q=normalised(q, 1, two.q)))
    if jump.loglik >= one.loglik:
        return jump
    after = Point.of(rows, two)
    return after if after.loglik >= one.loglik else one
