"""The expected gradients and the population loss of Appendix B, for one head or several. Tests
check the formulas against full enumeration.
"""

from typing import Any

import numpy as np

from scb.arrays import Array
from scb.geometry import mu_inner
from scb.geometry.columns import column_sums, places
from scb.geometry.heads import head_products, mixed, per_head
from scb.geometry.products import row_dot
from scb.task import Task


def expected_gradients(task: Task, V: Array, A: Array) -> tuple[Array, Array]:
    """Compute the expected gradients E∇_V l and E∇_A l of the loss for any V and A.

    The formulas are those of the lemma "Expected gradients".

    With a^(k) = A[:, k], q^(k) = Q[:, k] and s_k = 1ᵀa^(k), the proof of the lemma gives, without
    constraints on V and A:

    | E∇_V l = ‖A‖_μ² V diag(μ) + (Σ_k μ_k s_k² − ‖A‖_μ²) Vμμᵀ
    |     − ⟨Q, A⟩_μ P diag(μ) − (Σ_k μ_k s_k − ⟨Q, A⟩_μ) μμᵀ
    | E∇_{a^(k)} l = μ_k [ (‖V‖_μ² − ‖Vμ‖²) a^(k) + (s_k‖Vμ‖² − μᵀVμ) 1 − (⟨V, P⟩_μ − μᵀVμ) q^(k) ]

    With several heads, each product of A, Q, V and P involves two heads, and each gradient is the
    sum of these terms over the other head. The task and the model may have different numbers of
    heads.

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    V, A : (N, N) and (T, N) arrays, or (H, N, N) and (H, T, N) with several heads
        The value matrix and the attention.

    Returns
    -------
    gV, gA : (N, N) and (T, N) arrays, or (H, N, N) and (H, T, N) with several heads

    Examples
    --------
    >>> import numpy as np, scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> gV, gA = scb.theory.expectations.expected_gradients(task, task.P, task.Q)
    >>> bool(np.allclose(gV, 0)), bool(np.allclose(gA, 0))
    (True, True)
    """
    if V.ndim == 3 or task.heads > 1:
        return _Moments(task, V, A).gradients()
    P, mu = task.P, task.mu
    s = A.sum(axis=0)
    AA = mu_inner(A, A, mu)
    QA = task.inner_Q(A)
    gV = (
        AA * V * mu
        + np.outer((mu @ s**2 - AA) * (V @ mu), mu)
        - QA * P * mu
        - (mu @ s - QA) * np.outer(mu, mu)
    )
    mean = V @ mu
    VV = mu_inner(V, V, mu) - mean @ mean
    VP = mu_inner(V, P, mu)
    drift = mu @ mean
    gA = np.asfortranarray(VV * A + (s * (mean @ mean) - drift))
    np.subtract.at(gA, (task.positions, np.arange(task.N)), (VP - drift) * task.weights)
    gA *= mu
    return gV, gA


def constrained_expected_gradients(task: Task, V: Array, A: Array) -> tuple[Array, Array]:
    """Compute the expected gradients by the lemma "Expected gradients" as printed in the paper.

    The lemma holds for 1ᵀA = 1ᵀ and Vμ = μ.

    | E∇_V l = ‖A‖_μ² V diag(μ) + (1 − ‖A‖_μ²) μμᵀ − ⟨Q, A⟩_μ P diag(μ) − (1 − ⟨Q, A⟩_μ) μμᵀ
    | E∇_{a^(k)} l = μ_k [ (‖V‖_μ² − ‖μ‖²) a^(k) + 1‖μ‖² − q^(k)⟨V, P⟩_μ − (1 − q^(k))‖μ‖² ]

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    V, A : (N, N) and (T, N) arrays
        The value matrix and the attention.

    Returns
    -------
    gV : (N, N) array
    gA : (T, N) array

    Examples
    --------
    >>> import numpy as np, scb
    >>> from scb.theory.expectations import constrained_expected_gradients, expected_gradients
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> V, A = task.related(0.5).P, task.Q
    >>> printed = constrained_expected_gradients(task, V, A)
    >>> bool(np.allclose(printed[0], expected_gradients(task, V, A)[0]))
    True
    """
    P, Q, mu = task.P, task.Q, task.mu
    AA = mu_inner(A, A, mu)
    QA = task.inner_Q(A)
    mm = float(mu @ mu)
    gV = AA * V * mu + (1 - AA) * np.outer(mu, mu) - QA * P * mu - (1 - QA) * np.outer(mu, mu)
    gA = mu * ((mu_inner(V, V, mu) - mm) * A + mm - Q * mu_inner(V, P, mu) - (1 - Q) * mm)
    return gV, gA


