"""Appendix E: rounding, denoising, the bias of the proximal step, and the lemmas on one step of Stage 2, measured."""

from collections.abc import Iterator
from functools import cache
from math import exp, log, sqrt

import numpy as np

from scb import Task
from scb.geometry import Projection, line_A, line_V, mu_norm, population_projection, project, threshold_project
from scb.theory.bounds import BOUNDS
from scb.theory.expectations import expected_gradients, expected_preconditioned_gradients
from truth.adversary import SIZES, adverse, directions, move, state, tasks

Ratios = Iterator[float]


def separation() -> Ratios:
    """The least α_A at which a position of Q stands out twofold, over Q/T + Q√N‖Δ_A‖_μ.

    Δ_A raises an entry off the support of the rarest token and lowers its weakest one on it.
    """
    for task in tasks():
        k = int(np.argmin(task.mu))
        weakest = int(np.argmin(task.weights[:, k]))
        for size in (0.0, 1e-4, 1e-2):
            raised = size / sqrt(2 * task.mu[k])
            # α with α·q + (1 − α)/T − raised = 2((1 − α)/T + raised)
            alpha = (1 / task.T + 3 * raised) / (task.weights[weakest, k] + 1 / task.T)
            A = line_A(task, alpha)
            A[task.positions[weakest, k], k] -= raised
            A[int(np.flatnonzero(task.Q[:, k] == 0)[0]), k] += raised
            p = population_projection(task, task.P, A)
            yield p.alpha_A / (task.sparsity / task.T + task.sparsity * sqrt(task.N) * p.delta_A)


@cache
def rounding() -> dict[str, list[float]]:
    """Thresholding-projection at points with noise below the threshold: what it adds to α_A and to ‖Δ_A‖_μ²."""
    found: dict[str, list[float]] = {"rounding_signal": [], "rounding_error": []}
    for task in tasks():
        for alpha in (0.1, 0.5, 0.9):
            rng = np.random.default_rng(0)
            for scale in (0.0, *[0.2] * 10):
                D = np.where(task.Q > 0, rng.uniform(-scale, scale, task.Q.shape) * alpha / task.sparsity, 0.0)
                A = project(line_A(task, alpha) + D)
                before = population_projection(task, task.P, A)
                after = population_projection(task, task.P, threshold_project(A, alpha / (4 * task.sparsity)))
                found["rounding_signal"].append(abs(after.alpha_A - before.alpha_A) * task.T * task.K_Q)
                found["rounding_error"].append((after.delta_A**2 - before.delta_A**2) * task.T)
    return found


def support_signal() -> Ratios:
    """−E∂l on the support over (1 − α_V)α_V K_P/(NQ), with ‖Δ_A‖_μ = 0.05(1 − α_V)/(Q√N) and ‖Δ_V‖_μ² = 0.05(1 − α_V)K_P."""
    for task in tasks(T=4000):
        for alpha in (0.1, 0.5, 0.9, 0.99):
            V = line_V(task, alpha) + sqrt(0.05 * (1 - alpha) * task.K_P) * directions(task, np.random.default_rng(1))[0]
            D = np.zeros_like(task.Q)
            k = int(np.argmin(task.mu))
            D[task.positions[np.argmin(task.weights[:, k]), k], k] = 1.0  # all of Δ_A on the weakest position of the rarest token
            A = line_A(task, alpha) + 0.05 * (1 - alpha) / (task.sparsity * sqrt(task.N)) * D / mu_norm(D, task.mu)
            on = -expected_gradients(task, V, A)[1][task.Q > 0]
            yield on.min() * task.N * task.sparsity / ((1 - alpha) * alpha * task.K_P)


def proximal_bias() -> Ratios:
    """‖G_λ − E∇̂_A‖_μ over ε/(QN²): λ = 2η_A εK_P/(Q²N²), noise as the lemmas allow, T as small as they allow."""
    rng = np.random.default_rng(0)
    eps = 0.1
    for N, Q in ((3, 1), (4, 1), (3, 2)):
        task = Task.random(N, int((Q**2 * N**3 / eps) ** 2), Q, seed=N)
        off = task.Q == 0
        for eta, alpha in ((0.1, 0.3), (0.01, 0.9)):
            V, A = line_V(task, alpha), line_A(task, alpha)
            eta_A = eta / task.K_P
            lam = BOUNDS["stage2_lambda"].constant * eta_A * eps * task.K_P / (Q**2 * N**2)
            noise = np.where(off, rng.choice([-1.0, 1.0], off.shape) * eps * task.K_P / (N**3 * Q**2), 0.0)
            on = np.where(off, 0.0, rng.normal(size=off.shape))
            noise += on * task.mu * eps / (Q * N**2) / mu_norm(on, task.mu)
            moved = A - eta_A * (expected_gradients(task, V, A)[1] + noise) / task.mu
            after = project(np.sign(moved) * np.maximum(np.abs(moved) - lam, 0.0))
            bias = (A - after) / eta_A - expected_preconditioned_gradients(task, V, A)[1]
            yield mu_norm(bias, task.mu) / (eps / (Q * N**2))


