"""Prediction by partial matching (Cleary and Witten 1984): the longest context that was seen speaks
first, and may pass.

A context gives each label that it has seen a share, and the rest to an *escape* to the context
without its oldest symbol. There, labels that the longer contexts could have named are *excluded*.
With the counts c of a context, t their sum after exclusion, and d how many different labels it has
seen:

    method "C" (Moffat 1990):  p = c/(t + d),        escape d/(t + d)
    method "D" (Howard 1993):  p = (c − ½)/t,        escape d/(2t), where d too is after exclusion

After the empty context all labels that are not excluded are equally likely. Where all N labels were
seen, none is left to escape to. With *update exclusion* a context counts a label only where a
longer one had not seen it yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from scb.arrays import Array
from scb.sequences.baselines.counts import (
    ContextCounts,
    CountModel,
    Ints,
    Labels,
    deepest,
    labels_of,
)

LONGEST = 12  # context that is tried
_TRIED = 6  # contexts up to this length are tried in any case
_PATIENCE = 2  # lengths that may be worse than the best one before no longer one is tried


@dataclass(frozen=True)
class PPM(CountModel):
    """Prediction by partial matching, with contexts of up to ``counts.depth`` symbols."""

    method: Literal["C", "D"] = "D"
    update_exclusion: bool = True

    @classmethod
    def fit(cls, sequences: Sequence[Ints], N: int, longest: int = LONGEST) -> "PPM":
        """The length of contexts, with or without update exclusion, that predicts the last tenth of
        the labels best.
        """
        longest = deepest(N, longest)
        labels = labels_of(sequences, N, longest)
        cut = labels.label.size - max(1, labels.label.size // 10)
        first = Labels(labels.context[:cut], labels.label[:cut])
        last = Labels(labels.context[cut:], labels.label[cut:])
        scores: dict[tuple[int, bool], float] = {}
        for depth in range(longest + 1):
            counts = ContextCounts.of(first, N, depth)
            for exclusion in (True, False):
                model = cls(counts, update_exclusion=exclusion)
                scores[depth, exclusion] = float(np.log(model.likelihoods(last)).mean())
            if depth >= max(_TRIED, max(scores, key=lambda one: scores[one])[0] + _PATIENCE):
                break
        depth, exclusion = max(scores, key=lambda one: scores[one])
        return cls(ContextCounts.of(labels, N, depth), update_exclusion=exclusion)

    @property
    def name(self) -> str:
        """Method and length of the contexts."""
        return f"PPM-{self.method}, contexts up to {self.counts.depth}"

    def _distributions(self, contexts: Ints) -> Array:
        distributions = np.zeros((contexts.size, self.N))
        left = np.ones(contexts.size)  # the probability that all contexts so far have passed
        allowed = np.ones((contexts.size, self.N), bool)
        for depth in range(self.counts.depth, -1, -1):
            level = self.counts.levels[depth]
            rows = level.rows(contexts % (self.N + 1) ** depth)
            seen = np.flatnonzero(rows >= 0)
            table = level.kinds if self.update_exclusion else level.counts
            counts = table[rows[seen]].toarray()
            d = (counts > 0).sum(axis=1)
            counts *= allowed[seen]
            share, escape = self._shares(counts, d)
            none_left = ~(allowed[seen] & (counts == 0)).any(axis=1)
            share[none_left] /= np.maximum(
                share[none_left].sum(axis=1, keepdims=True), np.finfo(float).tiny
            )
            escape[none_left] = 0.0
            distributions[seen] += left[seen, None] * share
            left[seen] *= escape
            allowed[seen] &= counts == 0
        rest = allowed / np.maximum(allowed.sum(axis=1, keepdims=True), 1)
        return distributions + left[:, None] * rest

    def _shares(self, counts: Array, d: Ints) -> tuple[Array, Array]:
        """Share of each label (r, N) and escape (r,), from counts after exclusion and the number of
        labels seen before it.
        """
        t = counts.sum(axis=1)
        if self.method == "C":
            return counts / (t + d)[:, None], d / (t + d)
        # With method D what escapes is what was taken off: ½ for each label that is left
        kept = (counts > 0).sum(axis=1)
        total = np.maximum(t, 1)
        return np.maximum(counts - 0.5, 0) / total[:, None], np.where(
            t > 0, kept / (2 * total), 1.0
        )
