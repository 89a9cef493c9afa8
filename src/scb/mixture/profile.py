"""How much of a state's labels may be explained by no position: the largest weight of the
background that the data do not rule out.

It comes from the profile of the log-likelihood: everything else is fitted again at each weight.
Second derivatives at a weight of 0 would not do: where P has entries near 0, the likelihood is far
from a parabola there.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scb.geometry import Array
from scb.mixture.data import Rows
from scb.mixture.model import Mixture
from scb.mixture.rows import RowTable
from scb.mixture.squarem import climb_by_em
from scb.mixture.tuning import TUNING


class Limit(NamedTuple):
    """Where the profile of a state has fallen as far as it may."""

    background: float  # its weight
    # (s,), the weights of the slots 1, 2, … there
    weights: Array


def background_limit(rows: Rows, at: Mixture, k: int, drop: float, everywhere: bool) -> Limit:
    """The largest weight of the background in state k at which twice the log-likelihood is ``drop``
    below its highest, and the weights of the positions there; from a maximum of the likelihood
    without that background.

    What all states lack can hide in P. So where one state is known to lack a position, all may, and
    the background is let in ``everywhere``.
    """
    top = rows.total(RowTable.evaluate, at).loglik
    fit = at
    if everywhere:
        q = np.where(at.q[:, :1] < 1, (1 - TUNING.profile_trace) * at.q, at.q)
        q[:, 0] += np.where(at.q[:, 0] < 1, TUNING.profile_trace, 0.0)
        fit, loglik = _fit_with(rows, replace(at, q=q), k, 0.0)
        top = max(top, loglik)
    # A weight that is not ruled out and one that is; beside each, how far twice the log-likelihood
    # has fallen below the top there
    inner = 0.0, 0.0
    outer = 1.0, np.inf
    weight, most = TUNING.profile_range
    for _ in range(TUNING.profile_tries):
        fit, loglik = _fit_with(rows, fit, k, weight)
        inner = inner[0], inner[1] + 2 * max(0.0, loglik - top)
        top = max(top, loglik)
        fallen = 2 * (top - loglik)
        if abs(fallen - drop) < TUNING.profile_close or (fallen < drop and weight >= most):
            break
        if fallen < drop:
            inner = weight, fallen
        else:
            outer = weight, fallen
        if np.isinf(outer[1]):
            weight = min(2 * weight, most)
        else:
            # The profile falls about as a parabola: its root is a line.
            a, b, c = (np.sqrt(x) for x in (inner[1], outer[1], drop))
            part = (c - a) / (b - a) if b > a else 0.5
            weight = inner[0] + np.clip(part, 0.1, 0.9) * (outer[0] - inner[0])
    return Limit(weight, fit.q[k, 1:].copy())


def _fit_with(rows: Rows, start: Mixture, k: int, weight: float) -> tuple[Mixture, float]:
    """EM in which the background of state k keeps its weight; the mixture and its log-likelihood."""

    def constrain(at: Mixture) -> Mixture:
        q = at.q.copy()
        q[k, 1:] *= (1 - weight) / q[k, 1:].sum()
        q[k, 0] = weight
        return replace(at, q=q)

    point = climb_by_em(
        rows,
        constrain(start).lifted(),
        TUNING.profile_steps,
        constrain=constrain,
        least_gain=TUNING.profile_gain,
    )
    return point.at, point.loglik
