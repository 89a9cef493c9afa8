"""The second half of Appendix C: the changes of the signals α and the errors ‖Δ‖² in one step, and
the population process.

A step is V ← V − η_V(E∇̂_V l + h_V) and A ← A − η_A(E∇̂_A l + h_A), where h is the gradient noise
of a mini-batch.
"""

from dataclasses import dataclass

import numpy as np

from scb.arrays import Array
from scb.geometry import Projection, deviations, population_projection
from scb.task import Task
from scb.theory.expectations import expected_preconditioned_gradients


@dataclass(frozen=True)
class StepNoise:
    """The six numbers through which the gradient noise affects the signals and errors in one step.

    The noise terms h_V and h_A are the differences between the preconditioned gradients of a
    mini-batch and their expectations.

    Attributes
    ----------
    along_P, along_Q : float, default 0
        The noise in the direction of the signals: ⟨h_V, P⟩_μ and ⟨h_A, Q⟩_μ.
    along_V, along_A : float, default 0
        The noise in the direction of the errors: ⟨Δ_V, h_V⟩_μ and ⟨Δ_A, h_A⟩_μ.
    square_V, square_A : float, default 0
        The squared sizes ‖h_V‖_μ² and ‖h_A‖_μ² of the noise.

    Examples
    --------
    >>> from scb.theory.dynamics import StepNoise
    >>> StepNoise(along_P=0.1).square_V
    0.0
    """

    along_P: float = 0.0
    along_Q: float = 0.0
    along_V: float = 0.0
    along_A: float = 0.0
    square_V: float = 0.0
    square_A: float = 0.0


def expanded_gradients(task: Task, V: Array, A: Array) -> tuple[Array, Array]:
    """Compute the expected preconditioned gradients from signals and errors.

    The formulas are those of the lemma "Expanding the gradients".

    α_V and α_A are the signals and Δ_V and Δ_A the errors of the point (V, A), as in
    ``geometry.population_projection``:

    | E∇̂_V l = [α_A K_Q(α_A α_V − 1) + (α_V − 1)/T](P − μ1ᵀ) + (α_A² K_Q + 1/T)Δ_V
    |     + ‖Δ_A‖_μ²(V − μ1ᵀ)
    | E∇̂_A l = K_P α_V(α_V α_A − 1)(Q − 11ᵀ/T) + K_P α_V² Δ_A + ‖Δ_V‖_μ²(A − 11ᵀ/T)

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    V, A : (N, N) and (T, N) arrays
        The value matrix and the attention, with 1ᵀV = 1ᵀ, Vμ = μ and 1ᵀA = 1ᵀ.

    Returns
    -------
    gV : (N, N) array
    gA : (T, N) array

    Examples
    --------
    >>> import numpy as np, scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> V, A = task.related(0.5).P, task.Q
    >>> pairs = zip(
    ...     scb.theory.dynamics.expanded_gradients(task, V, A),
    ...     scb.theory.expectations.expected_preconditioned_gradients(task, V, A),
    ... )
    >>> [bool(np.allclose(one, other)) for one, other in pairs]
    [True, True]
    """
    p = population_projection(task, V, A)
    delta_V, delta_A = deviations(task, V, A)
    a_V, a_A, T, mu = p.alpha_V, p.alpha_A, task.T, task.mu[:, None]
    gV = (
        (a_A * task.K_Q * (a_A * a_V - 1) + (a_V - 1) / T) * (task.P - mu)
        + (a_A**2 * task.K_Q + 1 / T) * delta_V
        + p.delta_A**2 * (V - mu)
    )
    gA = (
        task.K_P * a_V * (a_V * a_A - 1) * (task.Q - 1 / T)
        + task.K_P * a_V**2 * delta_A
        + p.delta_V**2 * (A - 1 / T)
    )
    return gV, gA


