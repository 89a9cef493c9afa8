"""Appendix B: joint probabilities, expected gradients, and the population loss.

Where the paper's proof gives more than its statement (any V and A, instead of 1ᵀV = 1ᵀ, 1ᵀA = 1ᵀ, Vμ = μ), the general
form stands here and the printed one beside it, named ``constrained_…``. Lemmas that nothing else needs stand here to be checked
against full enumeration; their docstrings say so.
"""

import numpy as np

from scb.geometry import Array, mu_inner
from scb.inputs import InputError
from scb.task import Task


def joint_probability(task: Task, k: int, t: int) -> Array:
    """Pr(x_o = n, x_t = m | x_{T+1} = k) = q_t P[n, m] μ_m + (1 − q_t) μ_n μ_m: (N, N). Lemma 1 of Appendix B, to be checked."""
    q = task.Q[t, k]
    return q * task.P * task.mu + (1 - q) * np.outer(task.mu, task.mu)


def conditional_probability(task: Task, k: int, s: int, t: int) -> Array:
    """Pr(x_o = n | x_{T+1} = k, x_s = m, x_t = l) = q_s P[n, m] + q_t P[n, l] + (1 − q_s − q_t) μ_n, s ≠ t: (N, N, N).

    Lemma 2 of Appendix B, to be checked.
    """
    if s == t:
        raise InputError(f"s = t = {s}: the two positions must differ")
    qs = task.Q[s, k]
    qt = task.Q[t, k]
    return qs * task.P[:, :, None] + qt * task.P[:, None, :] + (1 - qs - qt) * task.mu[:, None, None]


def token_second_moment(task: Task, s: int, t: int) -> Array:
    """E[e_{x_s} e_{x_t}ᵀ] = diag(μ) if s = t, else μμᵀ. Lemma 4 of Appendix B, to be checked."""
    return np.diag(task.mu) if s == t else np.outer(task.mu, task.mu)


def value_second_moment(task: Task, V: Array, s: int, t: int) -> float:
    """Σ_n E[V[n, x_s] V[n, x_t]] = ‖V‖_μ² if s = t, else ‖Vμ‖² (‖μ‖² when Vμ = μ). Lemma 5 of Appendix B, to be checked."""
    mean = V @ task.mu
    return mu_inner(V, V, task.mu) if s == t else float(mean @ mean)


def value_at_label(task: Task, V: Array, k: int, t: int) -> float:
    """E[V[x_o, x_t] | x_{T+1} = k] = q_t⟨V, P⟩_μ + (1 − q_t)·μᵀVμ (‖μ‖² when Vμ = μ). Lemma 6 of Appendix B, to be checked."""
    q = task.Q[t, k]
    return q * mu_inner(V, task.P, task.mu) + (1 - q) * float(task.mu @ V @ task.mu)


def expected_gradients(task: Task, V: Array, A: Array) -> tuple[Array, Array]:
    """E∇_V l (N, N) and E∇_A l (T, N), for any V and A: the lemma "Expected gradients", as its proof gives it.

    With s_k = 1ᵀa^(k):

        E∇_V l = ‖A‖_μ² V diag(μ) + (Σ_k μ_k s_k² − ‖A‖_μ²) Vμμᵀ − ⟨Q, A⟩_μ P diag(μ) − (Σ_k μ_k s_k − ⟨Q, A⟩_μ) μμᵀ
        E∇_{a^(k)} l = μ_k [ (‖V‖_μ² − ‖Vμ‖²) a^(k) + (s_k‖Vμ‖² − μᵀVμ) 1 − (⟨V, P⟩_μ − μᵀVμ) q^(k) ]
    """
    P, mu = task.P, task.mu
    s = A.sum(axis=0)
    AA = mu_inner(A, A, mu)
    QA = task.inner_Q(A)
    gV = AA * V * mu + np.outer((mu @ s**2 - AA) * (V @ mu), mu) - QA * P * mu - (mu @ s - QA) * np.outer(mu, mu)
    mean = V @ mu
    VV = mu_inner(V, V, mu) - mean @ mean
    VP = mu_inner(V, P, mu)
    drift = mu @ mean
    gA = np.asfortranarray(VV * A + (s * (mean @ mean) - drift))
    np.subtract.at(gA, (task.positions, np.arange(task.N)), (VP - drift) * task.weights)
    gA *= mu
    return gV, gA


