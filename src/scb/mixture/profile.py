"""How much of a context may be explained by no position: the largest weight of a background that
the data do not rule out.

It comes from the profile of the log-likelihood: everything else is fitted again at each weight.
Second derivatives at a weight of 0 would not do: where P has entries near 0, the likelihood is far
from a parabola there.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scb.arrays import Array
from scb.mixture.data import Rows
from scb.mixture.model import Mixture
from scb.mixture.newton import Point
from scb.mixture.rows import RowTable
from scb.mixture.squarem import squared_em_step
from scb.mixture.tuning import TUNING


class Limit(NamedTuple):
    """Where the profile of a context has fallen as far as it may."""

    rest: float  # the weight of the background
    # (s,), those of the slots 1, 2, … there
    weights: Array


def rest_limit(rows: Rows, at: Mixture, k: int, drop: float, everywhere: bool) -> Limit:
    """The largest weight of a background in context k at which twice the log-likelihood is ``drop``
    below its highest, and the weights of the positions there; from a maximum of the likelihood
    without that background.

    What all contexts lack can hide in P. So where one context is known to lack a position, all may,
    and the background is let in ``everywhere``.
    """
    top = rows.total(RowTable.evaluate, at).loglik
    fit = at
    if everywhere:
        q = np.where(at.q[:, :1] < 1, (1 - TUNING.profile_trace) * at.q, at.q)
        q[:, 0] += np.where(at.q[:, 0] < 1, TUNING.profile_trace, 0.0)
        fit, loglik = _fit_at(rows, _with_rest(replace(at, q=q), k, 0.0), k)
        top = max(top, loglik)
    # a weight that is not ruled out, and by how much twice the log-likelihood lies below the top
    # there
    inner = 0.0, 0.0
    outer = 1.0, np.inf
    rest, most = TUNING.profile_range
    for _ in range(TUNING.profile_tries):
        fit, loglik = _fit_at(rows, _with_rest(fit, k, rest), k)
        inner = inner[0], inner[1] + 2 * max(0.0, loglik - top)
        top = max(top, loglik)
        fallen = 2 * (top - loglik)
        if abs(fallen - drop) < TUNING.profile_close or (fallen < drop and rest >= most):
            break
        if fallen < drop:
            inner = rest, fallen
        else:
            outer = rest, fallen
        if np.isinf(outer[1]):
            rest = min(2 * rest, most)
        else:
            # The profile falls about as a parabola: its root is a line
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
    """EM with squared extrapolation in which the background of context k keeps its weight."""
    point = Point.of(rows, at.lifted())
    for _ in range(TUNING.profile_steps):
        after = squared_em_step(rows, point, lambda moved: _with_rest(moved, k, at.q[k, 0]))
        gained = after.loglik - point.loglik
        point = after
        if gained < TUNING.profile_gain:
            break
    return point.at, point.loglik
