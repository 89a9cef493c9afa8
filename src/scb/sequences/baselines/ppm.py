"""Prediction by partial matching (Cleary and Witten 1984): the longest history that was seen
predicts first, and may escape to a shorter one.

A history assigns a probability to each label seen after it, and the remaining probability to an
*escape* to the history without its oldest symbol. At the shorter history, labels that were seen
after the longer histories are *excluded*. With the counts c of a history, t their sum after
exclusion, and d the number of distinct labels seen after it:

    method "C" (Moffat 1990):  p = c/(t + d),        escape d/(t + d)
    method "D" (Howard 1993):  p = (c − ½)/t,        escape d/(2t), where d too is after exclusion

After an escape from the empty history, all labels that are not excluded are equally likely. If all
N labels were seen, there is no label left to escape to. With *update exclusion*, a history counts a
label only if the label had not yet been seen after a longer history.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from scb.arrays import Array
from scb.sequences.baselines.counts import (
    ENTRIES,
    Histories,
    HistoryCounts,
    HistoryModel,
    Ints,
    deepest,
    histories_in,
    is_long_enough,
)


@dataclass(frozen=True)
class PPM(HistoryModel):
    """Prediction by partial matching, with histories of up to ``counts.depth`` symbols."""

    method: Literal["C", "D"] = "D"
    update_exclusion: bool = True

    @classmethod
    def fit(cls, sequences: Sequence[Ints], N: int, longest: int = 12) -> "PPM":
        """Choose the length of histories, and whether to use update exclusion, by the likelihood of
        the last tenth of the labels.
        """
        longest = deepest(N, longest)
        labels = histories_in(sequences, N, longest)
        cut = labels.label.size - max(1, labels.label.size // 10)
        first, last = labels.part(slice(cut)), labels.part(slice(cut, None))
        scores: dict[tuple[int, bool], float] = {}
        best, exclusion = 0, True
        for depth in range(longest + 1):
            counts = HistoryCounts.count(first, N, depth)
            for exclusion in (True, False):
                model = cls(counts, update_exclusion=exclusion)
                scores[depth, exclusion] = float(np.log(model.likelihoods(last)).mean())
            best, exclusion = max(scores, key=lambda choice: scores[choice])
            if is_long_enough(depth, best):
                break
        return cls(HistoryCounts.count(labels, N, best), update_exclusion=exclusion)

    @property
    def name(self) -> str:
        """The method and the length of the histories."""
        return f"PPM-{self.method}, contexts up to {self.counts.depth}"

    def _likelihoods(self, labels: Histories) -> Array:
        # Distributions are computed once for each distinct history
        histories, place = np.unique(
            labels.history % (self.N + 1) ** self.counts.depth, return_inverse=True
        )
        p = np.empty(labels.label.size)
        order = np.argsort(place, kind="stable")
        most = max(1, ENTRIES // self.N)
        bounds = np.searchsorted(place[order], np.arange(0, histories.size + most, most))
        for i, first in enumerate(range(0, histories.size, most)):
            mine = order[bounds[i] : bounds[i + 1]]
            distributions = self._distributions(histories[first : first + most])
            p[mine] = distributions[place[mine] - first, labels.label[mine]]
        return p

    def _distributions(self, histories: Ints) -> Array:
        p = np.zeros((histories.size, self.N))
        left = np.ones(histories.size)  # the probability that all histories so far have passed
        allowed = np.ones((histories.size, self.N), bool)
        tree = self.counts.tree
        table = tree.kinds if self.update_exclusion else tree.counts
        for nodes in self.counts.nodes(histories)[-2::-1]:
            seen = np.flatnonzero(nodes >= 0)
            counts = tree.dense(table, nodes[seen])
            d = (counts > 0).sum(axis=1)
            counts *= allowed[seen]
            share, escape = self._shares(counts, d)
            none_left = ~(allowed[seen] & (counts == 0)).any(axis=1)
            total = share[none_left].sum(axis=1, keepdims=True)
            share[none_left] /= np.maximum(total, np.finfo(float).tiny)
            escape[none_left] = 0.0
            p[seen] += left[seen, None] * share
            left[seen] *= escape
            allowed[seen] &= counts == 0
        uniform = allowed / np.maximum(allowed.sum(axis=1, keepdims=True), 1)
        return p + left[:, None] * uniform

    def _shares(self, counts: Array, d: Ints) -> tuple[Array, Array]:
        """The share of each label (r, N) and the escape (r,), from counts after exclusion and the
        number d of distinct labels before it, which only method C uses.
        """
        t = counts.sum(axis=1)
        if self.method == "C":
            return counts / (t + d)[:, None], d / (t + d)
        # Method D takes ½ off each count that is left, and gives it to the escape
        taken = (counts > 0).sum(axis=1) / 2
        total = np.maximum(t, 1)
        share = np.maximum(counts - 0.5, 0) / total[:, None]
        # Where all labels are excluded, everything escapes
        return share, np.where(t > 0, taken / total, 1.0)
