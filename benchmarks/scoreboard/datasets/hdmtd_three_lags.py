"""hdMTD's first example (arXiv 2509.01808, 5.1): lags 1, 15, 30, looked for up to lag 40.

The weights and matrices are those that the paper prints for its seed; the samples are ours, so that
no R is needed.
"""

import numpy as np

from chains import mixture_chain
from frame import Data, Problem

TITLE = "lags {1, 15, 30}, up to 40"
LICENCE = "made here"
JUDGE = "exact"
CASES = [{"n": n, "seed": seed} for n in (1000, 10_000) for seed in range(100)]
LAGS = {
    1: (0.39, np.array([[0.3519031797, 0.6480968203], [0.0355832100, 0.9644167900]])),
    15: (0.3, np.array([[0.4278829968, 0.5721170032], [0.7670554596, 0.2329445404]])),
    30: (0.3, np.array([[0.8341438563, 0.1658561437], [0.2184814297, 0.7815185703]])),
}


def load(n: int, seed: int) -> Problem:
    """A sample of n symbols."""
    x = mixture_chain(LAGS, (0.01, np.array([0.5, 0.5])), n, seed)
    return Problem(Data([x], symbols=2, max_lag=40, number=3), lags=frozenset(LAGS))
