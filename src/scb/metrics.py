"""What a run is judged by: distances, similarities, signals, and the normalised "star"."""

import math

import numpy as np

from scb.geometry import Array, mu_inner, mu_norm, threshold_normalize
from scb.geometry.lines import distance_from_line_A, root, signal_A, signal_V
from scb.inputs import number, shaped_array
from scb.task import Task
from scb.theory.expectations import best_value, loss_by_moments

COLUMNS = (
    "loss",
    *(f"{name}_{layer}" for name in ("alpha", "delta", "dist", "sim") for layer in "VA"),
    *(f"{name}_{layer}_star" for name in ("dist", "sim") for layer in "VA"),
)


def distance_V(task: Task, V: Array) -> float:
    """‖V − P‖_μ.

    Parameters
    ----------
    task : Task
        The truth.
    V : (N, N) array
        The estimate of P.

    Returns
    -------
    float

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> scb.metrics.distance_V(task, task.P), round(scb.metrics.distance_V(task, task.related(0.5).P), 3)
    (0.0, 0.602)
    """
    return mu_norm(V - task.P, task.mu)


def distance_A(task: Task, A: Array) -> float:
    """‖A − Q‖_μ, without a dense Q.

    Parameters
    ----------
    task : Task
        The truth.
    A : (T, N) array
        The estimate of Q.

    Returns
    -------
    float

    Examples
    --------
    The uniform attention is √K_Q away:

    >>> import numpy as np, scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> round(scb.metrics.distance_A(task, np.full((40, 3), 1 / 40)), 3), round(task.K_Q**0.5, 3)
    (0.693, 0.693)
    """
    D = A.copy(order="F")
    np.subtract.at(D, (task.positions, np.arange(task.N)), task.weights)
    return mu_norm(D, task.mu)


def similarity_V(task: Task, V: Array) -> float:
    """The μ-cosine ⟨V, P⟩_μ / (‖V‖_μ‖P‖_μ).

    Parameters
    ----------
    task : Task
        The truth.
    V : (N, N) array
        The estimate of P.

    Returns
    -------
    float

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> round(scb.metrics.similarity_V(task, task.P), 12), round(scb.metrics.similarity_V(task, task.related(0.5).P), 3)
    (1.0, 0.75)
    """
    P, mu = task.P, task.mu
    return mu_inner(V, P, mu) / math.sqrt(mu_inner(V, V, mu) * mu_inner(P, P, mu))


def similarity_A(task: Task, A: Array) -> float:
    """The μ-cosine ⟨A, Q⟩_μ / (‖A‖_μ‖Q‖_μ).

    Parameters
    ----------
    task : Task
        The truth.
    A : (T, N) array
        The estimate of Q.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np, scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> round(scb.metrics.similarity_A(task, np.full((40, 3), 1 / 40)), 3)
    0.223
    """
    return task.inner_Q(A) / math.sqrt(mu_inner(A, A, task.mu) * _square_Q(task))


def star(task: Task, A: Array, threshold: float | None = None) -> tuple[Array, Array]:
    """The paper's "star": A thresholded and normalised, and the V of the population's regression on it.

    Parameters
    ----------
    task : Task
        The truth, whose population the regression is on.
    A : (T, N) array
        The attention as it was trained.
    threshold : float, optional
        Entries below it become 0; 1/(6Q) unless given.

    Returns
    -------
    V_star : (N, N) array
    A_star : (T, N) array
        A column in which nothing reaches the threshold is uniform.

    Examples
    --------
    Noise that is smaller than the threshold goes, whatever its amount:

    >>> import numpy as np, scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> noisy = task.Q + np.random.default_rng(0).normal(scale=0.02, size=(40, 3))
    >>> V_star, A_star = scb.star(task, noisy)
    >>> round(scb.metrics.distance_A(task, noisy), 3), round(scb.metrics.distance_A(task, A_star), 3)
    (0.124, 0.016)
    """
    A = shaped_array("A", A, (task.T, task.N))
    threshold = None if threshold is None else number("threshold", threshold)
    A_star = threshold_normalize(A, task.weight_threshold if threshold is None else threshold)
    return best_value(task, A_star), A_star


