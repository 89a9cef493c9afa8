"""What a run is judged by: distances, similarities, signals, and the normalised "star"."""

from __future__ import annotations

import numpy as np

from scb.norms import Array, mu_inner
from scb.task import Task
from scb.theory.expectations import best_value
from scb.theory.projection import population_projection
from scb.updates import threshold_normalize

COLUMNS = (
    "alpha_V",
    "alpha_A",
    "delta_V",
    "delta_A",
    "dist_V",
    "dist_A",
    "dist_V_star",
    "dist_A_star",
    "sim_V",
    "sim_A",
    "sim_V_star",
    "sim_A_star",
)


def distance_V(task: Task, V: Array) -> float:
    """‖V − P‖_μ."""
    D = V - task.P
    return float(np.sqrt(mu_inner(D, D, task.mu)))


def distance_A(task: Task, A: Array) -> float:
    """‖A − Q‖_μ, without a dense Q."""
    D = A.copy(order="F")
    np.subtract.at(D, (task.positions, np.arange(task.N)), task.weights)
    return float(np.sqrt(mu_inner(D, D, task.mu)))


def similarity_V(task: Task, V: Array) -> float:
    """The μ-cosine ⟨V, P⟩_μ / (‖V‖_μ‖P‖_μ)."""
    mu = task.mu
    return mu_inner(V, task.P, mu) / float(np.sqrt(mu_inner(V, V, mu) * mu_inner(task.P, task.P, mu)))


def similarity_A(task: Task, A: Array) -> float:
    """The μ-cosine ⟨A, Q⟩_μ / (‖A‖_μ‖Q‖_μ)."""
    mu = task.mu
    return task.inner_Q(A) / float(np.sqrt(mu_inner(A, A, mu) * mu_inner(task.weights, task.weights, mu)))


def star(task: Task, A: Array, threshold: float | None = None) -> tuple[Array, Array]:
    """The paper's "star": A thresholded and normalised, and the V that the population's regression gives it.

    ``threshold`` is the Ω(1/Q) of Algorithm 1; 1/(6Q) unless given, a third of the smallest weight of ``Task.random``.
    """
    A_star = threshold_normalize(A, 1 / (6 * task.sparsity) if threshold is None else threshold)
    return best_value(task, A_star), A_star


def measure(task: Task, V: Array, A: Array) -> dict[str, float]:
    """All of ``COLUMNS`` for one point (V, A)."""
    p = population_projection(task, V, A)
    V_star, A_star = star(task, A)
    values = (
        p.alpha_V,
        p.alpha_A,
        p.delta_V,
        p.delta_A,
        distance_V(task, V),
        distance_A(task, A),
        distance_V(task, V_star),
        distance_A(task, A_star),
        similarity_V(task, V),
        similarity_A(task, A),
        similarity_V(task, V_star),
        similarity_A(task, A_star),
    )
    return dict(zip(COLUMNS, values, strict=True))
