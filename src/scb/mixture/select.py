"""Which positions matter, by likelihood: grow by score tests, prune by likelihood ratios, until
neither changes anything.

``Selection`` is the search: the positions of every context, the mixture fitted to them, and the
moves. Which positions look promising, which slots are too weak and which are in doubt is the
business of a policy: ``SHARED_MATRIX`` where all positions take their columns from one matrix,
``MATRIX_PER_LAG`` where each has its own. If nothing is known of the contexts, a search starts from
EM over all positions at once.

A slot costs what the extended BIC asks for it. It is *weak* if it is worth less with P fixed, which
overstates its worth: contexts do not touch each other then, so that one slot of each can go in one
round, however many contexts there are. It is *in doubt* if it is worth a little more: then P is
fitted again without it. Many that are in doubt are left out together first; only if they are worth
their costs together are they parted.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.mixture.data import Data, Rows
from scb.mixture.em import Fit, maximise
from scb.mixture.model import Initial, Mixture, rounded, smoothed_columns
from scb.mixture.rows import RowTable, Slots, Support
from scb.mixture.tuning import TUNING
from scb.mixture.weights import fit_weights

NO_LIMIT = 1 << 30
Pair = tuple[int, int]  # a context and a position
Slot = tuple[int, int]  # a context and the number of a slot in it
# Positions to be added, and the matrices that new owners get
Proposal = tuple[list[Pair], dict[int, Array]]
# Is told the round, its positions over all contexts, and the log-likelihood
Progress = Callable[[int, int, float], None]


class Removal(NamedTuple):
    """Slots that may be left out together."""

    slots: list[Slot]
    cost: float  # what twice their log-likelihood ratio must reach for them to stay
    # Twice their log-likelihood ratio with P fixed; it is overstated
    ratio: float


class Policy(NamedTuple):
    """What a search leaves to the kind of model."""

    weak: Callable[["Selection", Rows, Fit], list[Slot]]  # the slots that have to go
    # What may have to go, once P is fitted again without it
    doubtful: Callable[["Selection", Rows, Fit], "list[Removal]"]
    # (search, rows, fit, barred pairs, least=part of the limit, most=slots of a context)
    candidates: Callable[..., Proposal]
    fit_options: dict[str, Any]  # of the fits between which the search decides


@dataclass
class Selection:
    """A search: the positions of each context, and the mixture on them. Slot 0 of every context is
    the background.
    """

    data: Data
    policy: Policy
    support: Support  # list of K arrays, in the order of the slots 1, 2, …
    # q is (K, 1 + slots)
    mixture: Mixture
    # The rows that were asked for last
    _kept: tuple[Data, Slots, Rows] | None = field(default=None, repr=False)

    @classmethod
    def start(cls, data: Data, policy: Policy, initial: Initial) -> "Selection":
        """From an estimate: the background gets a little of each context's weight, and all of it
        where there is no position.
        """
        heaviest = [
            np.sort(np.argsort(w, kind="stable")[::-1][: TUNING.most_at_start])
            for w in initial.weights
        ]
        support = [np.array(s[i]) for s, i in zip(initial.positions, heaviest, strict=True)]
        q = np.zeros((data.K, 1 + max(len(s) for s in support)))
        for k, (w, i) in enumerate(zip(initial.weights, heaviest, strict=True)):
            q[k, 0] = TUNING.background if len(i) else 1.0
            q[k, 1 : 1 + len(i)] = (1 - TUNING.background) * (w[i] / w[i].sum())
        search = cls(
            data, policy, support, Mixture.of(initial.P, data.label_distribution, q, initial.owners)
        )
        search.drop_unused_matrices()
        return search

    def rows(self) -> Rows:
        """The data at the current positions."""
        slots = Slots.of(self.support, self.mixture.owners, width=self.mixture.q.shape[1])
        if self._kept is None or self._kept[0] is not self.data or not self._kept[1].same(slots):
            self._kept = self.data, slots, self.data.rows(slots)
        return self._kept[2]

    def without_samples(self) -> "Selection":
        """Where the search stands, without its data."""
        return replace(self, data=self.data.without_samples(), _kept=None)

    def users(self, t: int) -> list[int]:
        """The contexts that attend to position t."""
        return [k for k, s in enumerate(self.support) if t in s]

    def slot(self, k: int, t: int) -> Slot:
        """The slot of context k that looks at position t."""
        return k, 1 + self.support[k].tolist().index(t)

    # ----------------------------------------------------------------------------------- the search

    def settle(self, progress: Progress | None = None) -> bool:
        """Fit, prune, grow, until a round changes nothing; whether that came about."""
        # What was pruned twice is not tried again, and late rounds prune only: so it ends
        pruned: Counter[Pair] = Counter()
        needed: set[Pair] = set()  # what could not be left out since something was added
        for turn in range(TUNING.rounds):
            rows = self.rows()
            fit = self.fit(rows)
            if progress is not None:
                progress(turn + 1, sum(len(s) for s in self.support), fit.loglik)
            weak = self.policy.weak(self, rows, fit)
            if not weak and turn < TUNING.growing_rounds:
                barred = [pair for pair, times in pruned.items() if times > 1]
                pairs, matrices = self.policy.candidates(self, rows, fit, barred)
                if pairs:
                    self.add(pairs, matrices)
                    needed.clear()
                    continue
            if not weak:
                doubtful = [
                    one
                    for one in self.policy.doubtful(self, rows, fit)
                    if not self.pairs(one.slots) <= needed
                ]
                weak, kept = self.dispensable(rows, fit, doubtful)
                needed |= kept
            if not weak:
                return True
            pruned.update(self.pairs(weak))
            self.remove(weak)
        return False

    def dispensable(
        self, rows: Rows, fit: Fit, doubtful: list[Removal]
    ) -> tuple[list[Slot], set[Pair]]:
        """Slots that are worth less than their costs when P is fitted again without them; and the
        pairs that are worth more.

        All are left out together, then the less valuable half of them, and so on: what is found
        goes at once.
        """
        kept: set[Pair] = set()
        parts = [sorted(doubtful, key=lambda one: one.ratio / one.cost)] if doubtful else []
        while parts:
            group = parts.pop()
            slots = sorted({slot for one in group for slot in one.slots})
            if self.shortfall(rows, fit, slots, sum(one.cost for one in group)) > 0:
                return slots, kept
            if len(group) == 1:
                kept |= self.pairs(slots)
                continue
            half = len(group) // 2
            parts += [group[half:], group[:half]]
        return [], kept

    def shortfall(self, rows: Rows, fit: Fit, slots: list[Slot], cost: float) -> float:
        """By how much twice the log-likelihood ratio of slots falls short of their cost, P fitted
        again; ≤ 0 where they stay.
        """
        without = self.mixture.lifted()
        for slot in slots:
            without = without.without(*slot)
        enough = fit.loglik - cost / 2 + TUNING.close
        other = maximise(
            rows, without, tolerance=TUNING.close, stall=TUNING.close, steps=300, enough=enough
        )
        return cost - 2 * (fit.loglik - other.loglik)

    def pairs(self, slots: list[Slot]) -> set[Pair]:
        """The contexts and positions of slots."""
        return {(k, int(self.support[k][j - 1])) for k, j in slots}

    def settle_exactly(self, number: int) -> None:
        """Remove the weakest positions, or add the best ones, until each context has ``number`` of
        them.
        """
        while True:
            rows = self.rows()
            fit = self.fit(rows)
            over = [k for k, s in enumerate(self.support) if len(s) > number]
            if over:
                ratios = self.ratios(
                    rows,
                    [slot for slot in self.all_slots() if slot[0] in over],
                    np.full(self.data.K, np.inf),
                )
                self.remove(
                    [
                        min((ratio, slot) for slot, ratio in ratios.items() if slot[0] == k)[1]
                        for k in over
                    ]
                )
                continue
            pairs, matrices = self.policy.candidates(self, rows, fit, [], least=0.0, most=number)
            if not pairs:
                return
            self.add(pairs, matrices)

    # ----------------------------------------------------------------------------------------- fits

    def fit(self, rows: Rows) -> Fit:
        """Maximum likelihood at the current positions, close enough to decide on them; the mixture
        moves there.
        """
        fit = maximise(rows, self.mixture.lifted(), **self.policy.fit_options)
        self.mixture = fit.mixture
        return fit

    def final_fit(self, with_rest: NDArray[np.bool_]) -> tuple[Rows, Fit]:
        """Maximum likelihood to the end; beside the positions the background in the contexts (K,)
        asked for.
        """
        q = np.zeros_like(self.mixture.q)
        for k, s in enumerate(self.support):
            if s.size == 0:
                q[k, 0] = 1.0
                continue
            weights = np.maximum(np.round(self.mixture.q[k, 1 : 1 + s.size], 6), TUNING.empty)
            q[k, 0] = max(self.mixture.q[k, 0], TUNING.background) if with_rest[k] else 0.0
            q[k, 1 : 1 + s.size] = (1 - q[k, 0]) * weights / weights.sum()
        columns = np.c_[rounded(self.mixture.P), self.mixture.background]
        self.mixture = replace(self.mixture, columns=columns, q=q)
        rows = self.rows()
        fit = maximise(rows, self.mixture.lifted(), tolerance=1e-3, steps=5000)
        self.mixture = fit.mixture
        return rows, fit

    def ratios(self, rows: Rows, judged: list[Slot], beyond: Array) -> dict[Slot, float]:
        """Twice the log-likelihood ratio of slots, with P fixed; overstated for those of context k
        above ``beyond[k]``.
        """
        bounds = rows.total(RowTable.removal_ratios, self.mixture)
        found = {slot: float(bounds[slot]) for slot in judged}
        # One that is alone leaves nothing to be fitted.
        fitted = [
            (k, j)
            for k, j in sorted(judged)
            if bounds[k, j] < beyond[k] and len(self.support[k]) > 1
        ]
        if not fitted:
            return found
        at_fit = rows.total(RowTable.loglik_by_context, self.mixture)
        by_context = [list(slots) for _, slots in groupby(fitted, itemgetter(0))]
        # One slot of each context: with P fixed they do not touch each other
        for together in zip_longest(*by_context):
            chosen = [slot for slot in together if slot is not None]
            q = self.mixture.q.copy()
            for k, j in chosen:
                q[k] = self.mixture.without(k, j).q[k]
            contexts = np.isin(np.arange(len(q)), [k for k, _ in chosen])
            without = fit_weights(
                rows, replace(self.mixture, q=q), tolerance=0.01, contexts=contexts
            )
            found |= {(k, j): 2 * float(at_fit[k] - without.logliks[k]) for k, j in chosen}
        return found

    def all_slots(self) -> list[Slot]:
        """Every slot that looks at a position."""
        return [(k, j) for k, s in enumerate(self.support) for j in range(1, 1 + len(s))]

    # ---------------------------------------------------------------------------------------- moves

    def put_in_order(self) -> None:
        """Sort the positions of each context, and its slots with them."""
        q = self.mixture.q.copy()
        for k, s in enumerate(self.support):
            order = np.argsort(s)
            self.support[k] = s[order]
            q[k, 1 : 1 + s.size] = self.mixture.q[k, 1 + order]
        self.mixture = replace(self.mixture, q=q)

    def with_background(self, weight: float) -> Mixture:
        """The mixture with so much weight on the background in contexts that have none."""
        q = self.mixture.q.copy()
        none = q[:, 0] == 0
        q[none] *= 1 - weight
        q[none, 0] = weight
        return replace(self.mixture, q=q)

    def empty_slots(self, least: float = TUNING.empty) -> list[Slot]:
        """The slots that have lost their weight."""
        q = self.mixture.q
        return [slot for slot in self.all_slots() if q[slot] < least]

    def remove(self, slots: list[Slot]) -> None:
        """Take slots out; their weight goes to the others. Matrices that nobody uses any more go
        too.
        """
        for k, j in sorted(slots, reverse=True):
            self.support[k] = np.delete(self.support[k], j - 1)
            q = self.mixture.without(k, j).q
            q[k] = np.append(np.delete(q[k], j), 0.0)
            self.mixture = replace(self.mixture, q=q)
        self.drop_unused_matrices()

    def add(self, pairs: list[Pair], matrices: dict[int, Array]) -> None:
        """New slots, each with a tenth of its context's weight, and the matrices of new owners."""
        for t, matrix in matrices.items():
            self.mixture = self.mixture.with_matrix(t, matrix)
        more = Counter(k for k, _ in pairs)
        width = 1 + max(len(s) + more[k] for k, s in enumerate(self.support))
        missing = max(0, width - self.mixture.q.shape[1])
        q = np.pad(self.mixture.q, ((0, 0), (0, missing)))
        for k, t in pairs:
            self.support[k] = np.append(self.support[k], t)
            q[k] *= 1 - TUNING.new_slot
            q[k, len(self.support[k])] = TUNING.new_slot
        self.mixture = replace(self.mixture, q=q)

    def drop_unused_matrices(self) -> None:
        """Positions that no context attends to lose their matrices."""
        for t in self.mixture.owners or ():
            if not self.users(t):
                self.mixture = self.mixture.without_matrix(t)


