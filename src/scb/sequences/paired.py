"""The standard error of a mean over neighbours in a sequence."""

import numpy as np

from scb.arrays import Array


def paired_error(differences: Array) -> float:
    """The standard error of the mean of differences (n,) that may be correlated between neighbours,
    from the means of blocks of neighbours.
    """
    blocks = np.array_split(differences, min(100, max(2, differences.size // 10)))
    sizes = np.array([block.size for block in blocks])
    means = np.array([block.mean() if block.size else 0.0 for block in blocks])
    mean = differences.mean()
    return float(np.sqrt((sizes**2 * (means - mean) ** 2).sum()) / differences.size)
