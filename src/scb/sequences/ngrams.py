"""What a model of sequences has to be compared with: unigram, bigram, interpolated n-gram, on the same windows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.inputs import InputError
from scb.mixture.data import Data, Here
from scb.mixture.partition import Partition

_CODES = 1 << 62  # different n-grams at most
LONGEST = 8  # n-gram that is tried


@dataclass(frozen=True)
class NGram:
    """Interpolated n-grams by Witten and Bell (1991): p_n(o|c) = (count(c, o) + d(c)·p_{n−1}(o|c'))/(count(c) + d(c)).

    d(c) is how many different labels came after c, and c' is c without its oldest symbol. Below the unigram, all symbols are
    equally likely, so that none is impossible.
    """

    order: int  # n: the label depends on the n − 1 symbols before it
    N: int
    levels: list[dict[str, NDArray[np.int64]]]  # for 1 … n, what was counted

    @classmethod
    def fit(cls, data: Data, order: int) -> "NGram":
        """Count all n-grams up to ``order`` in windows."""
        if not 1 <= order <= data.T + 1:
            raise InputError(f"order = {order}: it must lie between 1 and max_lag + 1 = {data.T + 1}")
        if (data.N + 1) ** order >= _CODES:
            raise InputError(f"order = {order} is too long for {data.N} symbols")
        levels = []
        label = _windows(data).label
        for context in _contexts(data, order):
            joint, counts = np.unique(context * data.N + label, return_counts=True)
            seen, first = np.unique(joint // data.N, return_index=True)
            totals = np.add.reduceat(counts, first)
            kinds = np.diff(np.r_[first, len(joint)])
            levels.append({"joint": joint, "count": counts, "context": seen, "total": totals, "kinds": kinds})
        return cls(order, data.N, levels)

    def likelihoods(self, data: Data) -> Array:
        """(n,): the probability of each label in windows."""
        label = _windows(data).label
        p = np.full(data.n, 1 / self.N)
        for context, level in zip(_contexts(data, self.order), self.levels, strict=True):
            count = _look_up(context * self.N + label, level["joint"], level["count"])
            total = _look_up(context, level["context"], level["total"])
            kinds = _look_up(context, level["context"], level["kinds"])
            p = np.where(total > 0, (count + kinds * p) / np.maximum(total + kinds, 1), p)
        return p

    def score(self, data: Data) -> float:
        """Mean log-likelihood of a label, in nats."""
        return float(np.log(self.likelihoods(data)).mean())


def _windows(data: Data) -> Partition:
    """The windows themselves: n-grams are counted on data that lie in this process."""
    (partition,) = data.partitions
    return partition


def _contexts(data: Data, order: int) -> list[NDArray[np.int64]]:
    """For n = 1 … order, the n − 1 symbols before the label as one number."""
    lags = np.arange(data.T - 1, data.T - order, -1)
    tokens = _windows(data).gather(np.tile(lags, (data.K, 1)), data.N).astype(np.int64)
    digits = (tokens + 1) * (data.N + 1) ** np.arange(order - 1)
    return [np.zeros(data.n, np.int64), *np.cumsum(digits, axis=1).T]


def _look_up(keys: NDArray[np.int64], known: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The values of keys; 0 where a key is not known."""
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[place] == keys, values[place], 0)


def best_order(data: Data, orders: Sequence[int]) -> int:
    """The order whose n-gram, fitted to all windows but the last tenth, predicts these best."""
    first = np.arange(data.n) < data.n - max(1, data.n // 10)
    parts = [_windows(data).only(chosen) for chosen in (first, ~first)]
    begin, end = (Data.of(Here(), [part], data.shape, data.mu, independent=False) for part in parts)
    return max(orders, key=lambda order: NGram.fit(begin, order).score(end))


def baselines(train: Data, test: Data) -> dict[str, float]:
    """Mean log-likelihood on the windows of ``test``, in nats, by name; an n-gram has the best order on the end of ``train``."""
    orders = [n for n in range(3, min(LONGEST, train.T + 1) + 1) if (train.N + 1) ** n < _CODES]
    results = {name: NGram.fit(train, n).score(test) for n, name in ((1, "unigram"), (2, "bigram"))}
    if orders and train.n > 1:
        best = best_order(train, orders)
        results[f"interpolated {best}-gram"] = NGram.fit(train, best).score(test)
    return results
