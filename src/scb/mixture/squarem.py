"""EM steps with squared extrapolation (SQUAREM, Varadhan and Roland 2008)."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from scb.mixture.data import Rows
from scb.mixture.model import Mixture, normalised
from scb.mixture.newton import Point
from scb.mixture.tuning import TUNING


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
    """Two EM steps and a jump along them; the better of the two steps if the jump is lower than the
    first.

    For steps x₀ → x₁ → x₂ the jump goes to x₀ + 2α(x₁ − x₀) + α²(x₂ − 2x₁ + x₀) with α = ‖x₁ −
    x₀‖/‖x₂ − 2x₁ + x₀‖ ≥ 1, and leaves a part of x₂ at least.
    """
    one = Point.from_rows(rows, constrain(em_step(point)))
    two = constrain(em_step(one))
    paths = [(point.at.P, one.at.P, two.P), (point.at.q, one.at.q, two.q)]
    first = [x1 - x0 for x0, x1, _ in paths]
    second = [x2 - 2 * x1 + x0 for x0, x1, x2 in paths]
    length, turn = (np.sqrt(sum((x**2).sum() for x in steps)) for steps in (first, second))
    alpha = max(1.0, length / turn) if turn > 0 else 1.0
    P, q = (
        np.maximum(x0 + 2 * alpha * a + alpha**2 * b, TUNING.least_kept * x2)
        for (x0, _, x2), a, b in zip(paths, first, second, strict=True)
    )
    ahead = replace(two, P=normalised(P, 0, two.P), q=normalised(q, 1, two.q))
    jump = Point.from_rows(rows, constrain(ahead))
    if jump.loglik >= one.loglik:
        return jump
    return max(Point.from_rows(rows, two), one, key=lambda place: place.loglik)


def em_step(point: Point) -> Mixture:
    """One EM step: expected counts, normalised; columns that are never used stay as they are."""
    at = point.at
    P = normalised(at.P * point.gP, 0, at.P)
    return replace(at, P=P, q=normalised(at.q * point.gq, 1, at.q))
