"""Maximum likelihood for (P, q) on given positions: EM, accelerated, monotone, with a certificate.

The likelihood of a label is f = Σ_j q_j^(k) P[o, x_j] over the positions that token k may attend to. It asks nothing of the
contexts, so it holds for sequences too. A background slot (token N, whose column of P is the law of the labels and stays fixed) may
stand for positions that are not known yet: for iid contexts, leaving a position out turns its term into q_t·(Pμ)_o exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.mixture.tails import Noise
from scb.theory.information import Information, blocks

_INFORMATION_BYTES = 1 << 30
_EM_STEPS = 24  # before Newton's first, up to N = 19; more for larger N, where only Newton's steps get dearer
_ZERO = 1e-10  # entries of P up to this are on the boundary
_LIFT = 1e-4
_ROUNDING = 1e-13  # relative, of a log-likelihood
_RIDGES = (0.0, 1e-6, 1e-3, 1e-1)  # relative, where the likelihood is flat or not concave
_LEAST = 1e-9  # a weight that Newton would make negative becomes this


class Sums(NamedTuple):
    """What one pass over rows adds up: the log-likelihood, and its derivatives in P (N, C + 1) and in q (K, s)."""

    loglik: float
    gP: Array
    gq: Array


class AnyRows(Protocol):
    """What a fit asks of rows, whether they lie here (``Rows``) or elsewhere (``distributed.PartitionedRows``)."""

    def of(self, k: int) -> AnyRows: ...  # noqa: D102
    def evaluate(self, P: Array, q: Array) -> Sums: ...  # noqa: D102
    def curvature(self, P: Array, q: Array) -> tuple[Array, Array, Array]: ...  # noqa: D102
    def information(self, P: Array, q: Array) -> tuple[Array, Array, Array]: ...  # noqa: D102
    def pairs(self, j: int, N: int) -> Array: ...  # noqa: D102
    def loglik_of(self, P: Array, q: Array) -> Array: ...  # noqa: D102
    def score_levels(self, U: Array, P: Array, q: Array, mu: Array, z: Array) -> Array: ...  # noqa: D102


@dataclass(frozen=True)
class Rows:
    """Samples reduced to the positions that matter; equal ones may be one row.

    Attributes
    ----------
    tokens : (r, s), the columns of P that the slots point to
    last : (r,), which column of weights holds
    label : (r,)
    weight : (r,), how many samples this is
    index : (n,), the row of each sample; None where each has its own
    """

    tokens: NDArray[Any]
    last: NDArray[np.int64]
    label: NDArray[np.int64]
    weight: Array
    index: NDArray[np.int64] | None = None

    def __sizeof__(self) -> int:
        return sum(x.nbytes for x in (*self.samples, self.index) if x is not None)

    @property
    def samples(self) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64], Array]:
        """As the kernels take them."""
        return self.tokens, self.last, self.label, self.weight

    def of(self, k: int) -> Rows:
        """Those whose last token is k."""
        mine = self.last == k
        return Rows(self.tokens[mine], self.last[mine], self.label[mine], self.weight[mine])

    def moved(self, matrix: NDArray[np.intp], N: int) -> Rows:
        """With the columns of matrix number ``matrix[k, j]`` in slot j of last token k; the background comes after the last."""
        tokens = self.tokens + N * matrix[self.last]
        return replace(self, tokens=np.where(self.tokens < N, tokens, N * (matrix.max() + 1)))

    def evaluate(self, P: Array, q: Array) -> Sums:
        """Log-likelihood and derivatives at (P, q)."""
        from scb.kernels.mixture import likelihood_gradient

        gq, gP = np.empty_like(q), np.empty_like(P)
        return Sums(likelihood_gradient(*self.samples, q, P, gq, gP), gP, gq)

    def curvature(self, P: Array, q: Array) -> tuple[Array, Array, Array]:
        """Minus the second derivatives at (P, q), in the blocks of ``Information``."""
        from scb.kernels.mixture import likelihood_curvature

        parts = blocks(P[:, :-1], q)
        likelihood_curvature(*self.samples, q, P, *parts)
        return parts

    def information(self, P: Array, q: Array) -> tuple[Array, Array, Array]:
        """Fisher information at P (N, C) and q, given contexts and last tokens, in the same blocks."""
        from scb.kernels.mixture import likelihood_information

        parts = blocks(P, q)
        inside = np.minimum(self.tokens, P.shape[1] - 1)  # the background, whose weight must be 0 here
        likelihood_information(inside, self.last, self.weight, q, P, *parts)
        return parts

    def pairs(self, j: int, N: int) -> Array:
        """(N, N): how often each label came with each token in slot j."""
        code = self.label * N + self.tokens[:, j]
        return np.bincount(code, self.weight, minlength=N * N).reshape(N, N).astype(float)

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of rows (r,) as values of samples (n,)."""
        return values if self.index is None else values[self.index]

    def fits(self, P: Array, q: Array) -> Array:
        """(r,): the likelihood f of each row."""
        f = np.zeros(len(self.label))
        for j in range(self.tokens.shape[1]):
            f += q[self.last, j] * P[self.label, self.tokens[:, j]]
        return f

    def laws(self, P: Array, q: Array) -> Array:
        """(r, N): the law of the label that each row implies."""
        f = np.zeros((len(self.label), len(P)))
        for j in range(self.tokens.shape[1]):
            f += q[self.last, j][:, None] * P.T[self.tokens[:, j]]
        return f

    def loglik_of(self, P: Array, q: Array) -> Array:
        """(K,): the log-likelihood of each last token's samples."""
        return np.bincount(self.last, self.weight * np.log(self.fits(P, q)), minlength=len(q)).astype(float)

    def noise(self, k: int, U: Array, P: Array, q: Array, mu: Array) -> Noise:
        """The score Σ_i U[o_i, x_i]/f_i of the samples with last token k, where tokens x are iid μ."""
        mine = self.of(k)
        return Noise.of(U[mine.label] / mine.fits(P, q)[:, None], mine.weight, mu)

    def score_levels(self, U: Array, P: Array, q: Array, mu: Array, z: Array) -> Array:
        """(K,): what that score reaches as rarely as a Gaussian z standard deviations; ∞ where k does not occur."""
        levels = np.full(len(q), np.inf)
        for k in np.unique(self.last):  # one at a time: (n_k, N) terms
            levels[k] = self.noise(int(k), U, P, q, mu).level(float(z[k]))
        return levels


