"""Each closed form of the theory against full enumeration; functions of the module, so that mutants can be tried too."""

from __future__ import annotations

from dataclasses import astuple
from types import ModuleType

import numpy as np
from scipy.integrate import solve_ivp

from scb import geometry as true_projection
from scb.geometry import mu_inner
from scb.theory.dynamics import StepNoise, population_drift
from truth.enumeration import World, constrained_direction, constrained_point, free_point, precondition

EXACT = {"rtol": 0, "atol": 1e-10}


def close(got, expected) -> None:
    np.testing.assert_allclose(got, expected, **EXACT)


# ------------------------------------------------------------------------------------------------- expectations


def joint_probability(m: ModuleType, w: World) -> None:
    N, T = w.task.N, w.task.T
    for k in range(N):
        for t in range(T):
            table = m.joint_probability(w.task, k, t)
            for n in range(N):
                for j in range(N):
                    close(table[n, j], w.chance((w.label == n) & (w.context[:, t] == j), w.last == k))


def conditional_probability(m: ModuleType, w: World) -> None:
    N, T = w.task.N, w.task.T
    for k in range(N):
        for s in range(T):
            for t in range(T):
                if s == t:
                    continue
                table = m.conditional_probability(w.task, k, s, t)
                for j in range(N):
                    for i in range(N):
                        given = (w.last == k) & (w.context[:, s] == j) & (w.context[:, t] == i)
                        close(table[:, j, i], [w.chance(w.label == n, given) for n in range(N)])


def token_second_moment(m: ModuleType, w: World) -> None:
    eye = np.eye(w.task.N)
    for s in range(w.task.T):
        for t in range(w.task.T):
            outer = eye[w.context[:, s]][:, :, None] * eye[w.context[:, t]][:, None, :]
            close(m.token_second_moment(w.task, s, t), w.mean(outer))
            close(m.token_second_moment(w.task, s, t), w.mean(outer, w.last == 0))


def value_second_moment(m: ModuleType, w: World) -> None:
    for V in points(w, 0):
        for s in range(w.task.T):
            for t in range(w.task.T):
                value = (V.T[w.context[:, s]] * V.T[w.context[:, t]]).sum(axis=1)
                close(m.value_second_moment(w.task, V, s, t), w.mean(value))


def value_at_label(m: ModuleType, w: World) -> None:
    for V in points(w, 0):
        for k in range(w.task.N):
            for t in range(w.task.T):
                close(m.value_at_label(w.task, V, k, t), w.mean(V[w.label, w.context[:, t]], w.last == k))


def expected_gradients(m: ModuleType, w: World) -> None:
    for V, A in points(w):
        for got, samples in zip(m.expected_gradients(w.task, V, A), w.gradients(V, A), strict=True):
            close(got, w.mean(samples))


def constrained_expected_gradients(m: ModuleType, w: World) -> None:
    for V, A in points(w, constrained=True):
        for got, samples in zip(m.constrained_expected_gradients(w.task, V, A), w.gradients(V, A), strict=True):
            close(got, w.mean(samples))


def expected_preconditioned_gradients(m: ModuleType, w: World) -> None:
    for V, A in points(w, constrained=True):
        expected = precondition(w.task, *(w.mean(g) for g in w.gradients(V, A)))
        for got, truth in zip(m.expected_preconditioned_gradients(w.task, V, A), expected, strict=True):
            close(got, truth)


def population_loss(m: ModuleType, w: World) -> None:
    for V, A in points(w):
        close(m.population_loss(w.task, V, A), w.mean(w.losses(V, A)))


def best_value(m: ModuleType, w: World) -> None:
    """No gradient in V is left, and any step away costs (the loss is convex in V)."""
    for _, A in points(w, constrained=True):
        close(w.mean(w.gradients(m.best_value(w.task, A), A)[0]), 0)


# --------------------------------------------------------------------------------------------------- geometry


def inner_product(m: ModuleType, w: World) -> None:
    """⟨X, Y⟩_μ = Tr(X diag(μ) Yᵀ), and its norm."""
    V, _ = constrained_point(w.task, np.random.default_rng(1))
    close(m.mu_inner(V, w.task.P, w.task.mu), np.trace(V @ np.diag(w.task.mu) @ w.task.P.T))
    close(m.mu_norm(V, w.task.mu) ** 2, m.mu_inner(V, V, w.task.mu))
    close(m.centred_square(V, w.task.mu), np.sum(V**2 * w.task.mu) - w.task.mu @ w.task.mu)


def medians_are_numpys(m: ModuleType, w: World) -> None:
    """Of an even and of an odd number of entries."""
    A = np.random.default_rng(2).normal(size=(w.task.T + 8, w.task.N))
    for entries in (A, A[1:]):
        close(m.column_medians(entries), np.median(entries, axis=0))


