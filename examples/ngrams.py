"""An interpolated n-gram model to compare with: Witten and Bell's smoothing, down to the uniform law.

With h the last n − 1 symbols, c(h) how often they occurred and d(h) how many different symbols came next,

    p(x | h) = (c(h, x) + d(h)·p(x | shorter h)) / (c(h) + d(h)).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Self

import numpy as np

Symbols = Sequence[str | None]


class NGram:
    """Predicts each symbol from the n − 1 before it. None is a gap: nothing is counted across it."""

    def __init__(self, n: int) -> None:
        self.n = n

    def fit(self, sequences: Sequence[Symbols]) -> Self:
        """Count."""
        self.symbols = sorted({x for sequence in sequences for x in sequence if x is not None})
        self.pairs: Counter[tuple[str | None, ...]] = Counter()
        for sequence in sequences:
            for t, label in enumerate(sequence):
                for length in range(self.n):
                    if label is None or length > t or sequence[t - length] is None:
                        break
                    self.pairs[tuple(sequence[t - length : t + 1])] += 1
        self.histories: Counter[tuple[str | None, ...]] = Counter()
        self.followers: Counter[tuple[str | None, ...]] = Counter()
        for gram, count in self.pairs.items():
            self.histories[gram[:-1]] += count
            self.followers[gram[:-1]] += 1
        return self

    def probability(self, label: str, history: tuple[str | None, ...]) -> float:
        """Of one symbol after the n − 1 before it."""
        p = 1 / len(self.symbols)
        for length in range(len(history) + 1):
            h = history[len(history) - length :]
            if (count := self.histories[h]) == 0:
                break
            p = (self.pairs[*h, label] + self.followers[h] * p) / (count + self.followers[h])
        return p

    def bits(self, sequences: Sequence[Symbols], max_lag: int) -> float:
        """Mean bits a symbol, over those with max_lag symbols before them and no gap: the windows that the estimator scores."""
        total = count = 0
        for sequence in sequences:
            since = 0  # symbols since the last gap
            for t, label in enumerate(sequence):
                if label is None:
                    since = 0
                    continue
                if since >= max_lag:
                    total -= np.log2(self.probability(label, tuple(sequence[t - self.n + 1 : t])))
                    count += 1
                since += 1
        if count == 0:
            raise ValueError(f"no symbol has max_lag = {max_lag} symbols before it without a gap")
        return float(total / count)


def best_order(train: Sequence[Symbols], max_lag: int, orders: Sequence[int]) -> int:
    """The n that predicts the last tenth of each sequence best, from the rest."""
    cut = [len(sequence) * 9 // 10 for sequence in train]
    early = [sequence[:c] for sequence, c in zip(train, cut, strict=True)]
    late = [sequence[c:] for sequence, c in zip(train, cut, strict=True)]
    return min(orders, key=lambda n: NGram(n).fit(early).bits(late, max_lag))
