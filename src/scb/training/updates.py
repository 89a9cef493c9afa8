"""The updates of Algorithm 1 as pure functions, each one line of it."""

import numpy as np

from scb.geometry import Array, Projector, keep_mu


def precondition_V(gradient: Array, mu: Array, projector: Projector = "euclidean") -> Array:
    """∇̂_V = (I − 11ᵀ/N) ∇_V diag(1/μ) (I − μwᵀ), which keeps 1ᵀV = 1ᵀ and Vμ = μ. Shape (N, N).

    w = μ/‖μ‖² is the paper's, the Euclidean projector; w = 1 that of the μ-inner product. Expected gradients are the same with
    both, since they meet (E∇_V)1 = 0 where V and A meet the constraints. A sample's gradient does not: near the start it is
    r·1ᵀdiag(μ), of which the paper's leaves r(1 − μ/‖μ‖²)ᵀ, noise that no length T makes smaller, and the other nothing.
    """
    return keep_mu((gradient - gradient.mean(axis=0)) / mu, mu, projector)


def precondition_A(gradient: Array, mu: Array) -> Array:
    """∇̂_{a^(k)} = (I − 11ᵀ/T) ∇_{a^(k)} / μ_k, which keeps 1ᵀA = 1ᵀ. Shape (T, N)."""
    return (gradient - gradient.mean(axis=0)) / mu


def soft_threshold(a: Array, lam: float | Array) -> Array:
    """sign(a)·max(|a| − λ, 0), entry by entry: argmin_z ½(z − a)² + λ|z|. The paper writes the branch a ≥ −λ only."""
    return np.sign(a) * np.maximum(np.abs(a) - lam, 0.0)
