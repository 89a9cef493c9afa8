"""Functions for several heads: their matrices side by side, and the matrix that they factor.

Heads (V_h, A_h) compute Σ_h V_h X a_h. Since V_h μ = μ and the columns of all A_h together sum to
1, this is μ + Σ_h Ṽ_h X a_h with Ṽ_h = V_h − μ1ᵀ: only the matrix

    F = Σ_h vec(A_h)·vec(Ṽ_h)ᵀ,   rows (t, k) and columns (n, m), both scaled by √μ,

matters. F is the product of a left factor (T·N, H) and a right factor (N², H); with one head, F has
rank one. For the true heads, F is called M.
"""

from typing import TYPE_CHECKING

import numpy as np

from scb.arrays import Array
from scb.inputs import InputError

if TYPE_CHECKING:
    from scb.task import Task


def one_head(task: "Task", what: str) -> None:
    """Raise an InputError if a task with several heads is given to ``what``."""
    if task.heads > 1:
        raise InputError(f"{what} takes a task with one head, and this one has {task.heads}")


def per_head(X: Array) -> Array:
    """Return V or A with an axis for the heads, (H, ·, N), even if there is only one head."""
    return X if X.ndim == 3 else X[None]


def side_by_side(V: Array) -> Array:
    """Return the matrices V_h of all heads side by side, (N, H·N); with one head, V itself."""
    return V if V.ndim == 2 else np.ascontiguousarray(V.transpose(1, 0, 2)).reshape(V.shape[1], -1)


def apart(V: Array, heads: int) -> Array:
    """Undo ``side_by_side``: return the matrices (H, N, N), or V itself if there is one head."""
    if heads == 1:
        return V
    return np.ascontiguousarray(V.reshape(V.shape[0], heads, -1).transpose(1, 0, 2))


def stacked_columns(A: Array) -> Array:
    """Return A (T, N) or (H, T, N) as float64, with the T or H·T entries of each column contiguous
    in memory.
    """
    return np.require(A.reshape(-1, A.shape[-1]), np.float64, ["F"]).reshape(A.shape)


def left_factor(A: Array, mu: Array) -> Array:
    """Return the columns vec(A_h √μ), (T·N, H)."""
    A = per_head(A)
    return (A * np.sqrt(mu)).reshape(len(A), -1).T


def right_factor(V: Array, mu: Array) -> Array:
    """Return the columns vec((V_h − μ1ᵀ)√μ), (N², H)."""
    V = per_head(V)
    return ((V - mu[:, None]) * np.sqrt(mu)).reshape(len(V), -1).T


def head_products(X: Array, Y: Array, mu: Array) -> Array:
    """Return ⟨X_h, Y_g⟩_μ, (H, G), for heads X (H, d, N) and Y (G, d, N)."""
    X, Y = per_head(X), per_head(Y)
    return (X * mu).reshape(len(X), -1) @ Y.reshape(len(Y), -1).T


def mixed(X: Array, weights: Array) -> Array:
    """Return Σ_g weights[h, g]·X_g, (H, d, N), for heads X (G, d, N)."""
    return np.tensordot(weights, per_head(X), axes=1)


def product_singular_values(left: Array, right: Array) -> Array:
    """Return the singular values (H,) of left·rightᵀ for factors (·, H), in descending order,
    without forming the product.
    """
    H = left.shape[1]
    values = np.linalg.svd(triangular(left) @ triangular(right).T, compute_uv=False)
    return np.append(values, np.zeros(H - len(values))).astype(np.float64)


def function_singular_values(V: Array, A: Array, mu: Array) -> Array:
    """Compute the singular values of the function Σ_h a_h ⊗ Ṽ_h that the heads compute together.

    The singular values depend only on the function that the heads compute.

    Parameters
    ----------
    V : (H, N, N) array
        The value matrices.
    A : (H, T, N) array
        The attention of each head.
    mu : (N,) array
        The stationary distribution.

    Returns
    -------
    (H,) array
        The singular values, largest first.

    Examples
    --------
    At the solution, the singular values are those of the task:

    >>> import numpy as np
    >>> import scb
    >>> from scb.geometry import function_singular_values
    >>> task = scb.Task.random(3, 40, 2, seed=0, heads=2)
    >>> np.allclose(function_singular_values(task.P, task.Q, task.mu), task.singular_values)
    True
    """
    return product_singular_values(left_factor(A, mu), right_factor(V, mu))


def triangular(factor: Array) -> Array:
    """Return the triangular part (H, H) of a factor (·, H): its columns in an orthonormal basis."""
    return np.asarray(np.linalg.qr(factor, mode="r"))


def function_distance(one: tuple[Array, Array], other: tuple[Array, Array], mu: Array) -> float:
    """Compute the distance ‖Σ_h a_h ⊗ Ṽ_h − Σ_h q_h ⊗ P̃_h‖_μ between two sets of heads.

    The distance depends only on the functions that the heads compute. The two sets may have
    different numbers of heads. The expected loss of (V, A) on the task (P, Q) is the expected loss
    of (P, Q) plus half the square of this distance.

    Parameters
    ----------
    one, other : pairs of arrays
        (V, A) and (P, Q), of shapes (N, N) and (T, N), or (H, N, N) and (H, T, N).
    mu : (N,) array
        The stationary distribution.

    Returns
    -------
    float

    Examples
    --------
    Two heads that swap their places compute the same function:

    >>> import scb
    >>> from scb.geometry import function_distance
    >>> task = scb.Task.random(3, 40, 2, heads=2)
    >>> swapped = task.P[::-1], task.Q[::-1]
    >>> round(function_distance(swapped, (task.P, task.Q), task.mu), 9)
    0.0
    """
    left = np.hstack([left_factor(one[1], mu), -left_factor(other[1], mu)])
    right = np.hstack([right_factor(one[0], mu), right_factor(other[0], mu)])
    return float(np.linalg.norm(product_singular_values(left, right)))
