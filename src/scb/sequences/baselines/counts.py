"""How often each symbol followed each history: all that n-grams, context trees and PPM need.

The history of a label is the symbols before it, as far back as ``depth``, a gap, or the start of
its sequence. A history is stored as one integer, Σ_j (x_j + 1)·(N + 1)^(j − 1) over the lags j = 1,
2, …. In this code, the nearest symbol is the last digit, a shorter history is a remainder, and the
digit 0 means that there is no symbol. Counts of several partitions add up.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.inputs import InputError
from scb.mixture.windows import of_each

Ints = NDArray[np.int64]
# The longest histories that are tried
DEPTH = 16
# Entries of distributions that are computed at a time, which bounds memory
ENTRIES = 1 << 22


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


class Level(NamedTuple):
    """The distinct histories of one length, sorted, and the labels that followed them, with an
    entry for each pair of a history and a label.
    """

    N: int
    histories: Ints  # (S,)
    bounds: Ints  # (S + 1,): the entries of history i are those from bounds[i] to bounds[i + 1]
    codes: Ints  # (J,), ascending: history · N + label
    # (J,): how often each label came after each history
    counts: Array
    # (J,): after how many distinct symbols before the history, or its start (Kneser and Ney)
    kinds: Array

    @classmethod
    def from_codes(cls, codes: Ints, N: int, counts: Ints, kinds: Ints) -> "Level":
        """From ascending codes history · N + label."""
        history = codes // N
        first = np.flatnonzero(np.diff(history, prepend=-1))
        bounds = np.append(first, codes.size)
        return cls(N, history[first], bounds, codes, counts.astype(float), kinds.astype(float))

    @property
    def sizes(self) -> Ints:
        """(S,): how many distinct labels followed each history."""
        return np.diff(self.bounds)

    def sums(self, values: Array) -> Array:
        """(S,): the sum of values (J,) over the entries of each history."""
        return np.add.reduceat(values, self.bounds[:-1]) if values.size else np.zeros(0)

    def dense(self, values: Array, rows: Ints) -> Array:
        """(r, N): values (J,) of the labels after the histories in some rows, 0 if not seen."""
        sizes = self.sizes[rows]
        ends = np.cumsum(sizes)
        entry = np.arange(sizes.sum()) + np.repeat(self.bounds[rows] - ends + sizes, sizes)
        table = np.zeros((rows.size, self.N))
        table[np.repeat(np.arange(rows.size), sizes), self.codes[entry] % self.N] = values[entry]
        return table

    def rows(self, histories: Ints) -> Ints:
        """The row of each history, −1 if it was not seen."""
        return _places(self.histories, histories)

    def entries(self, labels: Histories) -> Ints:
        """The entry of each history with its label, −1 if this pair was not seen."""
        return _places(self.codes, labels.history * self.N + labels.label)


def _places(ascending: Ints, wanted: Ints) -> Ints:
    """Where each of some values lies among ascending ones, −1 if it does not."""
    if ascending.size == 0:
        return np.full(wanted.shape, -1)
    place = np.minimum(np.searchsorted(ascending, wanted), ascending.size - 1)
    return np.where(ascending[place] == wanted, place, -1)


def at_places(values: Array, places: Ints) -> Array:
    """Values in some places, 0 where the place is −1."""
    return np.where(places >= 0, values[places], 0.0) if values.size else np.zeros(places.size)


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
        """The counts without a part of them; shorter histories are subtracted, too, which is faster
        than counting them.
        """
        return self._less(other)[0]

    def _less(self, other: "HistoryCounts") -> tuple["HistoryCounts", Ints]:
        """The difference, and the place in it of each of our codes that is left."""
        left = self.counts.copy()
        left[np.searchsorted(self.codes, other.codes)] -= other.counts
        kept = left > 0
        rest = HistoryCounts(self.N, self.depth, self.codes[kept], left[kept])
        if self.depth:
            shorter, place = self.shorter
            less, number = shorter._less(other.shorter[0])
            vars(rest)["shorter"] = less, number[place[kept]]  # what it caches
        return rest, np.cumsum(kept) - 1

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
    def first_whole(self) -> int:
        """The place of the first code whose history is exactly ``depth`` symbols long."""
        smallest = (self.N + 1) ** (self.depth - 1) if self.depth else 0
        return int(np.searchsorted(self.codes, smallest * self.N))

    @cached_property
    def levels(self) -> list[Level]:
        """Histories of exactly 0, 1, …, depth symbols."""
        # Nothing is known of what came before the longest histories
        levels = [self._level(self.counts)]
        longer = self
        while longer.depth:
            longer, place = longer.shorter
            levels.append(longer._level(np.bincount(place, minlength=longer.codes.size)))
        return levels[::-1]

    def _level(self, kinds: Ints) -> Level:
        whole = slice(self.first_whole, None)
        return Level.from_codes(self.codes[whole], self.N, self.counts[whole], kinds[whole])

    def rows(self, depth: int, histories: Ints) -> Ints:
        """The row of the last ``depth`` symbols of each history in their level, −1 if not seen."""
        return self.levels[depth].rows(histories % (self.N + 1) ** depth)

    def places(self, depth: int, labels: Histories) -> tuple[Ints, Ints]:
        """The row of the last ``depth`` symbols before each label in their level, and the entry of
        these symbols with the label; −1 if not seen.
        """
        level = self.levels[depth]
        last = labels._replace(history=labels.history % (self.N + 1) ** depth)
        return level.rows(last.history), level.entries(last)


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

    @abstractmethod
    def _distributions(self, histories: Ints) -> Array:
        """(n, N): the distribution of the label after each of not too many histories."""

    def distributions(self, histories: Ints) -> Array:
        """(n, N): the distribution of the label after each history."""
        most = max(1, ENTRIES // self.N)
        parts = [
            self._distributions(histories[first : first + most])
            for first in range(0, histories.size, most)
        ]
        return np.concatenate([np.zeros((0, self.N)), *parts])

    def likelihoods(self, labels: Histories) -> Array:
        """(n,): the probability of each label; distributions are computed once for each distinct
        history.
        """
        histories, place = np.unique(
            labels.history % (self.N + 1) ** self.counts.depth, return_inverse=True
        )
        p = np.empty(labels.label.size)
        order = np.argsort(place, kind="stable")
        most = max(1, ENTRIES // self.N)
        bounds = np.searchsorted(place[order], np.arange(0, histories.size + most, most))
        for i, first in enumerate(range(0, histories.size, most)):
            mine = order[bounds[i] : bounds[i + 1]]
            distributions = self._distributions(histories[first : first + most])
            p[mine] = distributions[place[mine] - first, labels.label[mine]]
        return p
