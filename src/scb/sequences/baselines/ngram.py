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
from dataclasses import dataclass
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
    Level,
    at_places,
    histories_in,
    is_long_enough,
)

Smoothing = Literal["kneser-ney", "absolute", "witten-bell"]
SMOOTHINGS: tuple[Smoothing, ...] = ("kneser-ney", "absolute", "witten-bell")
# Discounts if the counts are too few, or too uniform, to estimate them
_FALLBACK = np.array([0.5, 1.0, 1.5])


class Blend(NamedTuple):
    """The parts of p(o|h) = share[h, o] + escape[h]·p(o|h') for histories h of one length."""

    share: Array  # (J,): of each entry of their level
    escape: Array  # (S,)


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
    def blends(self) -> list[Blend]:
        """The blends for histories of 0, 1, … symbols."""
        blends = []
        for depth, level in enumerate(self.counts.levels):
            if self.smoothing == "witten-bell":
                blends.append(_witten_bell(level))
            elif self.smoothing == "absolute" or depth == self.counts.depth:
                blends.append(_discounted(level, level.counts))
            else:
                blends.append(_discounted(level, level.kinds))
        return blends

    def likelihoods(self, labels: Histories) -> Array:
        """(n,): the probability of each label, without computing whole distributions."""
        p = np.full(labels.label.size, 1 / self.N)
        for depth, blend in enumerate(self.blends):
            p = _leaned(blend, p, *self.counts.places(depth, labels))
        return p

    def _distributions(self, histories: Ints) -> Array:
        p = np.full((histories.size, self.N), 1 / self.N)
        for depth, blend in enumerate(self.blends):
            rows = self.counts.rows(depth, histories)
            seen = np.flatnonzero(rows >= 0)
            share = self.counts.levels[depth].dense(blend.share, rows[seen])
            p[seen] = share + blend.escape[rows[seen], None] * p[seen]
        return p


def logliks_by_depth(counts: HistoryCounts, held_out: HistoryCounts) -> Array:
    """(depth + 1, smoothings): the log-likelihood of held-out labels by the n-grams with histories
    of 0, 1, …, ``counts.depth`` symbols, in the order of ``SMOOTHINGS``.

    All log-likelihoods are computed in one pass, since longer histories build on shorter ones.
    """
    logliks = np.zeros((counts.depth + 1, len(SMOOTHINGS)))
    labels = held_out.labels
    uniform = np.full(labels.label.size, 1 / counts.N)
    shorter = {smoothing: uniform for smoothing in SMOOTHINGS}
    for depth, level in enumerate(counts.levels):
        places = counts.places(depth, labels)
        plain = _discounted(level, level.counts)
        longest = {
            "kneser-ney": plain,
            "absolute": plain,
            "witten-bell": _witten_bell(level),
        }
        p = {name: _leaned(longest[name], shorter[name], *places) for name in SMOOTHINGS}
        logliks[depth] = [held_out.loglik(p[name]) for name in SMOOTHINGS]
        # Only the longest histories of Kneser and Ney count how often a label came
        inner = _discounted(level, level.kinds)
        kneser_ney = _leaned(inner, shorter["kneser-ney"], *places)
        shorter = {**p, "kneser-ney": kneser_ney}
    return logliks


def _leaned(blend: Blend, shorter: Array, rows: Ints, entries: Ints) -> Array:
    """(n,): the probability of each label after histories in some rows, and with its label in some
    entries, −1 where that was not seen; from the probability after shorter histories.
    """
    share = at_places(blend.share, entries)
    return np.where(rows >= 0, share + at_places(blend.escape, rows) * shorter, shorter)


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


def _witten_bell(level: Level) -> Blend:
    total = level.sums(level.counts) + level.sizes
    return Blend(level.counts / np.repeat(total, level.sizes), level.sizes / total)


def _discounted(level: Level, counts: Array) -> Blend:
    total = np.repeat(level.sums(counts), level.sizes)
    off = discounts(counts)[np.minimum(counts, 3).astype(int) - 1]
    return Blend((counts - off) / total, level.sums(off / total))


def discounts(counts: Array) -> Array:
    """(3,): D₁, D₂, D₃₊ from the numbers of counts equal to 1, 2, 3, 4, as Chen and Goodman define
    them.

    D_j = j − (j + 1)·Y·n_{j+1}/n_j with Y = n₁/(n₁ + 2n₂). If this cannot be computed, or would
    subtract nothing or everything, the discounts are ½, 1, 1½.
    """
    n1, n2, n3, n4 = (float(np.count_nonzero(counts == times)) for times in (1, 2, 3, 4))
    if min(n1, n2, n3) == 0:
        return _FALLBACK
    Y = n1 / (n1 + 2 * n2)
    estimated = np.array([1 - 2 * Y * n2 / n1, 2 - 3 * Y * n3 / n2, 3 - 4 * Y * n4 / n3])
    return np.where((estimated > 0) & (estimated < [1, 2, 3]), estimated, _FALLBACK)
