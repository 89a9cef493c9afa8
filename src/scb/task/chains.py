"""Markov chains with a given stationary distribution, built from couplings of μ with itself.

A coupling is a nonnegative (N, N) matrix J whose rows and columns both sum to μ. Then P = J
diag(1/μ) has columns that sum to 1, and Pμ = μ. The set of couplings is convex, so mixtures of such
matrices P keep μ.
"""

from collections.abc import Callable

import numpy as np

from scb.arrays import Array
from scb.geometry import centred_square, mu_inner
from scb.inputs import InputError

CONTRAST = 1.4
"""The least K_P of a strong chain, in units of ‖μ‖²; assumption (c) requires 1."""


def stationary(P: Array) -> Array:
    """Return the stationary distribution of an irreducible P: Pμ = μ, 1ᵀμ = 1 and μ > 0.

    The columns of P must sum to 1. The method is the elimination of Grassmann, Taksar and Heyman,
    which never subtracts, so each entry of μ is positive and accurate to nearly full relative
    precision. A reducible P is refused, because its μ is not unique or has zeros.
    """
    _check_irreducible(P)
    # Row-stochastic: G[m, n] = Pr(m → n)
    G = P.T.copy()
    N = G.shape[0]
    for last in range(N - 1, 0, -1):
        leave = G[last, :last].sum()
        G[:last, last] /= leave
        G[:last, :last] += np.outer(G[:last, last], G[last, :last])
    mu = np.ones(N)
    for n in range(1, N):
        mu[n] = mu[:n] @ G[:n, n]
    mu /= mu.sum()
    error = float(np.abs(P @ mu - mu).max())
    if not error <= 1e-12:
        raise InputError(f"P has no stationary distribution to 1e-12: |Pμ − μ| is {error:.3g}")
    return mu


def common_stationary(P: Array) -> Array:
    """Return the stationary distribution of the first head, which the P_h (H, N, N) of all heads
    must share to within 1e-9.
    """
    mu = stationary(P[0])
    errors = np.abs(P @ mu - mu).max(axis=1)
    worst = int(np.argmax(errors))
    if not errors[worst] <= 1e-9:
        raise InputError(
            f"P[{worst}] and P[0] have different stationary distributions: |P[{worst}]μ − μ| is "
            f"{errors[worst]:.3g} for the μ of P[0]; all heads must share one"
        )
    return mu


def _check_irreducible(P: Array) -> None:
    for graph, words in (
        (P > 0, "cannot be reached from token 0"),
        (P.T > 0, "cannot reach token 0"),
    ):
        reached = np.zeros(len(P), dtype=bool)
        new = np.arange(len(P)) == 0
        while new.any():
            reached |= new
            new = graph[:, new].any(axis=1) & ~reached
        if not reached.all():
            missed = np.flatnonzero(~reached)[:5].tolist()
            raise InputError(
                f"P is reducible: token(s) {missed} {words}, so its stationary distribution is not "
                "unique or has zeros; every token must be reachable from every other"
            )


def sinkhorn(M: Array, mu: Array, tolerance: float = 1e-14, max_iterations: int = 10_000) -> Array:
    """Scale the rows and columns of a positive M until both sum to μ."""
    column = np.ones(len(mu))
    row = mu
    for _ in range(max_iterations):
        row = mu / (M @ column)
        sums = M.T @ row
        if np.abs(column * sums - mu).max() <= tolerance:
            break
        column = mu / sums
    return row[:, None] * M * column


def staircase(mu: Array, rng: np.random.Generator) -> Array:
    """Draw a random extreme coupling: fill at most 2N − 1 cells greedily along two random orders of
    the tokens.
    """
    N = len(mu)
    rows = rng.permutation(N)
    columns = rng.permutation(N)
    ends_row = np.cumsum(mu[rows])
    ends_column = np.cumsum(mu[columns])
    # Both orders cut [0, 1] into pieces; each piece of the common refinement is the mass of one
    # cell.
    cuts = np.sort(np.concatenate([ends_row, ends_column]))
    lengths = np.diff(cuts, prepend=0.0)
    middle = np.concatenate([[0.0], cuts[:-1]]) + lengths / 2
    i = np.minimum(np.searchsorted(ends_row, middle), N - 1)
    j = np.minimum(np.searchsorted(ends_column, middle), N - 1)
    J = np.zeros((N, N))
    np.add.at(J, (rows[i], columns[j]), lengths)
    return J


