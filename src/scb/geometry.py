"""The geometry of the paper: the μ inner product, columns that sum to one, and the lines of the population process.

Every distance is built on ⟨X, Y⟩_μ. The population process stays on two lines, through μ1ᵀ and P and through 11ᵀ/T and Q; where
(V, A) lies relative to them is told by the signals α and the deviations Δ, and this file is the one place that computes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scb.task import Task

Array = NDArray[np.float64]


def mu_inner(X: Array, Y: Array, mu: Array) -> float:
    """⟨X, Y⟩_μ = Tr(X diag(μ) Yᵀ) for X, Y of shape (d, N)."""
    return float(np.einsum("dk,dk,k->", X, Y, mu))


def mu_norm(X: Array, mu: Array) -> float:
    """‖X‖_μ = √⟨X, X⟩_μ."""
    return float(np.sqrt(mu_inner(X, X, mu)))


# ------------------------------------------------------------------------------------------- columns that sum to one


def project(A: Array) -> Array:
    """Proj onto {1ᵀa = 1}, column by column: a + (1 − 1ᵀa)·1/T. Shape (T, N)."""
    return A + (1.0 - A.sum(axis=0)) / A.shape[0]


def threshold_project(A: Array, threshold: float | Array) -> Array:
    """Thresholding-projection: â = a·1{a ≥ λ₀}, then a ← â + (1 − 1ᵀâ)·1/T.

    As printed in Algorithm 1, the constant is lost and columns would sum to 0; the lemma on the effect of rounding has
    it as here. ``threshold`` is one number or one a column.
    """
    return project(np.where(threshold <= A, A, 0.0))


def threshold_normalize(A: Array, threshold: float | Array) -> Array:
    """Thresholding-normalisation: â = a·1{a ≥ c/Q}, then a ← â / 1ᵀâ.

    A column in which nothing reaches the threshold knows nothing yet: it becomes uniform, 1/T.
    """
    if np.any(np.asarray(threshold) <= 0):
        raise ValueError(f"threshold = {threshold}: it must be positive, or a column's kept mass could be 0")
    kept = np.where(threshold <= A, A, 0.0)
    mass = kept.sum(axis=0)
    return np.where(mass > 0, kept / np.where(mass > 0, mass, 1.0), 1.0 / A.shape[0])


# ------------------------------------------------------------------------------------------- the lines of the population process


@dataclass(frozen=True)
class Projection:
    """Where (V, A) lies relative to the population's lines; for 1ᵀV = 1ᵀ, 1ᵀA = 1ᵀ and Vμ = μ.

    V = Ṽ + Δ_V with Ṽ = α_V P + (1 − α_V) μ1ᵀ, and A = Ã + Δ_A with Ã = α_A Q + (1 − α_A) 11ᵀ/T; both Δ are
    orthogonal to the lines in ⟨·, ·⟩_μ.

    Attributes
    ----------
    alpha_V, alpha_A : K_VP / K_P and K_AQ / K_Q, the signals
    K_V, K_VP, K_A, K_AQ : ‖V‖_μ² − ‖μ‖², ⟨V, P⟩_μ − ‖μ‖², ‖A‖_μ² − 1/T, ⟨A, Q⟩_μ − 1/T
    delta_V, delta_A : ‖Δ_V‖_μ and ‖Δ_A‖_μ
    """

    alpha_V: float
    alpha_A: float
    K_V: float
    K_VP: float
    K_A: float
    K_AQ: float
    delta_V: float
    delta_A: float


def population_projection(task: Task, V: Array, A: Array) -> Projection:
    """α, K and ‖Δ‖ of a point (V, A), in O(N² + TN) and without a dense Q."""
    mu = task.mu
    U, centred_P = V - mu[:, None], task.P - mu[:, None]
    K_V, K_VP = mu_inner(U, U, mu), mu_inner(U, centred_P, mu)
    B = A - 1 / task.T
    K_A, K_AQ = mu_inner(B, B, mu), task.inner_Q(B)
    alpha_V, alpha_A = K_VP / task.K_P, K_AQ / task.K_Q
    delta_V = U - alpha_V * centred_P
    B += alpha_A / task.T
    np.subtract.at(B, (task.positions, np.arange(task.N)), alpha_A * task.weights)  # B is now Δ_A
    return Projection(alpha_V, alpha_A, K_V, K_VP, K_A, K_AQ, mu_norm(delta_V, mu), mu_norm(B, mu))


def line_V(task: Task, alpha: float) -> Array:
    """Ṽ = αP + (1 − α)μ1ᵀ."""
    return alpha * task.P + (1 - alpha) * task.mu[:, None]


def line_A(task: Task, alpha: float) -> Array:
    """Ã = αQ + (1 − α)11ᵀ/T."""
    return alpha * task.Q + (1 - alpha) / task.T


def deviations(task: Task, V: Array, A: Array) -> tuple[Array, Array]:
    """Δ_V = V − Ṽ and Δ_A = A − Ã as matrices."""
    p = population_projection(task, V, A)
    return V - line_V(task, p.alpha_V), A - line_A(task, p.alpha_A)
