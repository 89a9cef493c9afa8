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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from scb.arrays import Array
from scb.sequences.baselines.counts import (
    Histories,
    HistoryCounts,
    HistoryModel,
    Ints,
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
        return float(self._weighted[0][0])

    def _log_estimate(self) -> Array:
        """(S,): log P_e of what was seen after each history."""
        tree = self.counts.tree
        whole = self.N * self.alpha
        gains = tree.sums(
            _of_each(lambda count: gammaln(count + self.alpha) - gammaln(self.alpha), tree.counts)
        )
        return gains + gammaln(whole) - _of_each(lambda count: gammaln(count + whole), tree.totals)

    @cached_property
    def _weighted(self) -> tuple[Array, Array]:
        """Log P_w of each history (S,), and the probability (S + 1,), given the data, that it is a
        leaf, 0 if it was not seen.
        """
        tree = self.counts.tree
        firsts = tree.firsts
        parents = tree.rows[tree.up[tree.bounds[:-1]]]
        # The children without a symbol, by the length of what they end
        ends = firsts[-2] + np.searchsorted(parents[firsts[-2] :], firsts)
        leaf = self._log_estimate()
        below = leaf.copy()
        for depth in range(self.counts.depth - 1, -1, -1):
            first, last, longer = firsts[depth : depth + 3]
            # bincount of nothing has integers, whatever the weights
            split = np.bincount(
                parents[last:longer] - first, below[last:longer], last - first
            ).astype(float)
            end = slice(ends[depth], ends[depth + 1])
            split[parents[end] - first] += below[end]
            below[first:last] = np.logaddexp(leaf[first:last], split) - np.log(2)
        inner = firsts[-3]
        is_leaf = np.append(tree.totals > 0, False).astype(float)
        is_leaf[:inner] *= np.exp(leaf[:inner] - np.log(2) - below[:inner])
        return below, is_leaf

    def _shares(self, nodes: Ints) -> tuple[Array, Array]:
        """For nodes (depth + 2, n): the probability that each is the leaf, and the probability (n,)
        that the leaf is a child that was never seen.
        """
        leaf = self._weighted[1][nodes]
        left = np.cumprod(1 - leaf, axis=0)
        return np.concatenate([leaf[:1], left[:-1] * leaf[1:]]), left[-1]

    def _total(self, nodes: Ints) -> Array:
        """The sum of counts and alphas at each node; anything if it was not seen, since it then has
        no share.
        """
        return self.counts.tree.totals[nodes].astype(float) + self.N * self.alpha

    def _likelihoods(self, labels: Histories) -> Array:
        nodes, entries = self.counts.places(labels)
        share, left = self._shares(nodes)
        counts = np.where(entries >= 0, self.counts.tree.counts[entries], 0)
        p = (share * ((counts + self.alpha) / self._total(nodes))).sum(axis=0)
        # A child that was never seen has the distribution without data
        return p + left / self.N

    def _distributions(self, histories: Ints) -> Array:
        nodes = self.counts.nodes(histories)
        share, left = self._shares(nodes)
        tree = self.counts.tree
        estimates = (tree.dense(tree.counts, nodes) + self.alpha) / self._total(nodes)[..., None]
        return (share[..., None] * estimates).sum(axis=0) + left[:, None] / self.N


def _of_each(function: Callable[[Ints], Array], counts: Ints) -> Array:
    """A function of counts, computed once for equal ones."""
    distinct = np.flatnonzero(np.bincount(counts))
    table = np.zeros(distinct[-1] + 1)
    table[distinct] = function(distinct)
    return table[counts]


def likely_tree(counts: HistoryCounts) -> ContextTree:
    """The tree with the alpha under which all labels are most probable, as deep as histories are
    seen twice on average.
    """
    depth = 0
    while (
        depth < counts.depth and 2 * counts.shortened(depth + 1).distinct_histories <= counts.total
    ):
        depth += 1
    short = counts.shortened(depth)
    return max((ContextTree(short, alpha) for alpha in ALPHAS), key=lambda tree: tree.loglik)
