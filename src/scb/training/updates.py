"""The updates of Algorithm 1 as pure functions, each one line of it."""

import numpy as np

from scb.geometry import Array, Projector, keep_mu


def precondition_V(gradient: Array, mu: Array, projector: Projector = "euclidean") -> Array:
    """Return ∇̂_V = (I − 11ᵀ/N) ∇_V diag(1/μ) (I − μwᵀ), (N, N). Steps along it keep 1ᵀV = 1ᵀ and Vμ = μ.

    The paper's projector, "euclidean", has w = μ/‖μ‖². That of the μ-inner product, "mu", has w = 1. Expected gradients are the
    same with both, since (E∇_V)1 = 0 if V and A satisfy the constraints. The gradient of a sample differs: near the start it is
    r·1ᵀdiag(μ), where r is the residual. The paper's projector leaves r(1 − μ/‖μ‖²)ᵀ of it, noise that does not shrink as T
    grows. The other projector removes it.
    """
    return keep_mu((gradient - gradient.mean(axis=0)) / mu, mu, projector)


def precondition_A(gradient: Array, mu: Array) -> Array:
    """Return ∇̂_{a^(k)} = (I − 11ᵀ/T) ∇_{a^(k)} / μ_k in each column k, (T, N). Steps along it keep 1ᵀA = 1ᵀ."""
    return (gradient - gradient.mean(axis=0)) / mu


def soft_threshold(a: Array, lam: float | Array) -> Array:
    """Return sign(a)·max(|a| − λ, 0), which minimises ½(z − a)² + λ|z| over z. The paper writes only the branch a ≥ −λ."""
    return np.sign(a) * np.maximum(np.abs(a) - lam, 0.0)
