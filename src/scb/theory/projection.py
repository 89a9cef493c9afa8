"""Appendix C, first half: the projection of (V, A) onto the line of the population process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scb.norms import Array, mu_inner, mu_norm
from scb.task import Task


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
