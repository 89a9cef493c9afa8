"""The updates of Algorithm 1 as pure functions, each one line of it."""

import numpy as np

from scb.geometry import Array, Projector, keep_mu


def precondition_V(gradient: Array, mu: Array, projector: Projector = "euclidean") -> Array:
    """∇̂_V = (I − 11ᵀ/N) ∇_V diag(1/μ) (I − μwᵀ), which keeps 1ᵀV = 1ᵀ and Vμ = μ.

    w = μ/‖μ‖² is the paper's, the Euclidean projector; w = 1 that of the μ-inner product. Expected gradients are the same with
    both, since they meet (E∇_V)1 = 0 where V and A meet the constraints. A sample's gradient does not: near the start it is
    r·1ᵀdiag(μ), of which the paper's leaves r(1 − μ/‖μ‖²)ᵀ, noise that no length T makes smaller, and the other nothing.

    Parameters
    ----------
    gradient : (N, N) array
        ∇_V of the loss.
    mu : (N,) array
        The stationary law.
    projector : {"euclidean", "mu"}
        The paper's, or that of the μ-inner product.

    Returns
    -------
    (N, N) array

    Examples
    --------
    >>> import numpy as np
    >>> from scb.training.updates import precondition_V
    >>> mu = np.array([0.25, 0.75])
    >>> step = precondition_V(np.array([[1.0, 0.0], [0.0, 2.0]]), mu)
    >>> bool(np.allclose(step.sum(axis=0), 0)), bool(np.allclose(step @ mu, 0))
    (True, True)
    """
    return keep_mu((gradient - gradient.mean(axis=0)) / mu, mu, projector)


def precondition_A(gradient: Array, mu: Array) -> Array:
    """∇̂_{a^(k)} = (I − 11ᵀ/T) ∇_{a^(k)} / μ_k, which keeps 1ᵀA = 1ᵀ.

    Parameters
    ----------
    gradient : (T, N) array
        ∇_A of the loss.
    mu : (N,) array
        The stationary law.

    Returns
    -------
    (T, N) array

    Examples
    --------
    >>> import numpy as np
    >>> from scb.training.updates import precondition_A
    >>> precondition_A(np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([0.25, 0.75]))
    array([[ 2., -2.],
           [-2.,  2.]])
    """
    return (gradient - gradient.mean(axis=0)) / mu


def soft_threshold(a: Array, lam: float | Array) -> Array:
    """Move each entry by λ towards 0, and to 0 what is nearer: the proximal step of the ℓ1-norm.

    The paper writes the branch a ≥ −λ only.

    Parameters
    ----------
    a : (T, N) array
        Any shape will do.
    lam : float or (N,) array
        λ, or one for each column.

    Returns
    -------
    (T, N) array

    Examples
    --------
    >>> import numpy as np
    >>> from scb.training.updates import soft_threshold
    >>> soft_threshold(np.array([-2.0, 0.5, 3.0]), 1.0)
    array([-1.,  0.,  2.])
    """
    return np.sign(a) * np.maximum(np.abs(a) - lam, 0.0)
