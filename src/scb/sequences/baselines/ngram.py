"""Interpolated n-grams: the distribution after a context leans on that after the context c' without
its oldest symbol.

p(o|c) = share(c, o) + rest(c)·p(o|c'). Three ways to say how far it leans, which differ in what
they take from the counts of c:

- Modified Kneser–Ney (Chen and Goodman 1999): share = (count − D(count))/total with discounts D₁,
  D₂, D₃₊ for labels that were seen once, twice and more often; rest is what was taken off. Contexts
  shorter than the longest do not count how often a label came after them, but after how many
  different symbols before the context (its start, or a gap, is one more).
- Absolute discounting: the same with plain counts at all lengths. With few symbols, whose number of
  different neighbours says nothing, it is the better one.
- Witten and Bell (1991): share = count/(total + d), rest = d/(total + d), where d is how many
  different labels came after c.

Below the empty context all N symbols are equally likely, so that none is impossible.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from scb.arrays import Array
from scb.inputs import InputError
from scb.sequences.baselines.counts import ENTRIES, ContextCounts, Ints, Labels, labels_of, sums

Smoothing = Literal["kneser-ney", "absolute", "witten-bell"]
SMOOTHINGS: tuple[Smoothing, ...] = ("kneser-ney", "absolute", "witten-bell")
# Discounts where the counts are too few, or too many alike, to estimate them
_FALLBACK = np.array([0.5, 1.0, 1.5])


class Blend(NamedTuple):
    """What the contexts of one length say: p(o|c) = share[c, o] + rest[c]·p(o|c')."""

    share: csr_array  # (S, N)
    rest: Array  # (S,)


@dataclass(frozen=True)
class NGram:
    """An interpolated n-gram: the label depends on the n − 1 symbols before it."""

    counts: ContextCounts
    smoothing: Smoothing = "kneser-ney"

    @classmethod
    def fit(
        cls, sequences: Sequence[Ints], N: int, order: int, smoothing: Smoothing = "kneser-ney"
    ) -> "NGram":
        """Count n-grams up to ``order`` in sequences of codes 0 … N − 1, −1 where a symbol is
        missing.
        """
        if order < 1:
            raise InputError(f"order = {order}: it must be at least 1")
        return cls(ContextCounts.of(labels_of(sequences, N, order - 1), N, order - 1), smoothing)

    @property
    def N(self) -> int:
        """Number of symbols."""
        return self.counts.N

    @property
    def order(self) -> int:
        """The n of the n-gram."""
        return self.counts.depth + 1

    @property
    def name(self) -> str:
        """Order and smoothing, in words."""
        return f"{self.order}-gram, {self.smoothing}"

    @cached_property
    def blends(self) -> list[Blend]:
        """For contexts of 0, 1, … symbols."""
        blends = []
        for depth, level in enumerate(self.counts.levels):
            if self.smoothing == "witten-bell":
                blends.append(_witten_bell(level.counts))
            elif self.smoothing == "absolute" or depth == self.counts.depth:
                blends.append(_discounted(level.counts))
            else:
                blends.append(_discounted(level.kinds))
        return blends

    def likelihoods(self, labels: Labels) -> Array:
        """(n,): the probability of each label after its context; contexts may be longer than the
        model's.
        """
        p = np.full(labels.label.size, 1 / self.N)
        for depth, (level, blend) in enumerate(zip(self.counts.levels, self.blends, strict=True)):
            rows = level.rows(labels.context % (self.N + 1) ** depth)
            seen = rows >= 0
            share = np.asarray(blend.share[rows[seen], labels.label[seen]]).reshape(-1)
            p[seen] = share + blend.rest[rows[seen]] * p[seen]
        return p

    def distributions(self, contexts: Ints) -> Array:
        """(n, N): the distribution of the label after each context."""
        distributions = np.full((contexts.size, self.N), 1 / self.N)
        most = max(1, ENTRIES // self.N)
        for first in range(0, contexts.size, most):
            part = slice(first, first + most)
            model = distributions[part]
            for depth, (level, blend) in enumerate(
                zip(self.counts.levels, self.blends, strict=True)
            ):
                rows = level.rows(contexts[part] % (self.N + 1) ** depth)
                seen = np.flatnonzero(rows >= 0)
                model[seen] = (
                    blend.share[rows[seen]].toarray() + blend.rest[rows[seen], None] * model[seen]
                )
        return distributions

    def score(self, sequences: Sequence[Ints]) -> float:
        """Mean log-likelihood of a symbol, in nats."""
        return float(
            np.log(self.likelihoods(labels_of(sequences, self.N, self.counts.depth))).mean()
        )


def _witten_bell(counts: csr_array) -> Blend:
    total = sums(counts)
    kinds = np.diff(counts.indptr)
    share = counts.data / np.repeat(total + kinds, kinds)
    return Blend(
        csr_array((share, counts.indices, counts.indptr), shape=counts.shape),
        kinds / (total + kinds),
    )


def _discounted(counts: csr_array) -> Blend:
    total = np.repeat(sums(counts), np.diff(counts.indptr))
    off = discounts(np.asarray(counts.data, float))[np.minimum(counts.data, 3).astype(int) - 1]
    share = csr_array(
        ((counts.data - off) / total, counts.indices, counts.indptr), shape=counts.shape
    )
    return Blend(
        share, sums(csr_array((off / total, counts.indices, counts.indptr), shape=counts.shape))
    )


def discounts(counts: Array) -> Array:
    """(3,): D₁, D₂, D₃₊ from how many counts are 1, 2, 3, 4, by the formula of Chen and Goodman.

    D_j = j − (j + 1)·Y·n_{j+1}/n_j with Y = n₁/(n₁ + 2n₂). Where that cannot be computed, or would
    take nothing or all: ½, 1, 1½.
    """
    n1, n2, n3, n4 = (float(np.count_nonzero(counts == times)) for times in (1, 2, 3, 4))
    if min(n1, n2, n3) == 0:
        return _FALLBACK
    Y = n1 / (n1 + 2 * n2)
    estimated = np.array([1 - 2 * Y * n2 / n1, 2 - 3 * Y * n3 / n2, 3 - 4 * Y * n4 / n3])
    return np.where((estimated > 0) & (estimated < [1, 2, 3]), estimated, _FALLBACK)
