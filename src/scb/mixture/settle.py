"""The search for positions by likelihood: positions are added by score tests and removed by
likelihood ratios until neither changes anything.

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
from typing import NamedTuple

import numpy as np

from scb.mixture.data import Rows
from scb.mixture.em import Fit
from scb.mixture.select import Pair, Removal, Selection, Slot
from scb.mixture.tuning import TUNING

# Is told the round, its positions over all states, and the log-likelihood
Progress = Callable[[int, int, float], None]


def settle(selection: Selection, progress: Progress | None = None) -> bool:
    """Fit, prune and grow until a round changes nothing; return whether that happened."""
    search = Search.from_selection(selection)
    for turn in range(TUNING.rounds):
        rows = selection.rows()
        fit = selection.fit(rows, partial(search.hopeless, rows))
        if progress is not None:
            progress(turn + 1, len(selection.all_slots()), fit.loglik)
        removed = search.weak(rows, fit)
        if not removed and turn < search.growing and search.grow():
            continue
        removed = removed or search.dispensable()
        if not removed:
            return True
        search.remove(removed)
        if search.silent == TUNING.silent_rounds:
            return True
    return False


def settle_exactly(selection: Selection, number: int) -> None:
    """Remove the weakest positions or add the best until each state has ``number`` of them."""
    while True:
        rows = selection.rows()
        fit = selection.fit(rows)
        over = [slot for slot in selection.all_slots() if len(selection.support[slot[0]]) > number]
        if over:
            ratios = selection.ratios(rows, over, np.full(selection.data.K, np.inf))
            strongest_first = sorted(over, key=lambda slot: ratios[slot], reverse=True)
            selection.remove(list({slot[0]: slot for slot in strongest_first}.values()))
            continue
        pairs, matrices = selection.policy.candidates(
            selection, rows, fit, [], least=0.0, most=number
        )
        if not pairs:
            return
        selection.add(pairs, matrices)


class Standing(NamedTuple):
    """Where a search stood when nothing was weak."""

    selection: Selection
    pairs: frozenset[Pair]
    rows: Rows
    fit: Fit
    removals: list[Removal]


@dataclass
class Search:
    """What a search remembers of its rounds."""

    selection: Selection
    stood: Standing
    growing: int  # the first round that only prunes
    tries: int  # how often a pair may be pruned before it is no longer tried
    silent: int = 0  # rounds in which there was no signal
    pruned: Counter[Pair] = field(default_factory=Counter)
    # What could not be left out since something was added
    needed: set[Pair] = field(default_factory=set)
    # What each growth added, by the pairs from which it began
    added: dict[frozenset[Pair], list[Pair]] = field(default_factory=dict)
    # What was added where it stood, and cost more than it gained
    refused: set[Pair] = field(default_factory=set)

    @classmethod
    def from_selection(cls, selection: Selection) -> "Search":
        """Begin; whatever is found first is better than where the search stood."""
        nowhere = Fit(selection.mixture, np.inf, [-np.inf])
        stood = Standing(selection.copy(), selection.all_pairs(), selection.rows(), nowhere, [])
        if TUNING.many_symbols < selection.mixture.N:
            growing = TUNING.growing_rounds // 2
            return cls(selection, stood, growing, selection.policy.tries_of_many)
        return cls(selection, stood, TUNING.growing_rounds, tries=2)

    def hopeless(self, rows: Rows, fit: Fit) -> bool:
        """Whether there would be no signal, or none that is worth what was added, even if the
        likelihood gained all of its gap.
        """
        best = fit._replace(path=[fit.loglik + fit.gap])
        there = replace(self.selection, mixture=fit.mixture)
        return there.policy.no_signal(there.data, rows, best, False) or (
            self.is_too_dear(there, rows, best, True)
        )

    def weak(self, rows: Rows, fit: Fit) -> list[Slot]:
        """The slots that are weak at a fit, or all if there is no signal; none if the search stands
        there, or goes back because what was added costs more than it gains.
        """
        at = self.selection
        if not self.is_too_dear(at, rows, fit, True):
            removals = at.policy.removals(at, rows)
            slots = weak_slots(at, removals)
            if at.policy.no_signal(at.data, rows, fit, not slots):
                slots = at.all_slots()
                self.silent += bool(slots)
            if slots:
                return slots
            if not self.is_too_dear(at, rows, fit, False):
                pairs = at.all_pairs()
                if not pairs <= self.stood.pairs:
                    self.refused.clear()
                self.stood = Standing(at.copy(), pairs, rows, fit, removals)
                return []
        self.refused.update(self.added.pop(self.stood.pairs))
        at.return_to(self.stood.selection)
        return []

    def is_too_dear(self, at: Selection, rows: Rows, fit: Fit, to_prune: bool) -> bool:
        """Whether what was added since the search stood costs more than it gains; ``to_prune`` says
        whether some of it may still be pruned.
        """
        here = at.all_pairs()
        before = self.stood.pairs
        cost = at.policy.cost(at, rows, here - before, to_prune)
        if cost == 0:
            return False
        # What is about to lose its weight is taken to be lost.
        left = here - at.pairs(at.empty_slots(TUNING.new_slot if to_prune else 0.0))
        stood = self.stood
        cost -= at.policy.cost(stood.selection, stood.rows, before - left, False)
        # Matrices that were there before need not memorise what is now explained
        owners = set(stood.selection.mixture.owners or ()) & set(at.mixture.owners or ())
        cost += at.policy.memorised(at, rows, owners)
        cost -= at.policy.memorised(stood.selection, stood.rows, owners)
        return 2 * (fit.loglik - self.stood.fit.loglik) < cost

    def grow(self) -> bool:
        """Add what promises most; return whether there was anything."""
        at = self.selection
        here = at.all_pairs()
        # If all that was added here is gone, it would go again
        self.pruned.update(self.added.get(here, []))
        barred = [pair for pair, times in self.pruned.items() if times >= self.tries]
        pairs, matrices = at.policy.candidates(
            at, self.stood.rows, self.stood.fit, [*barred, *self.refused]
        )
        if pairs:
            self.added[here] = pairs
            at.add(pairs, matrices)
            self.needed.clear()
        return bool(pairs)

    def dispensable(self) -> list[Slot]:
        """The slots in doubt that are worth less than they cost if P is fitted without them."""
        at = self.selection
        doubtful = doubtful_removals(self.stood.removals, at.policy.near_cost)
        doubtful = [one for one in doubtful if not at.pairs(one.slots) <= self.needed]
        slots, kept = at.dispensable(self.stood.rows, self.stood.fit, doubtful)
        self.needed |= kept
        return slots

    def remove(self, slots: list[Slot]) -> None:
        """Prune slots, and remember that."""
        self.pruned.update(self.selection.pairs(slots))
        self.selection.remove(slots)


def weak_slots(at: Selection, removals: list[Removal]) -> list[Slot]:
    """The slots without weight, and those that are worth less than they cost with P fixed. There is
    at most one removal for each state, and at most one removal of several slots.
    """
    slots = at.empty_slots()
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


def doubtful_removals(removals: list[Removal], near_cost: float) -> list[Removal]:
    """Those of slots that are worth little more than they cost with P fixed, up to ``near_cost``
    times as much; at most two per state.
    """
    near = [one for one in removals if not one.is_exact and one.ratio < near_cost * one.cost]
    seen: Counter[int] = Counter()
    chosen = []
    for one in sorted(near, key=lambda one: one.ratio / one.cost):
        single = len(one.slots) == 1
        seen[one.slots[0][0]] += single
        if not single or seen[one.slots[0][0]] <= 2:
            chosen.append(one)
    return chosen
