"""The μ inner product, on which every distance is built, and the projectors onto the matrices H
with Hμ = 0.
"""

import math
from typing import Any, Literal, get_args

import numpy as np

from scb.arrays import Array
from scb.inputs import one_of

Projector = Literal["euclidean", "mu"]
"""The names of the ways in which a step on V keeps Vμ = μ: see ``projector_row``."""


def mu_inner(X: Array, Y: Array, mu: Array) -> Any:
    """Compute the inner product ⟨X, Y⟩_μ = Tr(X diag(μ) Yᵀ).

    All distances in the paper are based on this inner product.

    Parameters
    ----------
    X, Y : (d, N) array
        Two matrices with one column per token. For stacks (…, d, N) of matrices, the result is an
        array.
    mu : (N,) array
        The weights of the columns.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from scb.geometry import mu_inner
    >>> mu_inner(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]), np.array([0.5, 0.5]))
    5.5
    """
    if np.ndim(X) > 2:
        # so that a matrix gives the same bits in stacks of any size
        X, Y = np.ascontiguousarray(X), np.ascontiguousarray(Y)
    product = np.einsum("...dk,...dk,k->...", X, Y, mu)
    return product if product.ndim else float(product)


def mu_norm(X: Array, mu: Array) -> Any:
    """Compute the norm ‖X‖_μ = √⟨X, X⟩_μ.

    Parameters
    ----------
    X : (d, N) array
        A matrix with one column per token. For a stack (…, d, N) of matrices, the result is an
        array.
    mu : (N,) array
        The weights of the columns.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from scb.geometry import mu_norm
    >>> mu_norm(np.array([[3.0, 4.0], [4.0, 3.0]]), np.array([0.5, 0.5]))
    5.0
    """
    return root(mu_inner(X, X, mu))


def row_dot(X: Array, y: Array) -> Any:
    """Return x·y for each row x of X (…, N), rounded as for a single row."""
    return np.matmul(X[..., None, :], y[..., :, None])[..., 0, 0]


def root(x: Any) -> Any:
    """Return √x of a number or an array; values that rounding leaves below 0 count as 0."""
    return np.sqrt(np.maximum(x, 0.0)) if np.ndim(x) else math.sqrt(max(x, 0.0))


def centred_square(V: Array, mu: Array) -> float:
    """Compute K_V = ‖V − μ1ᵀ‖_μ², which equals ‖V‖_μ² − ‖μ‖² if Vμ = μ. For V = P, it is K_P.

    Parameters
    ----------
    V : (N, N) array, or (H, N, N) with several heads
        A matrix with one column per token. With several heads, K_V is summed over the heads.
    mu : (N,) array
        The stationary distribution.

    Returns
    -------
    float

    Examples
    --------
    >>> import scb
    >>> from scb.geometry import centred_square
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> round(centred_square(task.P, task.mu), 6) == round(task.K_P, 6)
    True
    """
    U = V - mu[:, None]
    U = U.reshape(-1, len(mu))
    return mu_inner(U, U, mu)


def projector_row(mu: Array, projector: Projector) -> Array:
    """Return the row w of the projector H ↦ H − (Hμ)wᵀ onto {Hμ = 0}, where wᵀμ = 1.

    Parameters
    ----------
    mu : (N,) array
        The stationary distribution.
    projector : {"euclidean", "mu"}
        The paper's projector, "euclidean", has w = μ/‖μ‖² and maps H to H(I − μμᵀ/‖μ‖²). The
        μ-projector, "mu", has w = 1 and is orthogonal in ⟨·, ·⟩_μ.

    Returns
    -------
    (N,) array

    Examples
    --------
    >>> import numpy as np
    >>> from scb.geometry import projector_row
    >>> projector_row(np.array([0.5, 0.5]), "euclidean")
    array([1., 1.])
    >>> projector_row(np.array([0.25, 0.75]), "mu")
    array([1., 1.])
    """
    one_of("projector", projector, get_args(Projector))
    return np.ones(len(mu)) if projector == "mu" else mu / (mu @ mu)


def keep_mu(H: Array, mu: Array, projector: Projector = "euclidean") -> Array:
    """Return H − (Hμ)wᵀ, a direction along which steps on V keep Vμ = μ.

    Parameters
    ----------
    H : (N, N) array, or one for each of several heads
        A direction, such as a gradient.
    mu : (N,) array
        The stationary distribution.
    projector : {"euclidean", "mu"}
        The choice of w, as in ``projector_row``.

    Returns
    -------
    (N, N) array

    Examples
    --------
    >>> import numpy as np
    >>> from scb.geometry import keep_mu
    >>> mu = np.array([0.25, 0.75])
    >>> kept = keep_mu(np.array([[4.0, 0.0], [0.0, 4.0]]), mu, projector="mu")
    >>> kept, kept @ mu
    (array([[ 3., -1.],
           [-3.,  1.]]), array([0., 0.]))
    """
    return H - (H @ mu)[..., None] * projector_row(mu, projector)
