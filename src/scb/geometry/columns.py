"""Operations on columns that sum to one: the projection onto them, and the two roundings of
Algorithm 1 that use this projection.

With several heads, A has shape (H, T, N), and a column has the H·T entries of all heads.
"""

import numpy as np

from scb.arrays import Array
from scb.inputs import InputError


def column_sums(A: Array) -> Array:
    """Return the sum 1ᵀa of each column of A, (N,); A has shape (T, N) or (H, T, N)."""
    return A.sum(axis=tuple(range(A.ndim - 1)))


def column_medians(A: Array) -> Array:
    """Return the median (N,) of each column of A (T, N); with several heads, (H, 1, N).

    The bits are those of ``np.median``, which looks for two entries at once, where NumPy is slow.
    NumPy is ten times slower still where most entries are equal, as they are after a rounding.
    """
    half = A.shape[-2] // 2
    rows = np.swapaxes(A, -1, -2)
    medians = rows[..., 0].astype(float)
    # Most entries are equal in few of the columns whose first and last entries differ.
    others = medians != rows[..., -1]
    others[~others] = (rows[~others] == medians[~others][:, None]).sum(axis=-1) <= half
    parted = rows[others]
    parted.partition(half, axis=-1)
    found = parted[:, half]
    if A.shape[-2] % 2 == 0:
        found = (parted[:, :half].max(axis=-1) + found) / 2
    medians[others] = found
    return medians if A.ndim == 2 else medians[:, None, :]


def places(A: Array) -> int:
    """Return the number of entries of a column: T, or H·T with several heads."""
    return A.size // A.shape[-1]


def project(A: Array) -> Array:
    """Project each column onto {1ᵀa = 1}: return a + (1 − 1ᵀa)·1/T.

    Parameters
    ----------
    A : (T, N) array
        A matrix whose columns may have any sums.

    Returns
    -------
    (T, N) array

    Examples
    --------
    >>> import numpy as np
    >>> from scb.geometry import project
    >>> project(np.array([[0.5], [0.0], [0.0], [0.1]]))
    array([[0.6],
           [0.1],
           [0.1],
           [0.2]])
    """
    return A + (1.0 - column_sums(A)) / places(A)


def threshold_project(A: Array, threshold: float | Array) -> Array:
    """Apply the thresholding-projection: â = a·1{a ≥ λ₀}, then a ← â + (1 − 1ᵀâ)·1/T.

    As printed, Algorithm 1 omits the constant 1 in this formula, so columns would sum to 0. The
    lemma on the effect of rounding includes the constant.

    Parameters
    ----------
    A : (T, N) array
        The attention at the end of Stage 1.
    threshold : float or (N,) array
        The threshold λ₀ below which entries are set to 0, as one number or one per column.

    Returns
    -------
    (T, N) array
        A matrix whose columns sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.geometry import threshold_project
    >>> threshold_project(np.array([[0.5], [0.02], [0.01], [0.1]]), 0.05).ravel()
    array([0.6, 0.1, 0.1, 0.2])
    """
    return project(np.where(threshold <= A, A, 0.0))


def threshold_normalize(A: Array, threshold: float | Array) -> Array:
    """Apply the thresholding-normalisation: â = a·1{a ≥ c/Q}, then a ← â / 1ᵀâ.

    A column in which no entry reaches the threshold becomes uniform, 1/T.

    Parameters
    ----------
    A : (T, N) array
        The attention before Stage 3.
    threshold : float or (N,) array
        The threshold c/Q > 0 below which entries are set to 0, as one number or one per column.

    Returns
    -------
    (T, N) array
        A matrix whose columns are probability distributions.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.geometry import threshold_normalize
    >>> threshold_normalize(np.array([[0.3, 0.01], [0.02, 0.0], [0.1, 0.02], [0.0, 0.0]]), 0.05)
    array([[0.75, 0.25],
           [0.  , 0.25],
           [0.25, 0.25],
           [0.  , 0.25]])
    """
    if np.any(np.asarray(threshold) <= 0):
        raise InputError(
            f"threshold = {threshold}: it must be positive, or a column's kept mass could be 0"
        )
    kept = np.where(threshold <= A, A, 0.0)
    mass = column_sums(kept)
    return np.where(mass > 0, kept / np.where(mass > 0, mass, 1.0), 1.0 / places(A))
