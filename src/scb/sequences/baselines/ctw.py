"""Context tree weighting (Willems, Shtarkov, Tjalkens 1995): the mean over all trees of contexts,
each with a distribution at its leaves.

A tree says how many symbols before the label matter, and it may be more in one context than in
another. A node s of depth d is a context of d symbols; it is a leaf with probability 1/2, else its
children are the contexts that are one symbol longer:

    P_w(s) = ½·P_e(s) + ½·Π P_w(children),   P_w = P_e at the greatest depth,

where P_e is the probability of all labels seen after s under a Dirichlet distribution with
``alpha`` for each symbol (½: Krichevsky and Trofimov). The start of a sequence, or a gap, is one
more child of a node, without children of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln

from scb.arrays import Array
from scb.sequences.baselines.counts import (
    ContextCounts,
    CountModel,
    Ints,
    Level,
    deepest,
    labels_of,
    sums,
)

DEPTH = 12
# Of which the one is taken under which the data are most probable
ALPHAS = (0.5, 0.25, 0.1, 0.05, 0.02)


@dataclass(frozen=True)
class ContextTree(CountModel):
    """All trees of contexts up to a depth, weighted by how well they explain the labels."""

    alpha: float = 0.5

    @classmethod
    def fit(cls, sequences: Sequence[Ints], N: int, depth: int = DEPTH) -> "ContextTree":
        """Weigh all trees up to ``depth``, or fewer where longer contexts are hardly ever seen
        twice.
        """
        depth = deepest(N, depth)
        return likely_tree(ContextCounts.of(labels_of(sequences, N, depth), N, depth))

    @property
    def name(self) -> str:
        """Method and depth."""
        return f"context tree, depth {self.counts.depth}"

    @property
    def loglik(self) -> float:
        """Logarithm of P_w at the root: the probability of all labels, before any of them was seen."""
        return float(self._weighted[0][0][0])

    def _log_estimate(self, counts: csr_array) -> Array:
        """(S,): log P_e of what was seen after each context."""
        gains = csr_array(
            (gammaln(counts.data + self.alpha), counts.indices, counts.indptr), shape=counts.shape
        )
        kinds = np.diff(counts.indptr)
        whole = self.N * self.alpha
        return (
            gammaln(whole)
            - gammaln(sums(counts) + whole)
            + sums(gains)
            - kinds * gammaln(self.alpha)
        )

    @cached_property
    def _ends(self) -> Level:
        """Contexts that a start or a gap ends before the greatest depth, the children without a
        symbol, and what came after.
        """
        N = self.N
        shorter = (
            int(np.searchsorted(self.counts.codes, N * (N + 1) ** (self.counts.depth - 1)))
            if self.counts.depth
            else 0
        )
        context, label = np.divmod(self.counts.codes[:shorter], N)
        contexts, begin = np.unique(context, return_index=True)
        bounds = np.r_[begin, context.size]
        table = csr_array(
            (self.counts.counts[:shorter].astype(float), label, bounds), shape=(contexts.size, N)
        )
        return Level(contexts, table, table)

    @cached_property
    def _weighted(self) -> list[tuple[Array, Array]]:
        """For each depth, log P_w of its contexts (S,), and the probability (S,), given the data,
        that each is a leaf.
        """
        levels = self.counts.levels
        at_ends = self._log_estimate(self._ends.counts)
        below = self._log_estimate(levels[-1].counts)
        weighted = [(below, np.ones(below.size))]
        for depth in range(self.counts.depth - 1, -1, -1):
            level = levels[depth]
            parent = level.rows(levels[depth + 1].contexts % (self.N + 1) ** depth)
            # With no context this long, NumPy's sum of nothing is an integer, whatever the weights.
            split = np.bincount(parent, below, minlength=level.contexts.size).astype(float)
            end = self._ends.rows(level.contexts)
            split[end >= 0] += at_ends[end[end >= 0]]
            leaf = self._log_estimate(level.counts)
            below = np.logaddexp(leaf, split) - np.log(2)
            weighted.append((below, np.exp(leaf - np.log(2) - below)))
        return weighted[::-1]

    def _distributions(self, contexts: Ints) -> Array:
        distributions = np.zeros((contexts.size, self.N))
        # The probability of trees that go beyond the nodes looked at so far
        left = np.ones(contexts.size)
        for depth, level in enumerate(self.counts.levels):
            rows = level.rows(contexts % (self.N + 1) ** depth)
            seen = np.flatnonzero((rows >= 0) & (left > 0))
            leaf = self._weighted[depth][1][rows[seen]]
            distributions[seen] += (left[seen] * leaf)[:, None] * self._estimates(level, rows[seen])
            left[seen] *= 1 - leaf
            ends = np.flatnonzero((contexts < (self.N + 1) ** depth) & (rows >= 0))
            ends = ends[left[ends] > 0]
            end = self._ends.rows(contexts[ends])
            known = end >= 0
            distributions[ends[known]] += left[ends[known], None] * self._estimates(
                self._ends, end[known]
            )
            left[ends[known]] = 0.0
        # Where a child was never seen, its distribution is that of no data
        return distributions + left[:, None] / self.N

    def _estimates(self, level: Level, rows: Ints) -> Array:
        """(r, N): the distribution of a label after some contexts, were they leaves."""
        counts = level.counts[rows].toarray()
        return (counts + self.alpha) / (counts.sum(axis=1, keepdims=True) + self.N * self.alpha)


def likely_tree(counts: ContextCounts) -> ContextTree:
    """The tree with the alpha under which all labels are most probable; as deep as contexts are
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
