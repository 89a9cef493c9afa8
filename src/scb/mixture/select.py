"""The selected positions of each state and the mixture on them, with the moves and the fits of a
search.

``settle`` decides which moves are made. A policy says which positions look promising, and which
slots may be removed at what cost: ``SHARED_MATRIX`` if all positions take their columns from one
matrix, and ``MATRIX_PER_LAG`` if each position has its own matrix.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from scb.arrays import Array, Flags, Ints
from scb.mixture.data import Data, Rows
from scb.mixture.em import Fit, maximise
from scb.mixture.model import Initial, Mixture, rounded, weight_table
from scb.mixture.rows import RowTable, Slots, Support
from scb.mixture.tuning import TUNING
from scb.mixture.weights import fit_weights

T = TypeVar("T")
Pair = tuple[int, int]  # a state and a position
Slot = tuple[int, int]  # a state and the number of a slot in it
# Positions to be added, and the matrices that new owners get
Proposal = tuple[list[Pair], dict[int, Array]]
# Is told the round, its positions over all states, and the log-likelihood
Progress = Callable[[int, int, float], None]


class Removal(NamedTuple):
    """Slots that may be left out together."""

    slots: list[Slot]
    cost: float  # what twice their log-likelihood ratio must reach for them to stay
    # Twice their log-likelihood ratio with P fixed; it is overstated
    ratio: float
    is_exact: bool = False  # then it is not: without them, P stays as it is


class Policy(NamedTuple):
    """The decisions in a search that depend on the kind of model."""

    # What may be left out
    removals: Callable[["Selection", Rows], list[Removal]]
    # (selection, rows, fit, barred pairs, least=part of the limit, most=slots of a state)
    candidates: Callable[..., Proposal]
    # Whether all slots together are worth less than the matrix costs; (…, whether they are pruned)
    no_signal: Callable[[Data, Rows, Fit, bool], bool]
    # Up to so many times its cost, a removal is in doubt
    near_cost: float
    # How often a pair may be pruned before it is no longer tried, if there are many symbols
    tries_of_many: int
    # (rows, start, options of ``maximise``): between which the search decides
    fit: Callable[..., Fit]
    # (selection, rows, pairs, whether they may be pruned): the least that these pairs cost
    cost: Callable[..., float]
    # (selection, rows, owners of matrices): what these matrices have memorised
    memorised: Callable[..., float]


@dataclass
class Selection:
    """The positions of each state, and the mixture on them; slot 0 is the background."""

    data: Data
    policy: Policy
    support: Support  # list of K arrays, in the order of the slots 1, 2, …
    mixture: Mixture  # its q is (K, 1 + slots)
    # (K,), the number of the matrix that each state has; all the same but in ``cross_fit``
    folds: Ints
    # The rows that were asked for last
    _kept: tuple[Data, Slots, Rows] | None = field(default=None, repr=False)
    # The positions and the mixture that were fitted last
    fitted: tuple[Support, Mixture] | None = field(default=None, repr=False)
    # What was computed for a mixture, by name
    _known: tuple[Mixture, dict[Any, Any]] | None = field(default=None, repr=False)

    @classmethod
    def from_initial(cls, data: Data, policy: Policy, initial: Initial) -> "Selection":
        """Start from the heaviest positions of an estimate, at most ``TUNING.most_at_start`` per
        state. The background gets a little of each state's weight, or all of it if the state has no
        position.
        """
        support = []
        weights = []
        for positions, w in zip(initial.positions, initial.weights, strict=True):
            by_weight = np.argsort(w, kind="stable")[::-1]
            heaviest = np.sort(by_weight[: TUNING.most_at_start])
            support.append(positions[heaviest])
            weights.append(w[heaviest])
        q = weight_table(weights, np.full(data.K, TUNING.background))
        mixture = Mixture(initial.P, data.label_distribution, q, initial.owners)
        search = cls(data, policy, support, mixture, folds=np.zeros(data.K, np.intp))
        search.drop_unused_matrices()
        return search

    def rows(self) -> Rows:
        """The data at the current positions."""
        width = self.mixture.q.shape[1]
        slots = Slots.from_support(self.support, self.mixture.owners, width, self.folds)
        if self._kept is None or self._kept[0] is not self.data or not self._kept[1].same(slots):
            self._kept = self.data, slots, self.data.rows(slots)
        return self._kept[2]

    def once(self, name: Any, compute: Callable[[], T]) -> T:
        """What a function computes, but only once for the present mixture."""
        if self._known is None or self._known[0] is not self.mixture:
            self._known = self.mixture, {}
        known = self._known[1]
        if name not in known:
            known[name] = compute()
        return known[name]

    def users(self, t: int) -> list[int]:
        """The states that attend to position t."""
        return [k for k, s in enumerate(self.support) if t in s]

    def slot(self, k: int, t: int) -> Slot:
        """The slot of state k that looks at position t."""
        return k, 1 + self.support[k].tolist().index(t)

    def all_slots(self) -> list[Slot]:
        """Every slot that looks at a position."""
        return [(k, j) for k, s in enumerate(self.support) for j in range(1, 1 + len(s))]

    def empty_slots(self, least: float = TUNING.empty) -> list[Slot]:
        """The slots that have lost their weight."""
        return [slot for slot in self.all_slots() if self.mixture.q[slot] < least]

    def pairs(self, slots: list[Slot]) -> set[Pair]:
        """The states and positions of slots."""
        return {(k, int(self.support[k][j - 1])) for k, j in slots}

    def all_pairs(self) -> frozenset[Pair]:
        """The states and positions of all slots."""
        return frozenset(self.pairs(self.all_slots()))

    def copy(self) -> "Selection":
        """A selection that stays what this one is now."""
        return replace(self, support=list(self.support))

    def return_to(self, other: "Selection") -> None:
        """Go back to a copy."""
        self.support = list(other.support)
        self.mixture = other.mixture
        self._kept = other._kept
        self._known = other._known

    def closed(self, barred: list[Pair], most: float) -> Flags:
        """(K, T): pairs that are not to be added: positions that a state has or that are barred,
        and all positions of states that do not occur or have ``most`` positions.
        """
        closed = np.zeros((self.data.K, self.data.T), bool)
        for k, s in enumerate(self.support):
            is_open = self.data.counts[k] and len(s) < most
            closed[k, s if is_open else slice(None)] = True
        for pair in barred:
            closed[pair] = True
        return closed

    @staticmethod
    def best_pairs(scores: Array, least: float, closed: Flags) -> list[Pair]:
        """For each state, the position with the largest of its scores (K, T) that is not closed, if
        that score is at least ``least``.
        """
        scores = np.where(closed, -np.inf, scores)
        best = scores.max(axis=1)
        states = np.flatnonzero((best >= least) & (best > -np.inf)).tolist()
        return [(k, int(scores[k].argmax())) for k in states]

    # ----------------------------------------------------------------------------------------- fits

    def fit(self, rows: Rows, hopeless: Callable[[Fit], bool] | None = None) -> Fit:
        """Maximise the likelihood at the current positions, closely enough to decide on them or
        until it is ``hopeless``, and move the mixture there.
        """
        many = TUNING.many_symbols < self.mixture.N
        options = {"tolerance": TUNING.close, "stall": TUNING.close} if many else {}
        fit = self.policy.fit(rows, self.mixture.lifted(), hopeless=hopeless, **options)
        self.mixture = fit.mixture
        self.fitted = list(self.support), fit.mixture
        return fit

    def final_fit(self, with_background: Flags, **options: Any) -> tuple[Rows, Fit]:
        """Maximise the likelihood, by options of ``maximise``, with the background in the requested
        states (K,).
        """
        at = self.mixture
        slots = (at.q[k, 1 : 1 + len(s)] for k, s in enumerate(self.support))
        weights = [np.maximum(np.round(w, 6), TUNING.empty) for w in slots]
        background = np.where(with_background, np.maximum(at.q[:, 0], TUNING.background), 0.0)
        q = weight_table(weights, background, at.q.shape[1])
        self.mixture = replace(at, P=rounded(at.P), q=q)
        rows = self.rows()
        fit = maximise(rows, self.mixture.lifted(), steps=5000, **options)
        self.mixture = fit.mixture
        self._known = None
        return rows, fit

    def ratios(self, rows: Rows, judged: list[Slot], beyond: Array) -> dict[Slot, float]:
        """Twice the log-likelihood ratio of slots, with P fixed; ratios of state k above
        ``beyond[k]`` are overstated.
        """
        bounds = rows.total(RowTable.removal_ratios, self.mixture)
        ratios = {slot: float(bounds[slot]) for slot in judged}
        # Beside a single slot there is nothing to be fitted.
        several = [slot for slot in sorted(judged) if len(self.support[slot[0]]) > 1]
        fitted = [slot for slot in several if bounds[slot] < beyond[slot[0]]]
        if not fitted:
            return ratios
        at_fit = rows.total(RowTable.logliks, self.mixture)
        by_state = [list(slots) for _, slots in groupby(fitted, itemgetter(0))]
        # One slot of each state at a time: with P fixed they do not affect each other.
        for together in zip_longest(*by_state):
            chosen = [slot for slot in together if slot is not None]
            without = self.mixture
            for slot in chosen:
                without = without.without(*slot)
            asked = np.isin(np.arange(self.data.K), [k for k, _ in chosen])
            logliks = fit_weights(rows, without, tolerance=0.01, asked=asked).logliks
            ratios |= {(k, j): 2 * float(at_fit[k] - logliks[k]) for k, j in chosen}
        return ratios

    def dispensable(
        self, rows: Rows, fit: Fit, doubtful: list[Removal]
    ) -> tuple[list[Slot], set[Pair]]:
        """The slots that are worth less than their costs when P is fitted again without them, and
        the pairs that are worth more.

        All slots are left out together, then the less valuable half of them, and so on. The first
        group that is not worth its costs is returned.
        """
        kept: set[Pair] = set()
        parts = [sorted(doubtful, key=lambda one: one.ratio / one.cost)] if doubtful else []
        while parts:
            group = parts.pop()
            slots = sorted({slot for one in group for slot in one.slots})
            cost = sum(one.cost for one in group)
            without = self.mixture.lifted()
            for slot in slots:
                without = without.without(*slot)
            enough = fit.loglik - cost / 2 + TUNING.close
            other = maximise(
                rows, without, tolerance=TUNING.close, stall=TUNING.close, steps=300, enough=enough
            )
            without_them = replace(self, mixture=other.mixture)
            left = {t for _, t in self.all_pairs() - self.pairs(slots)}
            # The matrices that are left memorise what is no longer explained
            cost -= self.policy.memorised(without_them, rows, left)
            cost += self.policy.memorised(self, rows, left)
            if 2 * (fit.loglik - other.loglik) < cost:
                return slots, kept
            if len(group) == 1:
                kept |= self.pairs(slots)
                continue
            half = len(group) // 2
            parts += [group[half:], group[:half]]
        return [], kept

    # ---------------------------------------------------------------------------------------- moves

    def put_in_order(self) -> None:
        """Sort the positions of each state, and its slots with them."""
        q = self.mixture.q.copy()
        for k, s in enumerate(self.support):
            order = np.argsort(s)
            self.support[k] = s[order]
            q[k, 1 : 1 + s.size] = self.mixture.q[k, 1 + order]
        self.mixture = replace(self.mixture, q=q)

    def remove(self, slots: list[Slot]) -> None:
        """Remove slots, and matrices that are no longer used; the weight goes to other slots."""
        for k, j in sorted(slots, reverse=True):
            self.support[k] = np.delete(self.support[k], j - 1)
            q = self.mixture.without(k, j).q
            q[k] = np.append(np.delete(q[k], j), 0.0)
            self.mixture = replace(self.mixture, q=q)
        self.drop_unused_matrices()

    def add(self, pairs: list[Pair], matrices: dict[int, Array]) -> None:
        """Add slots, each with a tenth of its state's weight, and the matrices of new owners."""
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
        """Drop the matrices of positions that no state attends to."""
        for t in self.mixture.owners or ():
            if not self.users(t):
                self.mixture = self.mixture.without_matrix(t)
