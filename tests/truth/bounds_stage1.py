"""Appendices B.4 and D: how large the gradients of single samples are, and Stage 1 under the noise that its lemma allows."""

from collections.abc import Iterator
from functools import cache
from math import log, sqrt

import numpy as np

from scb import Task, sample
from scb.geometry import line_A, line_V, mu_norm, uniform_start
from scb.theory.dynamics import StepNoise, signal_step
from scb.theory.noise import GradientNoise
from truth.adversary import adverse, directions, move, state, tasks
from truth.enumeration import WORLDS, constrained_point, precondition


@cache
def gradient_sizes() -> dict[str, list[float]]:
    """What the gradients of single samples are bounded by, at V = Ṽ + Δ_V and A = Ã + Δ_A with ‖Δ‖_F² ≤ 1/T.

    Largest values are those of 400 samples, second moments are exact.
    """
    found: dict[str, list[float]] = {}
    for task in tasks(T=300):
        N, T, Q, mu = task.N, task.T, task.sparsity, task.mu
        rng = np.random.default_rng(N)
        for alpha in (0.0, 0.5, 1.0):
            D_V, D_A = (D / (np.linalg.norm(D) * sqrt(T)) for D in directions(task, rng))
            V, A = line_V(task, alpha) + D_V, line_A(task, alpha) + D_A
            batch = sample(task, 400, seed=rng)
            plain_V, columns = sample_gradients(V, A, batch)
            k = batch.last
            hat_V = (plain_V - plain_V.mean(axis=1, keepdims=True)) / mu @ (np.eye(N) - np.outer(mu, mu) / (mu @ mu))
            hat_a = (columns - columns.mean(axis=1, keepdims=True)) / mu[k][:, None]
            on = task.Q.T[k]
            noise = GradientNoise(task, V, A)
            second_A = (noise.variances_A() + noise.mean[1] ** 2) * mu  # of each entry, with its weight in ‖·‖_μ²
            row = {
                "entry_A": np.abs(hat_a).max() / N,
                "entry_V": np.abs(hat_V).max() / N,
                "square_A": second_A.sum() / (T * N**2),
                "square_V": (noise.square_V() + mu_norm(noise.mean[0], mu) ** 2) / N**3,
                "along_P": np.abs(((hat_V * task.P) @ mu).sum(axis=1)).max() / N**3,
                "along_Q": np.abs(mu[k] * (hat_a * on).sum(axis=1)).max() / (Q * N**2),
                "coordinate": np.abs(columns).max() / N,
                "square_on_support": second_A[task.Q > 0].sum() / (Q * N**2),
            }
            for name, value in row.items():
                found.setdefault(name, []).append(float(value))
    return found


def chebyshev() -> Iterator[float]:
    """Pr(‖h_V‖_μ ≥ ε)·Bε²/E‖∇̂_V l‖_μ² at its worst ε, by enumeration of all mini-batches of 1 and 2 samples."""
    for world in WORLDS[:2]:
        task = world.task
        for V, A in (uniform_start(task.mu, task.T), constrained_point(task, np.random.default_rng(0))):
            y = np.array([precondition(task, g, np.zeros((task.T, task.N)))[0] for g in world.gradients(V, A)[0]])
            G = float(world.mean((y**2 @ task.mu).sum(axis=1)))
            h = y - world.mean(y)
            for B, batch, chance in (
                (1, h, world.probability),
                (2, (h[:, None] + h[None]).reshape(-1, *h.shape[1:]) / 2, np.outer(world.probability, world.probability).ravel()),
            ):
                size = np.sqrt((batch**2 @ task.mu).sum(axis=1))
                order = np.argsort(size)[::-1]
                yield float((np.cumsum(chance[order]) * B * size[order] ** 2).max() / G)


def sample_gradients(V, A, batch):
    """∇_V l (n, N, N) and the one column of ∇_A l that is not zero (n, T), of each sample."""
    values = V[:, batch.context]  # (N, n, T)
    attention = A[:, batch.last].T  # (n, T)
    residual = np.einsum("mnt,nt->nm", values, attention) - np.eye(len(V))[batch.label]
    mixed = np.einsum("mnt,nt->nm", np.eye(len(V))[:, batch.context], attention)  # Xa
    return residual[:, :, None] * mixed[:, None, :], np.einsum("mnt,nm->nt", values, residual)


@cache
def stage_1() -> dict[str, list[float]]:
    """Stage 1 with noise as large as the lemma allows (its Θ(1) taken as 1): against α, for α, or all of it along Δ."""
    found: dict[str, list[float]] = {"stage1_steps": [], "stage1_gap": [], "stage1_noise": []}
    for T in (1000, 100_000):
        for task in tasks(T, seeds=1):
            for eta in (min(task.K_P, task.K_Q, 0.1), 0.01):
                runs = [stage_1_run(task, eta, side) for side in (1.0, -1.0, 0.0)]
                found["stage1_steps"] += [steps * eta / log(T * task.K_Q) for steps, _, _ in runs]
                found["stage1_gap"] += [gap * T * task.K_Q for _, gap, _ in runs]
                found["stage1_noise"].append(1 / sqrt(runs[-1][2]))
    return found


@cache
def stage_1_points() -> dict[str, list[float]]:
    """Points of Stage 1: α up to 1/(QN), ‖Δ‖_μ² = Δ/T; for the entries, all of Δ in the one that it raises most."""
    found: dict[str, list[float]] = {"growth": [], "largest_V": [], "largest_A": []}
    for task in tasks():
        N, T, Q, mu = task.N, task.T, task.sparsity, task.mu
        goal = min(0.5, 1 / (Q * N))
        most = allowed_error(task) / T
        noise = StepNoise(along_P=task.K_P / (4 * T), along_Q=task.K_P / (4 * T))
        for a_V, a_A in ((0.0, 0.0), (goal, 0.0), (0.0, goal), (goal, goal)):
            p = state(task, a_V, a_A, most, most)
            gain = signal_step(task, p, 1 / task.K_Q, 1 / task.K_P, noise)
            found["growth"].append((sum(gain) - 1.5 * (a_V + a_A)) * 4 * T * task.K_Q)
            found["largest_V"].append(float((line_V(task, a_V) + np.sqrt(most / mu)).max()))
            found["largest_A"].append(float((line_A(task, a_A) + np.sqrt(most / mu)).max()) * Q)
    return found


def allowed_error(task: Task) -> float:
    """Δ of part (b): ‖Δ‖_μ² ≤ Δ/T throughout Stage 1."""
    return min(task.K_Q / 4, task.K_P / 4, 1 / (task.sparsity**4 * task.N**3))


def stage_1_run(task: Task, eta: float, side: float) -> tuple[int, float, float]:
    """(steps, |α_V − α_A| at the end, largest ‖Δ‖_μ²·T/Δ)."""
    T, K_P, K_Q = task.T, task.K_P, task.K_Q
    most = allowed_error(task)
    h = sqrt(most / T) * min(K_P, K_Q) / log(T * K_Q)
    along = side * K_P / (4 * T)
    goal = min(0.5, 1 / (task.sparsity * task.N))
    p = state(task, 0.0, 0.0, 0.0, 0.0)
    largest = 0.0
    steps = 0
    while max(p.alpha_V, p.alpha_A) < goal:
        p = move(task, p, eta, adverse(task, p, h, h, (along, along)))
        largest = max(largest, p.delta_V**2, p.delta_A**2)
        steps += 1
    return steps, abs(p.alpha_V - p.alpha_A), largest * T / most
