"""Context tree weighting (Willems, Shtarkov, Tjalkens 1995): the mean over all trees of histories,
each with a distribution at its leaves.

A tree says how many symbols before the label matter; this number may depend on which symbols they
are. A node s of depth d is a history of d symbols. With probability 1/2 it is a leaf; otherwise its
children are the histories that are one symbol longer:

    P_w(s) = ½·P_e(s) + ½·Π P_w(children),   P_w = P_e at the greatest depth,

where P_e is the probability of all labels seen after s under a Dirichlet distribution with
``alpha`` for each symbol (½: Krichevsky and Trofimov). The start of a sequence, or a gap, is an
additional child of a node and has no children.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from scb.arrays import Array
from scb.sequences.baselines.counts import (
    HistoryCounts,
    HistoryModel,
    Ints,
    Level,
    deepest,
    histories_in,
)

# The one under which the data are most probable is taken
ALPHAS = (0.5, 0.25, 0.1, 0.05, 0.02)


@dataclass(frozen=True)
class ContextTree(HistoryModel):
    """All trees of histories up to a depth, weighted by how well they explain the labels."""

    alpha: float = 0.5

    @classmethod
    def fit(cls, sequences: Sequence[Ints], N: int, depth: int) -> "ContextTree":
        """Weight all trees up to ``depth``, or less if longer histories rarely occur twice."""
        depth = deepest(N, depth)
        return likely_tree(HistoryCounts.count(histories_in(sequences, N, depth), N, depth))

    @property
    def name(self) -> str:
        """The method and the depth."""
        return f"context tree, depth {self.counts.depth}"

    @property
    def loglik(self) -> float:
        """The logarithm of P_w at the root, the probability of all labels."""
        return float(self._weighted[0][0][0])

    def _log_estimate(self, level: Level) -> Array:
        """(S,): log P_e of what was seen after each history."""
        gains = level.sums(gammaln(level.counts + self.alpha) - gammaln(self.alpha))
        whole = self.N * self.alpha
        return gains + gammaln(whole) - gammaln(level.sums(level.counts) + whole)

    @cached_property
    def _ends(self) -> Level:
        """Histories that a start or a gap ends before the greatest depth: the children without a
        symbol.
        """
        counts = self.counts
        short = slice(counts.first_whole)
        times = counts.counts[short]
        return Level.from_codes(counts.codes[short], self.N, times, times)

    @cached_property
    def _weighted(self) -> list[tuple[Array, Array]]:
        """For each depth, log P_w of its histories (S,), and the probability (S,), given the data,
        that each is a leaf.
        """
        levels = self.counts.levels
        at_ends = self._log_estimate(self._ends)
        below = self._log_estimate(levels[-1])
        weighted = [(below, np.ones(below.size))]
        for depth in range(self.counts.depth - 1, -1, -1):
            level = levels[depth]
            parent = self.counts.rows(depth, levels[depth + 1].histories)
            # bincount of nothing has integers, whatever the weights
            split = np.bincount(parent, below, minlength=level.histories.size).astype(float)
            end = self._ends.rows(level.histories)
            split[end >= 0] += at_ends[end[end >= 0]]
            leaf = self._log_estimate(level)
            below = np.logaddexp(leaf, split) - np.log(2)
            weighted.append((below, np.exp(leaf - np.log(2) - below)))
        return weighted[::-1]

    def _distributions(self, histories: Ints) -> Array:
        p = np.zeros((histories.size, self.N))
        # The probability of trees that go beyond the nodes looked at so far
        left = np.ones(histories.size)
        for depth, level in enumerate(self.counts.levels):
            rows = self.counts.rows(depth, histories)
            seen = np.flatnonzero((rows >= 0) & (left > 0))
            leaf = self._weighted[depth][1][rows[seen]]
            p[seen] += (left[seen] * leaf)[:, None] * self._estimates(level, rows[seen])
            left[seen] *= 1 - leaf
            ends = np.flatnonzero((histories < (self.N + 1) ** depth) & (rows >= 0))
            ends = ends[left[ends] > 0]
            if ends.size == 0:
                continue
            end = self._ends.rows(histories[ends])
            known = end >= 0
            ends = ends[known]
            p[ends] += left[ends, None] * self._estimates(self._ends, end[known])
            left[ends] = 0.0
        # A child that was never seen has the distribution without data
        return p + left[:, None] / self.N

    def _estimates(self, level: Level, rows: Ints) -> Array:
        """(r, N): the distribution of a label after some histories if they are leaves."""
        counts = level.dense(level.counts, rows)
        return (counts + self.alpha) / (counts.sum(axis=1, keepdims=True) + self.N * self.alpha)


def likely_tree(counts: HistoryCounts) -> ContextTree:
    """The tree with the alpha under which all labels are most probable, as deep as histories are
    seen twice on average.
    """
    depth = 0
    while (
        depth < counts.depth
        and 2 * np.unique(counts.shortened(depth + 1).codes // counts.N).size <= counts.total
    ):
        depth += 1
    short = counts.shortened(depth)
    return max((ContextTree(short, alpha) for alpha in ALPHAS), key=lambda tree: tree.loglik)
