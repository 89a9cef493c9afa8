"""The simplest ways to find a lag: mutual information, autocorrelation, and chance."""

import numpy as np
from scipy.special import xlogy
from scipy.stats import chi2

from frame import Data


def pair_counts(train, symbols: int, lag: int) -> np.ndarray:
    """How often each symbol comes ``lag`` steps after each other one."""
    total = np.zeros((symbols, symbols))
    for x in train:
        if len(x) > lag:
            total += np.bincount(x[:-lag] * symbols + x[lag:], minlength=symbols**2).reshape(
                symbols, symbols
            )
    return total


def information(counts: np.ndarray) -> float:
    """Mutual information in nats."""
    p = counts / max(counts.sum(), 1)
    return float(
        xlogy(p, p).sum() - xlogy(p.sum(0), p.sum(0)).sum() - xlogy(p.sum(1), p.sum(1)).sum()
    )


class MutualInformation:
    """Each lag on its own.

    Those whose mutual information a test at 5 % over all lags does not give to chance, the largest
    first.
    """

    name, version, told = "mutual information", "", False
    answers = frozenset({"exact", "strongest"})

    def fit(self, data: Data) -> None:
        """Test every lag."""
        counts = [pair_counts(data.train, data.symbols, lag) for lag in range(1, data.max_lag + 1)]
        values = np.array([information(one) for one in counts])
        needed = chi2.isf(0.05 / data.max_lag, (data.symbols - 1) ** 2)
        ratio = 2 * np.array([one.sum() for one in counts]) * values
        order = np.argsort(-values, kind="stable")
        self.number = data.number
        self.order = [int(i) + 1 for i in order]
        self.found = [lag for lag in self.order if ratio[lag - 1] > needed]

    def lags(self) -> list[int]:
        """The lags that passed, the largest mutual information first."""
        return self.found


class ToldInformation(MutualInformation):
    """The lags with the largest mutual information, as many as there are."""

    name, told = "mutual information, told the number", True
    answers = frozenset({"exact"})

    def lags(self) -> list[int]:
        """The first of the list."""
        return self.order[: self.number]


class Autocorrelation:
    """Lags by the share of times that a symbol is the same as the one a lag before."""

    name, version, told = "autocorrelation", "", False
    answers = frozenset({"strongest"})

    def fit(self, data: Data) -> None:
        """Count agreements, less those that frequencies alone would give."""
        values = []
        for lag in range(1, data.max_lag + 1):
            p = pair_counts(data.train, data.symbols, lag)
            p /= max(p.sum(), 1)
            values.append(np.trace(p) - p.sum(0) @ p.sum(1))
        order = np.argsort(-np.array(values), kind="stable")
        self.found = [int(i) + 1 for i in order if values[i] > 0]

    def lags(self) -> list[int]:
        """The lags with agreement, the most of it first."""
        return self.found


class Chance:
    """Lags drawn at random, as many as there are, or one: what nonsense scores."""

    name, version, told = "chance", "", True
    answers = frozenset({"exact", "strongest"})

    def fit(self, data: Data) -> None:
        """Draw; the seed comes from the data."""
        rng = np.random.default_rng(int(sum(int(x.sum()) for x in data.train)))
        self.found = (rng.permutation(data.max_lag) + 1)[: data.number or data.max_lag].tolist()

    def lags(self) -> list[int]:
        """What was drawn."""
        return self.found


ESTIMATORS = (MutualInformation, ToldInformation, Autocorrelation, Chance)
