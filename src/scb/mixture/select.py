"""The selection of positions by likelihood: positions are added by score tests and removed by
likelihood ratios until neither changes anything.

``Selection`` is the search. A policy decides which positions look promising, and which slots may be
removed at what cost: ``SHARED_MATRIX`` if all positions take their columns from one matrix, and
``MATRIX_PER_LAG`` if each position has its own matrix.

The cost of a slot is the extended BIC's penalty for it. A slot is *weak* if it is worth less than
its cost with P fixed, which overstates its worth. With P fixed, states do not affect each other, so
one slot of each state can be removed in one round, however many states there are. A slot is *in
doubt* if it is worth slightly more; then P is fitted again without it. All slots in doubt are first
left out together, and split into groups only if together they are worth their costs.

What a new matrix promises to gain may be overstated. If what was added turns out to gain less than
it costs, the search goes back to where it stood before, and tries something else.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
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
    # (search, rows, fit, barred pairs, least=part of the limit, most=slots of a state)
    candidates: Callable[..., Proposal]
    # Whether all slots together are worth less than the matrix costs; (…, whether they are pruned)
    no_signal: Callable[[Data, Rows, Fit, bool], bool]
    # Up to so many times its cost, a removal is in doubt
    near_cost: float
    # (rows, start, options of ``maximise``): between which the search decides
    fit: Callable[..., Fit]
    # (search, rows, pairs, whether they may be pruned): the least that these pairs cost
    cost: Callable[..., float]


class Standing(NamedTuple):
    """Where a search stood when nothing was to be pruned."""

    search: "Selection"
    rows: Rows
    fit: Fit
    removals: list[Removal]

    @property
    def pairs(self) -> frozenset[Pair]:
        """The states and positions there."""
        return self.search.all_pairs()


@dataclass
class Selection:
    """A search: the positions of each state, and the mixture on them; slot 0 is the background."""

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
        """A search that stays where this one is."""
        return replace(self, support=list(self.support))

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

    # ----------------------------------------------------------------------------------- the search

    def settle(self, progress: Progress | None = None) -> bool:
        """Fit, prune and grow until a round changes nothing; return whether that happened."""
        # What was pruned twice is not tried again, nor what was pruned once where each position has
        # a matrix of many symbols, which takes long to fit; late rounds prune.
        pruned: Counter[Pair] = Counter()
        needed: set[Pair] = set()  # what could not be left out since something was added
        added: dict[frozenset[Pair], list[Pair]] = {}  # what each growth added, by where it began
        refused: set[Pair] = set()  # what was added where it stood, and cost more than it gained
        nowhere = Fit(self.mixture, np.inf, [-np.inf])
        stood = Standing(self.copy(), self.rows(), nowhere, [])
        silent = 0  # rounds in which there was no signal
        many = TUNING.many_symbols < self.mixture.N
        growing = TUNING.growing_rounds // 2 if many else TUNING.growing_rounds
        tries = 1 if many and self.mixture.owners is not None else 2
        for turn in range(TUNING.rounds):
            rows = self.rows()
            fit = self.fit(rows, partial(self.hopeless, rows, stood))
            if progress is not None:
                progress(turn + 1, len(self.all_slots()), fit.loglik)
            removals: list[Removal] = []
            weak: list[Slot] = []
            too_dear = self.is_too_dear(stood, rows, fit, True)
            if not too_dear:
                removals = self.policy.removals(self, rows)
                weak = self.weak(removals)
                if self.policy.no_signal(self.data, rows, fit, not weak):
                    weak = self.all_slots()
                    silent += bool(weak)
                too_dear = not weak and self.is_too_dear(stood, rows, fit, False)
            if too_dear:
                refused.update(added.pop(stood.pairs))
                rows, fit, removals = self.return_to(stood)
            elif not weak:
                if not self.all_pairs() <= stood.pairs:
                    refused.clear()
                stood = Standing(self.copy(), rows, fit, removals)
            if not weak and turn < growing:
                # If all that was added here is gone, it would go again
                here = self.all_pairs()
                pruned.update(added.get(here, []))
                barred = [pair for pair, times in pruned.items() if times >= tries]
                barred += refused
                pairs, matrices = self.policy.candidates(self, rows, fit, barred)
                if pairs:
                    added[here] = pairs
                    self.add(pairs, matrices)
                    needed.clear()
                    continue
            if not weak:
                doubtful = self.doubtful(removals)
                doubtful = [one for one in doubtful if not self.pairs(one.slots) <= needed]
                weak, kept = self.dispensable(rows, fit, doubtful)
                needed |= kept
            if not weak:
                return True
            pruned.update(self.pairs(weak))
            self.remove(weak)
            if silent == TUNING.silent_rounds:
                return True
        return False

    def hopeless(self, rows: Rows, stood: Standing, fit: Fit) -> bool:
        """Whether there would be no signal, or none that is worth what was added, even if the
        likelihood gained all of its gap.
        """
        best = fit._replace(path=[fit.loglik + fit.gap])
        return self.policy.no_signal(self.data, rows, best, False) or (
            replace(self, mixture=fit.mixture).is_too_dear(stood, rows, best, True)
        )

    def is_too_dear(self, stood: Standing, rows: Rows, fit: Fit, to_prune: bool) -> bool:
        """Whether what was added since the search stood costs more than it gains; ``to_prune`` says
        whether some of it may still be pruned.
        """
        here = self.all_pairs()
        cost = self.policy.cost(self, rows, here - stood.pairs, to_prune)
        if cost == 0:
            return False
        # What is about to lose its weight is taken to be lost.
        left = here - self.pairs(self.empty_slots(TUNING.new_slot if to_prune else 0.0))
        cost -= self.policy.cost(stood.search, stood.rows, stood.pairs - left, False)
        return 2 * (fit.loglik - stood.fit.loglik) < cost

    def return_to(self, stood: Standing) -> tuple[Rows, Fit, list[Removal]]:
        """Go back to where the search stood; return the rows, the fit and the removals there."""
        self.support = list(stood.search.support)
        self.mixture = stood.search.mixture
        self._kept = stood.search._kept
        self._known = stood.search._known
        return stood.rows, stood.fit, stood.removals

    def weak(self, removals: list[Removal]) -> list[Slot]:
        """The slots without weight, and those that are worth less than they cost with P fixed.
        There is at most one removal for each state, and at most one removal of several slots.
        """
        slots = self.empty_slots()
        touched = {k for k, _ in slots}
        several = False
        for one in sorted(removals, key=lambda one: one.ratio - one.cost):
            states = {k for k, _ in one.slots}
            is_free = not touched & states and not (several and len(one.slots) > 1)
            if one.ratio < one.cost and is_free:
                slots += one.slots
                touched |= states
                several |= len(one.slots) > 1
        return slots

    def doubtful(self, removals: list[Removal]) -> list[Removal]:
        """Slots that are worth little more than they cost with P fixed; at most two per state."""
        near_cost = self.policy.near_cost
        near = [r for r in removals if not r.is_exact and r.ratio < near_cost * r.cost]
        seen: Counter[int] = Counter()
        chosen = []
        for one in sorted(near, key=lambda one: one.ratio / one.cost):
            single = len(one.slots) == 1
            seen[one.slots[0][0]] += single
            if not single or seen[one.slots[0][0]] <= 2:
                chosen.append(one)
        return chosen

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
            if 2 * (fit.loglik - other.loglik) < cost:
                return slots, kept
            if len(group) == 1:
                kept |= self.pairs(slots)
                continue
            half = len(group) // 2
            parts += [group[half:], group[:half]]
        return [], kept

    def settle_exactly(self, number: int) -> None:
        """Remove the weakest positions or add the best until each state has ``number`` of them."""
        while True:
            rows = self.rows()
            fit = self.fit(rows)
            over = [slot for slot in self.all_slots() if len(self.support[slot[0]]) > number]
            if over:
                ratios = self.ratios(rows, over, np.full(self.data.K, np.inf))
                strongest_first = sorted(over, key=lambda slot: ratios[slot], reverse=True)
                self.remove(list({slot[0]: slot for slot in strongest_first}.values()))
                continue
            pairs, matrices = self.policy.candidates(self, rows, fit, [], least=0.0, most=number)
            if not pairs:
                return
            self.add(pairs, matrices)

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
