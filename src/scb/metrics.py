"""What a run is judged by: distances, similarities, signals, and the normalised "star"."""

from __future__ import annotations

import numpy as np

from scb.geometry import Array, mu_inner, mu_norm, threshold_normalize
from scb.task import Task
from scb.theory.expectations import best_value, loss_by_moments

COLUMNS = (
    "loss",
    *(f"{name}_{layer}" for name in ("alpha", "delta", "dist", "sim") for layer in "VA"),
    *(f"{name}_{layer}_star" for name in ("dist", "sim") for layer in "VA"),
)


def distance_V(task: Task, V: Array) -> float:
    """‖V − P‖_μ."""
    return mu_norm(V - task.P, task.mu)


def distance_A(task: Task, A: Array) -> float:
    """‖A − Q‖_μ, without a dense Q."""
    D = A.copy(order="F")
    np.subtract.at(D, (task.positions, np.arange(task.N)), task.weights)
    return mu_norm(D, task.mu)


def similarity_V(task: Task, V: Array) -> float:
    """The μ-cosine ⟨V, P⟩_μ / (‖V‖_μ‖P‖_μ)."""
    mu = task.mu
    return mu_inner(V, task.P, mu) / float(np.sqrt(mu_inner(V, V, mu) * mu_inner(task.P, task.P, mu)))


def similarity_A(task: Task, A: Array) -> float:
    """The μ-cosine ⟨A, Q⟩_μ / (‖A‖_μ‖Q‖_μ)."""
    mu = task.mu
    return task.inner_Q(A) / float(np.sqrt(mu_inner(A, A, mu) * mu_inner(task.weights, task.weights, mu)))


def default_threshold(task: Task) -> float:
    """The Ω(1/Q) of Algorithm 1: 1/(6Q), a third of the smallest weight of ``Task.random``."""
    return 1 / (6 * task.sparsity)


def star(task: Task, A: Array, threshold: float | None = None) -> tuple[Array, Array]:
    """The paper's "star": A thresholded (at ``default_threshold`` unless given) and normalised, and the V that the population's
    regression gives it.
    """
    A_star = threshold_normalize(A, default_threshold(task) if threshold is None else threshold)
    return best_value(task, A_star), A_star


def measure(task: Task, V: Array, A: Array) -> dict[str, float]:
    """The population loss and all of ``COLUMNS`` for one point (V, A), in one pass over A and without copies of it."""
    from scb.kernels.moments import column_moments

    mu, T, QQ = task.mu, task.T, mu_inner(task.weights, task.weights, task.mu)
    threshold = default_threshold(task)
    s, square, kept, kept_square = column_moments(np.asfortranarray(A), threshold)
    on_support = A[task.positions, np.arange(task.N)]
    K_A, K_AQ = float(mu @ square), mu_inner(on_support - 1 / T, task.weights, mu)
    AA, QA = K_A + float(mu @ (2 * s + 1)) / T, K_AQ + 1 / T
    cross = K_AQ - float(mu @ s) / T  # ⟨A − 11ᵀ/T, Q − 11ᵀ/T⟩_μ
    alpha = K_AQ / task.K_Q
    some = kept > 0
    divisor = np.where(some, kept, 1.0)
    reached = np.where(on_support >= threshold, on_support, 0.0)
    star_square = float(mu @ np.where(some, kept_square / divisor**2, 1 / T))
    star_Q = float(mu @ np.where(some, (task.weights * reached).sum(axis=0) / divisor, 1 / T))
    ratio = star_Q / star_square
    return {
        "loss": loss_by_moments(task, V, 1 + s, AA, QA),
        **_measure_V(task, V),
        "alpha_A": alpha,
        "delta_A": _root(K_A - 2 * alpha * cross + alpha**2 * task.K_Q),
        "dist_A": _root(K_A - 2 * cross + task.K_Q),
        "dist_A_star": _root(star_square - 2 * star_Q + QQ),
        "sim_A": QA / _root(AA * QQ),
        "sim_A_star": star_Q / _root(star_square * QQ),
        "dist_V_star": abs(ratio - 1) * _root(task.K_P),
        "sim_V_star": similarity_V(task, task.mu[:, None] + ratio * (task.P - task.mu[:, None])),
    }


def _measure_V(task: Task, V: Array) -> dict[str, float]:
    mu = task.mu
    U, centred = V - mu[:, None], task.P - mu[:, None]
    alpha = mu_inner(U, centred, mu) / task.K_P
    return {
        "alpha_V": alpha,
        "delta_V": mu_norm(U - alpha * centred, mu),
        "dist_V": distance_V(task, V),
        "sim_V": similarity_V(task, V),
    }


def _root(x: float) -> float:
    """√x, with what rounding leaves below 0 taken as 0."""
    return float(np.sqrt(max(x, 0.0)))