class Fit(NamedTuple):
    """Where EM ended.

    Attributes
    ----------
    P : (N, C + 1), the last column is the background
    q : (K, s)
    gap : the certificate, in nats: how much the log-likelihood can still gain in P with q fixed, plus in q with P fixed, at most
        (each is a concave problem). It is 0 exactly where the first-order conditions hold
    path : log-likelihood at every accepted point; it never decreases
    """

    P: Array
    q: Array
    gap: float
    path: list[float]

    @property
    def loglik(self) -> float:
        """Log-likelihood at the end."""
        return self.path[-1]


class _Point(NamedTuple):
    P: Array
    q: Array
    loglik: float
    gP: Array
    gq: Array


def _evaluate(rows: AnyRows, P: Array, q: Array) -> _Point:
    return _Point(P, q, *rows.evaluate(P, q))


def _em(at: _Point, fixed_P: bool) -> tuple[Array, Array]:
    """One EM step: expected counts, normalised; columns that are never used stay as they are."""
    P = at.P
    if not fixed_P:
        P = P.copy()
        P[:, :-1] = _normalised(P[:, :-1] * at.gP[:, :-1], 0, P[:, :-1])
    return P, _normalised(at.q * at.gq, 1, at.q)


def _normalised(counts: Array, axis: int, otherwise: Array) -> Array:
    mass = counts.sum(axis=axis, keepdims=True)
    return np.where(mass > 0, counts / np.where(mass > 0, mass, 1.0), otherwise)


