"""Directions in which rows keep their sums, and inverses of positive definite matrices."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array


def inverse_if_definite(matrices: Array) -> Array | None:
    """Invert matrices if all are positive definite beyond rounding errors, whatever their scales.

    Parameters
    ----------
    matrices : (…, n, n) array
        The matrices.

    Returns
    -------
    (…, n, n) array or None
        The inverses; None if a matrix is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.theory.tangent import inverse_if_definite
    >>> inverse_if_definite(np.diag([2.0, 4.0]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    >>> inverse_if_definite(np.ones((2, 2))) is None
    True
    """
    diagonal = np.einsum("...ii->...i", matrices)
    if not np.isfinite(matrices).all() or (diagonal <= 0).any():
        return None
    scale = 1 / np.sqrt(diagonal)
    both = scale[..., :, None] * scale[..., None, :]
    scaled = matrices * both
    try:
        pivots = np.einsum("...ii->...i", np.linalg.cholesky(scaled))
    except np.linalg.LinAlgError:
        return None
    return np.linalg.inv(scaled) * both if (pivots**2 > 1e-10).all() else None


def tangent(free: NDArray[np.bool_]) -> Array:
    """Compute an orthonormal basis of the directions that leave the sum of each row unchanged.

    Parameters
    ----------
    free : (K, s) array of bool
        The entries that may move.

    Returns
    -------
    (K·s, r) array
        The basis: in each row, the directions on free entries that sum to 0.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.theory.tangent import tangent
    >>> tangent(np.array([[True, True, False]])).ravel().round(3)
    array([ 0.707, -0.707,  0.   ])
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
