"""Maximum likelihood for a mixture on given slots: EM, accelerated, then Newton; monotone, with a certificate.

The log-likelihood Σ_i log Σ_j q_j^(k) P[o_i, x_j] asks nothing of the contexts, so it holds for sequences too. It is concave in
P with q fixed, and in q with P fixed. EM steps with squared extrapolation (SQUAREM, Varadhan and Roland 2008) come first. They
are slow where entries of P go to 0, so Newton steps follow: with the matrix of second derivatives, on the entries that are not held
at 0, where that is small; else by conjugate gradients, for which the EM step is the preconditioner (Jamshidian and Jennrich 1993).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.mixture.data import Rows
from scb.mixture.law import Mixture, normalised
from scb.mixture.rows import RowTable
from scb.mixture.weights import IDLE, LEAST_LEFT
from scb.theory.information import Information

INFORMATION_BYTES = 1 << 30  # memory that second derivatives may take
_EM_STEPS = 24  # before Newton's first, up to N = 19; more for larger N, where only Newton's steps get dearer
_ZERO = 1e-10  # entries of P up to this are on the boundary
_REVIVED = 1e-4  # what an entry gets at most that EM has lost
_EAGER = 1e-3  # by this part of itself its derivative must exceed the column's mean for that; less by less
_ROUNDING = 1e-13  # relative, of a log-likelihood
_RIDGES = (0.0, 1e-6, 1e-3, 1e-1)  # relative, where the likelihood is flat or not concave
_LEAST = 1e-9  # a weight that Newton would make negative becomes this
_HALVINGS = 10
_STALL_STEPS = 10
_HOPE_STEPS = 5
_HOPE = 0.05
_DENSE = 1e7  # multiplications up to which a Newton step is taken with matrices
_PRODUCTS = 60  # with the second derivatives in one step of conjugate gradients, at most
_PRECISION = 0.05  # relative, of such a step
_SHRINK = 0.1  # to this part of itself an entry may fall in such a step


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


class _Point(NamedTuple):
    """Parameters, and the log-likelihood with its derivatives there."""

    at: Mixture
    loglik: float
    columns: Array  # (N, C + 1), the derivatives in the columns
    gq: Array  # (K, s), the derivatives in q

    @classmethod
    def of(cls, rows: Rows, at: Mixture) -> "_Point":
        return cls(at, *rows.total(RowTable.evaluate, at))

    @property
    def gP(self) -> Array:
        """(N, C): the derivatives in P; the background is fixed, and has none."""
        return self.columns[:, :-1]

    @property
    def excess_P(self) -> Array:
        """(N, C): by how much a derivative exceeds its column's mean; positive where an entry wants to grow."""
        return self.gP - (self.at.P * self.gP).sum(axis=0)

    def gap(self, held: NDArray[np.bool_]) -> float:
        """Σ over distributions of (largest derivative − mean derivative): the Frank–Wolfe gap of both concave problems."""
        in_q = (self.gq.max(axis=1) - (self.at.q * self.gq).sum(axis=1)).sum()
        in_columns = np.where(held, 0.0, self.gP).max(axis=0) - (self.at.P * self.gP).sum(axis=0)
        return float(in_q + in_columns.sum())