# ---------------------------------------------------------------------------- where a search starts


def thinned_for_start(data: Data) -> Data:
    """Enough samples to begin with."""
    return data.thinned(max(1, TUNING.start_cells // data.T))


def first_estimate(data: Data, known: Initial | None, per_lag: bool) -> Initial:
    """EM over all positions, a concave problem where matrices are known; from nothing where each
    lag will have its own.

    One known matrix for all is tried at every position; those that are owned, at their owners.
    """
    if per_lag and (known is None or not known.owners):
        # Columns to point to, which nobody owns
        nothing = np.repeat(data.label_distribution[:, None], data.N, axis=1)
        return Initial(nothing, [np.zeros(0, np.intp)] * data.K, [np.zeros(0)] * data.K, owners=())
    few = thinned_for_start(data)
    if known is None:
        return from_scratch(few)
    positions = np.arange(data.T) if known.owners is None else np.array(known.owners)
    rows = few.rows(
        Slots.everywhere(positions, data.K, matrices=1 if known.owners is None else len(positions))
    )
    start = Mixture.of(
        known.P,
        few.label_distribution,
        np.full((data.K, len(positions)), 1 / len(positions)),
        known.owners,
    ).lifted()
    fitted = fit_weights(rows, start, steps=TUNING.start_steps)
    return _grown(few, replace(start, q=fitted.q), positions)


def from_scratch(data: Data) -> Initial:
    """What grows in EM over all positions, from uniform attention; P is shared and unknown."""
    positions = np.arange(data.T)
    return _grown(data, em_from_scratch(data, positions), positions)


def em_from_scratch(data: Data, positions: NDArray[np.intp]) -> Mixture:
    """EM over some positions, with a slot each, from uniform attention; P is shared and unknown."""
    rows = data.rows(Slots.everywhere(positions, data.K))
    pairs = np.array([rows.total(RowTable.pairs, j, data.N) for j in range(len(positions))])
    total = np.maximum(pairs.sum(axis=(1, 2), keepdims=True), 1.0)
    expected = pairs.sum(axis=1, keepdims=True) * pairs.sum(axis=2, keepdims=True) / total
    # (s,): χ²
    dependence = ((pairs - expected) ** 2 / np.where(expected > 0, expected, 1.0)).sum(axis=(1, 2))
    uniform = np.full((data.K, len(positions)), 1 / len(positions))
    # P starts as the pairs of label and token have it, at any position, and then where they depend
    # on each other most.
    fits = []
    for table in (pairs.sum(axis=0), pairs[dependence.argmax()]):
        start = Mixture.of(
            smoothed_columns(table, data.label_distribution), data.label_distribution, uniform
        )
        fits.append(maximise(rows, start, steps=TUNING.start_steps, newton=False))
    return max(fits, key=lambda fit: fit.loglik).mixture


def _grown(data: Data, fitted: Mixture, positions: NDArray[np.intp]) -> Initial:
    """What grew, in each context that occurs."""
    found = []
    weights = []
    for w, n in zip(fitted.q, data.counts, strict=True):
        kept = np.flatnonzero((w >= min(TUNING.grown, w.max())) & (n > 0))
        found.append(positions[kept])
        weights.append(rounded(w[kept] / w[kept].sum()))
    P = np.maximum(fitted.P, 1e-3 * data.label_distribution[:, None])
    return Initial(rounded(P / P.sum(axis=0)), found, weights, fitted.owners)