def measure(task: Task, V: Array, A: Array) -> dict[str, float]:
    """The population loss and all distances, similarities and signals of one point (V, A), in one pass over A.

    Parameters
    ----------
    task : Task
        The truth.
    V : (N, N) array
        The estimate of P.
    A : (T, N) array
        The estimate of Q.

    Returns
    -------
    dict of float
        loss; alpha_V, alpha_A, the signals; delta_V, delta_A, the distances from the population's lines; dist_V, dist_A, the
        distances from the truth; sim_V, sim_A, the μ-cosines with it; and dist_V_star, dist_A_star, sim_V_star, sim_A_star after
        normalisation.

    Examples
    --------
    Half-way from the uniform start to the task:

    >>> import scb
    >>> from scb.geometry import line_A, line_V

    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> found = scb.measure(task, line_V(task, 0.5), line_A(task, 0.5))
    >>> {name: round(found[name], 3) for name in ("loss", "alpha_V", "alpha_A", "dist_V", "dist_A", "dist_A_star")}
    {'loss': 0.272, 'alpha_V': 0.5, 'alpha_A': 0.5, 'dist_V': 0.347, 'dist_A': 0.346, 'dist_A_star': 0.003}
    """
    from scb.kernels.step.columns import column_moments  # not above: a driver of sweeps measures nothing, and does without Numba

    V = shaped_array("V", V, task.P.shape)
    A = shaped_array("A", A, (task.T, task.N))
    mu, T = task.mu, task.T
    # For b = a − 1/T: Σb and Σb² of each column; and Σa and Σa² over the entries that the threshold keeps.
    sums, squares, kept, kept_squares = column_moments(np.asfortranarray(A), task.weight_threshold)
    on_support = A[task.positions, np.arange(task.N)]  # (Q, N)
    K_A = float(mu @ squares)
    K_AQ = mu_inner(on_support - 1 / T, task.weights, mu)
    # Columns need not sum to 1 here, as they do in the theory: hence the terms with their sums.
    AA = K_A + float(mu @ (2 * sums + 1)) / T
    QA = K_AQ + 1 / T
    cross = K_AQ - float(mu @ sums) / T
    QQ = _square_Q(task)
    alpha_A = signal_A(task, K_AQ)
    alpha_V, _, delta_V = signal_V(task, V)
    return {
        "loss": loss_by_moments(task, V, 1 + sums, AA, QA),
        "alpha_V": alpha_V,
        "alpha_A": alpha_A,
        "delta_V": delta_V,
        "delta_A": distance_from_line_A(task, alpha_A, K_A, cross),
        "dist_V": distance_V(task, V),
        "dist_A": distance_from_line_A(task, 1.0, K_A, cross),
        "sim_V": similarity_V(task, V),
        "sim_A": QA / root(AA * QQ),
        **_measure_star(task, QQ, on_support, kept, kept_squares),
    }


def _measure_star(task: Task, QQ: float, on_support: Array, kept: Array, kept_squares: Array) -> dict[str, float]:
    """What ``star`` would be measured at, from the entries of A on the support and the sums over those that are kept."""
    mu = task.mu
    some = kept > 0  # a column that keeps nothing becomes uniform
    mass = np.where(some, kept, 1.0)
    reached = np.where(on_support >= task.weight_threshold, on_support, 0.0)
    square = float(mu @ np.where(some, kept_squares / mass**2, 1 / task.T))
    star_Q = float(mu @ np.where(some, (task.weights * reached).sum(axis=0) / mass, 1 / task.T))
    ratio = star_Q / square  # V* = μ1ᵀ + ratio·(P − μ1ᵀ), see ``best_value``
    return {
        "dist_A_star": root(square - 2 * star_Q + QQ),
        "sim_A_star": star_Q / root(square * QQ),
        "dist_V_star": abs(ratio - 1) * root(task.K_P),
        "sim_V_star": similarity_V(task, mu[:, None] + ratio * (task.P - mu[:, None])),
    }


def _square_Q(task: Task) -> float:
    """‖Q‖_μ²."""
    return mu_inner(task.weights, task.weights, task.mu)
