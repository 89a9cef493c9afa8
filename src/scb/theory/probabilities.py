"""The joint probabilities and moments of tokens and labels in Appendix B. Tests check the formulas
against full enumeration.
"""

import numpy as np

from scb.arrays import Array
from scb.geometry import mu_inner
from scb.inputs import InputError
from scb.task import Task


def joint_probability(task: Task, k: int, t: int) -> Array:
    """Compute the joint distribution of label n and token m at position t, given k.

    Here, k is the last token. The formula is that of Lemma 1 in Appendix B.

    The distribution is Pr(x_o = n, x_t = m | x_{T+1} = k) = q_t P[n, m] μ_m + (1 − q_t) μ_n μ_m,
    where q = Q[:, k].

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    k, t : int
        The last token, and a position.

    Returns
    -------
    (N, N) array
        The probabilities, with axes n and m.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> round(float(scb.theory.probabilities.joint_probability(task, k=0, t=0).sum()), 12)
    1.0
    """
    q = task.Q[t, k]
    return q * task.P * task.mu + (1 - q) * np.outer(task.mu, task.mu)


def conditional_probability(task: Task, k: int, s: int, t: int) -> Array:
    """Compute the distribution of the label, given k and the tokens at positions s ≠ t.

    Here, k is the last token. The formula is that of Lemma 2 in Appendix B.

    Pr(x_o = n | x_{T+1} = k, x_s = m, x_t = l) = q_s P[n, m] + q_t P[n, l] + (1 − q_s − q_t) μ_n,
    where q = Q[:, k].

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    k, s, t : int
        The last token, and two different positions.

    Returns
    -------
    (N, N, N) array
        The probabilities, with axes n, m and l.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> scb.theory.probabilities.conditional_probability(task, k=0, s=1, t=2)[:, 0, 0].round(3)
    array([0.415, 0.322, 0.264])
    """
    if s == t:
        raise InputError(f"s = t = {s}: the two positions must differ")
    qs = task.Q[s, k]
    qt = task.Q[t, k]
    return (
        qs * task.P[:, :, None] + qt * task.P[:, None, :] + (1 - qs - qt) * task.mu[:, None, None]
    )


def token_second_moment(task: Task, s: int, t: int) -> Array:
    """Compute E[e_{x_s} e_{x_t}ᵀ].

    The result is diag(μ) if s = t, and μμᵀ otherwise (Lemma 4 of Appendix B).

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the tokens.
    s, t : int
        Two positions.

    Returns
    -------
    (N, N) array

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> scb.theory.probabilities.token_second_moment(task, 5, 5).round(3)
    array([[0.415, 0.   , 0.   ],
           [0.   , 0.322, 0.   ],
           [0.   , 0.   , 0.264]])
    """
    return np.diag(task.mu) if s == t else np.outer(task.mu, task.mu)


def value_second_moment(task: Task, V: Array, s: int, t: int) -> float:
    """Compute Σ_n E[V[n, x_s] V[n, x_t]].

    The result is ‖V‖_μ² if s = t, and ‖Vμ‖² otherwise (Lemma 5 of Appendix B).

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the tokens.
    V : (N, N) array
        Any value matrix. (The lemma assumes Vμ = μ, so that ‖Vμ‖² = ‖μ‖².)
    s, t : int
        Two positions.

    Returns
    -------
    float

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> moment = scb.theory.probabilities.value_second_moment
    >>> same, other = (moment(task, task.P, 0, t) for t in (0, 1))
    >>> bool(abs(same - other - task.K_P) < 1e-12)
    True
    """
    mean = V @ task.mu
    return mu_inner(V, V, task.mu) if s == t else float(mean @ mean)


def value_at_label(task: Task, V: Array, k: int, t: int) -> float:
    """Compute E[V[x_o, x_t] | x_{T+1} = k].

    The result is Q[t, k]·⟨V, P⟩_μ + (1 − Q[t, k])·μᵀVμ (Lemma 6 of Appendix B).

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    V : (N, N) array
        Any value matrix. (The lemma assumes Vμ = μ, so that μᵀVμ = ‖μ‖².)
    k, t : int
        The last token, and a position.

    Returns
    -------
    float

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> at_label = scb.theory.probabilities.value_at_label
    >>> [round(float(at_label(task, task.P, 0, t)), 3) for t in (task.support[0][0], 1)]
    [0.564, 0.345]
    """
    q = task.Q[t, k]
    return q * mu_inner(V, task.P, task.mu) + (1 - q) * float(task.mu @ V @ task.mu)
