"""The parts of a random task: P, and the positions, weights and heads of a sparse Q."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.inputs import InputError, integer, number
from scb.task import chains


class Sizes(NamedTuple):
    """The numbers of tokens, positions, positions that a token attends to, and heads."""

    N: int
    T: int
    sparsity: int
    heads: int


class Parts(NamedTuple):
    """The arguments of ``Task.sparse``."""

    P: Array  # (N, N), or (H, N, N)
    positions: NDArray[np.intp]  # (Q, N)
    weights: Array  # (Q, N)
    T: int
    owners: NDArray[np.intp] | None  # (Q, N)


def checked_sizes(N: Any, T: Any, sparsity: Any, heads: Any) -> Sizes:
    """Return the sizes of a random task as integers, if such a task can exist."""
    N, T, sparsity = integer("N", N), integer("T", T), integer("sparsity", sparsity)
    heads = integer("heads", heads, low=1)
    if not 2 <= N <= 1 << 16:
        raise InputError(f"N = {N}: there must be at least 2 tokens, and at most 65,536")
    if T < 1:
        raise InputError(f"T = {T}: there must be at least 1 position")
    if not 1 <= sparsity <= T:
        raise InputError(f"sparsity = {sparsity}: it must lie between 1 and T = {T}")
    most = min((N - 1) ** 2, N * sparsity)
    if heads > most:
        raise InputError(
            f"heads = {heads}: with N = {N} and sparsity = {sparsity} there can be at most "
            f"min((N − 1)², N·sparsity) = {most}"
        )
    return Sizes(N, T, sparsity, heads)


def random_parts(sizes: Sizes, rng: np.random.Generator, ensemble: str, K_P: float | None) -> Parts:
    """Draw P from an ensemble and a sparse Q; with several heads, also further P_h and their
    positions.
    """
    N, T, sparsity, heads = sizes
    P = chains.of_ensemble(ensemble, N, rng)
    if K_P is not None:
        P = chains.with_contrast(P, chains.stationary(P), number("K_P", K_P))
    columns = [rng.choice(T, size=sparsity, replace=False) for _ in range(N)]
    positions = np.stack(columns, axis=1)
    weights = chains.near_uniform(rng, (sparsity, N))
    if heads == 1:
        return Parts(P, positions, weights, T, None)
    mu = chains.stationary(P)
    others = [chains.another(ensemble, mu, rng) for _ in range(heads - 1)]
    if K_P is not None:
        others = [chains.with_contrast(other, mu, K_P) for other in others]
    owners = rng.permutation(np.arange(N * sparsity) % heads).reshape(sparsity, N)
    return Parts(np.stack([P, *others]), positions, weights, T, owners)
