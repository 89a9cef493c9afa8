"""The preconditioned gradients of the paper."""

from __future__ import annotations

import numpy as np

from scb.norms import Array


def precondition_V(gradient: Array, mu: Array) -> Array:
    """∇̂_V = (I − 11ᵀ/N) ∇_V diag(1/μ) (I − μμᵀ/‖μ‖²), which keeps 1ᵀV = 1ᵀ and Vμ = μ. Shape (N, N)."""
    G = (gradient - gradient.mean(axis=0)) / mu
    return G - np.outer(G @ mu, mu) / (mu @ mu)


def precondition_A(gradient: Array, mu: Array) -> Array:
    """∇̂_{a^(k)} = (I − 11ᵀ/T) ∇_{a^(k)} / μ_k, which keeps 1ᵀA = 1ᵀ. Shape (T, N)."""
    return (gradient - gradient.mean(axis=0)) / mu
