"""The distances of V and A from the truth, and the rounding A*."""

import numpy as np

from scb.arrays import Array
from scb.geometry import mu_inner, mu_norm, threshold_normalize
from scb.geometry.heads import one_head
from scb.geometry.products import root
from scb.inputs import number, shaped_array
from scb.task import Task
from scb.theory.expectations import best_value


def distance_V(task: Task, V: Array) -> float:
    """Compute the distance ‖V − P‖_μ of a value matrix from the task's transition matrix.

    The norm weights column k by μ_k: ‖X‖_μ² = Σ_k μ_k ‖X[:, k]‖².

    Parameters
    ----------
    task : Task
        The true task.
    V : (N, N) array
        The estimate of P.

    Returns
    -------
    float
        The distance, which is 0 if V = P.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> scb.metrics.distance_V(task, task.P)
    0.0
    >>> round(scb.metrics.distance_V(task, task.related(0.5).P), 3)
    0.602
    """
    return mu_norm(V - task.P, task.mu)


def distance_A(task: Task, A: Array) -> float:
    """Compute the distance ‖A − Q‖_μ of an attention matrix from the task's attention.

    The norm weights column k by μ_k: ‖X‖_μ² = Σ_k μ_k ‖X[:, k]‖².

    Parameters
    ----------
    task : Task
        The true task.
    A : (T, N) array
        The estimate of Q.

    Returns
    -------
    float
        The distance, which is 0 if A = Q.

    Examples
    --------
    The distance of the uniform attention from Q is √K_Q:

    >>> import numpy as np, scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> round(scb.metrics.distance_A(task, np.full((40, 3), 1 / 40)), 3), round(task.K_Q**0.5, 3)
    (0.693, 0.693)
    """
    D = A.copy(order="F")
    np.subtract.at(D, (task.positions, np.arange(task.N)), task.weights)
    return mu_norm(D, task.mu)


def similarity_V(task: Task, V: Array) -> float:
    """Compute the cosine similarity ⟨V, P⟩_μ / (‖V‖_μ‖P‖_μ) of V and the task's P.

    The inner product weights column k by μ_k: ⟨X, Y⟩_μ = Σ_k μ_k X[:, k]·Y[:, k].

    Parameters
    ----------
    task : Task
        The true task.
    V : (N, N) array
        The estimate of P.

    Returns
    -------
    float
        The cosine, which is 1 if V is a positive multiple of P.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> round(scb.metrics.similarity_V(task, task.P), 12)
    1.0
    >>> round(scb.metrics.similarity_V(task, task.related(0.5).P), 3)
    0.75
    """
    P, mu = task.P, task.mu
    return mu_inner(V, P, mu) / root(mu_inner(V, V, mu) * mu_inner(P, P, mu))


def similarity_A(task: Task, A: Array) -> float:
    """Compute the cosine similarity ⟨A, Q⟩_μ / (‖A‖_μ‖Q‖_μ) of A and the task's Q.

    The inner product weights column k by μ_k: ⟨X, Y⟩_μ = Σ_k μ_k X[:, k]·Y[:, k].

    Parameters
    ----------
    task : Task
        The true task.
    A : (T, N) array
        The estimate of Q.

    Returns
    -------
    float
        The cosine, which is 1 if A is a positive multiple of Q.

    Examples
    --------
    >>> import numpy as np, scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> round(scb.metrics.similarity_A(task, np.full((40, 3), 1 / 40)), 3)
    0.223
    """
    return task.inner_Q(A) / root(mu_inner(A, A, task.mu) * square_Q(task))


def star(task: Task, A: Array, threshold: float | None = None) -> tuple[Array, Array]:
    """Round a trained attention, and compute the best value matrix for it.

    The results are the paper's "star" quantities A* and V*.

    A* is A with small entries set to 0 and columns normalised to sum to 1. V* minimises the
    expected loss of the task given A*.

    Parameters
    ----------
    task : Task
        The true task, whose expected loss V* minimises.
    A : (T, N) array
        The trained attention.
    threshold : float, optional
        Entries of A below this value become 0. The default is ``task.weight_threshold``, which is
        1/(6·sparsity).

    Returns
    -------
    V_star : (N, N) array
        The value matrix with the smallest expected loss.
    A_star : (T, N) array
        The rounded attention. A column in which no entry reaches the threshold becomes uniform.

    Examples
    --------
    Thresholding removes noise whose entries are all smaller than the threshold:

    >>> import numpy as np, scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> noisy = task.Q + np.random.default_rng(0).normal(scale=0.02, size=(40, 3))
    >>> V_star, A_star = scb.star(task, noisy)
    >>> [round(scb.metrics.distance_A(task, A), 3) for A in (noisy, A_star)]
    [0.124, 0.016]
    """
    one_head(task, "star")
    A = shaped_array("A", A, (task.T, task.N))
    threshold = None if threshold is None else number("threshold", threshold)
    A_star = threshold_normalize(A, task.weight_threshold if threshold is None else threshold)
    return best_value(task, A_star), A_star


def square_Q(task: Task) -> float:
    """Return ‖Q‖_μ²."""
    return mu_inner(task.weights, task.weights, task.mu)