def threshold_needed() -> Ratios:
    """How far the noise that denoising leaves off the support moves an entry, with its 1/T, over η_A εK_P/(Q²N²)."""
    eps = 0.1
    for N, Q in SIZES:
        task = Task.random(N, 10, Q, seed=N)
        T = (Q**2 * N**3 / eps) ** 2
        eta_A = 0.1 / task.K_P
        moved = eta_A * eps * task.K_P / (N**3 * Q**2) / task.mu.min() + 1 / T
        yield moved / (eta_A * eps * task.K_P / (Q**2 * N**2))


@cache
def stage_2_steps() -> dict[str, list[float]]:
    """The four lemmas on one step of Stage 2, at random points: what the noise terms need for the inequality to hold."""
    names = ("errors", "gap", "sum", "local")
    found: dict[str, list[float]] = {name: [] for name in names}
    rng = np.random.default_rng(0)
    for task in tasks(seeds=1):
        for _ in range(300):
            point(task, rng, found)
    return found


def point(task: Task, rng: np.random.Generator, found: dict[str, list[float]]) -> None:
    K_P, K_Q = task.K_P, task.K_Q
    eta = 10 ** rng.uniform(-3, -1)
    a_V, a_A = rng.uniform(0, 1, 2)
    d_V, d_A, h_V, h_A = 10 ** rng.uniform(-4, -0.5, 4)  # δ and the noise in their units
    size_V, size_A = h_V * sqrt(K_P) * K_Q, h_A * K_P * sqrt(K_Q)
    p = state(task, a_V, a_A, d_V**2 * K_P, d_A**2 * K_Q)
    turn_V, turn_A = np.clip(rng.uniform(-2, 2, 2), -1, 1)  # how much of the noise points along P and Q; the rest points along Δ
    noise = adverse(task, p, size_V, size_A, (turn_V * size_V * sqrt(K_P), turn_A * size_A * sqrt(K_Q)))
    q = move(task, p, eta, noise)
    for after, before, h, alpha in (
        (q.delta_A**2 / K_Q, d_A, h_A, a_V),
        (q.delta_V**2 / K_P, d_V, h_V, a_A),
    ):
        found["errors"].append((after - exp(-2 * eta * alpha**2) * before**2) / (eta * (before + eta * h) * h))
    error = 1 / (K_Q * task.T) + d_A**2 + d_V**2 + h_V + h_A
    gap = (q.alpha_V - q.alpha_A) ** 2 - exp(-2 * eta * (1 - a_V * a_A)) * (a_V - a_A) ** 2
    found["gap"].append(gap / (eta * error))
    mean = (a_V + a_A) / 2
    left = 1 - (q.alpha_V + q.alpha_A) / 2 - (1 - eta * mean) * (1 - mean)
    found["sum"].append(left / (eta * mean * (d_A**2 + d_V**2) + eta / 2 * (h_V + h_A)))
    e_V, e_A = rng.uniform(-0.5, 0.5, 2)
    q = move(task, state(task, 1 - e_V, 1 - e_A, d_V**2 * K_P, d_A**2 * K_Q), eta, noise)
    left = (2 - q.alpha_V - q.alpha_A) ** 2 - exp(-2 * eta) * (e_A + e_V) ** 2
    right = abs(e_A * e_V) + error
    found["local"].append(left / (8 * eta * abs(e_A + e_V) * right + 16 * eta**2 * right**2))


def boundary() -> Ratios:
    """X ← e^{−A}X + B: the largest X·A/B from the time that the lemma names."""
    for A in (0.001, 0.03, 0.3, 1.0):
        for start in (0.0, 2.0, 3.0, 10.0, 1e6):  # X₀·A/B
            wait = 6 / A * log(start / 3) if start > 2 else 0.0
            X = start / A
            largest = 0.0
            for tau in range(int(max(wait, 0.0)) + 50):
                if tau >= wait:
                    largest = max(largest, X * A)
                X = exp(-A) * X + 1
            yield largest


def stage_2_length() -> Ratios:
    """Steps of Stage 2, with the noise against it, over 1/(ηα) + log(1/δ_*)/η."""
    for task in tasks(T=10**6, seeds=1):
        for eta, alpha, target in ((0.1, 0.01, 1e-3), (0.01, 0.1, 1e-5), (0.1, 0.2, 1e-12)):
            start = 0.02
            factor = 1.1 * BOUNDS["errors"].constant * BOUNDS["boundary"].constant  # as the planner has it
            err = min(target / sqrt(factor), target**2 / (factor * start), 0.025 * alpha)
            h_V, h_A = err * sqrt(task.K_P) * task.K_Q / 2, err * task.K_P * sqrt(task.K_Q) / 2
            p = state(task, alpha, alpha, start**2 * task.K_P / 2, start**2 * task.K_Q / 2)
            steps = 0
            while not done(task, p, target):
                p = move(task, p, eta, adverse(task, p, h_V, h_A, (h_V * sqrt(task.K_P / 2), h_A * sqrt(task.K_Q / 2))))
                steps += 1
            yield steps / (1 / (eta * alpha) + log(1 / target) / eta)


def done(task: Task, p: Projection, target: float) -> bool:
    small = max(p.delta_A**2 / task.K_Q, p.delta_V**2 / task.K_P) <= target**2
    return small and 0.9 < p.alpha_V < 1.1 and 0.9 < p.alpha_A < 1.1