def maximise(
    rows: Rows,
    start: Mixture,
    *,
    tolerance: float = 0.02,
    steps: int = 2000,
    newton: bool = True,
    near: bool = False,  # whether the start is close to the maximum: Newton's steps from the first on
    enough: float = np.inf,  # a log-likelihood that ends it too; so do five steps that gain a twentieth of what is missing, or less
    stall: float = 0.0,  # ten steps that gain less than this together end it too
    held: NDArray[np.bool_] | None = None,  # (N, C), entries of P that stay 0
) -> Fit:
    """Climb until the gap is below ``tolerance``, or for so many steps. Nothing but rounding goes down; weights at 0 stay there."""
    start = replace(start, columns=np.ascontiguousarray(start.columns), q=np.ascontiguousarray(start.q))
    held = np.zeros(start.P.shape, bool) if held is None else held
    point = _Point.of(rows, start)
    path = [point.loglik]
    taken = 0
    idle = 0
    small = start.P.size * (start.P.shape[1] + start.q.size) ** 2 <= _DENSE
    newton_from = 0 if near else _EM_STEPS * max(1, start.N // 10) ** 2
    pause = 1  # after Newton failed, three times so many EM steps go by before it is tried again
    while (gap := point.gap(held)) > tolerance and taken < steps and point.loglik < enough:
        if len(path) > _STALL_STEPS and path[-1] - path[-1 - _STALL_STEPS] < stall:
            break
        if len(path) > _HOPE_STEPS and path[-1] - path[-1 - _HOPE_STEPS] < _HOPE * (enough - path[-1]) < np.inf:
            break
        after = None
        if newton and taken >= newton_from:
            after = _newton(rows, point, held) if small else _newton_by_products(rows, point, held)
        if after is None:
            if taken >= newton_from:
                newton_from = taken + 3 * pause
                pause = 2 * pause
            after = _squared(rows, _revived(rows, point, held))
            if after.loglik < point.loglik:  # what was brought back cost likelihood
                after = _squared(rows, point)
            taken += 2
        if after.loglik <= point.loglik and after.gap(held) >= gap:
            idle += 1  # at the very top, where only rounding is left
            if idle > IDLE:
                break
        point = after
        taken += 1
        path.append(max(point.loglik, path[-1]))
    return Fit(point.at, gap, path)


def information_bytes(P: Array, q: Array) -> int:
    """Memory of the blocks of second derivatives, for P (N, C) and q (K, s)."""
    return 8 * P.size * (P.shape[1] + q.size)


def _em(point: _Point) -> Mixture:
    """One EM step: expected counts, normalised; columns that are never used stay as they are."""
    at = point.at
    P = normalised(at.P * point.gP, 0, at.P)
    return at.moved(P, normalised(at.q * point.gq, 1, at.q))


def _squared(rows: Rows, point: _Point) -> _Point:
    """Two EM steps x₀ → x₁ → x₂ and a jump along them, if that is no lower than the first of them; else the two steps.

    The jump is to x₀ + 2α(x₁ − x₀) + α²(x₂ − 2x₁ + x₀), α = ‖x₁ − x₀‖/‖x₂ − 2x₁ + x₀‖ ≥ 1, made positive and normalised again.
    """
    one = _Point.of(rows, _em(point))
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
    jump = _Point.of(rows, replace(two, columns=columns, q=normalised(q, 1, two.q)))
    if jump.loglik >= one.loglik:
        return jump
    after = _Point.of(rows, two)
    return after if after.loglik >= one.loglik else one


def _revived(rows: Rows, point: _Point, held: NDArray[np.bool_]) -> _Point:
    """With a little mass on entries of P that are 0 and should not be: EM alone cannot bring them back."""
    at = point.at
    lost = (at.P <= _ZERO) & (point.excess_P > 0) & ~held
    if not lost.any():
        return point
    eagerness = point.excess_P / np.where(lost, point.gP, 1.0) / _EAGER
    P = np.where(lost, _REVIVED * np.clip(eagerness, 1e-4, 1.0), at.P)
    return _Point.of(rows, at.moved(P / P.sum(axis=0), at.q))


def _newton(rows: Rows, point: _Point, held: NDArray[np.bool_]) -> _Point | None:
    """A Newton step on the simplices, cut at 0 and halved until it climbs; None if none does."""
    at = point.at
    PP, Pq, qq = rows.total(RowTable.curvature, at)
    # Entries at 0 whose derivative does not exceed their column's mean are held there.
    free_P = ((at.P > _ZERO) | (point.excess_P > 0)) & (np.einsum("omm->om", PP) > 0) & ~held
    wants_to_grow = point.gq > (at.q * point.gq).sum(axis=1, keepdims=True)
    free_q = (at.q > 2 * _LEAST) | ((at.q > 0) & wants_to_grow)
    information = Information(PP, Pq, qq, free_P, free_q)
    tries = (information.ridged(ridge).solve(point.gP, point.gq) for ridge in _RIDGES)
    step = next((step for step in tries if step is not None), None)
    if step is None or not np.isfinite(step[0]).all():
        return None
    in_P, in_q = step
    moving = np.where(free_P, at.P, 0.0)
    size = 1.0
    for _ in range(_HALVINGS):
        moved = normalised(np.maximum(moving + size * in_P, 0.0), 0, at.P)
        P = np.where(at.P.sum(axis=0) > 0, moved, at.P)
        q = normalised(np.maximum(at.q + size * in_q, _LEAST * (at.q > 0)), 1, at.q)
        after = _Point.of(rows, at.moved(P, q))
        if after.loglik > point.loglik - _ROUNDING * abs(point.loglik):
            return after
        size /= 2
    return None


def _newton_by_products(rows: Rows, point: _Point, held: NDArray[np.bool_]) -> _Point | None:
    """A Newton step by conjugate gradients, shortened until it climbs; None if none does. Entries at 0 stay there."""
    revived = _revived(rows, point, held)
    at = revived.at
    in_P, in_q = inverse_along(rows, at, revived.gP, revived.gq)
    size = 1.0
    for _ in range(_HALVINGS):
        P = normalised(np.maximum(at.P + size * in_P, _SHRINK * at.P), 0, at.P)
        q = normalised(np.maximum(at.q + size * in_q, _SHRINK * at.q), 1, at.q)
        after = _Point.of(rows, at.moved(P, q))
        if after.loglik > point.loglik - _ROUNDING * abs(point.loglik):
            return after
        size /= 2
    return None


def inverse_along(rows: Rows, at: Mixture, in_P: Array, in_q: Array) -> tuple[Array, Array]:
    """H⁻¹·(in_P, in_q) on the simplices by conjugate gradients, H minus the second derivatives; entries at 0 do not move.

    With the first derivatives as its argument this is Newton's step. It ends early where the likelihood is not concave.
    """
    counts = rows.total(RowTable.evaluate, at)
    scale_P = at.P / np.maximum((at.P * counts.columns[:, :-1]).sum(axis=0), 1e-12)
    scale_q = at.q / np.maximum((at.q * counts.q).sum(axis=1, keepdims=True), 1e-12)

    def em_direction(rest: tuple[Array, Array]) -> tuple[Array, Array]:
        along_P = scale_P * (rest[0] - (at.P * rest[0]).sum(axis=0))
        along_q = scale_q * (rest[1] - (at.q * rest[1]).sum(axis=1, keepdims=True))
        return along_P, along_q

    rest = in_P, in_q
    direction = em_direction(rest)
    step = np.zeros_like(at.P), np.zeros_like(at.q)
    size = first = _inner(rest, direction)
    for turn in range(_PRODUCTS):
        curved = rows.total(RowTable.curvature_along, at, *direction)
        curvature = _inner(direction, curved)
        if curvature <= 0:
            return direction if turn == 0 else step
        along = size / curvature
        step = step[0] + along * direction[0], step[1] + along * direction[1]
        rest = rest[0] - along * curved[0], rest[1] - along * curved[1]
        ahead = em_direction(rest)
        before = size
        size = _inner(rest, ahead)
        if size <= _PRECISION**2 * first:
            break
        direction = ahead[0] + size / before * direction[0], ahead[1] + size / before * direction[1]
    return step


def _inner(a: tuple[Array, Array], b: tuple[Array, Array]) -> float:
    """The inner product of two directions (P, q)."""
    return float((a[0] * b[0]).sum() + (a[1] * b[1]).sum())
