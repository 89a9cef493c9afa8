"""The law of each symbol by a model that has not seen it: of ten blocks of symbols, each one's law is counted on the others.

Fitted to the very symbols that it predicts, an n-gram looks better than it is, and a mixture of it with anything else would trust
it too much. Cross-fitted, its likelihoods are those of symbols that are new to it; so they also say which order is the best one.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from scb.geometry import Array
from scb.sequences.rivals.counts import ContextCounts, Ints, Labels, deepest, labels_of
from scb.sequences.rivals.ctw import ALPHAS, ContextTree
from scb.sequences.rivals.ngram import SMOOTHINGS, NGram

BLOCKS = 10
LONGEST = 16  # context that is tried
_TRIED = 6  # contexts up to this length are tried in any case: two symbols may say nothing one by one
_PATIENCE = 2  # lengths that may be worse than the best one before no longer one is tried


class ContextLaw(Protocol):
    """A law of the next symbol that is read off counts of contexts: ``NGram``, ``ContextTree`` or ``PPM``."""

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

    def laws(self, contexts: Ints) -> Array:
        """(n, N): the law of the label after each context."""
        ...


class CrossFit(NamedTuple):
    """A law from all the data, and what those from nine tenths say of the tenth that they have not seen."""

    law: ContextLaw
    likelihoods: Array  # (n,): of every symbol that is not missing, in the order of the sequences
    folds: list[ContextLaw]  # for each block, the law from the others

    @property
    def score(self) -> float:
        """Mean log-likelihood of a symbol by a law that has not seen it, in nats."""
        return float(np.log(self.likelihoods).mean())

    def laws(self, labels: Labels) -> Array:
        """(n, N): the law of each label by the fold that has not seen it; these are all the labels of the fit."""
        parts = zip(self.folds, blocks_of(labels, len(self.folds)), strict=True)
        return np.concatenate([fold.laws(part.context) for fold, part in parts])


def blocks_of(labels: Labels, blocks: int) -> list[Labels]:
    """The labels in so many blocks of neighbours."""
    bounds = np.linspace(0, labels.label.size, blocks + 1).astype(np.int64)
    return [Labels(labels.context[a:b], labels.label[a:b]) for a, b in pairwise(bounds)]


def cross_fit(
    labels: Labels, N: int, depth: int, laws: Sequence[Callable[[ContextCounts], Any]], blocks: int = BLOCKS
) -> Iterator[CrossFit]:
    """For each way to make a law of counts: the laws from all blocks but one, and what they say of that one."""
    whole = ContextCounts.of(labels, N, depth)
    parts = blocks_of(labels, blocks)
    others = [whole - ContextCounts.of(part, N, depth) for part in parts]
    for law in laws:
        folds = [law(counts) for counts in others]
        likelihoods = [fold.likelihoods(part) for fold, part in zip(folds, parts, strict=True)]
        yield CrossFit(law(whole), np.concatenate(likelihoods), folds)


def best_ngram(sequences: Sequence[Ints], N: int, *, longest: int = LONGEST, blocks: int = BLOCKS) -> CrossFit:
    """The interpolated n-gram that predicts blocks which it has not seen best, among all smoothings and orders.

    Parameters
    ----------
    sequences : codes 0 … N − 1, −1 where a symbol is missing
    longest : the longest context that is tried; they are tried from 0 to 6, and on until two in a row are worse than the best
    blocks : into how many the symbols are cut
    """
    longest = deepest(N, longest)
    labels = labels_of(sequences, N, longest)
    blocks = _checked(labels, blocks)
    smoothings = [partial(NGram, smoothing=smoothing) for smoothing in SMOOTHINGS]
    best = max(cross_fit(labels, N, 0, smoothings, blocks), key=lambda one: one.score)
    for depth in range(1, longest + 1):
        best = max(best, *cross_fit(labels, N, depth, smoothings, blocks), key=lambda one: one.score)
        if depth >= max(_TRIED, best.law.counts.depth + _PATIENCE):
            break
    return best


def best_context_tree(sequences: Sequence[Ints], N: int, *, longest: int = LONGEST, blocks: int = BLOCKS) -> CrossFit:
    """Context tree weighting, cross-fitted; its prior is the one under which all data are most probable."""
    longest = deepest(N, longest)
    labels = labels_of(sequences, N, longest)
    counts = ContextCounts.of(labels, N, longest)
    alpha = max(ALPHAS, key=lambda alpha: ContextTree(counts, alpha).loglik)
    (found,) = cross_fit(labels, N, longest, [partial(ContextTree, alpha=alpha)], _checked(labels, blocks))
    return found


def best_recent(sequences: Sequence[Ints], N: int, *, longest: int = LONGEST, blocks: int = BLOCKS) -> CrossFit:
    """What the recent symbols say of the next one: the best n-gram or the context tree, whichever predicts new blocks better."""
    ngram = best_ngram(sequences, N, longest=longest, blocks=blocks)
    tree = best_context_tree(sequences, N, longest=longest, blocks=blocks)
    return max(ngram, tree, key=lambda one: one.score)


def _checked(labels: Labels, blocks: int) -> int:
    """How many blocks there can be."""
    if labels.label.size < 2:
        raise ValueError(f"there are {labels.label.size} symbols: at least 2 are needed to hold one out")
    return min(blocks, labels.label.size)
