"""One lag of five, to be found in a short sequence: interleaved chains, as in arXiv 2509.08184.

There, transformers are trained on sequences that share one transition matrix and differ in the lag
it acts at, and learn to find the lag of a new sequence. Here an estimator sees the one sequence and
knows neither the matrix nor the lag.
"""

import numpy as np

from chains import mixture_chain
from frame import Data, Problem

TITLE = "interleaved chains, one lag of five"
LICENCE = "made here"
JUDGE = "exact"
SYMBOLS = 5
CASES = [{"n": n, "seed": seed} for n in (50, 100, 200, 400) for seed in range(60)]


def load(n: int, seed: int) -> Problem:
    """A sequence of n symbols, with a lag and a matrix of its own."""
    rng = np.random.default_rng(1000 + seed)
    lag = int(rng.integers(1, 6))
    matrix = rng.dirichlet(np.full(SYMBOLS, 0.3), SYMBOLS)
    x = mixture_chain({lag: (1.0, matrix)}, (0.0, np.full(SYMBOLS, 1 / SYMBOLS)), n, seed)
    return Problem(Data([x], symbols=SYMBOLS, max_lag=5, number=1), lags=frozenset({lag}))
