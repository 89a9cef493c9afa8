"""The theory of several heads: the loss as a low-rank factorisation, and the times at which its
parts are learned.

With Ṽ_h = V_h − μ1ᵀ, heads compute a function of F = Σ_h vec(A_h)·vec(Ṽ_h)ᵀ alone
(``geometry.heads``). The tokens of a context are independent, so with the task's matrix M

    E l = ½(1 − ‖μ‖² − ‖M‖²) + ½‖F − M‖².

Training factors M = Σ_i σ_i u_i w_iᵀ, and the paper's one head is the case of rank one. If T is
large, the projection of A's columns may be neglected; then a' = √η_V·(left factor of F) and v' =
√η_A·(right factor) move by

    ȧ' = (rM − a'v'ᵀ)v',   v̇' = (rM − a'v'ᵀ)ᵀa',   r = √(η_V η_A),

and from a small start they are soon equal in the basis of M's singular vectors, where both become
a matrix W of r rows and H columns with Ẇ = (rΣ − WWᵀ)W. This is a Riccati equation, with the
solution

    S(t) = e^{Dt} W₀ (I + W₀ᵀ D⁻¹(e^{2Dt} − I) W₀)⁻¹ W₀ᵀ e^{Dt},   S = WWᵀ,  D = rΣ.

The eigenvalues of S are r times the singular values of F. Each singular value grows as e^{2rσ_i t}
and stops at σ_i, which takes a time proportional to log(σ_i/start)/σ_i. The heads therefore learn
one singular value after another.

Heads that start alike stay alike and have rank one. They stop at the best function of one head (up
to O(1/T), since their columns must sum to 1), which is a saddle of the loss.
"""

from collections.abc import Iterator

import numpy as np

from scb.arrays import Array
from scb.geometry.heads import function_distance, left_factor, right_factor
from scb.inputs import InputError, integer, number
from scb.task import Task
from scb.theory.expectations import expected_preconditioned_gradients


def least_loss(task: Task, heads: int | None = None) -> float:
    """Compute the least expected loss ½(1 − ‖μ‖² − Σ σ_i²) for the given number of heads.

    The sum is over the largest singular values of the task, one for each head. With fewer heads
    than the task has, the columns of A in a factorisation with this loss need not sum to 1;
    requiring that they do increases the loss by O(1/T).

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    heads : int, optional
        The number of heads. The default is the task's number.

    Returns
    -------
    float

    Examples
    --------
    Compare the loss at the saddle where equal heads stop with the least loss of two heads:

    >>> import scb
    >>> from scb.theory.heads import least_loss
    >>> task = scb.Task.random(3, 40, 2, heads=2)
    >>> round(least_loss(task, heads=1), 4), round(least_loss(task), 4)
    (0.261, 0.2057)
    """
    heads = task.heads if heads is None else integer("heads", heads, low=0)
    known = task.singular_values[:heads]
    return float(0.5 * (1 - task.mu @ task.mu - known @ known))


def factorisation_loss(task: Task, V: Array, A: Array) -> float:
    """Compute the expected loss as ½(1 − ‖μ‖² − ‖M‖²) + ½‖F − M‖².

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    V, A : (N, N) and (T, N) arrays, or (H, N, N) and (H, T, N) with several heads
        The value matrices and the attention, with 1ᵀV_h = 1ᵀ and V_h μ = μ, and columns of A that
        sum to 1 over all heads.

    Returns
    -------
    float

    Examples
    --------
    >>> import scb
    >>> from scb.theory.expectations import population_loss
    >>> from scb.theory.heads import factorisation_loss
    >>> task = scb.Task.random(3, 40, 2, heads=2)
    >>> V, A = task.P[::-1], task.Q
    >>> round(factorisation_loss(task, V, A), 9) == round(population_loss(task, V, A), 9)
    True
    """
    return least_loss(task) + 0.5 * function_distance((V, A), (task.P, task.Q), task.mu) ** 2


def singular_value_flow(
    task: Task, V: Array, A: Array, eta_V: float, eta_A: float
) -> tuple[Array, Array]:
    """Compute the singular values of F, and the rate at which each of them changes per step.

    With the singular vectors u_i and w_i of F, dσ_i = u_iᵀ dF w_i, where dF follows from the
    expected preconditioned gradients. The rates are exact for small step sizes.

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    V, A : (N, N) and (T, N) arrays, or (H, N, N) and (H, T, N) with several heads
        The value matrices and the attention, with 1ᵀV_h = 1ᵀ and V_h μ = μ, and columns of A that
        sum to 1 over all heads.
    eta_V, eta_A : float
        The step sizes η_V and η_A.

    Returns
    -------
    values : (H,) array
        The singular values, descending.
    changes : (H,) array
        The derivatives of the singular values.

    Examples
    --------
    At the task itself, nothing moves:

    >>> import scb
    >>> from scb.theory.heads import singular_value_flow
    >>> task = scb.Task.random(3, 40, 2, heads=2)
    >>> values, changes = singular_value_flow(task, task.P, task.Q, eta_V=0.1, eta_A=0.1)
    >>> bool((abs(values - task.singular_values) < 1e-12).all()), bool((abs(changes) < 1e-12).all())
    (True, True)
    """
    mu = task.mu
    gV, gA = expected_preconditioned_gradients(task, V, A)
    left = left_factor(A, mu)
    right = right_factor(V, mu)
    move_left = -eta_A * left_factor(gA, mu)
    move_right = -eta_V * left_factor(gV, mu)
    U, values, W = _singular_vectors(left, right)
    changes = np.einsum("in,nh,mh,mi->i", U.T, move_left, right, W, optimize=True)
    changes += np.einsum("in,nh,mh,mi->i", U.T, left, move_right, W, optimize=True)
    return values, changes


