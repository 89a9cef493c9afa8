"""Tasks at which the inequality lemmas are tried, and steps with noise that is turned against them."""

from functools import cache
from math import sqrt

import numpy as np

from scb import Task
from scb.geometry import Projection, mu_inner, mu_norm
from scb.theory.dynamics import StepNoise, error_step, signal_step

SIZES = [(3, 1), (3, 2), (5, 3), (10, 2), (10, 4), (20, 3)]  # N, Q


@cache
def tasks(T: int = 1000, seeds: int = 2) -> list[Task]:
    """Random tasks that meet assumptions (a) to (c) with C = 2, small to middling."""
    return [Task.random(N, T, Q, seed=seed) for N, Q in SIZES for seed in range(seeds)]


def directions(task: Task, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random (Δ_V, Δ_A) of μ-norm 1 that the constraints allow, orthogonal to P and Q."""
    mu = task.mu
    D_V = rng.normal(size=(task.N, task.N))
    D_V -= D_V.mean(axis=0)
    D_V -= (D_V @ mu)[:, None]
    D_A = rng.normal(size=(task.T, task.N))
    D_A -= D_A.mean(axis=0)
    P, Q = task.P - mu[:, None], task.Q - 1 / task.T
    D_V -= P * mu_inner(D_V, P, mu) / task.K_P
    D_A -= Q * mu_inner(D_A, Q, mu) / task.K_Q
    return D_V / mu_norm(D_V, mu), D_A / mu_norm(D_A, mu)


def adverse(task: Task, p: Projection, h_V: float, h_A: float, along: tuple[float, float]) -> StepNoise:
    """Noise with ‖h_V‖_μ and ‖h_A‖_μ that has ⟨h_V, P⟩_μ and ⟨h_A, Q⟩_μ = ``along`` as far as it can; the rest points along −Δ."""
    along_P = float(np.clip(along[0], -h_V * sqrt(task.K_P), h_V * sqrt(task.K_P)))
    along_Q = float(np.clip(along[1], -h_A * sqrt(task.K_Q), h_A * sqrt(task.K_Q)))
    rest_V = sqrt(max(h_V**2 - along_P**2 / task.K_P, 0.0))
    rest_A = sqrt(max(h_A**2 - along_Q**2 / task.K_Q, 0.0))
    return StepNoise(
        along_P=along_P,
        along_Q=along_Q,
        along_V=-p.delta_V * rest_V,
        along_A=-p.delta_A * rest_A,
        square_V=h_V**2,
        square_A=h_A**2,
    )


def move(task: Task, p: Projection, eta: float, noise: StepNoise, eta_A: float | None = None) -> Projection:
    """One step with η_V = η/K_Q and η_A = η/K_P (or ``eta_A``), by the lemmas on signals and errors."""
    eta_V = eta / task.K_Q
    eta_A = eta / task.K_P if eta_A is None else eta_A
    alpha_V, alpha_A = signal_step(task, p, eta_V, eta_A, noise)
    square_V, square_A = error_step(task, p, eta_V, eta_A, noise)
    return state(task, alpha_V, alpha_A, square_V, square_A)


def state(task: Task, alpha_V: float, alpha_A: float, square_V: float, square_A: float) -> Projection:
    """The projection with these signals and these ‖Δ‖_μ²; without a difference of large numbers, so that tiny errors stay exact."""
    square_V, square_A = max(square_V, 0.0), max(square_A, 0.0)
    return Projection(
        alpha_V=alpha_V,
        alpha_A=alpha_A,
        K_V=alpha_V**2 * task.K_P + square_V,
        K_VP=alpha_V * task.K_P,
        K_A=alpha_A**2 * task.K_Q + square_A,
        K_AQ=alpha_A * task.K_Q,
        delta_V=sqrt(square_V),
        delta_A=sqrt(square_A),
    )