def columns_sum_to_one(m: ModuleType, w: World) -> None:
    """The projection is the nearest point of {1ᵀa = 1}; the roundings keep it."""
    A = np.random.default_rng(2).uniform(0.1, 1.0, (w.task.T, w.task.N))
    moved = m.project(A) - A
    close(m.project(A).sum(axis=0), 1)
    close(moved, np.broadcast_to(moved.mean(axis=0), moved.shape))
    kept = np.where(A >= 0.5, A, 0.0)
    close(m.threshold_project(A, 0.5), m.project(kept))
    mass = kept.sum(axis=0)
    close(m.threshold_normalize(A, 0.5), np.where(mass > 0, kept / np.where(mass > 0, mass, 1.0), 1 / w.task.T))


def projectors(m: ModuleType, w: World) -> None:
    """Both are linear, leave matrices with Hμ = 0 as they are, and make any matrix one; each is orthogonal in its own metric."""
    mu = w.task.mu
    H, K = np.random.default_rng(3).normal(size=(2, w.task.N, w.task.N))
    for projector, weights in (("euclidean", np.ones(w.task.N)), ("mu", mu)):
        kept = m.keep_mu(H, mu, projector)
        close(kept @ mu, 0)
        close(m.keep_mu(kept, mu, projector), kept)
        close(mu_inner(H - kept, m.keep_mu(K, mu, projector), weights), 0)


def line(m: ModuleType, w: World) -> None:
    P, Q, mu, T = w.task.P, w.task.Q, w.task.mu, w.task.T
    for alpha in (-0.7, 0.0, 0.3, 1.0):
        close(m.line_V(w.task, alpha), mu[:, None] + alpha * (P - mu[:, None]))
        close(m.line_A(w.task, alpha), 1 / T + alpha * (Q - 1 / T))
    V, A = m.uniform_start(mu, T)
    close(V, m.line_V(w.task, 0.0))
    close(A, m.line_A(w.task, 0.0))


def population_projection(m: ModuleType, w: World) -> None:
    """α is the least-squares coefficient, found here by lstsq on the √μ-weighted, flattened matrices."""
    P, Q, mu, T = w.task.P, w.task.Q, w.task.mu, w.task.T
    root, norm2 = np.sqrt(mu), float(mu @ mu)
    for V, A in points(w, constrained=True):
        p = m.population_projection(w.task, V, A)
        for alpha, delta, target, base, point in (
            (p.alpha_V, p.delta_V, P, mu[:, None] * np.ones(w.task.N), V),
            (p.alpha_A, p.delta_A, Q, np.full((T, w.task.N), 1 / T), A),
        ):
            direction, offset = ((target - base) * root).ravel(), ((point - base) * root).ravel()
            best = np.linalg.lstsq(direction[:, None], offset, rcond=None)[0][0]
            close(alpha, best)
            close(delta, np.linalg.norm(offset - best * direction))
        close(p.K_V, np.sum(V**2 * mu) - norm2)
        close(p.K_VP, np.sum(V * P * mu) - norm2)
        close(p.K_A, np.sum(A**2 * mu) - 1 / T)
        close(p.K_AQ, np.sum(A * Q * mu) - 1 / T)
        close(p.K_V, p.alpha_V**2 * w.task.K_P + p.delta_V**2)
        close(p.K_A, p.alpha_A**2 * w.task.K_Q + p.delta_A**2)
        by_norms = m.projection_by_norms(w.task, p.alpha_V, p.delta_V, p.K_A, p.K_AQ)
        close(astuple(by_norms), astuple(p))
        cross = mu_inner(A - 1 / T, Q - 1 / T, mu)
        for theta in (-0.5, 0.3, 1.0):
            line = true_projection.line_A(w.task, theta)
            close(m.distance_from_line_A(w.task, theta, p.K_A, cross), true_projection.mu_norm(A - line, mu))


def deviations(m: ModuleType, w: World) -> None:
    """Δ is orthogonal to every point of its line, not only to its direction."""
    for V, A in points(w, constrained=True):
        delta_V, delta_A = m.deviations(w.task, V, A)
        for theta in (0.0, 1.0, -2.5):
            close(mu_inner(delta_V, true_projection.line_V(w.task, theta), w.task.mu), 0)
            close(mu_inner(delta_A, true_projection.line_A(w.task, theta), w.task.mu), 0)
        p = true_projection.population_projection(w.task, V, A)
        close(delta_V + true_projection.line_V(w.task, p.alpha_V), V)
        close(delta_A + true_projection.line_A(w.task, p.alpha_A), A)


# ----------------------------------------------------------------------------------------------------- dynamics


def expanded_gradients(m: ModuleType, w: World) -> None:
    for V, A in points(w, constrained=True):
        expected = precondition(w.task, *(w.mean(g) for g in w.gradients(V, A)))
        for got, truth in zip(m.expanded_gradients(w.task, V, A), expected, strict=True):
            close(got, truth)


