"""How often each symbol followed each history: all that n-grams, context trees and PPM need.

The history of a label is the symbols before it, as far back as ``depth``, a gap, or the start of
its sequence. A history is stored as one integer, Σ_j (x_j + 1)·(N + 1)^(j − 1) over the lags j = 1,
2, …. In this code, the nearest symbol is the last digit, a shorter history is a remainder, and the
digit 0 means that there is no symbol. Counts of several partitions add up.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.inputs import InputError
from scb.mixture.windows import of_each
from scb.sequences.baselines.tree import HistoryTree, Ints, places_of

# The longest histories that are tried
DEPTH = 16
# Entries of tables that are computed at a time, which bounds memory
ENTRIES = 1 << 22
# Entries that fit into the CPU's cache
_CACHED = 1 << 18


def deepest(N: int, wanted: int) -> int:
    """The longest history, of at most ``wanted`` symbols, whose code with a label fits into 62
    bits.
    """
    depth = 0
    while depth < wanted and N * (N + 1) ** (depth + 1) < 1 << 62:
        depth += 1
    return depth


def is_long_enough(depth: int, best: int) -> bool:
    """Whether longer histories need not be tried. All lengths up to 6 are tried, since two symbols
    may be informative only together, and then two lengths beyond the best so far.
    """
    return depth >= max(6, best + 2)


class Histories(NamedTuple):
    """Labels in the order of the sequences, each with its history."""

    history: Ints  # (n,)
    label: Ints  # (n,)

    def part(self, at: slice | NDArray[np.bool_]) -> "Histories":
        """Some of the labels."""
        return Histories(self.history[at], self.label[at])


def histories_in(
    sequences: Sequence[Ints], N: int, depth: int, skipped: int | Sequence[int] = 0
) -> Histories:
    """Every symbol of sequences of codes that directly follows another, with its history.

    The first ``skipped`` symbols of each sequence are not labels; ``skipped`` is one number for all
    sequences or one for each.
    """
    nothing = np.zeros(0, np.int64)
    firsts = np.maximum(of_each(sequences, skipped), 1)
    chosen = [
        np.flatnonzero((codes[first:] >= 0) & (codes[first - 1 : -1] >= 0)) + first
        for codes, first in zip(sequences, firsts, strict=True)
    ]
    pairs = list(zip(sequences, chosen, strict=True))
    histories = [history_codes(codes, N, depth)[at] for codes, at in pairs]
    labels = [codes[at] for codes, at in pairs]
    return Histories(
        np.concatenate([nothing, *histories]), np.concatenate([nothing, *labels]).astype(np.int64)
    )


def history_codes(codes: Ints, N: int, depth: int) -> Ints:
    """(n + 1,): the history of each symbol of a sequence, and of the symbol after the last."""
    history = np.zeros(codes.size + 1, np.int64)
    # Whether there is no gap between the symbol at this lag and the label
    unbroken = np.ones(codes.size + 1, bool)
    for lag in range(1, min(depth, codes.size) + 1):
        digit = np.zeros(codes.size + 1, np.int64)
        digit[lag:] = codes[: codes.size + 1 - lag] + 1
        unbroken &= digit > 0
        history += np.where(unbroken, digit, 0) * (N + 1) ** (lag - 1)
    return history


@dataclass(frozen=True)
class HistoryCounts:
    """How often each label followed each history."""

    N: int
    depth: int  # of the longest histories
    # (J,): history · N + label, ascending
    codes: Ints
    counts: Ints  # (J,)

    @classmethod
    def count(cls, labels: Histories, N: int, depth: int) -> "HistoryCounts":
        """Count labels by their histories of up to ``depth`` symbols."""
        longest = deepest(N, depth)
        if not 0 <= depth <= longest:
            raise InputError(
                f"depth = {depth}: with {N} different symbols, histories can have between 0 and "
                f"{longest} symbols"
            )
        codes, counts = np.unique(
            labels.history % (N + 1) ** depth * N + labels.label, return_counts=True
        )
        return cls(N, depth, codes, counts)

    @classmethod
    def total_of(cls, parts: Sequence["HistoryCounts"]) -> "HistoryCounts":
        """The counts of several partitions together."""
        codes = np.concatenate([part.codes for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        return parts[0]._summed(codes, counts, parts[0].depth)[0]

    def __add__(self, other: "HistoryCounts") -> "HistoryCounts":
        """The counts of two partitions together."""
        return HistoryCounts.total_of([self, other])

    def __sub__(self, other: "HistoryCounts") -> "HistoryCounts":
        """The counts without a part of them. Codes of which nothing is left stay, with a count of
        0, so that the tree stays the same but for its counts.
        """
        at = np.searchsorted(self.codes, other.codes)
        left = self.counts.copy()
        left[at] -= other.counts
        return self._with_tree(self.tree.without(at, other.counts), counts=left)

    def without_near(self, other: "HistoryCounts") -> "HistoryCounts":
        """The counts without a part of them, but only for the histories of this part."""
        at = np.searchsorted(self.codes, other.codes)
        tree = self.tree.near(at, other.counts)
        return self._with_tree(tree, codes=other.codes, counts=self.counts[at] - other.counts)

    def _with_tree(self, tree: HistoryTree, **changes: Ints) -> "HistoryCounts":
        changed = replace(self, **changes)
        vars(changed)["tree"] = tree  # what it caches
        return changed

    def _summed(self, codes: Ints, counts: Ints, depth: int) -> tuple["HistoryCounts", Ints]:
        """The sums of counts with equal codes, and the place of each code among the distinct."""
        distinct, place = np.unique(codes, return_inverse=True)
        total = np.bincount(place, counts, minlength=distinct.size).astype(np.int64)
        return HistoryCounts(self.N, depth, distinct, total), place

    @cached_property
    def shorter(self) -> tuple["HistoryCounts", Ints]:
        """Counts by histories of one symbol less, and the place of each of our codes in them."""
        depth = self.depth - 1
        return self._summed(self.codes % (self.N * (self.N + 1) ** depth), self.counts, depth)

    def shortened(self, depth: int) -> "HistoryCounts":
        """Counts by histories of up to ``depth`` symbols only."""
        counts = self
        while depth < counts.depth:
            counts = counts.shorter[0]
        return counts

    @property
    def labels(self) -> Histories:
        """The distinct pairs of a history and a label; ``counts`` says how often each pair
        occurred.
        """
        return Histories(*np.divmod(self.codes, self.N))

    def loglik(self, likelihoods: Array) -> float:
        """The log-likelihood of all labels, from the probability of each of ``labels``."""
        return float(self.counts @ np.log(likelihoods))

    @property
    def total(self) -> int:
        """The number of labels counted."""
        return int(self.counts.sum())

    @property
    def distinct_histories(self) -> int:
        """The number of different histories."""
        return int(np.count_nonzero(np.diff(self.codes // self.N, prepend=-1)))

    @property
    def first_whole(self) -> int:
        """The place of the first code whose history is exactly ``depth`` symbols long."""
        smallest = (self.N + 1) ** (self.depth - 1) if self.depth else 0
        return int(np.searchsorted(self.codes, smallest * self.N))

    @cached_property
    def tree(self) -> HistoryTree:
        """All histories of up to ``depth`` symbols."""
        return _grown(self)

    def nodes(self, histories: Ints) -> Ints:
        """(depth + 2, n): the node of each history in each part of the tree, −1 if not seen."""
        histories = histories % (self.N + 1) ** self.depth
        place = np.searchsorted(self.codes, histories * self.N)
        place = np.minimum(place, self.codes.size - 1)
        if self.codes.size == 0 or (self.codes[place] // self.N != histories).any():
            return self.tree.find(histories)
        # Histories that were counted need not be looked for in each part
        return self.tree.rows[self.tree.path[:, place]]

    def places(self, labels: Histories) -> tuple[Ints, Ints]:
        """(depth + 2, n): the node of the history of each label in each part of the tree, and its
        entry with the label; −1 if not seen.
        """
        history = labels.history % (self.N + 1) ** self.depth
        place = places_of(self.codes, history * self.N + labels.label)
        if (place >= 0).all():
            entries = self.tree.path[:, place]
            return self.tree.rows[entries], entries
        nodes = self.nodes(history)
        wanted = np.where(nodes >= 0, nodes * self.N + labels.label, -1)
        return nodes, places_of(self.tree.keys, wanted)


def _grown(counts: HistoryCounts) -> HistoryTree:
    """The tree of some counts."""
    N = counts.N
    by_depth = [counts.shortened(depth) for depth in range(counts.depth + 1)]
    ends = slice(counts.first_whole)
    parts = [one.codes[one.first_whole :] for one in by_depth] + [counts.codes[ends]]
    starts = np.cumsum([0, *(part.size for part in parts)])
    codes = np.concatenate(parts)
    changes = np.diff(codes // N, prepend=-1) != 0
    changes[starts[starts < codes.size]] = True
    bounds = np.append(np.flatnonzero(changes), codes.size)
    rows = np.append(np.cumsum(changes) - 1, -1)
    path = np.empty((len(parts), counts.codes.size), np.int64)
    place = np.arange(counts.codes.size)
    path[-1] = np.where(place < counts.first_whole, starts[-2] + place, -1)
    for depth in range(counts.depth, -1, -1):
        here = place - by_depth[depth].first_whole
        path[depth] = np.where(here >= 0, starts[depth] + here, -1)
        if depth:
            place = by_depth[depth].shorter[1][place]
    up = np.full(codes.size + 1, -1)
    up[path[1:]] = np.maximum.accumulate(path[:-1])
    times = np.concatenate([one.counts[one.first_whole :] for one in by_depth])
    return HistoryTree(
        N,
        codes[bounds[:-1]] // N,
        bounds,
        rows,
        rows[:-1] * N + codes % N,
        up,
        np.repeat(np.arange(len(parts)), np.diff(starts)),
        np.searchsorted(bounds[:-1], starts),
        starts,
        path,
        np.append(times, counts.counts[ends]),
    )


@dataclass(frozen=True)
class HistoryModel(ABC):
    """A model that derives the distribution of the label from counts of histories: ``NGram``,
    ``ContextTree`` or ``PPM``.
    """

    counts: HistoryCounts

    @property
    def N(self) -> int:
        """Number of symbols."""
        return self.counts.N

    @property
    @abstractmethod
    def name(self) -> str:
        """A short description of the model."""

    def without(self, part: HistoryCounts) -> Self:
        """The model without a part of its counts."""
        return replace(self, counts=self.counts - part)

    @abstractmethod
    def _distributions(self, histories: Ints) -> Array:
        """(n, N): the distribution of the label after each of not too many histories."""

    @abstractmethod
    def _likelihoods(self, labels: Histories) -> Array:
        """(n,): the probability of each of not too many labels."""

    def distributions(self, histories: Ints) -> Array:
        """(n, N): the distribution of the label after each history."""
        most = max(1, _CACHED // (self.N * (self.counts.depth + 2)))
        parts = [
            self._distributions(histories[first : first + most])
            for first in range(0, histories.size, most)
        ]
        return np.concatenate([np.zeros((0, self.N)), *parts])

    def likelihoods(self, labels: Histories) -> Array:
        """(n,): the probability of each label."""
        most = ENTRIES // (self.counts.depth + 2)
        parts = [
            self._likelihoods(labels.part(slice(first, first + most)))
            for first in range(0, labels.label.size, most)
        ]
        return np.concatenate([np.zeros(0), *parts])
