"""Newton steps for a mixture: with the matrix of second derivatives if it is small, otherwise by
conjugate gradients.

With the matrix, a step goes to the maximum of a quadratic model of the log-likelihood on the
simplices: entries that would become negative go to 0, and the others are solved for again. The
model uses the second derivatives if they make it concave. They may not, since P and q multiply each
other; in that case the model uses only the products of first derivatives, which always make it
concave, and a ridge if the step is too long. For conjugate gradients, the EM step serves as the
preconditioner (Jamshidian and Jennrich 1993).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from scb.arrays import AnyArray, Array, Flags
from scb.mixture.data import Rows
from scb.mixture.model import Mixture, normalised
from scb.mixture.rows import RowTable
from scb.mixture.tuning import TUNING
from scb.theory.fisher import Information

Step = tuple[Array, Array]  # in P (N, C) and in q (K, s)


class Point(NamedTuple):
    """Parameters, with the log-likelihood and its derivatives at them."""

    at: Mixture
    loglik: float
    gP: Array  # (N, C)
    gq: Array  # (K, s)

    @classmethod
    def from_rows(cls, rows: Rows, at: Mixture) -> "Point":
        """Evaluate in one pass over the rows."""
        return cls(at, *rows.total(RowTable.evaluate, at))

    @property
    def excess_P(self) -> Array:
        """(N, C): by how much a derivative exceeds its column's mean; positive where increasing the
        entry raises the likelihood.
        """
        return self.gP - (self.at.P * self.gP).sum(axis=0)

    def gap(self, held: Flags) -> float:
        """Σ over distributions of (largest derivative − mean derivative): the Frank–Wolfe gap of
        both concave problems.
        """
        in_q = (self.gq.max(axis=1) - (self.at.q * self.gq).sum(axis=1)).sum()
        in_P = np.where(held, 0.0, self.gP).max(axis=0) - (self.at.P * self.gP).sum(axis=0)
        return float(in_q + in_P.sum())


def revived(rows: Rows, point: Point, held: Flags) -> Point:
    """The point with a little mass on entries of P that are 0 but should not be, since EM alone
    cannot revive them.
    """
    at = point.at
    lost = (TUNING.zero >= at.P) & (point.excess_P > 0) & ~held
    if not lost.any():
        return point
    eagerness = point.excess_P / np.where(lost, point.gP, 1.0) / TUNING.eager
    P = np.where(lost, TUNING.revived * np.clip(eagerness, 1e-4, 1.0), at.P)
    return Point.from_rows(rows, replace(at, P=P / P.sum(axis=0)))


# -------------------------------------------------------------------------------- with the matrix


def newton_step(
    rows: Rows, point: Point, held: Flags, caution: int = 0
) -> tuple[Point | None, int]:
    """A Newton step with the matrix of second derivatives, or None if no step climbs; and the
    caution with which to take the next step.

    Caution numbers the models that are tried, from the second derivatives themselves to the one
    with the largest ridge. The next step begins with the model that climbed or, if that was the
    first model tried, with the one before it. Entries of P that are ``held`` stay 0.
    """
    at = point.at
    PP, Pq, qq, mixed = rows.total(RowTable.curvature, at)
    # Entries at 0 whose derivative does not exceed their column's mean are held there.
    free_P = ((TUNING.zero < at.P) | (point.excess_P > 0)) & (np.einsum("omm->om", PP) > 0) & ~held
    wants_to_grow = point.gq > (at.q * point.gq).sum(axis=1, keepdims=True)
    free_q = (at.q > 2 * TUNING.least_weight) | ((at.q > 0) & wants_to_grow)
    floors = np.zeros_like(at.P), np.where(at.q > 0, TUNING.least_weight, 0.0)
    for level in range(caution, len(TUNING.models)):
        is_exact, ridge = TUNING.models[level]
        H = Information(PP, Pq - mixed if is_exact else Pq, qq, free_P, free_q).ridged(ridge)
        step = _step_on_simplices(H, point)
        if step is None:
            continue
        slope = float((step[0] * point.gP).sum() + (step[1] * point.gq).sum())
        # A step that sends entries to 0 may lead downhill.
        if slope < -TUNING.rounding * abs(point.loglik):
            continue
        after = _shortened(rows, point, step, floors, TUNING.halvings[0], TUNING.promised * slope)
        if after is not None:
            return after, max(0, level - 1) if level == caution else level
    return None, 0


def _step_on_simplices(H: Information, point: Point) -> Step | None:
    """The step d, in P and in q, that maximises gᵀd − dᵀHd/2 with no entry negative at its end,
    nearly; None if H is singular.

    Entries that would become negative are sent to 0, what they had goes to the others of their
    distribution, and these are solved for again. Those that get there early in the step go first,
    since they may cause the later violations.
    """
    at = point.at
    free_P = H.free_P
    free_q = H.free_q
    in_P = np.zeros_like(at.P)
    in_q = np.zeros_like(at.q)
    for _ in range(TUNING.boundary_rounds):
        sent_P = normalised(np.where(free_P, at.P, 0.0), 0, at.P) - at.P
        left_q = np.where(free_q, at.q, np.minimum(at.q, TUNING.least_weight))
        sent_q = normalised(left_q, 1, at.q) - at.q
        H_P, H_q = H.times(sent_P, sent_q)
        further = replace(H, free_P=free_P, free_q=free_q).solve(point.gP - H_P, point.gq - H_q)
        if further is None or not np.isfinite(further[0]).all():
            return None
        in_P = sent_P + further[0]
        in_q = sent_q + further[1]
        for part in (TUNING.early, 1.0):
            stay_P = at.P + part * in_P >= 0
            stay_q = at.q + part * in_q >= 0
            if not (stay_P.all() and stay_q.all()):
                break
        else:
            break
        free_P = _not_all_gone(free_P, stay_P, at.P, axis=0)
        free_q = _not_all_gone(free_q, stay_q, at.q, axis=1)
    return in_P, in_q


def _not_all_gone(free: Flags, positive: Flags, values: Array, axis: int) -> Flags:
    """Those of the free entries that stay positive; the largest one where none of a distribution
    would.
    """
    stay = free & positive
    largest = free & (values == np.where(free, values, -1.0).max(axis=axis, keepdims=True))
    return np.where(stay.any(axis=axis, keepdims=True), stay, largest)


def _shortened(
    rows: Rows, point: Point, step: Step, floors: Step, halvings: int, gain: float
) -> Point | None:
    """A step, halved until it gains its part of ``gain``; None if it never does.

    No entry falls below its floor.
    """
    at = point.at
    rounding = TUNING.rounding * abs(point.loglik)
    for halving in range(halvings):
        size = 0.5**halving
        P = normalised(np.maximum(at.P + size * step[0], floors[0]), 0, at.P)
        q = normalised(np.maximum(at.q + size * step[1], floors[1]), 1, at.q)
        after = Point.from_rows(rows, replace(at, P=P, q=q))
        if after.loglik - point.loglik > size * gain - rounding:
            return after
    return None


# -------------------------------------------------------------------------- by conjugate gradients


def newton_step_by_products(rows: Rows, point: Point, held: Flags, exact: bool) -> Point | None:
    """A Newton step by conjugate gradients, shortened until the log-likelihood does not decrease;
    None if it always decreases.

    Entries of P may grow, however small they are, if this raises the likelihood; entries that are
    ``held`` stay at 0.
    """
    at = point.at
    eager = (point.excess_P > 0) & ~held
    products = TUNING.products_if_exact if exact else TUNING.products
    step = inverse_along(rows, point, point.gP, point.gq, products, eager)
    floors = TUNING.shrink * at.P, TUNING.shrink * at.q
    return _shortened(rows, point, step, floors, TUNING.halvings[1], 0.0)


def inverse_along(
    rows: Rows,
    point: Point,
    in_P: Array,
    in_q: Array,
    products: tuple[int, float],
    eager: Flags | None = None,
) -> Step:
    """H⁻¹·(in_P, in_q) on the simplices by conjugate gradients, where H is minus the second
    derivatives, with at most so many ``products`` or to a relative precision. Entries at 0 do not
    move.

    If the argument is the first derivatives, the result is Newton's step. Entries of P that are
    ``eager`` (N, C) may move even at 0: each counts as if at least one label had occurred with it.
    The iteration ends early where the likelihood is not concave.
    """
    at = point.at
    project = _em_direction(point, eager)
    residual = _flat(in_P, in_q)
    direction = project(residual)
    step = np.zeros_like(residual)
    size = first = float(residual @ direction)
    most, precision = products
    curvature_along = _products(rows, at)
    for turn in range(most):
        curved = _flat(*curvature_along(*_parts(at, direction)))
        curvature = float(direction @ curved)
        if curvature <= np.finfo(float).eps * size:  # flat, or not concave
            return _parts(at, direction if turn == 0 else step)
        along = size / curvature
        step = step + along * direction
        residual = residual - along * curved
        ahead = project(residual)
        before = size
        size = float(residual @ ahead)
        if size <= precision**2 * first:
            break
        direction = ahead + size / before * direction
    return _parts(at, step)


def _products(rows: Rows, at: Mixture) -> Callable[[Array, Array], Step]:
    """The function that multiplies minus the second derivatives by a direction.

    Where rows are in several places, the matrix is summed once, if it is not too large: each
    product would take a round trip.
    """
    entries = at.P.size * (at.P.shape[1] + 2 * at.q.size)
    if not rows.divided or 8 * entries > TUNING.summed_bytes:
        return lambda in_P, in_q: rows.total(RowTable.curvature_along, at, in_P, in_q)
    PP, Pq, qq, mixed = rows.total(RowTable.curvature, at)
    all_P = np.ones(at.P.shape, bool)
    return Information(PP, Pq - mixed, qq, all_P, np.ones(at.q.shape, bool)).times


def _em_direction(point: Point, eager: Flags | None) -> Any:
    """The function that turns derivatives into the direction of an EM step, all entries in one
    array.
    """
    at = point.at
    K, s = at.q.shape
    N, C = at.P.shape
    # The number of the distribution that each entry belongs to
    simplex = _flat(np.tile(np.arange(C), (N, 1)), np.repeat(C + np.arange(K), s))

    def sums(values: Array) -> Array:
        return np.bincount(simplex, values).astype(float)[simplex]

    values = _flat(at.P, at.q)
    mass = np.maximum(sums(values * _flat(point.gP, point.gq)), 1e-12)
    scale = values / mass
    if eager is not None:
        least = np.where(_flat(eager, np.zeros(K * s, bool)), 1 / np.maximum(mass, 1.0) ** 2, 0.0)
        scale = np.maximum(scale, least)
    total = np.maximum(sums(scale), TUNING.tiny)
    return lambda derivatives: scale * (derivatives - sums(scale * derivatives) / total)


def _flat(in_P: AnyArray, in_q: AnyArray) -> AnyArray:
    """One array (N·C + K·s,) of all entries."""
    return np.concatenate([in_P.ravel(), in_q.ravel()])


def _parts(at: Mixture, flat: Array) -> Step:
    """The entries of P (N, C) and of q (K, s)."""
    return flat[: at.P.size].reshape(at.P.shape), flat[at.P.size :].reshape(at.q.shape)
