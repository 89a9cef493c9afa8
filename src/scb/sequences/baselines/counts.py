"""How often each symbol came after each context: the one statistic that n-grams, context trees and
PPM need.

The context of a label is the symbols before it, as far back as ``depth``, a gap, or the start of
its sequence. It is one integer, Σ_j (x_j + 1)·(N + 1)^(j − 1) over the lags j = 1, 2, …; so the
nearest symbol is the last digit, a shorter context is a remainder, and a digit 0 says that nothing
stands there. Counts of several places add up.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from scb.arrays import Array
from scb.inputs import InputError

Ints = NDArray[np.int64]
_CODES = 1 << 62  # different contexts with a label, at most
ENTRIES = 1 << 22  # of distributions that are worked on at a time


def deepest(N: int, wanted: int) -> int:
    """The longest context, of at most ``wanted`` symbols, whose code fits into an integer."""
    depth = 0
    while depth < wanted and N * (N + 1) ** (depth + 1) < _CODES:
        depth += 1
    return depth


class Labels(NamedTuple):
    """Symbols that are to be predicted, in the order of the sequences, each with the symbols before
    it.
    """

    context: Ints  # (n,)
    label: Ints  # (n,)


def labels_of(sequences: Sequence[Ints], N: int, depth: int, skipped: int = 0) -> Labels:
    """Every symbol that has one right before it, in sequences of codes, −1 where a symbol is
    missing.

    The first ``skipped`` symbols of each sequence are no labels.
    """
    nothing = np.zeros(0, np.int64)
    first = max(skipped, 1)
    chosen = [
        np.flatnonzero((codes[first:] >= 0) & (codes[first - 1 : -1] >= 0)) + first
        for codes in sequences
    ]
    contexts = [
        contexts_of(codes, N, depth)[at] for codes, at in zip(sequences, chosen, strict=True)
    ]
    labels = [codes[at] for codes, at in zip(sequences, chosen, strict=True)]
    return Labels(
        np.concatenate([nothing, *contexts]), np.concatenate([nothing, *labels]).astype(np.int64)
    )


def contexts_of(codes: Ints, N: int, depth: int) -> Ints:
    """(n + 1,): the context of each symbol of a sequence, and of the one that would come after the
    last.
    """
    context = np.zeros(codes.size + 1, np.int64)
    open_ = np.ones(codes.size + 1, bool)  # whether no gap has been met between here and the label
    for lag in range(1, min(depth, codes.size) + 1):
        digit = np.zeros(codes.size + 1, np.int64)
        digit[lag:] = codes[: codes.size + 1 - lag] + 1
        open_ &= digit > 0
        context += np.where(open_, digit, 0) * (N + 1) ** (lag - 1)
    return context


class Level(NamedTuple):
    """The contexts of one length that were seen, sorted, and what came after them."""

    contexts: Ints  # (S,)
    # (S, N): how often each label came after each context
    counts: csr_array
    # The same entries: after how many different symbols before the context, or its start (Kneser,
    # Ney)
    kinds: csr_array

    def rows(self, contexts: Ints) -> Ints:
        """The row of each context, −1 where it was not seen."""
        if self.contexts.size == 0:
            return np.full(contexts.shape, -1)
        place = np.minimum(np.searchsorted(self.contexts, contexts), self.contexts.size - 1)
        return np.where(self.contexts[place] == contexts, place, -1)


@dataclass(frozen=True)
class ContextCounts:
    """How often each label came after each context."""

    N: int
    depth: int  # of the longest contexts
    # (J,): context · N + label, ascending
    codes: Ints
    counts: Ints  # (J,)

    @classmethod
    def of(cls, labels: Labels, N: int, depth: int) -> "ContextCounts":
        """Count labels whose contexts have up to ``depth`` symbols."""
        if not 0 <= depth <= deepest(N, depth):
            raise InputError(
                f"depth = {depth}: contexts of {N} symbols can have between 0 and {deepest(N, depth)} of them"
            )
        codes, counts = np.unique(
            labels.context % (N + 1) ** depth * N + labels.label, return_counts=True
        )
        return cls(N, depth, codes, counts)

    def __add__(self, other: "ContextCounts") -> "ContextCounts":
        """Counts of two places together."""
        return self._summed(
            np.r_[self.codes, other.codes], np.r_[self.counts, other.counts], self.depth
        )

    def __sub__(self, other: "ContextCounts") -> "ContextCounts":
        """Counts without a part of them."""
        rest = self.counts.copy()
        rest[np.searchsorted(self.codes, other.codes)] -= other.counts
        return ContextCounts(self.N, self.depth, self.codes[rest > 0], rest[rest > 0])

    def _summed(self, codes: Ints, counts: Ints, depth: int) -> "ContextCounts":
        found, place = np.unique(codes, return_inverse=True)
        return ContextCounts(
            self.N, depth, found, np.bincount(place, counts, minlength=found.size).astype(np.int64)
        )

    def bare(self) -> "ContextCounts":
        """The same counts, without what has been worked out from them."""
        return ContextCounts(self.N, self.depth, self.codes, self.counts)

    def shortened(self, depth: int) -> "ContextCounts":
        """The same counts, by contexts of up to ``depth`` symbols only."""
        if depth >= self.depth:
            return self
        return self._summed(self.codes % (self.N * (self.N + 1) ** depth), self.counts, depth)

    @property
    def total(self) -> int:
        """How many labels were counted."""
        return int(self.counts.sum())

    @cached_property
    def levels(self) -> list[Level]:
        """Contexts of exactly 0, 1, …, depth symbols."""
        levels: list[Level] = []
        longer = self
        # Of the longest contexts there is nothing to tell but how often they were seen
        kinds = self.counts
        for depth in range(self.depth, -1, -1):
            table = self if depth == self.depth else longer.shortened(depth)
            if depth < self.depth:
                shorter = longer.codes % (self.N * (self.N + 1) ** depth)
                kinds = np.bincount(
                    np.searchsorted(table.codes, shorter), minlength=table.codes.size
                )
            levels.append(table._level(kinds))
            longer = table
        return levels[::-1]

    def _level(self, kinds: Ints) -> Level:
        """The contexts that are exactly ``depth`` symbols long."""
        # The smallest code of a context that long
        shortest = (self.N + 1) ** (self.depth - 1) if self.depth else 0
        first = int(np.searchsorted(self.codes, shortest * self.N))
        context, label = np.divmod(self.codes[first:], self.N)
        contexts, begin = np.unique(context, return_index=True)
        bounds = np.r_[begin, context.size]
        shape = (contexts.size, self.N)
        counts = csr_array((self.counts[first:].astype(float), label, bounds), shape=shape)
        return Level(
            contexts, counts, csr_array((kinds[first:].astype(float), label, bounds), shape=shape)
        )


def sums(table: csr_array) -> Array:
    """(S,): the sum of each row."""
    return np.asarray(table.sum(axis=1)).reshape(-1)


@dataclass(frozen=True)
class CountModel(ABC):
    """A model whose distributions of a label follow from how often labels came after contexts:
    context trees, PPM.
    """

    counts: ContextCounts

    @property
    def N(self) -> int:
        """Number of symbols."""
        return self.counts.N

    @abstractmethod
    def _distributions(self, contexts: Ints) -> Array:
        """(n, N): the distribution of the label after each of not too many contexts."""

    def distributions(self, contexts: Ints) -> Array:
        """(n, N): the distribution of the label after each context, given all labels that were
        seen.
        """
        most = max(1, ENTRIES // self.N)
        parts = [
            self._distributions(contexts[first : first + most])
            for first in range(0, contexts.size, most)
        ]
        return np.concatenate([np.zeros((0, self.N)), *parts])

    def likelihoods(self, labels: Labels) -> Array:
        """(n,): the probability of each label after its context, from the distributions after the
        different contexts among theirs.
        """
        contexts, place = np.unique(
            labels.context % (self.N + 1) ** self.counts.depth, return_inverse=True
        )
        p = np.empty(labels.label.size)
        order = np.argsort(place, kind="stable")
        most = max(1, ENTRIES // self.N)
        bounds = np.searchsorted(place[order], np.arange(0, contexts.size + most, most))
        for i, first in enumerate(range(0, contexts.size, most)):
            mine = order[bounds[i] : bounds[i + 1]]
            p[mine] = self._distributions(contexts[first : first + most])[
                place[mine] - first, labels.label[mine]
            ]
        return p
