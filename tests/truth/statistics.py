"""Tests of distributions. Seeds are fixed wherever they are used, so that they cannot flicker."""

import numpy as np
from scipy.stats import chisquare


def assert_distribution(counts, probabilities):
    """χ² against exact probabilities; impossible cells must stay empty."""
    counts, expected = np.ravel(counts), np.ravel(probabilities) * np.sum(counts)
    assert counts[expected == 0].sum() == 0
    assert chisquare(counts[expected > 0], expected[expected > 0]).pvalue > 1e-3
