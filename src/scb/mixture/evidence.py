"""What a position is worth, and how well its influence is known.

A position is left out, everything else is fitted again, and the loss of log-likelihood is what the
position was worth. Where this would take too long, the new fit ends early, or P is not fitted
again; the loss is then an upper *bound* on what the position is worth. If all losses add up to more
than the model gains from all positions, the bounds are reduced in proportion. (The losses of
complete fits can also add up to slightly more than the total gain, because positions that need each
other both lose what they gain together.)

The *influence* of a position is how much the token there moves the distribution of the label, in
total variation, averaged over tokens: a[k, t]·Σ_m μ_m·‖P[:, m] − Pμ‖₁/2. Unlike the weight, it does
not depend on which of several matrices holds their common part, so the data determine it. Its
standard error √(∇ᵀH⁻¹∇), where H are the second derivatives of the log-likelihood, is computed by
conjugate gradients. H is singular where weights can move without changing the distribution. This
does no harm, since the influence does not change along these directions.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from scb.arrays import Array
from scb.mixture.data import Here, Rows
from scb.mixture.em import maximise, squared_em_step
from scb.mixture.lag_costs import Prices, charge
from scb.mixture.model import Mixture
from scb.mixture.newton import Point, inverse_along
from scb.mixture.per_lag import is_current
from scb.mixture.rows import RowTable
from scb.mixture.select import Selection, Slot
from scb.mixture.shrink import Shrinkage
from scb.mixture.tuning import TUNING


class Evidence(NamedTuple):
    """The evidence for each state, as arrays over its positions."""

    # What the log-likelihood loses without the position, everything else fitted again; or more
    # than that, where it is a bound
    nats: list[Array]
    bounds: list[Array]  # 1 where it is a bound, else 0
    costs: list[Array]  # what the BIC charges for it
    # Standard errors of the influence; NaN where they would take too long
    influence_errors: list[Array]


@dataclass(frozen=True)
class PendingEvidence:
    """What is needed to compute the evidence on demand, which takes longer than the fit itself."""

    search: Selection  # at its maximum
    rows: Rows
    loglik: float  # there
    shrinkage: Shrinkage | None = None  # of its matrices, if they are shrunk

    def without_samples(self) -> "PendingEvidence | None":
        """The same object with the rows alone, for use without the samples; None if the rows are in
        another process or need too much memory to be kept.
        """
        rows = self.rows.to_keep(TUNING.evidence_bytes)
        if rows is None:
            return None
        data = replace(self.search.data, executor=Here(), partitions=[])
        return replace(self, rows=rows, search=replace(self.search, data=data, _kept=None))

    def find(self) -> Evidence:
        """Compute the evidence; the result is bitwise the same whenever it is computed."""
        slots = self.search.all_slots()
        counted = self.rows.counted
        samples = self.search.data.n_samples if counted is None else len(counted.label)
        # How often the rows can be passed over for each slot
        passes = TUNING.evidence_effort / max(
            samples * self.search.mixture.q.shape[1] * len(slots), 1
        )
        errors = self._influence_errors(slots, passes >= TUNING.evidence_passes)
        nats, bounds = self._nats(slots, passes)
        columns = (nats, bounds, self._costs(slots), errors)
        ends = np.cumsum([len(s) for s in self.search.support])[:-1]
        return Evidence(*(np.split(np.array(x, float), ends) for x in columns))

    def _gain(self) -> float:
        """What all positions gain together, over the background alone."""
        at = self.search.mixture
        nothing = replace(at, q=np.eye(1, at.q.shape[1]).repeat(len(at.q), axis=0))
        return self.loglik - float(self.rows.total(RowTable.logliks, nothing).sum())

    def _nats(self, slots: list[Slot], passes: float) -> tuple[list[float], list[bool]]:
        """What each slot is worth, and whether that is a bound, with so many passes over the rows
        for each.
        """
        if passes >= TUNING.evidence_passes and self.shrinkage is None:
            return [self._nats_refitted(slot) for slot in slots], [False] * len(slots)
        ratios = self.search.ratios(self.rows, slots, np.full(self.search.data.K, np.inf))
        nats = np.array([max(0.0, ratios[slot] / 2) for slot in slots])
        bounds = np.ones(len(slots), bool)
        steps = int(min(passes, TUNING.evidence_steps) / (3 if self.shrinkage is None else 1))
        if steps >= TUNING.evidence_steps_at_least:
            whole = list(self._path(self.search.mixture, steps))
            for i, slot in enumerate(slots):
                loss, ended = self._nats_by_em(slot, whole)
                bounds[i] = not ended
                nats[i] = loss if ended else min(loss, nats[i])
        nats[bounds] *= min(1.0, self._gain() / max(nats.sum(), TUNING.tiny))
        return nats.tolist(), bounds.tolist()

    def _nats_refitted(self, slot: Slot) -> float:
        without = maximise(
            self.rows,
            self.search.mixture.without(*slot).lifted(),
            tolerance=TUNING.close,
            stall=TUNING.close / 10,
            steps=TUNING.evidence_steps,
        )
        return max(0.0, self.loglik - without.loglik)

    def _path(self, start: Mixture, steps: int) -> Iterator[float]:
        """The log-likelihood before and after each of so many EM steps, with a jump each unless
        matrices are shrunk.
        """
        step = squared_em_step if self.shrinkage is None else self.shrinkage.step
        point = Point.from_rows(self.rows, start.lifted())
        yield point.loglik
        for _ in range(steps):
            point = step(self.rows, point)
            yield point.loglik

    def _nats_by_em(self, slot: Slot, whole: list[float]) -> tuple[float, bool]:
        """What is lost after as many EM steps as the whole took, and whether further steps would
        win so little back that it is what a slot is worth: their gains are taken to be as large as
        the last ones, and to go on shrinking if these did.
        """
        few = TUNING.evidence_steps_at_least
        losses: list[float] = []
        without = self._path(self.search.mixture.without(*slot), len(whole) - 1)
        for with_it, without_it in zip(whole, without, strict=True):
            losses.append(with_it - without_it)
            if len(losses) > 3 * few:  # the first few steps win back most
                before, gain = np.maximum(-np.diff(losses[-1 - 2 * few :: few]), 0.0)
                ahead = gain * (TUNING.evidence_steps - len(losses)) / few
                if gain < before:
                    ahead = min(ahead, gain**2 / (before - gain))
                if ahead < TUNING.evidence_precision * losses[-1] + TUNING.close:
                    return max(0.0, losses[-1]), True
        return max(0.0, losses[-1]), False

    def _influence_errors(self, slots: list[Slot], wanted: bool) -> list[float]:
        """The standard error of the influence of each slot; NaN where the data leave it open, or if
        it is not wanted.
        """
        point = Point.from_rows(self.rows, self.search.mixture)
        unused = (point.at.P * point.gP).sum(axis=0) <= 0
        errors = []
        for slot in slots:
            value, d_P, d_q = influence_gradient(self.search, slot)
            error = np.nan
            if wanted and value > 0 and not d_P[:, unused].any():
                in_P, in_q = inverse_along(self.rows, point, d_P, d_q, TUNING.products_of_errors)
                error = np.sqrt(max(0.0, float((d_P * in_P).sum() + (d_q * in_q).sum())))
            errors.append(error)
        return errors

    def _costs(self, slots: list[Slot]) -> list[float]:
        """What the BIC charges for each slot: its weight, and a matrix that no other slot uses."""
        search = self.search
        at = search.mixture
        prices = Prices(search.data, self.rows, at).columns
        labels = int(np.count_nonzero(at.background)) - 1
        costs = []
        for k, j in slots:
            t = int(search.support[k][j - 1])
            columns = prices[at.place(t)]
            entries = labels * (int(np.count_nonzero(search.data.mu_at(t))) - 1)
            if at.owners is not None and is_current(search.data, t):
                columns = columns[k]
                entries = labels
            elif len(slots if at.owners is None else search.users(t)) > 1:
                entries = 0
            weight = len(search.support[k]) > 1 or at.q[k, 0] > 0
            costs.append(np.log(search.data.n) * weight + charge(search.data, entries, columns))
        return costs


def influence_gradient(search: Selection, slot: Slot) -> tuple[float, Array, Array]:
    """The influence of a slot, and its derivatives in P (N, C) and in q (K, s); 0 for the current
    symbol where that is the state.
    """
    mixture = search.mixture
    k, j = slot
    t = int(search.support[k][j - 1])
    mu = search.data.mu_at(t)
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