def signal_step(
    task: Task, p: Projection, eta_V: float, eta_A: float, noise: StepNoise
) -> tuple[float, float]:
    """Compute the signals (α_V, α_A) after one step.

    The formulas are those of the lemma "Dynamics of the population projection".

    | α_V ← α_V + η_V K_Q(1 − α_A α_V)α_A + η_V(1 − α_V)/T − η_V α_V‖Δ_A‖_μ² − (η_V/K_P)⟨h_V, P⟩_μ
    | α_A ← α_A + η_A K_P(1 − α_V α_A)α_V − η_A α_A‖Δ_V‖_μ² − (η_A/K_Q)⟨h_A, Q⟩_μ

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    p : Projection
        The signals and errors of the current (V, A), from ``geometry.population_projection``.
    eta_V, eta_A : float
        The step sizes η_V and η_A.
    noise : StepNoise
        The noise of the gradient of the mini-batch.

    Returns
    -------
    alpha_V, alpha_A : float

    Examples
    --------
    >>> import scb
    >>> from scb.geometry import population_projection, uniform_start
    >>> from scb.theory.dynamics import StepNoise, signal_step
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> p = population_projection(task, *uniform_start(task.mu, task.T))
    >>> [round(alpha, 4) for alpha in signal_step(task, p, eta_V=0.1, eta_A=0.1, noise=StepNoise())]
    [0.0025, 0.0]
    """
    a_V, a_A = p.alpha_V, p.alpha_A
    grow_V = (
        task.K_Q * (1 - a_A * a_V) * a_A
        + (1 - a_V) / task.T
        - a_V * p.delta_A**2
        - noise.along_P / task.K_P
    )
    grow_A = task.K_P * (1 - a_V * a_A) * a_V - a_A * p.delta_V**2 - noise.along_Q / task.K_Q
    return a_V + eta_V * grow_V, a_A + eta_A * grow_A


def error_step(
    task: Task, p: Projection, eta_V: float, eta_A: float, noise: StepNoise
) -> tuple[float, float]:
    """Compute the squared errors (‖Δ_V‖_μ², ‖Δ_A‖_μ²) after one step.

    The formulas are those of the lemma "Dynamics of the errors".

    With c_V = 1 − η_V(α_A² K_Q + 1/T + ‖Δ_A‖_μ²) and c_A = 1 − η_A(K_P α_V² + ‖Δ_V‖_μ²):

    | ‖Δ_V‖² ← c_V²‖Δ_V‖² − 2η_V c_V⟨Δ_V, h_V⟩ − (η_V²/K_P)⟨h_V, P⟩² + η_V²‖h_V‖²
    | ‖Δ_A‖² ← c_A²‖Δ_A‖² − 2η_A c_A⟨Δ_A, h_A⟩ − (η_A²/K_Q)⟨h_A, Q⟩² + η_A²‖h_A‖²

    (The paper prints + before the cross term of ‖Δ_V‖²; see docs/paper/errata.md.)

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    p : Projection
        The signals and errors of the current (V, A), from ``geometry.population_projection``.
    eta_V, eta_A : float
        The step sizes η_V and η_A.
    noise : StepNoise
        The noise of the gradient of the mini-batch.

    Returns
    -------
    delta_V2, delta_A2 : float

    Examples
    --------
    At the true (P, Q), the noise is the only source of error:

    >>> import scb
    >>> from scb.geometry import population_projection
    >>> from scb.theory.dynamics import StepNoise, error_step
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> p = population_projection(task, task.P, task.Q)
    >>> squares = error_step(task, p, eta_V=0.1, eta_A=0.1, noise=StepNoise(square_V=1.0))
    >>> [round(square, 4) for square in squares]
    [0.01, 0.0]
    """
    c_V = 1 - eta_V * (p.alpha_A**2 * task.K_Q + 1 / task.T + p.delta_A**2)
    c_A = 1 - eta_A * (task.K_P * p.alpha_V**2 + p.delta_V**2)
    next_V = c_V**2 * p.delta_V**2 - 2 * eta_V * c_V * noise.along_V
    next_A = c_A**2 * p.delta_A**2 - 2 * eta_A * c_A * noise.along_A
    next_V += eta_V**2 * (noise.square_V - noise.along_P**2 / task.K_P)
    next_A += eta_A**2 * (noise.square_A - noise.along_Q**2 / task.K_Q)
    return next_V, next_A


