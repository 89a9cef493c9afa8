"""The quantities that a training history records about (V, A), at one point or at many."""

from typing import Any

import numpy as np

from scb.arrays import Array
from scb.geometry import function_distance, function_singular_values, mu_inner, mu_norm
from scb.geometry.gauge import match_heads
from scb.geometry.lines import distance_from_line_A, signal_A, signal_V
from scb.geometry.products import root, row_dot
from scb.inputs import shaped_array
from scb.metrics.distances import similarity_V, square_Q
from scb.task import Task
from scb.theory.expectations import loss_by_moments, population_loss

COLUMNS = (
    "loss",
    *(f"{name}_{layer}" for name in ("alpha", "delta", "dist", "sim") for layer in "VA"),
    *(f"{name}_{layer}_star" for name in ("dist", "sim") for layer in "VA"),
)


def measure(task: Task, V: Array, A: Array) -> dict[str, float]:
    """Compute the expected loss of (V, A), and the distances of V and A from the true P and Q.

    Parameters
    ----------
    task : Task
        The true task.
    V : (N, N) array
        The estimate of P.
    A : (T, N) array
        The estimate of Q.

    Returns
    -------
    dict of float
        The measured quantities, which are those of training histories:

        - ``loss``: the expected (population) loss;
        - ``alpha_V``, ``alpha_A``: the signals, that is, how far V and A have moved in the
          direction from the uniform start (μ1ᵀ and 11ᵀ/T) to P and Q, where 0 is the start and 1 is
          the truth;
        - ``delta_V``, ``delta_A``: the μ-norm distances from the point with this signal on the line
          between start and truth;
        - ``dist_V``, ``dist_A``: the μ-norm distances from P and Q;
        - ``sim_V``, ``sim_A``: the cosine similarities with P and Q;
        - ``dist_V_star``, ``dist_A_star``, ``sim_V_star``, ``sim_A_star``: the same after rounding
          by ``scb.star``.

        With several heads, the quantities are

        - ``loss``: the expected loss;
        - ``dist``: the distance ‖Σ_h a_h ⊗ Ṽ_h − Σ_h q_h ⊗ P̃_h‖_μ of the functions, which does not
          depend on how the heads share the functions;
        - ``dist_V``, ``dist_A``, ``overlap``: the largest distances and the smallest overlap of a
          head, as ``match_heads`` finds them;
        - ``sigma_1``, ``sigma_2``, …: the singular values of Σ_h a_h ⊗ Ṽ_h, one for each head.

    Examples
    --------
    These are the values at the point half-way from the uniform start to the task:

    >>> import scb
    >>> from scb.geometry import line_A, line_V

    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> measured = scb.measure(task, line_V(task, 0.5), line_A(task, 0.5))
    >>> {name: round(measured[name], 3) for name in ("loss", "alpha_V", "dist_A", "dist_A_star")}
    {'loss': 0.272, 'alpha_V': 0.5, 'dist_A': 0.346, 'dist_A_star': 0.003}
    """
    if task.heads > 1 or np.ndim(V) == 3:
        return _measure_heads(task, V, A)
    V = shaped_array("V", V, task.P.shape)
    A = shaped_array("A", A, (task.T, task.N))
    moments, on_support = column_sums(task, A)
    rows = measure_all(task, V[None], moments[None], on_support[None])
    return {name: float(column[0]) for name, column in rows.items()}


def column_sums(task: Task, A: Any) -> tuple[Array, Array]:
    """Compute the sums over the columns of A that ``measure_all`` needs.

    Parameters
    ----------
    task : Task
        The true task.
    A : (T, N) array
        The estimate of Q. In a run on a GPU, A may be on the GPU, where its sums are then computed.

    Returns
    -------
    moments : (4, N) array
        For each column, Σb and Σb² for b = a − 1/T, and Σa and Σa² over the entries that reach
        ``task.weight_threshold``.
    on_support : (sparsity, N) array
        The entries at ``task.positions``.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> moments, on_support = scb.metrics.column_sums(task, task.Q)
    >>> moments[2].round(3), bool((on_support == task.weights).all())
    (array([1., 1., 1.]), True)
    """
    # Import lazily: Numba is slow to load.
    from scb.kernels.step.lazy_columns import column_moments

    if not isinstance(A, np.ndarray):
        return A.moments  # with the entries on the support
    moments = column_moments(np.asfortranarray(A), task.weight_threshold)
    return moments, A[task.positions, np.arange(task.N)]


