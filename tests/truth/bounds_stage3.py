"""Appendices F and H: the last rounding and Stage 3, and the start and first step of transfer, measured."""

from collections.abc import Callable
from functools import cache
from math import log, sqrt

import numpy as np

from scb import Task
from scb.geometry import line_A, mu_inner, mu_norm, population_projection, threshold_normalize, threshold_project
from scb.theory.bounds import BOUNDS
from scb.theory.expectations import expected_preconditioned_gradients
from truth.adversary import adverse, move, state, tasks


@cache
def rounding_A() -> dict[str, list[float]]:
    """‖A_* − Q‖_μ² after thresholding and normalisation, over the printed bound and over Q/T² + δ_A²."""
    found: dict[str, list[float]] = {"rounding_A": [], "rounding_A_sharp": []}
    for task in tasks():
        N, Q, T = task.N, task.sparsity, task.T
        rng = np.random.default_rng(0)
        on = task.Q > 0
        worst = np.zeros_like(task.Q)  # the Δ of each column that normalisation, Δ ↦ Δ − q·1ᵀΔ, lengthens most
        for k in range(N):
            worst[task.positions[:, k], k] = np.linalg.svd(np.eye(Q) - task.weights[:, [k]])[2][0]
        for size in (1e-3, 0.1):
            for D in (worst, rng.normal(size=on.shape), np.where(on, rng.normal(size=on.shape), 0.0)):
                D = D - np.where(on, 0.0, D.sum(axis=0) / (T - Q))
                A = line_A(task, 0.9) + size / (Q * sqrt(N)) * D / mu_norm(D, task.mu)
                square = population_projection(task, task.P, A).delta_A ** 2
                left = mu_norm(threshold_normalize(A, task.weight_threshold) - task.Q, task.mu) ** 2
                found["rounding_A"].append(left / (Q**2 / T**2 + square * N * Q))
                found["rounding_A_sharp"].append(left / (Q / T**2 + square))
    return found


@cache
def stage_3() -> dict[str, list[float]]:
    """Stage 3 from α_V = 0.9 and ‖Δ_V‖_μ = 0.01: the error of A that it bears, the noise beside it, and its length with both."""
    found: dict[str, list[float]] = {"stage3_attention": [], "stage3_noise": [], "stage3_steps": []}
    noise = BOUNDS["stage3_noise"].constant
    attention = BOUNDS["stage3_attention"].constant
    for task in tasks(T=10**6, seeds=1):
        for eps in (0.1, 1e-3, 1e-12):
            for side in (-1.0, 1.0):  # α_V is driven up or down
                found["stage3_attention"].append(largest(lambda c, run=(task, eps, side): stage_3_run(*run, c, 0.0, 1.0)[0] <= 1))
                for along in (1.0, 0.0):  # the noise points along P or along Δ_V
                    bears = largest(lambda c, run=(task, eps, side, attention), a=along: stage_3_run(*run, c, a)[0] <= 1)
                    found["stage3_noise"].append(bears)
                    found["stage3_steps"].append(stage_3_run(task, eps, side, attention, noise, along)[1])
    return found


def largest(holds: Callable[[float], bool]) -> float:
    """The largest c with ``holds(c)``, by bisection to 10 %."""
    low, high = 0.01, 1e7
    while high > 1.1 * low:
        middle = sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def stage_3_run(task: Task, eps: float, side: float, attention: float, noise: float, along: float) -> tuple[float, float]:
    """(‖V − P‖_μ²/ε in the long run, steps·η/log(1/ε) until it is below 1).

    ‖A − Q‖_μ = ``attention``·ε/√Q, along the line of A; ‖h_V‖_μ = ``noise``·ε√K_P K_Q.
    """
    h, eta = noise * eps * sqrt(task.K_P) * task.K_Q, 0.1
    p = state(task, 0.9, 1 - side * attention * eps / sqrt(task.sparsity * task.K_Q), 1e-4, 0.0)
    inside, distance = 0, np.inf
    for tau in range(int(max(3 * log(1 / eps), 10) / eta)):
        p = move(task, p, eta, adverse(task, p, h, 0.0, (-side * along * h * sqrt(task.K_P), 0.0)), eta_A=0.0)
        distance = ((1 - p.alpha_V) ** 2 * task.K_P + p.delta_V**2) / eps
        inside = inside if distance <= 1 else tau + 1
        if abs(p.alpha_V) > 10:  # it diverges
            break
    return distance, inside * eta / log(1 / eps)


@cache
def transfer() -> dict[str, list[float]]:
    """The start from P̂ at the least correlation that is allowed and above, and one step on A with relative noise ε_Tmp."""
    found: dict[str, list[float]] = {name: [] for name in ("start_low", "start_high", "start_error", "step_signal", "step_error")}
    for task in tasks(T=10**5, seeds=1):
        rng = np.random.default_rng(0)
        least = float(task.mu @ task.mu) / task.K_P
        for overlap in np.linspace(least, 1.0, 8):
            theta, noise = 0.5, 0.05
            hat = task.related(overlap, seed=1).P
            if mu_inner(hat, task.P, task.mu) < 2 * task.mu @ task.mu:  # K_P̂ is smaller than K_P for a small overlap
                continue
            V = theta * hat + (1 - theta) * task.mu[:, None]
            p = population_projection(task, V, task.Q)
            found["start_low"].append(p.alpha_V / (theta / (task.N * task.K_P)))
            found["start_high"].append(p.alpha_V / theta)
            found["start_error"].append(p.delta_V**2 / (theta**2 * task.K_P))
            size = np.where(task.Q > 0, task.Q, 1 / task.sparsity) * p.alpha_V * noise
            A = line_A(task, 0.0) - expected_preconditioned_gradients(task, V, line_A(task, 0.0))[1] / task.K_P
            for sign in (1.0, -1.0, rng.choice([-1.0, 1.0], A.shape)):
                rounded = threshold_project(A + sign * size, p.alpha_V / (4 * task.sparsity))
                q = population_projection(task, V, rounded)
                found["step_signal"].append(abs(q.alpha_A / p.alpha_V - 1) / noise)
                found["step_error"].append(q.delta_A**2 / ((noise * p.alpha_V) ** 2 / task.sparsity + 1 / task.T))
    return found
