"""What a position is worth, and how well its influence is known.

A position is left out, everything else is fitted again, and the log-likelihood says what it was
worth. Its *influence* is by how much the token there moves the distribution of the label, in total
variation, on average over tokens: a[k, t]·Σ_m μ_m·‖P[:, m] − Pμ‖₁/2. Unlike the weight, it does not
depend on which of several matrices holds their common part, so that the data determine it. Its
standard error is √(∇ᵀH⁻¹∇), with the second derivatives H of the log-likelihood, by conjugate
gradients. H is singular where weights can move without changing the distribution; that does no
harm, since the influence does not move along these directions.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from scb.arrays import Array
from scb.mixture.data import Here, Rows
from scb.mixture.em import maximise
from scb.mixture.newton import Point, inverse_along
from scb.mixture.per_lag import is_current
from scb.mixture.select import Selection, Slot
from scb.mixture.tuning import TUNING


class Evidence(NamedTuple):
    """For each state, arrays over its positions."""

    # What the log-likelihood loses without the position, everything else fitted again
    nats: list[Array]
    parameters: list[Array]  # how many fewer parameters there are without it
    influence: list[Array]
    influence_errors: list[Array]  # NaN where they would take too long
    # Whether P was fitted again; else it was fixed, and ``nats`` are overstated
    refitted: bool


@dataclass(frozen=True)
class PendingEvidence:
    """What is needed to find the evidence on demand; that takes longer than the fit itself."""

    search: Selection  # at its maximum
    rows: Rows
    loglik: float  # there

    def without_samples(self) -> "PendingEvidence | None":
        """What is needed when the samples are gone: the rows alone. None where these lie in another
        process, or take too much memory to be kept.
        """
        rows = self.rows.to_keep(TUNING.evidence_bytes)
        if rows is None:
            return None
        data = replace(self.search.data, executor=Here(), partitions=[])
        return replace(self, rows=rows, search=replace(self.search, data=data, _kept=None))

    def find(self) -> Evidence:
        """The evidence; the same bits whenever it is asked for."""
        slots = self.search.all_slots()
        counted = self.rows.counted
        samples = self.search.data.n_samples if counted is None else len(counted.label)
        effort = samples * self.search.mixture.q.shape[1] * len(slots) * TUNING.evidence_passes
        cheap = effort <= TUNING.evidence_effort
        influence, errors = self._influences(slots, with_errors=cheap)
        columns = (
            self._nats_refitted(slots) if cheap else self._nats_with_P_fixed(slots),
            [self._parameters_of(slot) for slot in slots],
            influence,
            errors,
        )
        bounds = np.cumsum([len(s) for s in self.search.support])[:-1]
        return Evidence(*(np.split(np.array(x, float), bounds) for x in columns), refitted=cheap)

    def _nats_refitted(self, slots: list[Slot]) -> list[float]:
        nats = []
        for slot in slots:
            without = maximise(
                self.rows,
                self.search.mixture.without(*slot).lifted(),
                tolerance=TUNING.close,
                stall=TUNING.close / 10,
                steps=TUNING.evidence_steps,
            )
            nats.append(max(0.0, self.loglik - without.loglik))
        return nats

    def _nats_with_P_fixed(self, slots: list[Slot]) -> list[float]:
        ratios = self.search.ratios(self.rows, slots, np.zeros(self.search.data.K))
        return [ratios[slot] / 2 for slot in slots]

    def _influences(self, slots: list[Slot], with_errors: bool) -> tuple[list[float], list[float]]:
        """The influence of each slot, and its standard error; NaN where the data leave it open."""
        point = Point.from_rows(self.rows, self.search.mixture)
        unused = (point.at.P * point.gP).sum(axis=0) <= 0
        values = []
        errors = []
        for slot in slots:
            value, d_P, d_q = influence_gradient(self.search, slot)
            error = np.nan
            if with_errors and value > 0 and not d_P[:, unused].any():
                in_P, in_q = inverse_along(self.rows, point, d_P, d_q)
                error = np.sqrt(max(0.0, float((d_P * in_P).sum() + (d_q * in_q).sum())))
            values.append(value)
            errors.append(error)
        return values, errors

    def _parameters_of(self, slot: Slot) -> int:
        """How many parameters go with a slot: its weight, and its matrix if no other slot uses
        that.
        """
        search = self.search
        k, j = slot
        t = int(search.support[k][j - 1])
        labels = search.mixture.N - 1
        weight = int(len(search.support[k]) > 1 or search.mixture.q[k, 0] > 0)
        if search.mixture.owners is None:
            return weight + (labels**2 if len(search.all_slots()) == 1 else 0)
        if is_current(search.data, t):
            return weight + labels
        return weight + (labels**2 if len(search.users(t)) == 1 else 0)


def influence_gradient(search: Selection, slot: Slot) -> tuple[float, Array, Array]:
    """The influence of a slot, and its derivatives in P (N, C) and in q (K, s); 0 for the current
    symbol where that is the state.
    """
    mixture = search.mixture
    mu = search.data.mu
    k, j = slot
    t = int(search.support[k][j - 1])
    d_P = np.zeros(mixture.P.shape)
    d_q = np.zeros(mixture.q.shape)
    if not search.data.independent and is_current(search.data, t):
        return 0.0, d_P, d_q
    P = mixture.matrix(t)
    away = P - (P @ mu)[:, None]
    moves = float(np.abs(away).sum(axis=0) @ mu) / 2
    sign = np.sign(away) * mu
    d_P[:, mixture.place(t)] = mixture.q[slot] / 2 * (sign - sign.sum(axis=1, keepdims=True) * mu)
    d_q[slot] = moves
    return float(mixture.q[slot]) * moves, d_P, d_q