def _gap(at: _Point, fixed_P: bool) -> float:
    """Σ over columns of (largest derivative − mean derivative): the Frank–Wolfe gap of both concave problems."""
    in_q = (at.gq.max(axis=1) - (at.q * at.gq).sum(axis=1)).sum()
    in_P = (at.gP.max(axis=0) - (at.P * at.gP).sum(axis=0))[:-1].sum()
    return float(in_q + (0.0 if fixed_P else in_P))


def maximise(
    rows: AnyRows,
    P: Array,
    q: Array,
    *,
    tolerance: float = 0.02,
    steps: int = 2000,
    fixed_P: bool = False,
    newton: bool = True,
    enough: float = np.inf,
    stall: float = 0.0,
) -> Fit:
    """Climb from (P, q) until the gap is below ``tolerance``, or for so many steps; nothing but rounding ever goes down.

    A log-likelihood that is ``enough`` ends it too, and so do ten steps that gain less than ``stall`` together.

    EM steps with squared extrapolation (SQUAREM, Varadhan and Roland 2008) come first. EM is slow where entries of P go to 0,
    so Newton steps follow, on the entries that are not held at 0. Weights q that start at 0 stay there.
    """
    at = _evaluate(rows, np.ascontiguousarray(P), np.ascontiguousarray(q))
    path, taken = [at.loglik], 0
    first = _EM_STEPS * max(1, at.P.shape[0] // 10) ** 2
    newton = newton and not fixed_P and information_bytes(P[:, :-1], q) <= _INFORMATION_BYTES // 4
    pause = 1  # EM steps before Newton is tried again, after it failed
    while (gap := _gap(at, fixed_P)) > tolerance and taken < steps and at.loglik < enough:
        if len(path) > 10 and path[-1] - path[-11] < stall:
            break
        after = _newton(rows, at) if newton and taken >= first else None
        if after is None:
            if taken >= first:
                first, pause = taken + 3 * pause, 2 * pause
            after, taken = _squared(rows, at if fixed_P else _revived(rows, at), fixed_P), taken + 2
            if after.loglik < at.loglik:
                after = _squared(rows, at, fixed_P)
        if after.loglik <= at.loglik and _gap(after, fixed_P) >= gap:  # at the very top, where only rounding is left
            break
        at, taken = after, taken + 1
        path.append(max(at.loglik, path[-1]))
    return Fit(at.P, at.q, gap, path)


def _squared(rows: AnyRows, at: _Point, fixed_P: bool) -> _Point:
    """Two EM steps and a jump along them, if that is no lower than the first of them; else the two steps."""
    one = _evaluate(rows, *_em(at, fixed_P))
    two = _em(one, fixed_P)
    jump = _evaluate(rows, *_extrapolated((at.P, at.q), (one.P, one.q), two))
    if jump.loglik >= one.loglik:
        return jump
    after = _evaluate(rows, *two)
    return after if after.loglik >= one.loglik else one


def _revived(rows: AnyRows, at: _Point) -> _Point:
    """With a little mass on entries of P that are 0 and should not be: EM alone cannot bring them back."""
    P, gP = at.P[:, :-1], at.gP[:, :-1]
    dead = (P <= _ZERO) & (gP > (P * gP).sum(axis=0))
    if not dead.any():
        return at
    P = np.where(dead, _LIFT, P)
    return _evaluate(rows, np.c_[P / P.sum(axis=0), at.P[:, -1]], at.q)


def _newton(rows: AnyRows, at: _Point) -> _Point | None:
    """A Newton step on the simplices, cut at 0 and halved until it climbs; None if none does.

    Entries at 0 whose derivative does not exceed their column's mean are held there.
    """
    PP, Pq, qq = rows.curvature(at.P, at.q)
    P, gP = at.P[:, :-1], at.gP[:, :-1]
    excess = gP - (P * gP).sum(axis=0)
    free = ((P > _ZERO) | (excess > 0)) & (np.einsum("omm->om", PP) > 0)
    above = at.gq > (at.q * at.gq).sum(axis=1, keepdims=True)
    information = Information(PP, Pq, qq, free, (at.q > 2 * _LEAST) | ((at.q > 0) & above))
    tries = (information.ridged(ridge).solve(gP, at.gq) for ridge in _RIDGES)
    step = next((step for step in tries if step is not None), None)
    if step is None or not np.isfinite(step[0]).all():
        return None
    size = 1.0
    held = np.where(free, P, 0.0)
    for _ in range(10):
        moved = np.where(P.sum(axis=0) > 0, _normalised(np.maximum(held + size * step[0], 0.0), 0, P), P)
        q = _normalised(np.maximum(at.q + size * step[1], _LEAST * (at.q > 0)), 1, at.q)
        after = _evaluate(rows, np.c_[moved, at.P[:, -1]], q)
        if after.loglik > at.loglik - _ROUNDING * abs(at.loglik):
            return after
        size /= 2
    return None


def _extrapolated(zero: tuple[Array, Array], one: tuple[Array, Array], two: tuple[Array, Array]) -> tuple[Array, Array]:
    """x₀ + 2α(x₁ − x₀) + α²(x₂ − 2x₁ + x₀) with α = ‖x₁ − x₀‖/‖x₂ − 2x₁ + x₀‖ ≥ 1, made positive and normalised again."""
    r = [b - a for a, b in zip(zero, one, strict=True)]
    v = [c - 2 * b + a for a, b, c in zip(zero, one, two, strict=True)]
    length = np.sqrt(sum(float((x**2).sum()) for x in v))
    alpha = max(1.0, np.sqrt(sum(float((x**2).sum()) for x in r)) / length) if length > 0 else 1.0
    P, q = (np.maximum(a + 2 * alpha * x + alpha**2 * y, 0.02 * c) for a, x, y, c in zip(zero, r, v, two, strict=True))
    P = _normalised(P, 0, two[0])
    P[:, -1] = two[0][:, -1]
    return P, _normalised(q, 1, two[1])


def information_bytes(P: Array, q: Array) -> int:
    """Memory of the blocks of the information, for P (N, C) and q (K, s)."""
    return 8 * P.size * (P.shape[1] + q.size)


def lifted(P: Array) -> Array:
    """P (N, C + 1) with a little of the background in every column: no label is impossible, so EM can start anywhere."""
    return (1 - _LIFT) * P + _LIFT * P[:, -1:]


def rounded(P: Array) -> Array:
    """Columns of P to six digits: a start that the order in which sums were taken leaves no trace in.

    Where the likelihood is nearly flat, a fit does not forget where it came from.
    """
    return _normalised(np.round(P, 6), 0, P)


def standard_errors(rows: AnyRows, P: Array, q: Array, held: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
    """Standard errors of P (N, C) and of q (K, 1 + s), from the Fisher information given the contexts and last tokens.

    ``P`` (N, C + 1) and ``q`` are a fit whose slot 0 is the background, with weight only where there is no other slot; of it
    nothing is asked. The information is taken at P with half a count added to each entry, so that an entry estimated as 0 has a
    positive standard error, unless it is ``held`` (N, C): then it is known. NaN where there is no information: a token that never
    occurs at a position that matters, or weights that cannot be told apart; and everywhere if the blocks of the information would
    need more than 1 GB (N above about 300).
    """
    N, C = len(P), P.shape[1] - 1
    attended = np.c_[np.zeros(len(q)), q[:, 1:]]
    if information_bytes(P[:, :C], q) > _INFORMATION_BYTES or not attended.any():
        return np.full((N, C), np.nan), np.full(q.shape, np.nan)
    counts = (P * rows.evaluate(P, q).gP)[:, :C].sum(axis=0)
    smooth = (P[:, :C] * counts + 0.5) / (counts + 0.5 * N)
    if held is not None:
        smooth = np.where(held, P[:, :C], smooth)
    PP, Pq, qq = rows.information(smooth, attended)
    free_P = np.einsum("omm->om", PP) > 0
    free_q = (attended > 0) & (np.einsum("kjj->kj", qq) > 0)
    of_P, of_q = Information(PP, Pq, qq, free_P if held is None else free_P & ~held, free_q).variances()
    of_P[:, counts <= 0] = np.nan
    of_q[(attended > 0) & ~free_q] = np.nan
    return np.sqrt(of_P), np.sqrt(of_q)
