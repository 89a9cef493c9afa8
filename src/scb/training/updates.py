"""The updates of Algorithm 1 as pure functions, each of which is one line of the algorithm."""

import numpy as np

from scb.arrays import Array
from scb.geometry import Projector, keep_mu


def precondition_V(gradient: Array, mu: Array, projector: Projector = "euclidean") -> Array:
    """Return ∇̂_V = (I − 11ᵀ/N) ∇_V diag(1/μ) (I − μwᵀ), which keeps 1ᵀV = 1ᵀ and Vμ = μ.

    The paper's projector, "euclidean", has w = μ/‖μ‖². The μ-projector, "mu", has w = 1. Expected
    gradients are the same with both projectors, since (E∇_V)1 = 0 if V and A satisfy the
    constraints. Gradients of single samples differ. Near the start, the gradient of a sample is
    r·1ᵀdiag(μ), where r is the residual. The paper's projector leaves r(1 − μ/‖μ‖²)ᵀ of this
    gradient, which is noise that does not shrink as T grows. The μ-projector removes this noise.

    Parameters
    ----------
    gradient : (N, N) array, or (H, N, N) with several heads
        ∇_V of the loss.
    mu : (N,) array
        The stationary distribution.
    projector : {"euclidean", "mu"}
        The paper's projector or the μ-projector.

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
    return keep_mu((gradient - gradient.mean(axis=-2, keepdims=True)) / mu, mu, projector)


def precondition_A(gradient: Array, mu: Array) -> Array:
    """Return ∇̂_{a^(k)} = (I − 11ᵀ/T) ∇_{a^(k)} / μ_k in each column k.

    Steps along this direction keep 1ᵀA = 1ᵀ.

    Parameters
    ----------
    gradient : (T, N) array, or (H, T, N) with several heads
        ∇_A of the loss. A column has the entries of all heads.
    mu : (N,) array
        The stationary distribution.

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
    return (gradient - gradient.mean(axis=tuple(range(gradient.ndim - 1)))) / mu


def soft_threshold(a: Array, lam: float | Array) -> Array:
    r"""Return sign(a)·max(\|a\| − λ, 0), which minimises ½(z − a)² + λ\|z\| over z.

    The paper states only the branch a ≥ −λ.

    Parameters
    ----------
    a : (T, N) array
        The entries to move towards 0; any other shape is accepted too.
    lam : float or (N,) array
        The distance λ, or one distance for each column.

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
