"""Ten kinds of sequences that are no mixtures of lags, and panels of sequences that differ, drawn by plain code that shares nothing
with the library; and six real ones. Each is a list of sequences to fit and a list to predict.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "examples"))

from misspecified import HELD, KINDS, LENGTH

# Symbols of a real sequence that are used, so that all baselines end
MOST = 24_000


class Drawn(NamedTuple):
    """Sequences of codes; the first ``skipped`` symbols of each test sequence are history only."""

    N: int
    max_lag: int
    train: list[np.ndarray]
    test: list[np.ndarray]
    skipped: list[int]


def cut(x: np.ndarray, N: int, max_lag: int = 15) -> Drawn:
    """One sequence, of which the end is held out."""
    return Drawn(N, max_lag, [x[:LENGTH]], [x], [LENGTH])


def xor(rng: np.random.Generator) -> np.ndarray:
    """Two symbols; the next is the exclusive or of lags 2 and 5, nine times in ten."""
    x = rng.integers(2, size=LENGTH + HELD)
    flips = rng.random(x.size) < 0.1
    for t in range(5, x.size):
        x[t] = x[t - 2] ^ x[t - 5] ^ flips[t]
    return x


def logit(rng: np.random.Generator) -> np.ndarray:
    """Two symbols; the logit of the next is a sum over ten lags, with weights that fall off."""
    weights = rng.normal(size=10) * 1.5 / np.arange(1, 11) ** 0.5
    x = rng.integers(2, size=LENGTH + HELD)
    u = rng.random(x.size)
    for t in range(10, x.size):
        x[t] = u[t] < 1 / (1 + np.exp(-weights @ (2 * x[t - 10 : t][::-1] - 1)))
    return x


def copies(rng: np.random.Generator) -> np.ndarray:
    """Six symbols of a Markov chain; four symbols of ten lie in pieces of 20 to 60 that came before, at any distance."""
    P = rng.dirichlet(np.full(6, 0.7), 6)
    x = [0]
    while len(x) < LENGTH + HELD:
        if len(x) > 500 and rng.random() < 0.016:
            start, size = rng.integers(len(x) - 60), rng.integers(20, 60)
            x += x[start : start + size]
        else:
            x.append(int(rng.choice(6, p=P[x[-1]])))
    return np.array(x[: LENGTH + HELD])


def change_points(rng: np.random.Generator) -> np.ndarray:
    """Four symbols of a Markov chain; every 400 symbols on average all its chances are drawn anew."""
    P = rng.dirichlet(np.full(4, 0.7), 4)
    x = [0]
    while len(x) < LENGTH + HELD:
        if rng.random() < 1 / 400:
            P = rng.dirichlet(np.full(4, 0.7), 4)
        x.append(int(rng.choice(4, p=P[x[-1]])))
    return np.array(x)


def users(rng: np.random.Generator) -> Drawn:
    """500 users with 30 to 70 symbols of four kinds; the Markov chain of each is drawn around a common one."""
    common = rng.dirichlet(np.full(4, 0.7), 4)
    drawn = []
    for _ in range(500):
        P = np.array([rng.dirichlet(4 * row + 0.02) for row in common])
        x = [int(rng.integers(4))]
        for _ in range(int(rng.integers(30, 70))):
            x.append(int(rng.choice(4, p=P[x[-1]])))
        drawn.append(np.array(x))
    return Drawn(4, 15, drawn[:400], drawn[400:], [0] * 100)


SINGLE = {"exclusive or": xor, "logit": logit, "copies": copies, "change points": change_points}
FAMILIES = (*KINDS, *SINGLE, "users")
REAL = (
    "Paradise Lost, syllables",
    "Kalevala, syllables",
    "Seattle, rain",
    "Paradise Lost, letters",
    "English words, phonemes",
    "NumPy's source, tokens",
)


def drawn(kind: str, seed: int) -> Drawn:
    """A sequence or a panel of some kind."""
    rng = np.random.default_rng(1000 + seed)
    if kind == "users":
        return users(rng)
    if kind in REAL:
        return real(kind, seed)
    x = KINDS[kind](rng)[0] if kind in KINDS else SINGLE[kind](rng)
    return cut(x, int(x.max()) + 1)


def real(name: str, fifth: int) -> Drawn:
    """The first symbols of a real sequence, of which a fifth is held out: the last one, or the first to fourth; or a fifth of the
    sequences.
    """
    from sequences import SOURCES  # pyright: ignore[reportMissingImports]

    from scb.sequences.symbols import as_sequences, encode

    source = SOURCES[name]
    whole = source.read()
    if len(whole) == 1:
        whole = [whole[0][:MOST]]
    ends = np.cumsum([len(x) for x in whole])
    whole = whole[: max(1, int(np.searchsorted(ends, MOST)))]
    codes, classes = encode(as_sequences(whole))
    n = len(codes[0]) if len(codes) == 1 else len(codes)
    first, end = (n * (4 + i + fifth) // 5 - (n if fifth else 0) for i in range(2))
    if len(codes) == 1:
        (x,) = codes
        return Drawn(len(classes), source.max_lag, [part for part in (x[:first], x[end:]) if part.size], [x[:end]], [first])
    return Drawn(len(classes), source.max_lag, [*codes[:first], *codes[end:]], codes[first:end], [0] * (end - first))


def panel(rng: np.random.Generator, memory: float) -> tuple[list[list[int]], set[tuple[int, int]]]:
    """300 sequences of 20 to 80 symbols of three to six kinds; each has frequencies of its own. With a memory, so much of them
    follows the symbol at a lag that the current symbol chooses. Also the current symbols and lags that are planted.
    """
    N = int(rng.integers(3, 7))
    base = rng.dirichlet(np.full(N, 2.0))
    spread = rng.choice([1.0, 3.0, 10.0])
    P = 0.85 * np.roll(np.eye(N), 1, axis=0) + 0.15 / N
    lags = rng.choice([2, 3, 5, 7], size=N)
    found = []
    for _ in range(300):
        own = 0.9 * rng.dirichlet(spread * base + 0.02) + 0.1 * base
        x = rng.choice(N, p=own, size=7).tolist()
        for _ in range(int(rng.integers(13, 73))):
            column = P[:, x[-lags[x[-1]]]] if rng.random() < memory else own
            x.append(int(rng.choice(N, p=column / column.sum())))
        found.append(x)
    return found, {(k, int(lag)) for k, lag in enumerate(lags)}
