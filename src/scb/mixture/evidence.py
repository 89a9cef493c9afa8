"""What a position is worth, and how well its influence is known.

A position is left out, everything else is fitted again, and the log-likelihood says what it was
worth. Its *influence* is by how much the token there moves the distribution of the label, in total
variation, on average over tokens: a[k, t]·Σ_m μ_m·‖P[:, m] − Pμ‖₁/2. Other than the weight, it does
not depend on where the common part of several matrices stands, so that the data can tell it. Its
standard error is √(∇ᵀH⁻¹∇), with the second derivatives H of the log-likelihood, by conjugate
gradients: where a matrix H would be singular, because weights can move without changing the
distribution, nothing is lost, since the influence does not move along these directions.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from scb.arrays import Array
from scb.mixture.data import Rows
from scb.mixture.em import maximise
from scb.mixture.model import Mixture
from scb.mixture.newton import Point, inverse_along
from scb.mixture.select import Selection, Slot
from scb.mixture.tuning import TUNING


class Evidence(NamedTuple):
    """For each context, arrays over its positions."""

    # What the log-likelihood loses without the position, everything else fitted again
    nats: list[Array]
    parameters: list[Array]  # how many fewer parameters there are without it
    influence: list[Array]
    influence_errors: list[Array]  # NaN where they would take too long
    # Whether P was fitted again; else it was fixed, and ``nats`` are overstated
    refitted: bool


@dataclass(frozen=True)
class PendingEvidence:
    """What is needed to find the evidence, which takes longer than the fit itself: so it is found
    when somebody asks.
    """

    search: Selection
    rows: Rows
    loglik: float  # of the search at its maximum

    def find(self) -> Evidence:
        """The evidence; the same bits whenever it is asked for."""
        return gather_evidence(self.search, self.rows, self.loglik)

    def without_samples(self) -> "PendingEvidence | None":
        """The same with nothing of the data but the rows; None where these lie elsewhere, or take
        too much memory to be kept.
        """
        rows = self.rows.alone()
        if rows is None or rows.nbytes > TUNING.evidence_bytes:
            return None
        return replace(self, rows=rows, search=self.search.without_samples())


def gather_evidence(search: Selection, rows: Rows, loglik: float) -> Evidence:
    """For the positions of a search that is at its maximum ``loglik``."""
    mixture = search.mixture
    slots = search.all_slots()
    samples = search.data.n if rows.counted is None else len(rows.counted.label)
    cheap = (
        samples * mixture.q.shape[1] * len(slots) * TUNING.evidence_passes <= TUNING.evidence_effort
    )
    if cheap:
        nats = {slot: max(0.0, loglik - _loglik_without(rows, mixture, slot)) for slot in slots}
    else:
        ratios = search.ratios(rows, slots, np.zeros(search.data.K))
        nats = {slot: ratio / 2 for slot, ratio in ratios.items()}
    influence = {}
    errors = {}
    point = Point.of(rows, mixture)
    unused = (mixture.P * point.gP).sum(axis=0) <= 0
    for slot in slots:
        value, d_P, d_q = influence_gradient(search, slot)
        influence[slot] = value
        errors[slot] = np.nan
        if cheap and value > 0 and not d_P[:, unused].any():  # otherwise the data leave it open
            in_P, in_q = inverse_along(rows, point, d_P, d_q)
            errors[slot] = np.sqrt(max(0.0, float((d_P * in_P).sum() + (d_q * in_q).sum())))
    fewer = {slot: float(_fewer_parameters(search, slot)) for slot in slots}
    by_context = (_by_context(search, values) for values in (nats, fewer, influence, errors))
    return Evidence(*by_context, refitted=cheap)


def _loglik_without(rows: Rows, mixture: Mixture, slot: Slot) -> float:
    return maximise(
        rows,
        mixture.without(*slot).lifted(),
        tolerance=TUNING.close,
        stall=TUNING.close / 10,
        steps=TUNING.evidence_steps,
    ).loglik


def influence_gradient(search: Selection, slot: Slot) -> tuple[float, Array, Array]:
    """The influence of a slot, and its derivatives in P (N, C) and in q (K, s); 0 for the current
    symbol where that is the context.
    """
    mixture = search.mixture
    data = search.data
    k, j = slot
    t = int(search.support[k][j - 1])
    d_P = np.zeros(mixture.P.shape)
    d_q = np.zeros(mixture.q.shape)
    if data.K > 1 and not data.independent and t == data.T - 1:
        return 0.0, d_P, d_q
    P = mixture.matrix(t)
    away = P - (P @ data.mu)[:, None]
    moves = float(np.abs(away).sum(axis=0) @ data.mu) / 2
    sign = np.sign(away) * data.mu
    d_P[:, mixture.place(t)] = (
        mixture.q[slot] / 2 * (sign - sign.sum(axis=1, keepdims=True) * data.mu)
    )
    d_q[slot] = moves
    return float(mixture.q[slot]) * moves, d_P, d_q


def _fewer_parameters(search: Selection, slot: Slot) -> int:
    """How many parameters go with a slot: its weight, and its matrix if nobody else uses that."""
    k, j = slot
    t = int(search.support[k][j - 1])
    labels = search.mixture.N - 1
    others = len(search.support[k]) > 1 or search.mixture.q[k, 0] > 0
    weight = 1 if others else 0
    if search.mixture.owners is None:
        alone = sum(len(s) for s in search.support) == 1
        return weight + (labels**2 if alone else 0)
    if search.data.K > 1 and t == search.data.T - 1:
        return weight + labels
    return weight + (labels**2 if len(search.users(t)) == 1 else 0)


def _by_context(search: Selection, values: dict[Slot, float]) -> list[Array]:
    return [
        np.array([values[k, j] for j in range(1, 1 + len(s))], float)
        for k, s in enumerate(search.support)
    ]
