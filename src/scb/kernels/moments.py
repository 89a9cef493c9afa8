"""What the metrics need of a large A, in one pass."""

from __future__ import annotations

import numba
import numpy as np

from scb.kernels import REORDER


@numba.njit(cache=True, fastmath=REORDER)
def column_moments(A, threshold):
    """(4, N): for b = a − 1/T, Σb and Σb²; and over the entries that reach ``threshold``, Σa and Σa². Twin: ``column_moments``."""
    T, N = A.shape
    moments = np.empty((4, N))
    for k in range(N):
        a = A[:, k]
        s = square = kept = kept_square = 0.0
        for t in range(T):
            b = a[t] - 1.0 / T
            s += b
            square += b * b
            large = a[t] * np.float64(a[t] >= threshold)  # a product, not a branch: the loop vectorises
            kept += large
            kept_square += large * large
        moments[0, k] = s
        moments[1, k] = square
        moments[2, k] = kept
        moments[3, k] = kept_square
    return moments
