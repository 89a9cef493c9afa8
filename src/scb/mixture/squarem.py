"""EM steps with squared extrapolation (SQUAREM, Varadhan and Roland 2008)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from scb.arrays import Array
from scb.mixture.data import Rows
from scb.mixture.model import Mixture, normalised
from scb.mixture.newton import Point
from scb.mixture.tuning import TUNING


def extrapolated(
    paths: Sequence[tuple[Array, Array, Array]], axis: int | None = None
) -> list[Array]:
    """Jump along two EM steps x₀ → x₁ → x₂ of one or several arrays.

    The jump goes to x₀ + 2α(x₁ − x₀) + α²(x₂ − 2x₁ + x₀) with α = ‖x₁ − x₀‖/‖x₂ − 2x₁ + x₀‖ ≥ 1,
    and leaves a part of x₂ at least. The norms are over all arrays together, or along an axis.
    """
    first = [one - zero for zero, one, _ in paths]
    second = [two - 2 * one + zero for zero, one, two in paths]
    along, length = (
        np.sqrt(sum((x**2).sum(axis=axis, keepdims=axis is not None) for x in steps))
        for steps in (first, second)
    )
    alpha = np.maximum(np.divide(along, length, out=np.ones_like(length), where=length > 0), 1.0)
    return [
        np.maximum(zero + 2 * alpha * x + alpha**2 * y, TUNING.least_kept * two)
        for (zero, _, two), x, y in zip(paths, first, second, strict=True)
    ]


def em_step(point: Point) -> Mixture:
    """One EM step: expected counts, normalised; columns that are never used stay as they are."""
    at = point.at
    P = normalised(at.P * point.gP, 0, at.P)
    return at.moved(P, normalised(at.q * point.gq, 1, at.q))


def squared_em_step(
    rows: Rows, point: Point, kept: Callable[[Mixture], Mixture] = lambda at: at
) -> Point:
    """Two EM steps and a jump along them, unless that is lower than the first step: then the better
    of the two steps.

    ``kept`` restores what a step must not change.
    """
    one = Point.of(rows, kept(em_step(point)))
    two = kept(em_step(one))
    columns, q = extrapolated(
        [(point.at.columns, one.at.columns, two.columns), (point.at.q, one.at.q, two.q)]
    )
    columns = normalised(columns, 0, two.columns)
    columns[:, -1] = two.background
    jump = Point.of(rows, kept(replace(two, columns=columns, q=normalised(q, 1, two.q))))
    if jump.loglik >= one.loglik:
        return jump
    after = Point.of(rows, two)
    return after if after.loglik >= one.loglik else one