def measure_all(task: Task, V: Array, moments: Array, on_support: Array) -> dict[str, Any]:
    """Compute the quantities of ``measure`` at several points at once.

    The quantities of one point do not depend on the other points, not even in their last bits.

    Parameters
    ----------
    task : Task
        The true task.
    V : (E, N, N) array
        The estimates of P.
    moments : (E, 4, N) array
        The first sums of ``column_sums`` for the estimates of Q.
    on_support : (E, sparsity, N) array
        The entries of these estimates on the support, as ``column_sums`` returns them.

    Returns
    -------
    dict of (E,) arrays
        The quantities that ``measure`` returns.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> moments, on_support = scb.metrics.column_sums(task, task.Q)
    >>> rows = scb.metrics.measure_all(task, task.P[None], moments[None], on_support[None])
    >>> rows["alpha_A"].round(6), rows["dist_V"]
    (array([1.]), array([0.]))
    """
    mu, T = task.mu, task.T
    sums, squares, kept, kept_squares = np.moveaxis(moments, 1, 0)
    K_A = row_dot(squares, mu)
    K_AQ = mu_inner(on_support - 1 / T, task.weights, mu)
    # Columns need not sum to 1 here, as they do in the theory: hence the terms with their sums.
    AA = K_A + row_dot(2 * sums + 1, mu) / T
    QA = K_AQ + 1 / T
    cross = K_AQ - row_dot(sums, mu) / T
    QQ = square_Q(task)
    alpha_A = np.broadcast_to(signal_A(task, K_AQ), K_A.shape)
    alpha_V, _, delta_V = signal_V(task, V)
    return {
        "loss": loss_by_moments(task, V, 1 + sums, AA, QA),
        "alpha_V": alpha_V,
        "alpha_A": alpha_A,
        "delta_V": delta_V,
        "delta_A": distance_from_line_A(task, alpha_A, K_A, cross),
        "dist_V": mu_norm(V - task.P, mu),
        "dist_A": distance_from_line_A(task, 1.0, K_A, cross),
        "sim_V": similarity_V(task, V),
        "sim_A": QA / root(AA * QQ),
        **_measure_star(task, QQ, on_support, kept, kept_squares),
    }


def _measure_heads(task: Task, V: Array, A: Array) -> dict[str, float]:
    """What ``measure`` says of several heads."""
    match = match_heads(V, A, task)
    singular_values = function_singular_values(V, A, task.mu)
    return {
        "loss": population_loss(task, V, A),
        "dist": function_distance((V, A), (task.P, task.Q), task.mu),
        "dist_V": float(match.dist_V.max()),
        "dist_A": float(match.dist_A.max()),
        "overlap": float(match.overlap.min()),
    } | {f"sigma_{i}": float(value) for i, value in enumerate(singular_values, 1)}


def _measure_star(
    task: Task, QQ: float, on_support: Array, kept: Array, kept_squares: Array
) -> dict[str, Any]:
    """What ``star`` would be measured at, from the entries of A on the support and the sums over
    those that are kept.
    """
    mu = task.mu
    some = kept > 0  # a column that keeps nothing becomes uniform
    mass = np.where(some, kept, 1.0)
    reached = np.where(on_support >= task.weight_threshold, on_support, 0.0)
    square = row_dot(np.where(some, kept_squares / mass**2, 1 / task.T), mu)
    overlap = (task.weights * reached).sum(axis=-2) / mass
    star_Q = row_dot(np.where(some, overlap, 1 / task.T), mu)
    # V* = μ1ᵀ + ratio·(P − μ1ᵀ), see ``best_value``
    ratio = star_Q / square
    V_star = mu[:, None] + np.multiply.outer(ratio, task.P - mu[:, None])
    return {
        "dist_A_star": root(square - 2 * star_Q + QQ),
        "sim_A_star": star_Q / root(square * QQ),
        "dist_V_star": abs(ratio - 1) * root(task.K_P),
        "sim_V_star": similarity_V(task, V_star),
    }
