"""The two lines on which the population process stays: the line through μ1ᵀ and P, and the line
through 11ᵀ/T and Q.

The signals α and the deviations Δ say where (V, A) lies relative to the lines. Signals and
deviations are computed only in this file.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scb.arrays import Array
from scb.geometry.heads import one_head
from scb.geometry.products import centred_square, mu_inner, mu_norm, root

if TYPE_CHECKING:
    from scb.task import Task


@dataclass(frozen=True)
class Projection:
    """The position of (V, A) relative to the lines of the population process.

    The projection is defined if 1ᵀV = 1ᵀ, 1ᵀA = 1ᵀ and Vμ = μ.

    V = Ṽ + Δ_V with Ṽ = α_V P + (1 − α_V) μ1ᵀ, and A = Ã + Δ_A with Ã = α_A Q + (1 − α_A) 11ᵀ/T;
    Δ_V and Δ_A are orthogonal to the lines in ⟨·, ·⟩_μ.

    Attributes
    ----------
    alpha_V, alpha_A : float
        The signals K_VP/K_P and K_AQ/K_Q, which are 0 at the uniform start and 1 at the true task.
    K_V, K_VP : float
        ‖V‖_μ² − ‖μ‖² and ⟨V, P⟩_μ − ‖μ‖².
    K_A, K_AQ : float
        ‖A‖_μ² − 1/T and ⟨A, Q⟩_μ − 1/T.
    delta_V, delta_A : float
        The norms ‖Δ_V‖_μ and ‖Δ_A‖_μ of the deviations.

    Examples
    --------
    >>> import scb
    >>> from scb.geometry import population_projection, uniform_start
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> start = population_projection(task, *uniform_start(task.mu, task.T))
    >>> start.alpha_V, start.delta_V, round(population_projection(task, task.P, task.Q).alpha_A, 6)
    (0.0, 0.0, 1.0)
    """

    alpha_V: float
    alpha_A: float
    K_V: float
    K_VP: float
    K_A: float
    K_AQ: float
    delta_V: float
    delta_A: float


def signal_V(task: "Task", V: Array) -> tuple[Any, Any, Any]:
    """Measure the error of V and the share of the signal that V has learned.

    Parameters
    ----------
    task : Task
        The task.
    V : (N, N) array
        The value matrix. For a stack (…, N, N) of matrices, the results are arrays.

    Returns
    -------
    tuple of float
        α_V, K_VP and ‖Δ_V‖_μ.

    Examples
    --------
    >>> import scb
    >>> from scb.geometry.lines import signal_V
    >>> task = scb.Task.random(N=3, T=100, sparsity=2, seed=0)
    >>> alpha, _, error = signal_V(task, task.P)
    >>> round(alpha, 9), round(error, 9)
    (1.0, 0.0)
    """
    U = V - task.mu[:, None]
    centred_P = task.P - task.mu[:, None]
    K_VP = mu_inner(U, centred_P, task.mu)
    alpha = K_VP / task.K_P
    return alpha, K_VP, mu_norm(U - np.multiply.outer(alpha, centred_P), task.mu)


def signal_A(task: "Task", K_AQ: Any) -> Any:
    """Return α_A = K_AQ/K_Q. If Q is uniform (for example, because T = 1), every α gives the same
    point of the line, and α_A is taken to be 1, so A is compared with Q.
    """
    return K_AQ / task.K_Q if task.K_Q > 1e-12 else 1.0


def population_projection(task: "Task", V: Array, A: Array) -> Projection:
    """Compute α, K and ‖Δ‖ for a point (V, A) in O(N² + TN) operations, without a dense Q.

    Parameters
    ----------
    task : Task
        The true task, whose P and Q are the ends of the lines.
    V : (N, N) array
        The value matrix.
    A : (T, N) array
        The attention.

    Returns
    -------
    Projection

    Examples
    --------
    A point halfway along both lines deviates from neither:

    >>> import scb
    >>> from scb.geometry import line_A, line_V, population_projection
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> p = population_projection(task, line_V(task, 0.5), line_A(task, 0.5))
    >>> round(p.alpha_V, 6), round(p.alpha_A, 6), round(p.delta_V + p.delta_A, 6)
    (0.5, 0.5, 0.0)
    """
    one_head(task, "population_projection")
    mu, T = task.mu, task.T
    alpha_V, K_VP, delta_V = signal_V(task, V)
    K_V = centred_square(V, mu)
    B = A - 1 / T
    K_A = mu_inner(B, B, mu)
    K_AQ = task.inner_Q(B)
    alpha_A = signal_A(task, K_AQ)
    B += alpha_A / T
    np.subtract.at(B, (task.positions, np.arange(task.N)), alpha_A * task.weights)  # B is now Δ_A
    return Projection(
        alpha_V,
        alpha_A,
        K_V=K_V,
        K_VP=K_VP,
        K_A=K_A,
        K_AQ=K_AQ,
        delta_V=delta_V,
        delta_A=mu_norm(B, mu),
    )


def projection_by_norms(
    task: "Task", alpha_V: float, delta_V: float, K_A: float, K_AQ: float
) -> Projection:
    """Return the projection of a point of which only four numbers are known, using K_V = α_V²·K_P +
    ‖Δ_V‖_μ² and the corresponding equation for A.
    """
    alpha_A = signal_A(task, K_AQ)
    K_V = alpha_V**2 * task.K_P + delta_V**2
    K_VP = alpha_V * task.K_P
    delta_A = root(K_A - alpha_A**2 * task.K_Q)
    return Projection(
        alpha_V,
        alpha_A,
        K_V=K_V,
        K_VP=K_VP,
        K_A=K_A,
        K_AQ=K_AQ,
        delta_V=float(delta_V),
        delta_A=delta_A,
    )


def distance_from_line_A(task: "Task", theta: Any, K_A: Any, cross: Any) -> Any:
    """Return ‖A − θQ − (1 − θ)11ᵀ/T‖_μ, given K_A and ``cross`` = ⟨A − 11ᵀ/T, Q − 11ᵀ/T⟩_μ; θ = α_A
    gives ‖Δ_A‖_μ, and θ = 1 gives ‖A − Q‖_μ.
    """
    return root(K_A - 2 * theta * cross + theta**2 * task.K_Q)


def line_V(task: "Task", alpha: float) -> Array:
    """Return Ṽ = αP + (1 − α)μ1ᵀ, a point on the line for V.

    Parameters
    ----------
    task : Task
        The true task.
    alpha : float
        The signal, which is 0 at the start of the line and 1 at the true task.

    Returns
    -------
    (N, N) array

    Examples
    --------
    >>> import scb
    >>> from scb.geometry import line_V, trivial_V
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> bool((line_V(task, 1.0) == task.P).all())
    True
    >>> bool((line_V(task, 0.0) == trivial_V(task.mu)).all())
    True
    """
    return alpha * task.P + (1 - alpha) * task.mu[:, None]


def line_A(task: "Task", alpha: float) -> Array:
    """Return Ã = αQ + (1 − α)11ᵀ/T, a point on the line for A.

    Parameters
    ----------
    task : Task
        The true task.
    alpha : float
        The signal, which is 0 at the start of the line and 1 at the true task.

    Returns
    -------
    (T, N) array

    Examples
    --------
    >>> import scb
    >>> from scb.geometry import line_A
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> bool((line_A(task, 1.0) == task.Q).all()), bool((line_A(task, 0.0) == 1 / task.T).all())
    (True, True)
    """
    return alpha * task.Q + (1 - alpha) / task.T


def trivial_V(mu: Array) -> Array:
    """Return V₀ = μ1ᵀ, the point at which the line for V starts.

    With V₀, the distribution of the next token is μ, whichever token is attended to.

    Parameters
    ----------
    mu : (N,) array
        The stationary distribution.

    Returns
    -------
    (N, N) array

    Examples
    --------
    >>> import numpy as np
    >>> from scb.geometry import trivial_V
    >>> trivial_V(np.array([0.25, 0.75]))
    array([[0.25, 0.25],
           [0.75, 0.75]])
    """
    return np.repeat(mu[:, None], len(mu), axis=1)


def uniform_start(mu: Array, T: int) -> tuple[Array, Array]:
    """Return V₀ = μ1ᵀ and A₀ = 11ᵀ/T, the points at which the two lines start.

    Parameters
    ----------
    mu : (N,) array
        The stationary distribution.
    T : int
        The number of positions.

    Returns
    -------
    V : (N, N) array
    A : (T, N) array

    Examples
    --------
    >>> import numpy as np
    >>> from scb.geometry import uniform_start
    >>> V, A = uniform_start(np.array([0.25, 0.75]), T=4)
    >>> V.shape, A.shape, A[0]
    ((2, 2), (4, 2), array([0.25, 0.25]))
    """
    return trivial_V(mu), np.full((T, len(mu)), 1 / T, order="F")


def deviations(task: "Task", V: Array, A: Array) -> tuple[Array, Array]:
    """Return the deviations from the lines, Δ_V = V − Ṽ and Δ_A = A − Ã, as matrices.

    Parameters
    ----------
    task : Task
        The true task, whose P and Q are the ends of the lines.
    V : (N, N) array
        The value matrix.
    A : (T, N) array
        The attention.

    Returns
    -------
    delta_V : (N, N) array
    delta_A : (T, N) array

    Examples
    --------
    >>> import scb
    >>> from scb.geometry import deviations, mu_norm
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> delta_V, delta_A = deviations(task, task.related(0.5).P, task.Q)
    >>> round(mu_norm(delta_V, task.mu), 3), round(mu_norm(delta_A, task.mu), 3)
    (0.285, 0.0)
    """
    p = population_projection(task, V, A)
    return V - line_V(task, p.alpha_V), A - line_A(task, p.alpha_A)
