"""Sequences from a context-dependent Mixture Transition Distribution, drawn symbol by symbol in plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SUPPORT = ((2, 7), (1, 11), (11,), (2,))
"""Lags of each symbol: with a matrix for each lag this can be told from every other table (tests/sequences/test_estimator.py)."""


@dataclass(frozen=True)
class MTD:
    """weights[k] maps lag to weight; with one entry there is one context. matrices[lag][:, m] is a distribution."""

    weights: tuple[dict[int, float], ...]
    matrices: dict[int, Any]

    @classmethod
    def random(cls, seed: int, support: tuple[tuple[int, ...], ...] = SUPPORT, per_lag: bool = False, N: int = 4) -> MTD:
        rng = np.random.default_rng(seed)
        weights = tuple(dict(zip(s, rng.dirichlet(np.full(len(s), 5.0)), strict=True)) for s in support)
        shared = rng.dirichlet(np.full(N, 0.7), N).T
        lags = sorted({lag for s in support for lag in s})
        return cls(weights, {lag: rng.dirichlet(np.full(N, 0.7), N).T if per_lag else shared for lag in lags})

    def distribution(self, history: Any) -> Any:
        """The distribution of the next symbol."""
        own = self.weights[history[-1]] if len(self.weights) > 1 else self.weights[0]
        return sum(w * self.matrices[lag][:, history[-lag]] for lag, w in own.items())

    def sample(self, n: int, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        N, longest = len(next(iter(self.matrices.values()))), max(self.matrices)
        x = rng.integers(N, size=longest).tolist()
        edges = {lag: np.cumsum(P, axis=0)[:-1].T.tolist() for lag, P in self.matrices.items()}
        pick = [(list(w), np.cumsum(list(w.values()))[:-1].tolist()) for w in self.weights]
        for u, v in rng.random((n + 500, 2)).tolist():
            lags, bounds = pick[x[-1] if len(pick) > 1 else 0]
            lag = lags[sum(u >= b for b in bounds)]
            x.append(sum(v >= e for e in edges[lag][x[-lag]]))
        return np.array(x[-n:])

    def loglik(self, x: Any, max_lag: int) -> float:
        """Of all symbols after the first max_lag."""
        now = np.arange(max_lag, len(x))
        total = np.zeros(now.size)
        for k, own in enumerate(self.weights):
            mine = now if len(self.weights) == 1 else now[x[now - 1] == k]
            total[mine - max_lag] = sum(w * self.matrices[lag][x[mine], x[mine - lag]] for lag, w in own.items())
        return float(np.log(total).sum())

    @property
    def table(self) -> set[tuple[int | None, int]]:
        one = len(self.weights) == 1
        return {(None if one else k, lag) for k, own in enumerate(self.weights) for lag in own}
