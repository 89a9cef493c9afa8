"""Forward stepwise selection of lags: FS of hdMTD (Ost and Takahashi 2023), and FSC.

Written anew from the paper; test_scoreboard.py compares it with the definition, and hdmtd.jsonl of
rows/ with what the package itself chose on its own samples.
"""

import numpy as np

from frame import Data


def windows(train, max_lag: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each symbol with ``max_lag`` symbols before it.

    The symbol, and those before it, lag 1 first.
    """
    views = [
        np.lib.stride_tricks.sliding_window_view(x, max_lag + 1) for x in train if len(x) > max_lag
    ]
    if not views:
        return np.empty(0, int), np.empty((0, max_lag), int)
    rows = np.concatenate(views)
    return rows[:, -1], rows[:, -2::-1]


def joint_counts(
    past: np.ndarray, label: np.ndarray, state: np.ndarray, states: int, symbols: int
) -> np.ndarray:
    """Counts by state, earlier symbol and label: (states, N, N)."""
    cells = (state * symbols + past) * symbols + label
    return np.bincount(cells, minlength=states * symbols**2).reshape(states, symbols, symbols)


def variation(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How often each state has each earlier symbol.

    (states, N), and total variation between two of its distributions of the label.
    """
    times = counts.sum(axis=2)
    shares = counts / np.maximum(times, 1)[:, :, None]
    return times, 0.5 * np.abs(shares[:, :, None, :] - shares[:, None, :, :]).sum(axis=3)


def nu(counts: np.ndarray) -> float:
    """How much the symbol at a lag matters, beyond the lags that make up the state.

    Ν of the paper.
    """
    times, distance = variation(counts)
    n = times.sum()
    total = np.maximum(times.sum(axis=1), 1)
    pairs = np.triu(times[:, :, None] * times[:, None, :] * distance, 1).sum(axis=(1, 2))
    return float((pairs / total).sum() / n)


def forward_stepwise(train, symbols: int, max_lag: int, number: int) -> list[int]:
    """The lags with the largest ν, one after the other, each beyond those before it.

    Of equals the smallest lag.
    """
    label, past = windows(train, max_lag)
    state = np.zeros(label.size, int)
    chosen: list[int] = []
    while len(chosen) < number and label.size:
        left = [lag for lag in range(1, max_lag + 1) if lag not in chosen]
        states = symbols ** len(chosen)
        values = [nu(joint_counts(past[:, lag - 1], label, state, states, symbols)) for lag in left]
        chosen.append(left[int(np.argmax(values))])
        state = state * symbols + past[:, chosen[-1] - 1]
    return chosen


def cut(
    train,
    symbols: int,
    max_lag: int,
    lags: list[int],
    alpha: float = 0.05,
    mu: float = 1.0,
    xi: float = 0.5,
) -> list[int]:
    """Those of the lags at which two distributions of the label differ by more than a threshold.

    CUT of the paper, with the package's defaults.
    """
    label, past = windows(train, max_lag)
    kept = []
    for lag in lags:
        state = np.zeros(label.size, int)
        for other in lags:
            if other != lag:
                state = state * symbols + past[:, other - 1]
        counts = joint_counts(past[:, lag - 1], label, state, symbols ** (len(lags) - 1), symbols)
        times, distance = variation(counts)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = counts / times[:, :, None]
            roots = np.sqrt(
                (shares + alpha / times[:, :, None]) * mu / (2 * mu - np.exp(mu) + 1)
            ).sum(axis=2)
            threshold = np.sqrt(0.5 * alpha * (1 + xi) / times) * roots + alpha * symbols / (
                6 * times
            )
            excess = distance - threshold[:, :, None] - threshold[:, None, :]
        seen = (times[:, :, None] > 0) & (times[:, None, :] > 0)
        if np.any(excess[seen] > 0):
            kept.append(lag)
    return kept


class Told:
    """FS of hdMTD, told the number of lags."""

    name, version, told = "hdMTD FS", "FS of 2509.01808, written anew", True
    answers = frozenset({"exact", "strongest"})

    def fit(self, data: Data) -> None:
        """Choose as many lags as there are, or four where that is not known."""
        self.chosen = forward_stepwise(data.train, data.symbols, data.max_lag, data.number or 4)
        self.symbols = data.symbols
        states = data.symbols ** len(self.chosen)
        self.counts = np.full((states, data.symbols), 0.5)
        for x in data.train:
            np.add.at(self.counts, (self.states(x)[1:], x[1:]), 1)

    def states(self, x: np.ndarray) -> np.ndarray:
        """The symbols at the chosen lags before each place, as one number; 0 before the start."""
        state = np.zeros(x.size, int)
        for lag in self.chosen:
            state = state * self.symbols + np.r_[np.zeros(min(lag, x.size), int), x[:-lag]]
        return state

    def score(self, test) -> np.ndarray:
        """Log-probabilities by counts of the chosen lags, with half a count for each symbol."""
        shares = self.counts / self.counts.sum(axis=1, keepdims=True)
        return np.concatenate([np.log(shares[self.states(x)[1:], x[1:]]) for x in test])

    def lags(self) -> list[int]:
        """The lags in the order in which they were chosen."""
        return self.chosen


class Untold(Told):
    """FSC of hdMTD.

    FS of four lags on the newer half of the data, and CUT of these on the older half.
    """

    name, told = "hdMTD FSC", False
    answers = frozenset({"exact"})

    def fit(self, data: Data) -> None:
        """Choose on one half, cut on the other; the package's own defaults."""
        half = [len(x) - len(x) // 2 for x in data.train]
        newer = [x[middle:] for x, middle in zip(data.train, half, strict=True)]
        older = [x[:middle] for x, middle in zip(data.train, half, strict=True)]
        first = forward_stepwise(newer, data.symbols, data.max_lag, 4)
        self.chosen = cut(older, data.symbols, data.max_lag, first)


ESTIMATORS = (Told, Untold)
