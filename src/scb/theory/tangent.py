"""Directions in which rows keep their sums, and inverses of positive definite matrices."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array


def inverse_if_definite(matrices: Array) -> Array | None:
    """The inverses of matrices (…, n, n), if all are positive definite beyond rounding, whatever
    their coordinates' scales.
    """
    diagonal = np.einsum("...ii->...i", matrices)
    if not np.isfinite(matrices).all() or (diagonal <= 0).any():
        return None
    scale = 1 / np.sqrt(diagonal)
    both = scale[..., :, None] * scale[..., None, :]
    try:
        pivots = np.einsum("...ii->...i", np.linalg.cholesky(matrices * both))
    except np.linalg.LinAlgError:
        return None
    return np.linalg.inv(matrices * both) * both if (pivots**2 > 1e-10).all() else None


def tangent(free: NDArray[np.bool_]) -> Array:
    """An orthonormal basis (K·s, r) of the q's directions: in each row, those on free entries that
    sum to 0.
    """
    return _basis(free.tobytes(), free.shape)


@lru_cache(maxsize=16)
def _basis(flags: bytes, shape: tuple[int, int]) -> Array:
    """``tangent`` of flags; the steps of a climb ask for the same one again and again."""
    free = np.frombuffer(flags, bool).reshape(shape)
    K, s = shape
    columns = []
    for k in range(K):
        slots = np.flatnonzero(free[k])
        for j in range(1, len(slots)):  # Helmert's contrasts
            column = np.zeros((K, s))
            column[k, slots[:j]], column[k, slots[j]] = 1.0, -float(j)
            columns.append(column.ravel() / np.sqrt(j * (j + 1)))
    return np.array(columns).T if columns else np.zeros((K * s, 0))
