"""The updates of Algorithm 1 as pure functions on arrays, each one line of it; ``geometry`` has the roundings between stages.

The sign. (V, A) and its mirror (2μ1ᵀ − V, 2·11ᵀ/T − A) have the same V − μ1ᵀ times A − 11ᵀ/T, so they compute the same function up
to O(1/T). The drift that should decide between them is 1/(T·K_Q), far below the noise of a small batch. But Q is sparse and
nonnegative, so A − 11ᵀ/T = α_A(Q − 11ᵀ/T) + noise has few large entries, all of the sign of α_A.
"""

import numpy as np

from scb.geometry import Array


def precondition_V(gradient: Array, mu: Array) -> Array:
    """∇̂_V = (I − 11ᵀ/N) ∇_V diag(1/μ) (I − μμᵀ/‖μ‖²), which keeps 1ᵀV = 1ᵀ and Vμ = μ. Shape (N, N)."""
    G = (gradient - gradient.mean(axis=0)) / mu
    return G - np.outer(G @ mu, mu) / (mu @ mu)


def precondition_A(gradient: Array, mu: Array) -> Array:
    """∇̂_{a^(k)} = (I − 11ᵀ/T) ∇_{a^(k)} / μ_k, which keeps 1ᵀA = 1ᵀ. Shape (T, N)."""
    return (gradient - gradient.mean(axis=0)) / mu


def soft_threshold(a: Array, lam: float | Array) -> Array:
    """sign(a)·max(|a| − λ, 0), entry by entry: argmin_z ½(z − a)² + λ|z|.

    The paper writes the branch a ≥ −λ only; this is the two-sided operator.
    """
    return np.sign(a) * np.maximum(np.abs(a) - lam, 0.0)


def mirror(V: Array, A: Array, mu: Array) -> tuple[Array, Array]:
    """(2μ1ᵀ − V, 2·11ᵀ/T − A): the same point with α_V and α_A negated."""
    return 2 * mu[:, None] - V, 2 / A.shape[0] - A


def skewness(A: Array) -> Array:
    """Skewness of the entries of A − 11ᵀ/T in each column: (N,); 0 where a column varies by rounding only."""
    found = np.zeros(A.shape[1])
    for k in range(A.shape[1]):  # a column at a time, to copy no more than that
        centred = A[:, k] - A[:, k].mean()
        scale = np.sqrt(np.square(centred).mean())
        if scale > 1e-14:
            found[k] = (centred**3).mean() / scale**3
    return found


def resolve_sign(V: Array, A: Array, mu: Array) -> tuple[Array, Array, bool]:
    """(V, A) or its mirror, whichever has attention that is skewed to the right; and whether it is the mirror.

    No ground truth is used: the μ-weighted mean skewness of the columns of A decides.
    """
    if mu @ skewness(A) >= 0:
        return V, A, False
    return *mirror(V, A, mu), True
