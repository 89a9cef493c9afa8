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
from typing import Any, NamedTuple

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
from scb.sequences.baselines.ctw import ContextTree, likely_tree
from scb.sequences.baselines.ngram import NGram, best_depth, logliks_by_depth

BLOCKS = 10
# Makes a model of counts
Maker = Callable[[HistoryCounts], HistoryModel]


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
    """A model of all the data, and for each block of labels a model of the other blocks."""

    model: HistoryModel
    folds: list[HistoryModel]
    score: float  # mean log-likelihood of a label by the fold that has not seen it, in nats


def without_caches(model: HistoryModel) -> HistoryModel:
    """A copy without the results cached from its counts, which are many times as large."""
    return replace(model, counts=replace(model.counts))


def cross_fit(
    labels: HeldLabels, depth: int, makers: Sequence[Maker], blocks: int
) -> Iterator[CrossFit]:
    """For each maker, the model of all blocks, and the models of all blocks but one."""
    folds = list(_folds(labels, depth, blocks))
    whole = folds[0].others + folds[0].block
    for make in makers:
        models = [make(fold.others) for fold in folds]
        # The caches of these copies are dropped afterwards
        loglik = sum(
            fold.block.loglik(without_caches(model).likelihoods(fold.block.labels))
            for model, fold in zip(models, folds, strict=True)
        )
        yield CrossFit(make(whole), models, loglik / labels.n)


class Fold(NamedTuple):
    """The counts of a block of labels, and the counts of all other blocks."""

    block: HistoryCounts
    others: HistoryCounts


def _folds(labels: HeldLabels, depth: int, blocks: int) -> Iterator[Fold]:
    if labels.n < 2:
        raise InputError(f"there are {labels.n} symbols: at least 2 are needed to hold one out")
    parts = labels.total(_count_blocks, labels.N, depth, min(blocks, labels.n))
    whole = reduce(add, parts)
    return (Fold(part, whole - part) for part in parts)


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
    depth, smoothing = best_depth(partial(_ngram_logliks, labels, blocks), labels.depth)
    (best,) = cross_fit(labels, depth, [partial(NGram, smoothing=smoothing)], blocks)
    return best


def _ngram_logliks(labels: HeldLabels, blocks: int, depth: int) -> Array:
    """(depth + 1, smoothings): the log-likelihood of all labels by the folds that have not seen
    them, for n-grams with histories of up to ``depth`` symbols.
    """
    folds = _folds(labels, depth, blocks)
    return reduce(add, (logliks_by_depth(fold.others, fold.block) for fold in folds))


def best_context_tree(labels: HeldLabels, blocks: int = BLOCKS) -> CrossFit:
    """Cross-fitted context tree weighting, with the prior that makes the data most probable."""
    (counts,) = labels.total(_count_blocks, labels.N, labels.depth, 1)
    tree = likely_tree(counts)
    maker = partial(ContextTree, alpha=tree.alpha)
    (tree_fit,) = cross_fit(labels, tree.counts.depth, [maker], blocks)
    return tree_fit


def best_recent(labels: HeldLabels, blocks: int = BLOCKS) -> CrossFit:
    """The best n-gram or the best context tree, whichever predicts new blocks better."""
    candidates = best_ngram(labels, blocks), best_context_tree(labels, blocks)
    return max(candidates, key=lambda fit: fit.score)