def predicted_course(
    task: Task, V: Array, A: Array, eta_V: float, eta_A: float, steps: int, every: int = 1
) -> Array:
    """Predict the singular values of F in training without noise from a small start.

    The prediction is the solution S(t) of the module's Riccati equation for the part of the start
    that grows; the effect of projecting A's columns, which is of order 1/T, is neglected.

    Parameters
    ----------
    task : Task
        The task that is learned.
    V, A : (H, N, N) and (H, T, N) arrays, or (N, N) and (T, N) with one head
        The start.
    eta_V, eta_A : float
        The step sizes η_V and η_A.
    steps : int
        The number of steps.
    every : int, default 1
        The number of steps between two predictions.

    Returns
    -------
    (1 + steps // every, G) array
        The G singular values of the task as far as they are learned, at the start and after every
        ``every`` steps.

    Examples
    --------
    >>> import scb
    >>> from scb.theory.heads import predicted_course
    >>> from scb.training.starts import random_start
    >>> task = scb.Task.random(3, 500, 2, heads=2)
    >>> start = random_start(task.mu, task.T, heads=2, seed=0)
    >>> course = predicted_course(task, start.V, start.A, 0.2, 0.2, steps=120, every=40)
    >>> (course / task.singular_values).round(2)
    array([[0.  , 0.  ],
           [0.02, 0.01],
           [0.85, 0.59],
           [1.  , 1.  ]])
    """
    grown = _grown(task, V, A, eta_V, eta_A, integer("every", every, low=1))
    return np.array([next(grown) for _ in range(1 + integer("steps", steps, low=0) // every)])


def predicted_times(
    task: Task, V: Array, A: Array, eta_V: float, eta_A: float, share: float = 0.5
) -> Array:
    """Predict when each singular value is learned, in steps of training without noise.

    Parameters
    ----------
    task : Task
        The task that is learned.
    V, A : (H, N, N) and (H, T, N) arrays, or (N, N) and (T, N) with one head
        The start, which must be small and have heads that differ.
    eta_V, eta_A : float
        The step sizes η_V and η_A.
    share : float, default 0.5
        The share of a singular value that counts as learned, between 0 and 1.

    Returns
    -------
    (G,) array
        The number of steps for each singular value of the task; infinite for those that the heads
        never learn, because the heads are too few or alike.

    Examples
    --------
    >>> import scb
    >>> from scb.theory.heads import predicted_times
    >>> from scb.training.starts import random_start
    >>> task = scb.Task.random(3, 500, 2, heads=2)
    >>> start = random_start(task.mu, task.T, heads=2, seed=0)
    >>> predicted_times(task, start.V, start.A, eta_V=0.2, eta_A=0.2).round()
    array([68., 77.])
    """
    if not 0 < number("share", share) < 1:
        raise InputError(f"share = {share}: it must lie between 0 and 1")
    goals = share * task.singular_values
    rate = np.sqrt(eta_V * eta_A)
    unit = 0.1 / (rate * task.singular_values[0])
    # Long enough for the smallest singular value to grow from rounding errors
    most = int(40 * task.singular_values[0] / max(task.singular_values[-1], 1e-12) / 0.1)
    times = np.full(len(goals), np.inf)
    before = np.full(len(goals), np.nan)
    for step, values in enumerate(_grown(task, V, A, eta_V, eta_A, unit)):
        now = np.log(np.maximum(values, 1e-300) / goals)
        crossed = (now >= 0) & np.isinf(times)
        rising = crossed & (before < 0)
        part = np.zeros(len(goals))
        part[rising] = now[rising] / (now - before)[rising]
        times[crossed] = unit * (step - part[crossed])
        before = now
        if np.isfinite(times).all() or step >= most:
            return times
    return times


def _grown(
    task: Task, V: Array, A: Array, eta_V: float, eta_A: float, step: float
) -> Iterator[Array]:
    """The singular values of F at times 0, step, 2·step, …, by the Riccati equation.

    Each step is solved in closed form, which is stable; the closed form over a long time is not.
    """
    mu = task.mu
    rate = np.sqrt(eta_V * eta_A)
    U, sigma, R = _singular_vectors(left_factor(task.Q, mu), right_factor(task.P, mu))
    D = rate * sigma
    # The part of the start that grows
    W = 0.5 * (
        np.sqrt(eta_V) * U.T @ left_factor(A, mu) + np.sqrt(eta_A) * R.T @ right_factor(V, mu)
    )  # (G, H)
    growth = np.exp(D * step)
    gain = np.where(D > 0, np.expm1(2 * D * step) / np.where(D > 0, D, 1.0), 2 * step)
    while True:
        values = np.linalg.svd(W, compute_uv=False) ** 2 / rate
        yield np.append(values, np.zeros(len(D) - len(values)))
        C = np.linalg.cholesky(np.eye(W.shape[1]) + W.T @ (gain[:, None] * W))
        W = growth[:, None] * np.linalg.solve(C, W.T).T


def _singular_vectors(left: Array, right: Array) -> tuple[Array, Array, Array]:
    """Singular vectors and values of left·rightᵀ: (n, H), (H,) and (m, H)."""
    Q_left, R_left = np.linalg.qr(left)
    Q_right, R_right = np.linalg.qr(right)
    U, values, W = np.linalg.svd(R_left @ R_right.T, full_matrices=False)
    return Q_left @ U, values, Q_right @ W.T
