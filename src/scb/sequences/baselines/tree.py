"""The tree of histories: every history that was seen is a node, and its parent is the history
without the oldest symbol. n-grams, context trees and PPM are computed from the counts in it.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class HistoryTree:
    """All histories and the labels that followed them, as nodes and their entries in one order:
    the histories of 0, 1, …, depth symbols, and last the *ends*, which are the histories that a
    start or a gap ends before the greatest depth. Each of these depth + 2 parts is ascending.

    An entry stays where it is when its labels are taken away; its count is then 0. Arrays that
    have one value more at their end have it for the number −1, which stands for what was never
    seen.
    """

    N: int
    histories: Ints  # (S,)
    bounds: Ints  # (S + 1,): the entries of node i are those from bounds[i] to bounds[i + 1]
    rows: Ints  # (J + 1,): the node of each entry
    keys: Ints  # (J,), ascending: node · N + label
    up: Ints  # (J + 1,): the entry of the history without its oldest symbol, or of what ends
    parts: Ints  # (J,): the part of each entry
    firsts: Ints  # (depth + 3,): the first node of each part, and the number of nodes
    starts: Ints  # (depth + 3,): the first entry of each part, and the number of entries
    path: Ints  # (depth + 2, C): for each code that was counted, its entry in each part
    counts: Ints  # (J,): how often each label came after each history

    def without(self, codes: Ints | slice, counts: Ints) -> "HistoryTree":
        """The tree without some of the labels that were counted: the places of their codes, and
        how often each came.
        """
        path = self.path[:, codes] + 1
        less = np.bincount(path.ravel(), np.tile(counts, len(path)), self.counts.size + 1)
        return replace(self, counts=self.counts - less[1:].astype(np.int64))

    def near(self, codes: Ints, counts: Ints) -> "HistoryTree":
        """The tree ``without`` some labels, but only the nodes that their codes pass; this is much
        faster.
        """
        path = self.path.take(codes, axis=1)
        passed = np.zeros(self.histories.size + 1, bool)
        passed[self.rows[path]] = True
        nodes = np.flatnonzero(passed[:-1])
        entries, sizes = self.entries(nodes)
        numbers = np.arange(nodes.size)
        place = np.full(self.counts.size + 1, -1)
        place[entries] = np.arange(entries.size)
        before = HistoryTree(
            self.N,
            self.histories[nodes],
            np.append(0, np.cumsum(sizes)),
            np.append(np.repeat(numbers, sizes), -1),
            self.keys[entries] + np.repeat((numbers - nodes) * self.N, sizes),
            place[self.up[np.append(entries, -1)]],
            self.parts[entries],
            np.searchsorted(nodes, self.firsts),
            np.searchsorted(entries, self.starts),
            place[path],
            self.counts[entries],
        )
        tree = before.without(slice(None), counts)
        # Kinds are fewer where a longer history is not left; what the other nodes have stays
        gone = (tree.counts == 0) & (before.counts > 0)
        kinds = self.kinds[entries] - tree._children(gone)
        kinds[tree.starts[-3] :] = tree.counts[tree.starts[-3] :]
        vars(before)["kinds"] = self.kinds[entries]
        vars(tree)["kinds"] = kinds
        change = tree.multiplicities - before.multiplicities
        vars(tree)["multiplicities"] = self.multiplicities + change
        return tree

    def _children(self, some: NDArray[np.bool_]) -> Ints:
        """(J,): how many of some entries are one symbol longer than each entry, or its end."""
        return np.bincount(self.up[:-1][some] + 1, minlength=self.counts.size + 1)[1:]

    @cached_property
    def kinds(self) -> Ints:
        """(J,): after how many distinct symbols before the history, or its start, each label came
        (Kneser and Ney). Of the longest histories nothing is known but how often it came.
        """
        longest = self.starts[-3]
        return np.append(self._children(self.counts > 0)[:longest], self.counts[longest:])

    @cached_property
    def multiplicities(self) -> Ints:
        """(2, depth + 2, 4): how many entries of each part have a count of 1, 2, 3, 4; and how many
        have as many kinds.
        """
        few = (np.minimum(values, 5) + 6 * self.parts for values in (self.counts, self.kinds))
        numbers = [np.bincount(one, minlength=6 * len(self.path)) for one in few]
        return np.reshape(numbers, (2, -1, 6))[:, :, 1:5]

    @cached_property
    def totals(self) -> Ints:
        """(S,): how many labels followed each history."""
        return self.numbers(self.counts)

    def numbers(self, values: NDArray[np.int64 | np.bool_]) -> Ints:
        """(S,): the sum of integers (J,) over the entries of each node."""
        return np.diff(np.append(0, np.cumsum(values))[self.bounds])

    def sums(self, values: Array) -> Array:
        """(S,): the sum of values (J,) over the entries of each node. Zeros are left out, so that
        roundings are the same as in a tree that does not have these entries.
        """
        seen = values != 0
        first = np.append(0, np.cumsum(seen))[self.bounds]
        filled = np.flatnonzero(np.diff(first))
        sums = np.zeros(self.histories.size)
        if filled.size:
            sums[filled] = np.add.reduceat(values[seen], first[filled])
        return sums

    def entries(self, nodes: Ints) -> tuple[Ints, Ints]:
        """The entries of some nodes, one node after the other, and how many each has."""
        first = self.bounds[nodes]
        sizes = self.bounds[nodes + 1] - first
        ends = np.cumsum(sizes)
        return np.arange(sizes.sum()) + np.repeat(first - ends + sizes, sizes), sizes

    def dense(self, values: NDArray[Any], nodes: Ints) -> Array:
        """(…, N): values (J,) of the labels after some nodes, 0 if not seen."""
        table = np.zeros(nodes.size * self.N)
        found = np.flatnonzero(nodes >= 0)
        node = nodes.ravel()[found]
        entries, sizes = self.entries(node)
        table[self.keys[entries] + np.repeat((found - node) * self.N, sizes)] = values[entries]
        return table.reshape(*nodes.shape, self.N)

    def find(self, histories: Ints) -> Ints:
        """(depth + 2, n): the node of each history in each part, −1 if it was not seen."""
        parts = list(pairwise(self.firsts))
        wanted = [histories % (self.N + 1) ** depth for depth in range(len(parts) - 1)]
        return np.array(
            [
                np.where((at := places_of(self.histories[a:b], history)) >= 0, at + a, -1)
                for (a, b), history in zip(parts, [*wanted, wanted[-1]], strict=True)
            ]
        )


def places_of(ascending: Ints, wanted: Ints) -> Ints:
    """Where each of some values lies among ascending ones, −1 if it does not."""
    if ascending.size == 0:
        return np.full(wanted.shape, -1)
    place = np.minimum(np.searchsorted(ascending, wanted), ascending.size - 1)
    return np.where(ascending[place] == wanted, place, -1)
