"""Intervals from the profile of the likelihood, for entries of P and weights near 0 or 1.

Near 0 or 1, the likelihood is far from a parabola: an entry with only a few labels has an interval
like that of a count. An entry is moved away from its estimate, the other entries follow as the
Fisher information predicts, and the log-likelihood itself, not its parabola, determines where to
stop. All entries are moved in parallel, so one pass over the rows serves them all.

For the upper end, a third of a label is added to an entry of P; for the lower end, it is added to
the complement of the entry. Otherwise, an entry without a label would have its upper end at 1.9
labels, which is too often below the true value. A third of a label makes the median of a count
right, whereas with Jeffreys' half label the coverage is higher than it should be.

A true entry of P that lies close to 0 can hardly be above the upper end of its interval. Only the
lower end can be wrong, and with the usual fall of the likelihood it would be wrong in 2.5 % of the
cases instead of 5 %. The fall is therefore compared with those of a Gaussian estimate whose mean
cannot be negative (Feldman and Cousins, 1998), so lower ends near 0 are somewhat higher. Upper ends
near 0 are as they would be otherwise.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from scb.arrays import Array, Ints
from scb.mixture.data import Rows
from scb.mixture.errors import label_counts, smooth_information
from scb.mixture.model import Mixture
from scb.mixture.rows import RowTable
from scb.mixture.tuning import TUNING
from scb.theory.fisher import Inverse


@dataclass(frozen=True)
class Profile:
    """The log-likelihood near its maximum."""

    rows: Rows
    at: Mixture  # there
    errors: tuple[Array, Array]  # standard errors of P (N, C) and of q (K, s)
    size: int  # the number of rows, at most

    def around_P(self, reach: float) -> tuple[Array, Array]:
        """How far intervals of the entries of P reach below and above them, (N, C) each:
        ``reach`` standard errors, or as far as the profile says for entries near 0 or 1.
        """
        return self._around(0, np.full(self.at.P.shape, reach))

    def around_q(self, reach: Array) -> tuple[Array, Array]:
        """The same for the weights, (K, s) each; the intervals of state k reach ``reach[k]``
        standard errors.
        """
        return self._around(1, np.repeat(reach[:, None], self.at.q.shape[1], axis=1))

    def _around(self, part: int, reach: Array) -> tuple[Array, Array]:
        values = (self.at.P, self.at.q)[part]
        errors = self.errors[part]
        below = reach * errors
        above = reach * errors
        room = np.minimum(values, 1 - values)
        near = np.argwhere((errors > 0) & (room < TUNING.profile_near * errors))
        effort = len(near) * self.size * self.at.q.shape[1]
        if len(near) == 0 or effort > TUNING.profile_effort:
            return below, above
        inverse = smooth_information(self.rows, self.at).inverse()
        if inverse is not None:
            most = max(1, TUNING.profile_entries // self.at.P.size)
            for first in range(0, len(near), most):
                entries = near[first : first + most]
                where = tuple(entries.T)
                paths = _Paths(self, inverse, part, entries)
                # Near 1 the rest of a column may lie in many entries at 0, which do not grow at
                # once: no interval is shorter there than its standard errors make it.
                least = np.where(values[where] > 0.5, below[where], 0.0)
                below[where] = np.maximum(paths.lengths(-1, reach[where]), least)
                above[where] = np.maximum(paths.lengths(1, reach[where]), least)
        return below, above


class _Paths:
    """Where the parameters go when some entries of P, or some weights, are moved."""

    def __init__(self, profile: Profile, inverse: Inverse, part: int, entries: Ints) -> None:
        self.profile = profile
        self.part = part
        self.entries = [tuple(entry) for entry in entries.tolist()]
        self.directions = [self._direction(inverse, entry) for entry in self.entries]
        where = tuple(entries.T)
        self.values = (profile.at.P, profile.at.q)[part][where]
        self.errors = profile.errors[part][where]
        # Labels that are added to what grows, and (r,) by how much they would move an entry at 0
        self.labels = 0.0 if part else 1 / 3
        counts = np.ones(1) if part else label_counts(profile.rows, profile.at)[entries[:, 1]]
        self.shift = self.labels / np.maximum(counts, 1.0)

    def _direction(self, inverse: Inverse, entry: tuple[int, ...]) -> tuple[Array, Array]:
        """How P and q move with an entry: the column of the inverse, scaled to 1 there."""
        unit = np.zeros(self.profile.at.P.shape), np.zeros(self.profile.at.q.shape)
        unit[self.part][entry] = 1.0
        along = inverse.solve(*unit)
        return along[0] / along[self.part][entry], along[1] / along[self.part][entry]

    def lengths(self, sign: int, reach: Array) -> Array:
        """(r,): how far each entry goes to one side until twice the log-likelihood has fallen by
        reach² (r,), or for an entry of P near a boundary, by as much as is equally rare there.
        """
        room = self.values if sign < 0 else 1 - self.values
        inner = np.minimum(self.shift * room, room / 2)
        top = self._logliks(sign, inner, np.arange(len(room)))
        outer = room.copy()
        # How far twice the log-likelihood has fallen at these two
        low, high = np.zeros(len(room)), np.full(len(room), np.inf)
        step = np.clip(reach * self.errors, inner, room)
        active = np.arange(len(room))
        for _ in range(TUNING.profile_tries):
            fallen = 2 * (top[active] - self._logliks(sign, step, active))
            if self.part == 0:
                # Near a boundary, the variance of an entry is in proportion to what is left.
                left = (room - step)[active] * room[active]
                fallen = _beside_boundary(fallen, np.sqrt(left) / self.errors[active])
            wanted = reach[active] ** 2
            inside = fallen <= wanted
            inner[active] = np.where(inside, step[active], inner[active])
            low[active] = np.where(inside, fallen, low[active])
            outer[active] = np.where(inside, outer[active], step[active])
            high[active] = np.where(inside, high[active], fallen)
            # The root of what has been lost grows about as the step does.
            ahead = step[active] * np.sqrt(wanted / np.maximum(fallen, 1e-3))
            between = (ahead > inner[active]) & (ahead < outer[active])
            middle = (inner[active] + outer[active]) / 2
            a, b, c = np.sqrt([np.maximum(low[active], 0.0), high[active], wanted])
            secant = inner[active] + (c - a) / (b - a) * (outer[active] - inner[active])
            step[active] = np.select([np.isfinite(b), between], [secant, ahead], middle)
            active = active[np.abs(fallen - wanted) > TUNING.profile_close]
            if active.size == 0:
                break
        return step

    def _logliks(self, sign: int, steps: Array, chosen: Ints) -> Array:
        """(c,): the log-likelihood where each of the chosen entries has made its step to one side,
        with what a part of a label adds to it.
        """
        values = self.values[chosen] + sign * steps[chosen]
        moves = zip(chosen.tolist(), values.tolist(), strict=True)
        points = [self._moved(i, value) for i, value in moves]
        logliks = self.profile.rows.total(_logliks, points)
        growing = values if sign > 0 else 1 - values
        return logliks + self.labels * np.log(np.maximum(growing, TUNING.tiny))

    def _moved(self, i: int, value: float) -> Mixture:
        """The parameters where entry i has a value."""
        at = self.profile.at
        size = value - self.values[i]
        in_P, in_q = self.directions[i]
        moved = [_shifted(at.P, size * in_P).T, _shifted(at.q, size * in_q)]
        distributions = moved[self.part]
        row, column = self.entries[i] if self.part else self.entries[i][::-1]
        distributions[row, column] = 0.0
        rest = max(distributions[row].sum(), TUNING.tiny)
        distributions[row] *= (1 - value) / rest
        distributions[row, column] = value
        P, q = (x / x.sum(axis=1, keepdims=True) for x in moved)
        return replace(at, P=P.T, q=q)


def _beside_boundary(fallen: Array, distance: Array) -> Array:
    """The fall of twice the log-likelihood that is as rare, far from a boundary, as ``fallen`` is
    at a distance from it, in standard errors.

    At a mean near the boundary, a Gaussian estimate that would lie beyond the boundary is moved to
    it, so the likelihood falls less from there to the mean. A fall is rarer than elsewhere if its
    root exceeds the distance.
    """
    root = np.sqrt(np.maximum(fallen, 0.0))
    beyond = root + np.maximum(root - distance, 0.0) ** 2 / (2 * np.maximum(distance, TUNING.tiny))
    chance = ndtr(-root) + ndtr(-beyond)
    return np.where(root > distance, ndtri(chance / 2) ** 2, fallen)


def _shifted(values: Array, change: Array) -> Array:
    """Values that grow by a change, or shrink by it but never to 0."""
    less = values * np.exp(np.minimum(change, 0.0) / np.maximum(values, TUNING.tiny))
    return np.where(change < 0, less, values + change)


def _logliks(rows: RowTable, points: list[Mixture]) -> Array:
    """(r,): the log-likelihood at some points; −∞ where a label is impossible."""
    return np.array([rows.evaluate(at).loglik for at in points])