def population_step(
    task: Task, V: Array, A: Array, eta_V: float, eta_A: float
) -> tuple[Array, Array]:
    """Take one preconditioned gradient step on V and A without noise.

    The gradients are replaced by their expectations.

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    V, A : (N, N) and (T, N) arrays
        The value matrix and the attention, with 1ᵀV = 1ᵀ, Vμ = μ and 1ᵀA = 1ᵀ.
    eta_V, eta_A : float
        The step sizes η_V and η_A.

    Returns
    -------
    V : (N, N) array
    A : (T, N) array

    Examples
    --------
    >>> import scb
    >>> from scb.geometry import uniform_start
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> V, A = uniform_start(task.mu, task.T)
    >>> for _ in range(400):
    ...     V, A = scb.theory.dynamics.population_step(task, V, A, eta_V=0.2, eta_A=0.2)
    >>> round(scb.metrics.distance_V(task, V), 4), round(scb.metrics.distance_A(task, A), 4)
    (0.0043, 0.0044)
    """
    gV, gA = expected_preconditioned_gradients(task, V, A)
    return V - eta_V * gV, A - eta_A * gA


def population_recursion(
    K_P: float,
    K_Q: float,
    T: float,
    eta_V: float,
    eta_A: float,
    steps: int,
    start: tuple[float, float] = (0.0, 0.0),
) -> Array:
    """Compute the path of (α_V, α_A) in training without noise.

    This path is the paper's population process.

    | α_V ← α_V + η_V K_Q(1 − α_A α_V)α_A + η_V(1 − α_V)/T
    | α_A ← α_A + η_A K_P(1 − α_V α_A)α_V

    Parameters
    ----------
    K_P, K_Q, T : float
        The constants of the task; see ``Task``.
    eta_V, eta_A : float
        The step sizes η_V and η_A.
    steps : int
        The number of steps.
    start : pair of float, default (0, 0)
        The initial signals (α_V, α_A).

    Returns
    -------
    (steps + 1, 2) array
        The signals (α_V, α_A) at the start and after each step.

    Examples
    --------
    >>> from scb.theory.dynamics import population_recursion
    >>> population_recursion(K_P=0.5, K_Q=0.5, T=40, eta_V=0.2, eta_A=0.2, steps=100)[::25].round(3)
    array([[0.   , 0.   ],
           [0.25 , 0.21 ],
           [0.973, 0.94 ],
           [1.015, 0.985],
           [1.014, 0.986]])
    """
    path = np.empty((steps + 1, 2))
    path[0] = start
    for i in range(steps):
        path[i + 1] = path[i] + [eta_V, eta_A] * population_drift(path[i], K_P, K_Q, T)
    return path


def population_drift(alpha: Array, K_P: float, K_Q: float, T: float) -> Array:
    """Compute the change in (α_V, α_A) per unit of step size, without noise.

    The step sizes are η_V and η_A.

    Parameters
    ----------
    alpha : (2,) array
        The signals α_V and α_A.
    K_P, K_Q, T : float
        The constants of the task; see ``Task``.

    Returns
    -------
    (2,) array
        The drift K_Q(1 − α_A α_V)α_A + (1 − α_V)/T of α_V and the drift K_P(1 − α_V α_A)α_V of α_A.

    Examples
    --------
    At the start, α_V grows at rate 1/T and α_A does not move:

    >>> import numpy as np
    >>> from scb.theory.dynamics import population_drift
    >>> population_drift(np.zeros(2), K_P=0.5, K_Q=0.5, T=40)
    array([0.025, 0.   ])
    """
    a_V, a_A = alpha
    gap = 1 - a_V * a_A
    return np.array([K_Q * gap * a_A + (1 - a_V) / T, K_P * gap * a_V])
