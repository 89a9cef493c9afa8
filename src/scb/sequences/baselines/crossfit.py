"""Cross-fitting: each of ten blocks of labels is predicted by a model of the other blocks.

An n-gram looks better than it is on the symbols that it was fitted to, and a mixture of this n-gram
with another model would give it too much weight. The likelihoods of a cross-fitted n-gram are those
of symbols that are new to it, so they also show which order is best.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np

from scb.arrays import Array
from scb.inputs import InputError
from scb.mixture.executors import Executor, Here
from scb.sequences.baselines.counts import (
    Histories,
    HistoryCounts,
    HistoryModel,
    Ints,
    deepest,
    histories_in,
)
from scb.sequences.baselines.ctw import likely_tree
from scb.sequences.baselines.ngram import NGram, best_depth, logliks_by_depth

BLOCKS = 10


@dataclass(frozen=True)
class HeldLabels:
    """The labels of a fit, stored in this process or on the workers of a cluster."""

    executor: Executor
    held: list[Any]  # the ``Histories`` of each partition, held by the executor
    sizes: list[int]  # how many labels each partition has
    N: int
    depth: int  # of their histories

    @classmethod
    def here(cls, sequences: Sequence[Ints], N: int, longest: int) -> "HeldLabels":
        """The labels of sequences in this process, with histories of ``longest`` symbols, or fewer
        if N is too large for that.
        """
        depth = deepest(N, longest)
        labels = histories_in(sequences, N, depth)
        return cls(Here(), [labels], [labels.label.size], N, depth)

    @property
    def n(self) -> int:
        """Number of labels."""
        return sum(self.sizes)

    @property
    def firsts(self) -> list[int]:
        """The number of each partition's first label among all."""
        return np.cumsum([0, *self.sizes[:-1]]).tolist()

    def total(self, function: Callable[..., Any], *same: Any) -> Any:
        """The sum over partitions of function(labels, number of the first one, n, *same)."""
        places = zip(self.held, self.firsts, strict=True)
        return self.executor.total(self.executor.map(function, places, self.n, *same))


def blocks_of(labels: Histories, first: int, n: int, blocks: int) -> list[Histories]:
    """The labels in each block of neighbours, given the labels from ``first`` on, out of n."""
    bounds = np.clip(np.linspace(0, n, blocks + 1).astype(np.int64) - first, 0, labels.label.size)
    return [labels.part(slice(a, b)) for a, b in pairwise(bounds)]


@dataclass(frozen=True)
class CrossFit:
    """A model of all the data, and the counts of each block of labels."""

    model: HistoryModel
    blocks: Sequence[HistoryCounts]
    score: float  # mean log-likelihood of a label by the model of the other blocks, in nats

    @property
    def folds(self) -> Iterator[HistoryModel]:
        """For each block, the model of the others; one at a time, since what it computes from its
        counts takes many times their memory.
        """
        model = _bare(self.model)
        return (model.without(block) for block in self.blocks)


def _bare(model: HistoryModel) -> HistoryModel:
    """A copy of a model without what it has computed from its counts."""
    return replace(model, counts=replace(model.counts))


def _counted_blocks(labels: HeldLabels, depth: int, blocks: int) -> Sequence[HistoryCounts]:
    if labels.n < 2:
        raise InputError(f"there are {labels.n} symbols: at least 2 are needed to hold one out")
    return labels.total(_count_blocks, labels.N, depth, min(blocks, labels.n))


def _count_blocks(
    labels: Histories, first: int, n: int, N: int, depth: int, blocks: int
) -> tuple[HistoryCounts, ...]:
    """The counts of each block, computed where the labels are stored."""
    parts = blocks_of(labels, first, n, blocks)
    return tuple(HistoryCounts.count(part, N, depth) for part in parts)


def best_ngram(labels: HeldLabels, blocks: int = BLOCKS) -> CrossFit:
    """The interpolated n-gram that predicts new blocks best, among all smoothings and lengths of
    histories.
    """
    best = best_depth(partial(_ngram_logliks, labels, blocks), labels.depth)
    parts = _counted_blocks(labels, best.depth, blocks)
    model = NGram(HistoryCounts.total_of(parts), best.smoothing)
    return CrossFit(model, parts, best.loglik / labels.n)


def _ngram_logliks(labels: HeldLabels, blocks: int, depth: int) -> Array:
    """(depth + 1, smoothings): the log-likelihood of all labels by the folds that have not seen
    them, for n-grams with histories of up to ``depth`` symbols.
    """
    parts = _counted_blocks(labels, depth, blocks)
    whole = HistoryCounts.total_of(parts)
    return reduce(add, (logliks_by_depth(whole, part) for part in parts))


def best_context_tree(labels: HeldLabels, blocks: int = BLOCKS) -> CrossFit:
    """Cross-fitted context tree weighting, with the prior that makes the data most probable."""
    (counts,) = labels.total(_count_blocks, labels.N, labels.depth, 1)
    tree = likely_tree(counts)
    parts = _counted_blocks(labels, tree.counts.depth, blocks)
    logliks = (part.loglik(tree.without(part).likelihoods(part.labels)) for part in parts)
    return CrossFit(_bare(tree), parts, sum(logliks) / labels.n)


def best_recent(labels: HeldLabels, blocks: int = BLOCKS) -> CrossFit:
    """The best n-gram or the best context tree, whichever predicts new blocks better."""
    candidates = best_ngram(labels, blocks), best_context_tree(labels, blocks)
    return max(candidates, key=lambda fit: fit.score)
