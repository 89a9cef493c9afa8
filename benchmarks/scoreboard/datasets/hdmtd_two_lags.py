"""hdMTD's own test (arXiv 2509.01808, 5.3): lags 1 and 5, looked for up to lag 100.

The weights and matrices are those that the paper prints for its seed; the samples are ours, so that
no R is needed.
"""

import numpy as np

from chains import mixture_chain
from frame import Data, Problem

TITLE = "lags {1, 5}, up to 100"
LICENCE = "made here"
JUDGE = "exact"
CASES = [{"n": n, "seed": seed} for n in (1000, 10_000) for seed in range(100)]
LAGS = {
    1: (0.2646215584, np.array([[0.3030706419, 0.6969293581], [0.9509392853, 0.0490607147]])),
    5: (0.7253784416, np.array([[0.4891946961, 0.5108053039], [0.6615246096, 0.3384753904]])),
}


def load(n: int, seed: int) -> Problem:
    """A sample of n symbols."""
    x = mixture_chain(LAGS, (0.01, np.array([0.5, 0.5])), n, seed)
    return Problem(Data([x], symbols=2, max_lag=100, number=2), lags=frozenset(LAGS))
