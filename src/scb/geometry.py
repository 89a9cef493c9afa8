"""The geometry of the paper: the μ inner product, columns that sum to one, and the lines of the population process.

Every distance is built on ⟨X, Y⟩_μ. The population process stays on two lines, through μ1ᵀ and P and through 11ᵀ/T and Q; where
(V, A) lies relative to them is told by the signals α and the deviations Δ, and this file is the one place that computes them.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from scb.inputs import InputError, one_of

if TYPE_CHECKING:
    from scb.task import Task

Array = NDArray[np.float64]
Projector = Literal["euclidean", "mu"]
"""By name, how a step on V is made to keep Vμ = μ: see ``projector_row``."""


def mu_inner(X: Array, Y: Array, mu: Array) -> float:
    """⟨X, Y⟩_μ = Tr(X diag(μ) Yᵀ) for X, Y of shape (d, N)."""
    return float(np.einsum("dk,dk,k->", X, Y, mu))


def mu_norm(X: Array, mu: Array) -> float:
    """‖X‖_μ = √⟨X, X⟩_μ."""
    return math.sqrt(mu_inner(X, X, mu))


def centred_square(V: Array, mu: Array) -> float:
    """K_V = ‖V − μ1ᵀ‖_μ², which is ‖V‖_μ² − ‖μ‖² where Vμ = μ; K_P for V = P."""
    U = V - mu[:, None]
    return mu_inner(U, U, mu)


# ------------------------------------------------------------------------------------------- matrices with Hμ = 0


def projector_row(mu: Array, projector: Projector) -> Array:
    """The row w (N,) of a projector H ↦ H − (Hμ)wᵀ onto {Hμ = 0}, which it is because wᵀμ = 1.

    - "euclidean": w = μ/‖μ‖², so that H ↦ H(I − μμᵀ/‖μ‖²). The paper's;
    - "mu": w = 1. The projector that is orthogonal in ⟨·, ·⟩_μ.
    """
    one_of("projector", projector, get_args(Projector))
    return np.ones(len(mu)) if projector == "mu" else mu / (mu @ mu)


def keep_mu(H: Array, mu: Array, projector: Projector = "euclidean") -> Array:
    """H − (Hμ)wᵀ: the part of H (N, N) that a step on V may take without leaving Vμ = μ."""
    return H - np.outer(H @ mu, projector_row(mu, projector))


# ------------------------------------------------------------------------------------------- columns that sum to one


def project(A: Array) -> Array:
    """Proj onto {1ᵀa = 1}, column by column: a + (1 − 1ᵀa)·1/T. Shape (T, N)."""
    return A + (1.0 - A.sum(axis=0)) / A.shape[0]


def threshold_project(A: Array, threshold: float | Array) -> Array:
    """Thresholding-projection: â = a·1{a ≥ λ₀}, then a ← â + (1 − 1ᵀâ)·1/T.

    Algorithm 1 as printed loses the constant, and columns would sum to 0; the lemma on the effect of rounding has it as
    here. ``threshold`` is one number, or one for each column.
    """
    return project(np.where(threshold <= A, A, 0.0))


def threshold_normalize(A: Array, threshold: float | Array) -> Array:
    """Thresholding-normalisation: â = a·1{a ≥ c/Q}, then a ← â / 1ᵀâ.

    A column in which nothing reaches the threshold knows nothing yet: it becomes uniform, 1/T.
    """
    if np.any(np.asarray(threshold) <= 0):
        raise InputError(f"threshold = {threshold}: it must be positive, or a column's kept mass could be 0")
    kept = np.where(threshold <= A, A, 0.0)
    mass = kept.sum(axis=0)
    return np.where(mass > 0, kept / np.where(mass > 0, mass, 1.0), 1.0 / A.shape[0])


# ------------------------------------------------------------------------------------------- the lines of the population process


@dataclass(frozen=True)
class Projection:
    """Where (V, A) lies relative to the population's lines; for 1ᵀV = 1ᵀ, 1ᵀA = 1ᵀ and Vμ = μ.

    V = Ṽ + Δ_V with Ṽ = α_V P + (1 − α_V) μ1ᵀ, and A = Ã + Δ_A with Ã = α_A Q + (1 − α_A) 11ᵀ/T; both Δ are
    orthogonal to the lines in ⟨·, ·⟩_μ.
    """

    alpha_V: float  # K_VP / K_P, the signal of V
    alpha_A: float  # K_AQ / K_Q, the signal of A
    K_V: float  # ‖V‖_μ² − ‖μ‖²
    K_VP: float  # ⟨V, P⟩_μ − ‖μ‖²
    K_A: float  # ‖A‖_μ² − 1/T
    K_AQ: float  # ⟨A, Q⟩_μ − 1/T
    delta_V: float  # ‖Δ_V‖_μ
    delta_A: float  # ‖Δ_A‖_μ


def signal_V(task: "Task", V: Array) -> tuple[float, float, float]:
    """α_V, K_VP and ‖Δ_V‖_μ of V (N, N)."""
    U = V - task.mu[:, None]
    centred_P = task.P - task.mu[:, None]
    K_VP = mu_inner(U, centred_P, task.mu)
    alpha = K_VP / task.K_P
    return alpha, K_VP, mu_norm(U - alpha * centred_P, task.mu)


def signal_A(task: "Task", K_AQ: float) -> float:
    """α_A = K_AQ/K_Q. Where Q is uniform (T = 1, say) every α gives the same point of the line, and α is 1: A is measured by Q."""
    return K_AQ / task.K_Q if task.K_Q > 1e-12 else 1.0


def population_projection(task: "Task", V: Array, A: Array) -> Projection:
    """α, K and ‖Δ‖ of a point (V, A), in O(N² + TN) and without a dense Q."""
    mu, T = task.mu, task.T
    alpha_V, K_VP, delta_V = signal_V(task, V)
    K_V = centred_square(V, mu)
    B = A - 1 / T
    K_A = mu_inner(B, B, mu)
    K_AQ = task.inner_Q(B)
    alpha_A = signal_A(task, K_AQ)
    B += alpha_A / T
    np.subtract.at(B, (task.positions, np.arange(task.N)), alpha_A * task.weights)  # B is now Δ_A
    return Projection(alpha_V, alpha_A, K_V=K_V, K_VP=K_VP, K_A=K_A, K_AQ=K_AQ, delta_V=delta_V, delta_A=mu_norm(B, mu))


def projection_by_norms(task: "Task", alpha_V: float, delta_V: float, K_A: float, K_AQ: float) -> Projection:
    """The projection of a point of which only four numbers are known: K = α²·K_P + ‖Δ‖_μ² for V, and likewise for A."""
    alpha_A = signal_A(task, K_AQ)
    K_V = alpha_V**2 * task.K_P + delta_V**2
    K_VP = alpha_V * task.K_P
    delta_A = root(K_A - alpha_A**2 * task.K_Q)
    return Projection(alpha_V, alpha_A, K_V=K_V, K_VP=K_VP, K_A=K_A, K_AQ=K_AQ, delta_V=float(delta_V), delta_A=delta_A)


def distance_from_line_A(task: "Task", theta: float, K_A: float, cross: float) -> float:
    """‖A − θQ − (1 − θ)11ᵀ/T‖_μ, from K_A and ``cross`` = ⟨A − 11ᵀ/T, Q − 11ᵀ/T⟩_μ; θ = α_A gives ‖Δ_A‖_μ, θ = 1 ‖A − Q‖_μ."""
    return root(K_A - 2 * theta * cross + theta**2 * task.K_Q)


def root(x: float) -> float:
    """√x, with what rounding leaves below 0 taken as 0."""
    return math.sqrt(max(x, 0.0))


def line_V(task: "Task", alpha: float) -> Array:
    """Ṽ = αP + (1 − α)μ1ᵀ."""
    return alpha * task.P + (1 - alpha) * task.mu[:, None]


def line_A(task: "Task", alpha: float) -> Array:
    """Ã = αQ + (1 − α)11ᵀ/T."""
    return alpha * task.Q + (1 - alpha) / task.T


def trivial_V(mu: Array) -> Array:
    """V₀ = μ1ᵀ, where the line of V begins: every token is followed by the stationary law."""
    return np.repeat(mu[:, None], len(mu), axis=1)


def uniform_start(mu: Array, T: int) -> tuple[Array, Array]:
    """V₀ = μ1ᵀ and A₀ = 11ᵀ/T, where both lines begin."""
    return trivial_V(mu), np.full((T, len(mu)), 1 / T, order="F")


def deviations(task: "Task", V: Array, A: Array) -> tuple[Array, Array]:
    """Δ_V = V − Ṽ and Δ_A = A − Ã as matrices."""
    p = population_projection(task, V, A)
    return V - line_V(task, p.alpha_V), A - line_A(task, p.alpha_A)
