"""The μ-weighted inner product of the paper, on which every distance is built."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def mu_inner(X: Array, Y: Array, mu: Array) -> float:
    """⟨X, Y⟩_μ = Tr(X diag(μ) Yᵀ) for X, Y of shape (d, N)."""
    return float(np.einsum("dk,dk,k->", X, Y, mu))


def mu_norm(X: Array, mu: Array) -> float:
    """‖X‖_μ = √⟨X, X⟩_μ."""
    return float(np.sqrt(mu_inner(X, X, mu)))
