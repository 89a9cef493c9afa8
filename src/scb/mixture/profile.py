"""How much of a context may be explained by no position: the largest weight of a background that the data do not rule out.

It comes from the profile of the log-likelihood: everything else is fitted again at each weight. Second derivatives at a weight of 0
would not do: where P has entries near 0, the likelihood is far from a parabola there.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scb.geometry import Array
from scb.mixture.data import Rows
from scb.mixture.law import Mixture, normalised
from scb.mixture.rows import RowTable, Sums

_FIRST = 0.05  # the first weight that is tried
_MOST = 0.98
_TRACE = 0.02  # of a background that may grow
_STEPS = 60  # of two EM steps and a jump each, for one weight
_ENOUGH = 5e-3  # nats: steps that gain less end a fit
_CLOSE = 0.1  # of twice the log-likelihood ratio: so near to the limit a weight is good enough
_TRIES = 12


class Limit(NamedTuple):
    """Where the profile of a context has fallen as far as it may."""

    rest: float  # the weight of the background
    weights: Array  # (s,), those of the slots 1, 2, … there


def rest_limit(rows: Rows, at: Mixture, k: int, drop: float, everywhere: bool) -> Limit:
    """The largest weight of a background in context k at which twice the log-likelihood is ``drop`` below its highest, and the
    weights of the positions there; from a maximum of the likelihood without that background.

    What all contexts lack can hide in P. So where one context is known to lack a position, all may, and the background is let in
    ``everywhere``.
    """
    top = rows.total(RowTable.evaluate, at).loglik
    fit = at
    if everywhere:
        q = np.where(at.q[:, :1] < 1, (1 - _TRACE) * at.q, at.q)
        q[:, 0] += np.where(at.q[:, 0] < 1, _TRACE, 0.0)
        fit, loglik = _fit_at(rows, _with_rest(replace(at, q=q), k, 0.0), k)
        top = max(top, loglik)
    inner = 0.0, 0.0  # a weight that is not ruled out, and by how much twice the log-likelihood lies below the top there
    outer = 1.0, np.inf
    rest = _FIRST
    for _ in range(_TRIES):
        fit, loglik = _fit_at(rows, _with_rest(fit, k, rest), k)
        inner = inner[0], inner[1] + 2 * max(0.0, loglik - top)
        top = max(top, loglik)
        fallen = 2 * (top - loglik)
        if abs(fallen - drop) < _CLOSE or (fallen < drop and rest >= _MOST):
            break
        if fallen < drop:
            inner = rest, fallen
        else:
            outer = rest, fallen
        if np.isinf(outer[1]):
            rest = min(2 * rest, _MOST)
        else:  # the profile falls about as a parabola: its root is a line
            a, b, c = (np.sqrt(x) for x in (inner[1], outer[1], drop))
            part = (c - a) / (b - a) if b > a else 0.5
            rest = inner[0] + np.clip(part, 0.1, 0.9) * (outer[0] - inner[0])
    return Limit(rest, fit.q[k, 1:].copy())


def _with_rest(at: Mixture, k: int, rest: float) -> Mixture:
    q = at.q.copy()
    q[k, 1:] *= (1 - rest) / q[k, 1:].sum()
    q[k, 0] = rest
    return replace(at, q=q)


def _fit_at(rows: Rows, at: Mixture, k: int) -> tuple[Mixture, float]:
    """EM with squared extrapolation (see ``scb.mixture.em``) in which the background of context k keeps its weight."""
    at = at.lifted()
    here: Sums = rows.total(RowTable.evaluate, at)
    for _ in range(_STEPS):
        one = _em_step(at, here, k)
        there: Sums = rows.total(RowTable.evaluate, one)
        two = _em_step(one, there, k)
        first = one.columns - at.columns, one.q - at.q
        second = two.columns - 2 * one.columns + at.columns, two.q - 2 * one.q + at.q
        along, length = (np.sqrt(sum(float((x**2).sum()) for x in step)) for step in (first, second))
        alpha = max(1.0, along / length) if length > 0 else 1.0
        columns, q = (
            np.maximum(a + 2 * alpha * x + alpha**2 * y, 0.02 * c)
            for a, x, y, c in zip((at.columns, at.q), first, second, (two.columns, two.q), strict=True)
        )
        columns = normalised(columns, 0, two.columns)
        columns[:, -1] = at.background
        jump = _with_rest(replace(at, columns=columns, q=normalised(q, 1, two.q)), k, at.q[k, 0])
        after: Sums = rows.total(RowTable.evaluate, jump)
        if after.loglik < there.loglik:
            jump = two
            after = rows.total(RowTable.evaluate, two)
        gained = after.loglik - here.loglik
        at = jump
        here = after
        if gained < _ENOUGH:
            break
    return at, here.loglik


def _em_step(at: Mixture, sums: Sums, k: int) -> Mixture:
    P = normalised(at.P * sums.columns[:, :-1], 0, at.P)
    q = normalised(at.q * sums.q, 1, at.q)
    return _with_rest(replace(at, columns=np.c_[P, at.background], q=q), k, at.q[k, 0])
