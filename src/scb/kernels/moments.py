"""What the metrics need of a large A, in one pass."""

import numba
import numpy as np

from scb.kernels import REORDER


@numba.njit(cache=True, fastmath=REORDER)
def _moments(a, base, threshold):
    """Of one column: Σb, Σb² for b = a − base, and Σa, Σa² where a reaches the threshold."""
    s = square = kept = kept_square = 0.0
    for t in range(a.size):
        b = a[t] - base
        s += b
        square += b * b
        large = a[t] * np.float64(a[t] >= threshold)  # a product, not a branch: the loop vectorises
        kept += large
        kept_square += large * large
    return s, square, kept, kept_square


@numba.njit(cache=True)
def column_moments(A, threshold):
    """(4, N): for b = a − 1/T, Σb and Σb²; and over the entries that reach ``threshold``, Σa and Σa². Twin: ``column_moments``."""
    T, N = A.shape
    moments = np.empty((4, N))
    for k in range(N):
        moments[0, k], moments[1, k], moments[2, k], moments[3, k] = _moments(A[:, k], 1.0 / T, threshold)
    return moments