def expected_preconditioned_gradients(task: Task, V: Array, A: Array) -> tuple[Array, Array]:
    """Compute E∇̂_V l and E∇̂_A l for 1ᵀV = 1ᵀ, 1ᵀA = 1ᵀ and Vμ = μ.

    The formulas are those of the lemma "Expected preconditioned gradients".

    | E∇̂_V l = ‖A‖_μ² (V − μ1ᵀ) − ⟨Q, A⟩_μ (P − μ1ᵀ)
    | E∇̂_A l = (‖V‖_μ² − ‖μ‖²)(A − 11ᵀ/T) − (⟨V, P⟩_μ − ‖μ‖²)(Q − 11ᵀ/T)

    With several heads, let Ṽ_h = V_h − μ1ᵀ and P̃_g = P_g − μ1ᵀ. The columns of A sum to 1 over all
    heads together, and c removes the mean over all heads and positions:

    | E∇̂_{V_h} l = Σ_g ⟨A_h, A_g⟩_μ Ṽ_g − Σ_g ⟨A_h, Q_g⟩_μ P̃_g
    | E∇̂_{A_h} l = c[ Σ_g ⟨Ṽ_h, Ṽ_g⟩_μ A_g − Σ_g ⟨Ṽ_h, P̃_g⟩_μ Q_g ]

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    V, A : (N, N) and (T, N) arrays, or (H, N, N) and (H, T, N) with several heads
        The value matrix and the attention.

    Returns
    -------
    gV, gA : (N, N) and (T, N) arrays, or (H, N, N) and (H, T, N) with several heads

    Examples
    --------
    At the uniform start, V is pulled towards P with strength 1/T, and A does not move:

    >>> import numpy as np, scb
    >>> from scb.geometry import uniform_start
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> start = uniform_start(task.mu, task.T)
    >>> gV, gA = scb.theory.expectations.expected_preconditioned_gradients(task, *start)
    >>> bool(np.allclose(gV, -(task.P - task.mu[:, None]) / task.T)), bool(np.allclose(gA, 0))
    (True, True)
    """
    P, mu, T = task.P, task.mu, task.T
    if V.ndim == 3 or task.heads > 1:
        U, W = V - mu[:, None], per_head(P) - mu[:, None]
        Q = per_head(task.Q)
        gV = mixed(U, head_products(A, A, mu)) - mixed(W, head_products(A, Q, mu))
        gA = mixed(A, head_products(U, U, mu)) - mixed(Q, head_products(U, W, mu))
        return gV, gA - column_sums(gA) / places(gA)
    mm = float(mu @ mu)
    gV = mu_inner(A, A, mu) * (V - mu[:, None]) - task.inner_Q(A) * (P - mu[:, None])
    gA = (mu_inner(V, V, mu) - mm) * (A - 1 / T) - (mu_inner(V, P, mu) - mm) * (task.Q - 1 / T)
    return gV, gA


def population_loss(task: Task, V: Array, A: Array) -> float:
    """Compute the expected loss E l = ½E‖e_o − VXa^(k)‖² for any V and A.

    | With s_k = 1ᵀa^(k):  2·E l = 1 − 2[⟨A, Q⟩_μ⟨V, P⟩_μ + (Σ_k μ_k s_k − ⟨A, Q⟩_μ) μᵀVμ]
    |     + ‖A‖_μ²‖V‖_μ² + (Σ_k μ_k s_k² − ‖A‖_μ²)‖Vμ‖²

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    V, A : (N, N) and (T, N) arrays
        The value matrix and the attention.

    Returns
    -------
    float

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> batch = scb.sample(task, 20_000, seed=0)
    >>> expected = scb.theory.expectations.population_loss(task, task.P, task.Q)
    >>> round(expected, 3), round(task.model().loss(batch), 3)
    (0.206, 0.206)
    """
    if V.ndim == 3 or task.heads > 1:
        return _Moments(task, V, A).loss()
    return loss_by_moments(task, V, A.sum(axis=0), mu_inner(A, A, task.mu), task.inner_Q(A))


