"""Newton steps for a mixture: with the matrix of second derivatives where that is small, else by
conjugate gradients.

With the matrix, a step goes to the maximum of a quadratic model of the log-likelihood on the
simplices: entries that would become negative go to 0, and the others are solved for again. The
model has the second derivatives themselves where they make it concave. They need not, since P and q
multiply each other; then it has the products of first derivatives alone, which always do, and a
ridge if that reaches too far. For conjugate gradients the EM step is the preconditioner (Jamshidian
and Jennrich 1993).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.mixture.data import Rows
from scb.mixture.model import Mixture, normalised
from scb.mixture.rows import RowTable
from scb.mixture.tuning import TUNING
from scb.theory.fisher import Information

_TINY = 1e-300


class Point(NamedTuple):
    """Parameters, and the log-likelihood with its derivatives there."""

    at: Mixture
    loglik: float
    # (N, C + 1), the derivatives in the columns
    columns: Array
    # (K, s), the derivatives in q
    gq: Array

    @classmethod
    def of(cls, rows: Rows, at: Mixture) -> "Point":
        """One pass over the rows."""
        return cls(at, *rows.total(RowTable.evaluate, at))

    @property
    def gP(self) -> Array:
        """(N, C): the derivatives in P; the background is fixed, and has none."""
        return self.columns[:, :-1]

    @property
    def excess_P(self) -> Array:
        """(N, C): by how much a derivative exceeds its column's mean; positive where an entry wants
        to grow.
        """
        return self.gP - (self.at.P * self.gP).sum(axis=0)

    def gap(self, held: NDArray[np.bool_]) -> float:
        """Σ over distributions of (largest derivative − mean derivative): the Frank–Wolfe gap of
        both concave problems.
        """
        in_q = (self.gq.max(axis=1) - (self.at.q * self.gq).sum(axis=1)).sum()
        in_columns = np.where(held, 0.0, self.gP).max(axis=0) - (self.at.P * self.gP).sum(axis=0)
        return float(in_q + in_columns.sum())


def revived(rows: Rows, point: Point, held: NDArray[np.bool_]) -> Point:
    """With a little mass on entries of P that are 0 and should not be: EM alone cannot bring them
    back.
    """
    at = point.at
    lost = (TUNING.zero >= at.P) & (point.excess_P > 0) & ~held
    if not lost.any():
        return point
    eagerness = point.excess_P / np.where(lost, point.gP, 1.0) / TUNING.eager
    P = np.where(lost, TUNING.revived * np.clip(eagerness, 1e-4, 1.0), at.P)
    return Point.of(rows, at.moved(P / P.sum(axis=0), at.q))


def newton_step(
    rows: Rows, point: Point, held: NDArray[np.bool_], caution: int = 0
) -> tuple[Point | None, int]:
    """A Newton step with the matrix of second derivatives, None if none climbs; and the caution
    with which to take the next one.

    Caution numbers the models that are tried, from the second derivatives themselves to the one
    with the largest ridge; the next step begins with that which climbed, or one before it if it was
    the first. Entries of P that are ``held`` stay 0.
    """
    at = point.at
    PP, Pq, qq, mixed = rows.total(RowTable.curvature, at)
    # Entries at 0 whose derivative does not exceed their column's mean are held there.
    free_P = ((TUNING.zero < at.P) | (point.excess_P > 0)) & (np.einsum("omm->om", PP) > 0) & ~held
    wants_to_grow = point.gq > (at.q * point.gq).sum(axis=1, keepdims=True)
    free_q = (at.q > 2 * TUNING.least_weight) | ((at.q > 0) & wants_to_grow)
    for level in range(caution, len(TUNING.models)):
        is_exact, ridge = TUNING.models[level]
        H = Information(PP, Pq - mixed if is_exact else Pq, qq, free_P, free_q).ridged(ridge)
        step = _step_on_simplices(H, point)
        after = None if step is None else _climbed(rows, point, *step)
        if after is not None:
            return after, max(0, level - 1) if level == caution else level
    return None, 0


def _step_on_simplices(H: Information, point: Point) -> tuple[Array, Array] | None:
    """The step d, in P and in q, that maximises gᵀd − dᵀHd/2 with no entry negative at its end,
    nearly; None if H is singular.

    Entries that would become negative are sent to 0, what they had goes to the others of their
    distribution, and these are solved for again. Those that get there early in the step go first:
    what the others do may be their doing.
    """
    at = point.at
    free_P = H.free_P
    free_q = H.free_q
    in_P = np.zeros_like(at.P)
    in_q = np.zeros_like(at.q)
    for _ in range(TUNING.boundary_rounds):
        sent_P = normalised(np.where(free_P, at.P, 0.0), 0, at.P) - at.P
        sent_q = (
            normalised(np.where(free_q, at.q, np.minimum(at.q, TUNING.least_weight)), 1, at.q)
            - at.q
        )
        H_P, H_q = H.times(sent_P, sent_q)
        further = replace(H, free_P=free_P, free_q=free_q).solve(point.gP - H_P, point.gq - H_q)
        if further is None or not np.isfinite(further[0]).all():
            return None
        in_P = sent_P + further[0]
        in_q = sent_q + further[1]
        part = TUNING.early if _falls_short(at, in_P, in_q, TUNING.early) else 1.0
        if part == 1 and not _falls_short(at, in_P, in_q, 1.0):
            break
        free_P = _not_all_gone(free_P, at.P + part * in_P >= 0, at.P, axis=0)
        free_q = _not_all_gone(free_q, at.q + part * in_q >= 0, at.q, axis=1)
    return in_P, in_q


def _falls_short(at: Mixture, in_P: Array, in_q: Array, part: float) -> bool:
    """Whether an entry is negative after a part of a step."""
    return bool((at.P + part * in_P < 0).any() or (at.q + part * in_q < 0).any())


def _not_all_gone(
    free: NDArray[np.bool_], positive: NDArray[np.bool_], values: Array, axis: int
) -> NDArray[np.bool_]:
    """Those of the free entries that stay positive; the largest one where none of a distribution
    would.
    """
    stay = free & positive
    largest = free & (values == np.where(free, values, -1.0).max(axis=axis, keepdims=True))
    return np.where(stay.any(axis=axis, keepdims=True), stay, largest)


def _climbed(rows: Rows, point: Point, in_P: Array, in_q: Array) -> Point | None:
    """A step shortened until it gains enough; None if it never does."""
    at = point.at
    rounding = TUNING.rounding * abs(point.loglik)
    promised = _inner((in_P, in_q), (point.gP, point.gq))
    if promised < -rounding:  # what was sent to 0 leads down
        return None
    for halving in range(TUNING.halvings[0]):
        size = 0.5**halving
        P = normalised(np.maximum(at.P + size * in_P, 0.0), 0, at.P)
        q = normalised(np.maximum(at.q + size * in_q, TUNING.least_weight * (at.q > 0)), 1, at.q)
        after = Point.of(rows, at.moved(P, q))
        if after.loglik - point.loglik > TUNING.promised * size * promised - rounding:
            return after
    return None


def newton_step_by_products(
    rows: Rows, point: Point, held: NDArray[np.bool_], exact: bool
) -> Point | None:
    """A Newton step by conjugate gradients, shortened until the log-likelihood is no lower; None if
    it never is.

    Entries of P that want to grow may, however small they are; those that are ``held`` stay at 0.
    """
    at = point.at
    eager = (point.excess_P > 0) & ~held
    in_P, in_q = inverse_along(rows, point, point.gP, point.gq, eager=eager, exact=exact)
    for halving in range(TUNING.halvings[1]):
        size = 0.5**halving
        P = normalised(np.maximum(at.P + size * in_P, TUNING.shrink * at.P), 0, at.P)
        q = normalised(np.maximum(at.q + size * in_q, TUNING.shrink * at.q), 1, at.q)
        after = Point.of(rows, at.moved(P, q))
        if after.loglik > point.loglik - TUNING.rounding * abs(point.loglik):
            return after
    return None


def inverse_along(
    rows: Rows,
    point: Point,
    in_P: Array,
    in_q: Array,
    *,
    eager: NDArray[np.bool_] | None = None,
    exact: bool = False,
) -> tuple[Array, Array]:
    """H⁻¹·(in_P, in_q) on the simplices by conjugate gradients, H minus the second derivatives;
    entries at 0 do not move.

    With the first derivatives as its argument this is Newton's step. Entries of P that are
    ``eager`` (N, C) may move even at 0: they count as if a single label had come with them, at
    least. It ends early where the likelihood is not concave.
    """
    at = point.at
    mass = np.maximum((at.P * point.gP).sum(axis=0), 1e-12)
    scale_P = at.P / mass
    if eager is not None:
        scale_P = np.where(eager, np.maximum(scale_P, 1 / np.maximum(mass, 1.0) ** 2), scale_P)
    scale_q = at.q / np.maximum((at.q * point.gq).sum(axis=1, keepdims=True), 1e-12)

    def em_direction(rest: tuple[Array, Array]) -> tuple[Array, Array]:
        mean_P = (scale_P * rest[0]).sum(axis=0) / np.maximum(scale_P.sum(axis=0), _TINY)
        mean_q = (scale_q * rest[1]).sum(axis=1, keepdims=True) / np.maximum(
            scale_q.sum(axis=1, keepdims=True), _TINY
        )
        return scale_P * (rest[0] - mean_P), scale_q * (rest[1] - mean_q)

    rest = in_P, in_q
    direction = em_direction(rest)
    step = np.zeros_like(at.P), np.zeros_like(at.q)
    size = first = _inner(rest, direction)
    most, precision = TUNING.products_if_exact if exact else TUNING.products
    for turn in range(most):
        curved = rows.total(RowTable.curvature_along, at, *direction)
        curvature = _inner(direction, curved)
        if curvature <= np.finfo(float).eps * size:  # flat, or not concave
            return direction if turn == 0 else step
        along = size / curvature
        step = step[0] + along * direction[0], step[1] + along * direction[1]
        rest = rest[0] - along * curved[0], rest[1] - along * curved[1]
        ahead = em_direction(rest)
        before = size
        size = _inner(rest, ahead)
        if size <= precision**2 * first:
            break
        direction = ahead[0] + size / before * direction[0], ahead[1] + size / before * direction[1]
    return step


def _inner(a: tuple[Array, Array], b: tuple[Array, Array]) -> float:
    """The inner product of two directions (P, q)."""
    return float((a[0] * b[0]).sum() + (a[1] * b[1]).sum())