def random_transition(mu: Array, contrast: float, rng: np.random.Generator) -> Array:
    """Draw a random positive P with stationary distribution μ and K_P ≥ contrast·‖μ‖².

    The starting point is a dense matrix of scaled squared exponentials, with a K_P of about 5‖μ‖²
    for large N. If K_P falls short, as for small N, the starting point is mixed with just enough of
    an extreme coupling.

    Parameters
    ----------
    mu : (N,) array, with one axis
        The stationary distribution.
    contrast : float
        The smallest K_P that is allowed, in units of ‖μ‖².
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    (N, N) array
        P, whose columns are distributions.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.task.chains import random_transition
    >>> mu = np.array([0.5, 0.3, 0.2])
    >>> P = random_transition(mu, 1.4, np.random.default_rng(0))
    >>> np.allclose(P @ mu, mu), np.allclose(P.sum(axis=0), 1)
    (True, True)
    """
    target = contrast * float(mu @ mu)
    dense = sinkhorn(rng.exponential(size=(len(mu), len(mu))) ** 2 + 1e-6, mu) / mu
    candidates = (staircase(mu, rng) / mu for _ in range(50))
    # K_P = 1 − ‖μ‖², the largest there is
    identity = np.eye(len(mu))
    sharp = next((P for P in candidates if centred_square(P, mu) >= 1.02 * target), identity)
    return _between(dense, sharp, lambda P: centred_square(P, mu) - target)


def with_contrast(P: Array, mu: Array, K_P: float) -> Array:
    """Return P moved to ‖P − μ1ᵀ‖_μ² = K_P, with the same stationary distribution μ.

    To lower K_P, P is moved straight towards μ1ᵀ, so √K_P falls in proportion. To raise K_P, P is
    moved straight towards the identity as far as needed; the identity has the largest possible K_P,
    1 − ‖μ‖².
    """
    largest = 1 - float(mu @ mu)
    if not 0 < K_P < largest:
        raise InputError(
            f"K_P = {K_P}: it must lie between 0 and 1 − ‖μ‖² = {largest:.4g} of this task"
        )
    present = centred_square(P, mu)
    if present < K_P:
        return _between(P, np.eye(len(mu)), lambda R: centred_square(R, mu) - K_P)
    c = np.sqrt(K_P / present)
    moved = c * P + (1 - c) * mu[:, None]
    return moved / moved.sum(axis=0)


def related_transition(P: Array, mu: Array, overlap: float, rng: np.random.Generator) -> Array:
    """Return a transition matrix with stationary distribution μ whose centred μ-cosine with P is
    ``overlap``.
    """
    if not 0 <= overlap <= 1:
        raise InputError(f"overlap = {overlap}: it must lie in [0, 1]")
    if len(mu) == 2 and overlap < 1:
        raise InputError(
            f"overlap = {overlap} with N = 2: two tokens leave one direction for P − μ1ᵀ, "
            "so only overlap = 1 is possible"
        )
    for attempt in range(300):
        # Less and less sharp, since sharp ones are few where N is small
        contrast = (1.0, 0.5, 0.0)[attempt // 100]
        other = random_transition(mu, contrast, rng)
        if _cosine(other, P, mu) <= overlap:
            return _between(other, P, lambda R: _cosine(R, P, mu) - overlap)
    raise InputError(
        f"overlap = {overlap}: no transition matrix that far from P was found; choose a larger "
        "overlap"
    )


def _between(start: Array, end: Array, f: Callable[[Array], float]) -> Array:
    """The first matrix on the way from ``start`` to ``end`` at which f, which ends above 0, is not
    negative, by bisection.
    """

    def at(c: float) -> Array:
        return (1 - c) * start + c * end

    low, high = 0.0, 1.0
    if f(at(low)) >= 0:
        return at(low) / at(low).sum(axis=0)
    for _ in range(60):
        middle = (low + high) / 2
        if f(at(middle)) >= 0:
            high = middle
        else:
            low = middle
    return at(high) / at(high).sum(axis=0)


def _cosine(X: Array, Y: Array, mu: Array) -> float:
    """⟨X − μ1ᵀ, Y − μ1ᵀ⟩_μ / √(K_X K_Y)."""
    cross = mu_inner(X - mu[:, None], Y - mu[:, None], mu)
    return cross / np.sqrt(centred_square(X, mu) * centred_square(Y, mu))


def of_ensemble(ensemble: str, N: int, rng: np.random.Generator) -> Array:
    """Draw a random P from one of the ensembles that ``Task.random`` knows."""
    if ensemble == "dirichlet":
        return rng.dirichlet(np.ones(N), size=N).T
    if ensemble != "strong":
        P = rng.uniform(size=(N, N)) if ensemble == "uniform" else np.exp(rng.normal(size=(N, N)))
        return P / P.sum(axis=0)
    mu = near_uniform(rng, (N, 1))[:, 0]  # the stationary distribution is drawn before P
    if N == 2:
        return np.array([[0.0, 1.0], [1.0, 0.0]])
    return random_transition(mu, CONTRAST, rng)


def another(ensemble: str, mu: Array, rng: np.random.Generator) -> Array:
    """Draw a random P of an ensemble with a given stationary distribution μ, for a further head."""
    if ensemble == "strong":
        return random_transition(mu, CONTRAST, rng)
    return sinkhorn(of_ensemble(ensemble, len(mu), rng) * mu, mu) / mu


def near_uniform(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Draw columns that sum to 1, with entries proportional to uniform numbers on [2/3, 4/3], so
    the entries are within a factor of 2 of equal entries.
    """
    w = rng.uniform(2 / 3, 4 / 3, shape)
    return w / w.sum(axis=0)