def noisy_step(m: ModuleType, w: World) -> None:
    """α and ‖Δ‖² after a real mini-batch step (outcomes drawn from the enumeration) and after an arbitrary one."""
    rng, eta_V, eta_A = np.random.default_rng(5), 0.3, 0.7
    for V, A in points(w, constrained=True):
        mean = precondition(w.task, *(w.mean(g) for g in w.gradients(V, A)))
        rows = rng.choice(len(w), 3, p=w.probability / w.probability.sum())
        batch = precondition(w.task, *(g[rows].mean(axis=0) for g in w.gradients(V, A)))
        for h in ([b - e for b, e in zip(batch, mean, strict=True)], constrained_direction(w.task, rng)):
            after_V, after_A = V - eta_V * (mean[0] + h[0]), A - eta_A * (mean[1] + h[1])
            before = true_projection.population_projection(w.task, V, A)
            after = true_projection.population_projection(w.task, after_V, after_A)
            noise = noise_terms(w.task, V, A, *h, m.StepNoise)
            close(m.signal_step(w.task, before, eta_V, eta_A, noise), (after.alpha_V, after.alpha_A))
            close(m.error_step(w.task, before, eta_V, eta_A, noise), (after.delta_V**2, after.delta_A**2))


def noise_terms(task, V, A, h_V, h_A, make=StepNoise):
    """The terms of a step taken at (V, A) with noise matrices h_V and h_A, by their definitions."""
    delta_V, delta_A = true_projection.deviations(task, V, A)
    return make(
        along_P=mu_inner(h_V, task.P, task.mu),
        along_Q=task.inner_Q(h_A),
        along_V=mu_inner(delta_V, h_V, task.mu),
        along_A=mu_inner(delta_A, h_A, task.mu),
        square_V=mu_inner(h_V, h_V, task.mu),
        square_A=mu_inner(h_A, h_A, task.mu),
    )


def population(m: ModuleType, w: World) -> None:
    """The population process as matrices follows enumerated gradients; as two numbers, it follows the matrices."""
    task, eta_V, eta_A = w.task, 0.2, 0.4
    start = (0.15, 0.3)
    V, A = true_projection.line_V(task, start[0]), true_projection.line_A(task, start[1])
    path = m.population_recursion(task.K_P, task.K_Q, task.T, eta_V, eta_A, 5, start)
    for alpha in path:
        p = true_projection.population_projection(task, V, A)
        close((p.alpha_V, p.alpha_A), alpha)
        gV, gA = precondition(task, *(w.mean(g) for g in w.gradients(V, A)))
        step = m.population_step(task, V, A, eta_V, eta_A)
        V, A = V - eta_V * gV, A - eta_A * gA
        close(step[0], V)
        close(step[1], A)


def flow(m: ModuleType, w: World) -> None:
    """Euler steps of size η = h end within O(h) of the flow: halving h halves the error."""
    K = (w.task.K_P, w.task.K_Q, w.task.T)
    end = population_flow(*K, 2.0, (0.1, 0.05), m.population_drift)
    errors = []
    for steps in (400, 800):
        eta = 2.0 / steps
        path = euler(K, eta, steps)
        errors.append(np.abs(path - end).max())
    assert 1.8 < errors[0] / errors[1] < 2.2


def population_flow(K_P, K_Q, T, end, start=(0.0, 0.0), drift=population_drift):
    """(α_V, α_A) at time ``end`` = η·steps, in the limit of small steps with η_V = η/K_Q and η_A = η/K_P."""
    speed = np.array([1 / K_Q, 1 / K_P])
    right = lambda _, alpha: speed * drift(alpha, K_P, K_Q, T)  # noqa: E731
    return solve_ivp(right, (0.0, end), start, rtol=1e-10, atol=1e-12).y[:, -1]


def euler(K: tuple[float, float, int], eta: float, steps: int) -> np.ndarray:
    _, K_Q, T = K
    a_V, a_A = 0.1, 0.05
    for _ in range(steps):
        gap = 1 - a_V * a_A
        a_V, a_A = a_V + eta * gap * a_A + eta * (1 - a_V) / (T * K_Q), a_A + eta * gap * a_V
    return np.array([a_V, a_A])


def points(w: World, which: int | None = None, constrained: bool = False) -> list:
    """Several random (V, A), or only the V's; free ones too, unless the lemma asks for the constraints."""
    rng = np.random.default_rng(11)
    found = [constrained_point(w.task, rng) for _ in range(2)]
    if not constrained:
        found += [free_point(w.task, rng) for _ in range(2)]
    return found if which is None else [point[which] for point in found]


CHECKS = {
    "theory.probabilities": (
        joint_probability,
        conditional_probability,
        token_second_moment,
        value_second_moment,
        value_at_label,
    ),
    "theory.expectations": (
        expected_gradients,
        constrained_expected_gradients,
        expected_preconditioned_gradients,
        population_loss,
        best_value,
    ),
    "geometry.products": (inner_product, projectors),
    "geometry.columns": (columns_sum_to_one, medians_are_numpys),
    "geometry.lines": (line, population_projection, deviations),
    "theory.dynamics": (expanded_gradients, noisy_step, population, flow),
}
