"""The distribution of each symbol by a model that has not seen it: of ten blocks of symbols, each
one's distribution is counted on the others.

Fitted to the very symbols that it predicts, an n-gram looks better than it is, and a mixture of it
with anything else would trust it too much. Cross-fitted, its likelihoods are those of symbols that
are new to it; so they also say which order is the best one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import Any, Protocol

import numpy as np

from scb.geometry import Array
from scb.inputs import InputError
from scb.mixture.executors import Executor, Here
from scb.sequences.baselines.counts import ContextCounts, Ints, Labels, deepest, labels_of
from scb.sequences.baselines.ctw import ContextTree, likely_tree
from scb.sequences.baselines.ngram import SMOOTHINGS, NGram

BLOCKS = 10
LONGEST = 16  # context that is tried
# Contexts up to this length are tried in any case: two symbols may say nothing one by one
_TRIED = 6
_PATIENCE = 2  # lengths that may be worse than the best one before no longer one is tried


class HistoryModel(Protocol):
    """A distribution of the next symbol that is read off counts of contexts: ``NGram``,
    ``ContextTree`` or ``PPM``.
    """

    @property
    def counts(self) -> ContextCounts:
        """How often each symbol came after each context."""
        ...

    @property
    def name(self) -> str:
        """What it is, in words."""
        ...

    def likelihoods(self, labels: Labels) -> Array:
        """(n,): the probability of each label after its context."""
        ...

    def distributions(self, contexts: Ints) -> Array:
        """(n, N): the distribution of the label after each context."""
        ...


@dataclass(frozen=True)
class HeldLabels:
    """The labels of a fit where they lie: in one place, or with the partitions of a cluster."""

    executor: Executor
    held: list[Any]  # Labels of each partition, held by the executor
    sizes: list[int]  # how many labels each partition has
    N: int
    depth: int  # of their contexts

    @classmethod
    def of(cls, sequences: Sequence[Ints], N: int, longest: int) -> "HeldLabels":
        """The labels of sequences in this process, with contexts of ``longest`` symbols, or fewer
        if N is too large for that.
        """
        depth = deepest(N, longest)
        labels = labels_of(sequences, N, depth)
        return cls(Here(), [labels], [labels.label.size], N, depth)

    @property
    def n(self) -> int:
        """Number of labels."""
        return sum(self.sizes)

    @property
    def firsts(self) -> list[int]:
        """The number, among all labels, of each partition's first one."""
        return np.cumsum([0, *self.sizes[:-1]]).tolist()

    def total(self, function: Callable[..., Any], *same: Any) -> Any:
        """The sum over all partitions of a function of their labels, the number of the first one,
        and of all.
        """
        places = zip(self.held, self.firsts, strict=True)
        return self.executor.total(self.executor.map(function, places, self.n, *same))


def blocks_of(labels: Labels, first: int, n: int, blocks: int) -> list[Labels]:
    """The labels that lie in each block of neighbours; they are the labels from ``first`` on, of n."""
    bounds = np.clip(np.linspace(0, n, blocks + 1).astype(np.int64) - first, 0, labels.label.size)
    return [Labels(labels.context[a:b], labels.label[a:b]) for a, b in pairwise(bounds)]


@dataclass(frozen=True)
class CrossFit:
    """A distribution from all the data, and for each block of labels the distribution from the
    other blocks.
    """

    model: HistoryModel
    folds: list[Any]
    score: float  # mean log-likelihood of a label by the distribution that has not seen it, in nats

    def likelihoods(self, labels: Labels, first: int = 0, n: int | None = None) -> Array:
        """(m,): the probability of each label of the fit by the fold that has not seen it.

        They are all the labels, or those from ``first`` on, of n.
        """
        parts = blocks_of(labels, first, n or labels.label.size, len(self.folds))
        return np.concatenate(
            [bare(fold).likelihoods(part) for fold, part in zip(self.folds, parts, strict=True)]
        )


def bare(model: Any) -> Any:
    """The same distribution with nothing kept of what follows from its counts, which is many times
    as large.
    """
    return replace(model, counts=model.counts.bare())


def cross_fit(
    labels: HeldLabels,
    depth: int,
    distributions: Sequence[Callable[[ContextCounts], Any]],
    blocks: int,
) -> Iterator[CrossFit]:
    """For each way to make a distribution of counts: the distribution from all blocks, and those
    from all but one.
    """
    parts = labels.total(_count_blocks, labels.N, depth, blocks)
    whole = reduce(add, parts)
    others = [whole - part for part in parts]
    loglik = labels.total(_loglik_of_folds, others, distributions)
    for model, value in zip(distributions, loglik.tolist(), strict=True):
        yield CrossFit(model(whole), [model(counts) for counts in others], value / labels.n)


def _count_blocks(
    labels: Labels, first: int, n: int, N: int, depth: int, blocks: int
) -> tuple[ContextCounts, ...]:
    """Where labels lie: the counts of each block."""
    return tuple(ContextCounts.of(part, N, depth) for part in blocks_of(labels, first, n, blocks))


def _loglik_of_folds(
    labels: Labels,
    first: int,
    n: int,
    others: list[ContextCounts],
    distributions: Sequence[Callable[..., Any]],
) -> Array:
    """Where labels lie: by each kind of model, their log-likelihood, each from the counts that it
    is not part of.
    """
    logliks = np.zeros(len(distributions))
    for counts, part in zip(others, blocks_of(labels, first, n, len(others)), strict=True):
        mine = counts.bare()
        logliks += [np.log(model(mine).likelihoods(part)).sum() for model in distributions]
    return logliks


def best_ngram(labels: HeldLabels, blocks: int = BLOCKS) -> CrossFit:
    """The interpolated n-gram that predicts blocks which it has not seen best, among all smoothings
    and lengths of contexts.

    Contexts of 0 to 6 symbols are tried, and longer ones until two in a row are worse than the
    best.

    Parameters
    ----------
    labels : symbols to be predicted, with the longest contexts that may be tried
    blocks : into how many the symbols are cut
    """
    blocks = _checked(labels, blocks)
    smoothings = [partial(NGram, smoothing=smoothing) for smoothing in SMOOTHINGS]
    best = max(cross_fit(labels, 0, smoothings, blocks), key=lambda one: one.score)
    for depth in range(1, labels.depth + 1):
        best = max(best, *cross_fit(labels, depth, smoothings, blocks), key=lambda one: one.score)
        if depth >= max(_TRIED, best.model.counts.depth + _PATIENCE):
            break
    return best


def best_context_tree(labels: HeldLabels, blocks: int = BLOCKS) -> CrossFit:
    """Context tree weighting, cross-fitted; its prior is the one under which all data are most
    probable.
    """
    (counts,) = labels.total(_count_blocks, labels.N, labels.depth, 1)
    tree = likely_tree(counts)
    (found,) = cross_fit(
        labels,
        tree.counts.depth,
        [partial(ContextTree, alpha=tree.alpha)],
        _checked(labels, blocks),
    )
    return found


def best_recent(labels: HeldLabels, blocks: int = BLOCKS) -> CrossFit:
    """What the recent symbols say of the next one: the best n-gram or the context tree, whichever
    predicts new blocks better.
    """
    return max(
        best_ngram(labels, blocks), best_context_tree(labels, blocks), key=lambda one: one.score
    )


def _checked(labels: HeldLabels, blocks: int) -> int:
    """How many blocks there can be."""
    if labels.n < 2:
        raise InputError(f"there are {labels.n} symbols: at least 2 are needed to hold one out")
    return min(blocks, labels.n)