class _Moments:
    """Products of two heads of the model (H, H), and of one with one of the task (H, G)."""

    def __init__(self, task: Task, V: Array, A: Array) -> None:
        self.mu = mu = task.mu
        self.V, self.A = V, A = per_head(V), per_head(A)
        self.P, self.Q = P, Q = per_head(task.P), per_head(task.Q)
        self.sums = A.sum(axis=1)  # (H, N)
        self.AA = head_products(A, A, mu)
        self.AQ = head_products(A, Q, mu)
        self.VV = head_products(V, V, mu)
        self.VP = head_products(V, P, mu)
        self.mean = V @ mu  # (H, N)
        self.means = self.mean @ self.mean.T
        self.drift = self.mean @ mu  # (H,)
        # E s_g s_h − ⟨A_g, A_h⟩_μ: pairs of different positions
        self.apart = self.sums * mu @ self.sums.T - self.AA
        # E s_h − Σ_g ⟨A_h, Q_g⟩_μ: positions other than the source
        self.elsewhere = self.sums @ mu - self.AQ.sum(axis=1)  # (H,)

    def gradients(self) -> tuple[Array, Array]:
        """The expected gradients (H, N, N) and (H, T, N)."""
        gV = mixed(self.V, self.AA) - mixed(self.P, self.AQ)
        constant = self.apart @ self.mean - np.outer(self.elsewhere, self.mu)
        gA = mixed(self.A, self.VV - self.means) - mixed(self.Q, self.VP - self.drift[:, None])
        gA += (self.means @ self.sums - self.drift[:, None])[:, None, :]
        return (gV + constant[:, :, None]) * self.mu, gA * self.mu

    def loss(self) -> float:
        """The expected loss."""
        cross = (self.AQ * self.VP).sum() + self.elsewhere @ self.drift
        square = (self.AA * self.VV + self.apart * self.means).sum()
        return float(0.5 * (1 - 2 * cross + square))


def loss_by_moments(task: Task, V: Array, s: Array, AA: Any, QA: Any) -> Any:
    """Compute the expected loss from V and a few moments of A.

    The formula is that of ``population_loss``.

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    V : (N, N) array
        Any value matrix. For a stack (…, N, N) of matrices, with the moments of as many matrices A,
        the result is an array.
    s : (N,) array
        The column sums of A.
    AA, QA : float
        The squared norm ‖A‖_μ² and the inner product ⟨A, Q⟩_μ.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np, scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> square = task.inner_Q(task.Q)
    >>> round(scb.theory.expectations.loss_by_moments(task, task.P, np.ones(3), square, square), 3)
    0.206
    """
    mu = task.mu
    mean = V @ mu
    cross = QA * mu_inner(V, task.P, mu) + (row_dot(s, mu) - QA) * row_dot(mean, mu)
    square = AA * mu_inner(V, V, mu) + (row_dot(s**2, mu) - AA) * row_dot(mean, mean)
    loss = 0.5 * (1 - 2 * cross + square)
    return loss if loss.ndim else float(loss)


def best_value(task: Task, A: Array) -> Array:
    """Compute the V that minimises the expected loss for a given A.

    The minimiser is V = μ1ᵀ + (⟨Q, A⟩_μ/‖A‖_μ²)(P − μ1ᵀ).

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    A : (T, N) array
        The attention, with columns that sum to 1.

    Returns
    -------
    (N, N) array

    Examples
    --------
    >>> import numpy as np, scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> bool(np.allclose(scb.theory.expectations.best_value(task, task.Q), task.P))
    True
    """
    mu = task.mu
    return mu[:, None] + task.inner_Q(A) / mu_inner(A, A, mu) * (task.P - mu[:, None])
