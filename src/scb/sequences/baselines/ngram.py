"""Interpolated n-grams: the distribution after a history h is mixed with the distribution after the
history h', which lacks the oldest symbol.

p(o|h) = share(h, o) + escape(h)·p(o|h'). The three smoothings differ in how they use the counts of
h:

- Modified Kneser–Ney (Chen and Goodman 1999): share = (count − D(count))/total with discounts D₁,
  D₂, D₃₊ for labels that were seen once, twice and more often; escape is the total that was
  subtracted. Histories shorter than the longest do not count how often a label followed them, but
  how many distinct symbols preceded the history there (the start of a sequence, or a gap, counts as
  one more).
- Absolute discounting: plain counts at all lengths. This is better with few symbols, where the
  number of distinct neighbours is not informative.
- Witten and Bell (1991): share = count/(total + d), escape = d/(total + d), where d is the number
  of distinct labels that followed h.

The distribution after the empty history is mixed with the uniform distribution, so no symbol is
impossible.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from scb.arrays import Array
from scb.inputs import InputError
from scb.sequences.baselines.counts import (
    Histories,
    HistoryCounts,
    HistoryModel,
    Ints,
    histories_in,
    is_long_enough,
)
from scb.sequences.baselines.tree import HistoryTree

Smoothing = Literal["kneser-ney", "absolute", "witten-bell"]
SMOOTHINGS: tuple[Smoothing, ...] = ("kneser-ney", "absolute", "witten-bell")
# Discounts if the counts are too few, or too uniform, to estimate them
_FALLBACK = np.array([0.0, 0.5, 1.0, 1.5])


class Blend(NamedTuple):
    """The parts of p(o|h) = share[h, o] + escape[h]·p(o|h')."""

    share: Array  # (J + 1,): of each entry of a tree, and 0
    escape: Array  # (S + 1,): of each node, 1 if nothing was seen after it


@dataclass(frozen=True)
class NGram(HistoryModel):
    """An interpolated n-gram: the label depends on the n − 1 symbols before it."""

    smoothing: Smoothing = "kneser-ney"

    @classmethod
    def fit(
        cls, sequences: Sequence[Ints], N: int, order: int, smoothing: Smoothing = "kneser-ney"
    ) -> "NGram":
        """Count n-grams up to ``order`` in sequences of codes."""
        if order < 1:
            raise InputError(f"order = {order}: it must be at least 1")
        labels = histories_in(sequences, N, order - 1)
        return cls(HistoryCounts.count(labels, N, order - 1), smoothing)

    @property
    def name(self) -> str:
        """The order and the smoothing."""
        return f"{self.counts.depth + 1}-gram, {self.smoothing}"

    @cached_property
    def blend(self) -> Blend:
        """The blend for histories of all lengths."""
        return _BLENDS[self.smoothing](self.counts.tree)

    def without(self, part: HistoryCounts) -> "NGram":
        """The n-gram without a part of its counts, for the histories of this part only."""
        return replace(self, counts=self.counts.without_near(part))

    def _likelihoods(self, labels: Histories) -> Array:
        nodes, entries = self.counts.places(labels)
        p = np.full(labels.label.size, 1 / self.N)
        for node, entry in zip(nodes[:-1], entries[:-1], strict=True):
            p = self.blend.share[entry] + self.blend.escape[node] * p
        return p

    def _distributions(self, histories: Ints) -> Array:
        nodes = self.counts.nodes(histories)[:-1]
        shares = self.counts.tree.dense(self.blend.share, nodes)
        p = np.full((histories.size, self.N), 1 / self.N)
        for share, node in zip(shares, nodes, strict=True):
            p = share + self.blend.escape[node, None] * p
        return p


def logliks_by_depth(counts: HistoryCounts, held_out: HistoryCounts) -> Array:
    """(depth + 1, smoothings): the log-likelihood of a part of the labels by the n-grams of the
    others with histories of 0, 1, …, ``counts.depth`` symbols, in the order of ``SMOOTHINGS``.

    All log-likelihoods are computed in one pass, since longer histories build on shorter ones.
    """
    tree = counts.without_near(held_out).tree
    inner, plain, witten_bell = (_BLENDS[smoothing](tree) for smoothing in SMOOTHINGS)
    p = [np.full(held_out.codes.size, 1 / counts.N)] * 3
    logliks = []
    for entry in tree.path[:-1]:
        node = tree.rows[entry]
        # Only the longest histories of Kneser and Ney count how often a label came
        longest, *others = (
            blend.share[entry] + blend.escape[node] * shorter
            for blend, shorter in zip((plain, plain, witten_bell), p, strict=True)
        )
        logliks.append(np.log([longest, *others]) @ held_out.counts)
        p = [inner.share[entry] + inner.escape[node] * p[0], *others]
    return np.array(logliks)


class BestNGram(NamedTuple):
    """The length of histories and the smoothing with the highest log-likelihood."""

    depth: int
    smoothing: Smoothing
    loglik: float


def best_depth(logliks: Callable[[int], Array], longest: int) -> BestNGram:
    """The best n-gram; ``logliks`` returns the log-likelihoods of all lengths of histories up to a
    given one. Longer histories are tried until ``is_long_enough`` is true.
    """
    depth = min(6, longest)
    while True:
        table = logliks(depth)
        best = (0, int(np.argmax(table[0])))
        for length, row in enumerate(table):
            if row.max() > table[best]:
                best = (length, int(np.argmax(row)))
            if is_long_enough(length, best[0]):
                break
        else:
            if depth < longest:
                depth = longest if best[0] == depth else min(longest, best[0] + 2)
                continue
        return BestNGram(best[0], SMOOTHINGS[best[1]], float(table[best]))


def _witten_bell(tree: HistoryTree) -> Blend:
    kinds = tree.numbers(tree.counts > 0)
    total = np.maximum(tree.totals + kinds, 1)
    share = tree.counts / total[tree.rows[:-1]]
    return _blend(tree, share, kinds / total)


def _discounted(tree: HistoryTree, counts: Ints, multiplicities: Ints) -> Blend:
    total = np.maximum(tree.numbers(counts), 1)[tree.rows[:-1]]
    off = discounts(multiplicities)[tree.parts, np.minimum(counts, 3)]
    return _blend(tree, (counts - off) / total, tree.sums(off / total))


def _plain(tree: HistoryTree) -> Blend:
    return _discounted(tree, tree.counts, tree.multiplicities[0])


def _kneser_ney(tree: HistoryTree) -> Blend:
    return _discounted(tree, tree.kinds, tree.multiplicities[1])


def _blend(tree: HistoryTree, share: Array, escape: Array) -> Blend:
    return Blend(np.append(share, 0.0), np.append(np.where(tree.totals > 0, escape, 1.0), 1.0))


def discounts(numbers: Array | Ints) -> Array:
    """(…, 4): 0, D₁, D₂, D₃₊ from the numbers (…, 4) of counts equal to 1, 2, 3, 4, as Chen and
    Goodman define them.

    D_j = j − (j + 1)·Y·n_{j+1}/n_j with Y = n₁/(n₁ + 2n₂). If this cannot be computed, or would
    subtract nothing or everything, the discounts are ½, 1, 1½.
    """
    n1, n2, n3, n4 = np.moveaxis(numbers, -1, 0).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        Y = n1 / (n1 + 2 * n2)
        estimated = [1 - 2 * Y * n2 / n1, 2 - 3 * Y * n3 / n2, 3 - 4 * Y * n4 / n3]
    estimated = np.stack([0 * n1, *estimated], axis=-1)
    possible = (estimated > 0) & (estimated < [1, 1, 2, 3])
    possible &= (numbers[..., :3] > 0).all(axis=-1, keepdims=True)
    return np.where(possible, estimated, _FALLBACK)


_BLENDS: dict[Smoothing, Callable[[HistoryTree], Blend]] = {
    "kneser-ney": _kneser_ney,
    "absolute": _plain,
    "witten-bell": _witten_bell,
}