def constrained_expected_gradients(task: Task, V: Array, A: Array) -> tuple[Array, Array]:
    """The lemma "Expected gradients" as printed, for 1ᵀA = 1ᵀ and Vμ = μ; to be checked.

    E∇_V l = ‖A‖_μ² V diag(μ) + (1 − ‖A‖_μ²) μμᵀ − ⟨Q, A⟩_μ P diag(μ) − (1 − ⟨Q, A⟩_μ) μμᵀ
    E∇_{a^(k)} l = μ_k [ (‖V‖_μ² − ‖μ‖²) a^(k) + 1‖μ‖² − q^(k)⟨V, P⟩_μ − (1 − q^(k))‖μ‖² ]
    """
    P, Q, mu = task.P, task.Q, task.mu
    AA = mu_inner(A, A, mu)
    QA = task.inner_Q(A)
    mm = float(mu @ mu)
    gV = AA * V * mu + (1 - AA) * np.outer(mu, mu) - QA * P * mu - (1 - QA) * np.outer(mu, mu)
    gA = mu * ((mu_inner(V, V, mu) - mm) * A + mm - Q * mu_inner(V, P, mu) - (1 - Q) * mm)
    return gV, gA


def expected_preconditioned_gradients(task: Task, V: Array, A: Array) -> tuple[Array, Array]:
    """E∇̂_V l and E∇̂_A l for 1ᵀV = 1ᵀ, 1ᵀA = 1ᵀ and Vμ = μ: the lemma "Expected preconditioned gradients".

    E∇̂_V l = ‖A‖_μ² (V − μ1ᵀ) − ⟨Q, A⟩_μ (P − μ1ᵀ)
    E∇̂_A l = (‖V‖_μ² − ‖μ‖²)(A − 11ᵀ/T) − (⟨V, P⟩_μ − ‖μ‖²)(Q − 11ᵀ/T)
    """
    P, mu, T = task.P, task.mu, task.T
    mm = float(mu @ mu)
    gV = mu_inner(A, A, mu) * (V - mu[:, None]) - task.inner_Q(A) * (P - mu[:, None])
    gA = (mu_inner(V, V, mu) - mm) * (A - 1 / T) - (mu_inner(V, P, mu) - mm) * (task.Q - 1 / T)
    return gV, gA


def population_loss(task: Task, V: Array, A: Array) -> float:
    """E l = ½E‖e_o − VXa‖² for any V and A.

    With s_k = 1ᵀa^(k):  2·E l = 1 − 2[⟨A, Q⟩_μ⟨V, P⟩_μ + (Σ_k μ_k s_k − ⟨A, Q⟩_μ) μᵀVμ]
                                  + ‖A‖_μ²‖V‖_μ² + (Σ_k μ_k s_k² − ‖A‖_μ²)‖Vμ‖²
    """
    return loss_by_moments(task, V, A.sum(axis=0), mu_inner(A, A, task.mu), task.inner_Q(A))


def loss_by_moments(task: Task, V: Array, s: Array, AA: float, QA: float) -> float:
    """E l from s = 1ᵀA (N,), ‖A‖_μ² and ⟨A, Q⟩_μ, for any V; see ``population_loss``."""
    mu = task.mu
    mean = V @ mu
    cross = QA * mu_inner(V, task.P, mu) + (mu @ s - QA) * (mu @ mean)
    square = AA * mu_inner(V, V, mu) + (mu @ s**2 - AA) * (mean @ mean)
    return float(0.5 * (1 - 2 * cross + square))


def best_value(task: Task, A: Array) -> Array:
    """The V that minimises the population loss at a given A with 1ᵀA = 1ᵀ: μ1ᵀ + (⟨Q, A⟩_μ/‖A‖_μ²)(P − μ1ᵀ)."""
    mu = task.mu
    return mu[:, None] + task.inner_Q(A) / mu_inner(A, A, mu) * (task.P - mu[:, None])
