"""What a task is made from, checked: errors name the argument, its value and what would be right."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scb.geometry import Array


def transition_matrix(P: ArrayLike) -> Array:
    """P as a square matrix of at least two columns, each a distribution, column-contiguous."""
    array = _matrix("P", P)
    if array.shape[0] != array.shape[1]:
        raise ValueError(f"P has shape {array.shape}: it must be square, (N, N)")
    if array.shape[0] < 2:
        raise ValueError(f"P has N = {array.shape[0]} tokens: there must be at least 2")
    return np.asfortranarray(distributions("P", array))


def attention_entries(Q: Any, N: int) -> tuple[NDArray[Any], NDArray[Any], Array, int]:
    """Rows, columns and values of the entries of Q (T, N) that are not 0, and T; Q may be dense or a scipy sparse array."""
    if hasattr(Q, "tocoo"):  # any scipy sparse array
        entries = Q.tocoo(copy=True)
        entries.sum_duplicates()
        shape = Q.shape
        rows = entries.row
        columns = entries.col
        values = np.asarray(entries.data, dtype=float)
    else:
        dense = _matrix("Q", Q)
        shape = dense.shape
        rows, columns = np.nonzero(dense)
        values = dense[rows, columns]
    if shape[1] != N:
        raise ValueError(f"Q has shape {shape}, but P has N = {N} tokens: Q must have {N} columns")
    return rows, columns, values, shape[0]


def sparse_entries(positions: ArrayLike, weights: ArrayLike, N: int, T: int) -> tuple[NDArray[Any], NDArray[Any], Array]:
    """Rows, columns and values of the entries that ``positions`` and ``weights``, both (Q, N), give; weights of 0 are none."""
    positions = np.asarray(positions)
    weights = np.asarray(weights, dtype=float)
    if positions.shape != weights.shape or positions.ndim != 2 or positions.shape[1] != N:
        raise ValueError(f"positions has shape {positions.shape} and weights {weights.shape}: both must be (Q, N) with N = {N}")
    if not np.issubdtype(positions.dtype, np.integer):
        raise ValueError(f"positions has dtype {positions.dtype}: it must hold integers")
    slot, columns = np.nonzero(weights)
    rows = positions[slot, columns]
    outside = rows[(rows < 0) | (rows >= T)]
    if outside.size:
        raise ValueError(f"positions holds {outside[0]}: it must lie in [0, T - 1] = [0, {T - 1}]")
    if len(set(zip(rows.tolist(), columns.tolist(), strict=True))) < rows.size:
        raise ValueError("positions repeats a position within a column: each may occur once")
    return rows, columns, weights[slot, columns]


def distributions(name: str, array: Array) -> Array:
    """The array, whose columns must be distributions to 1e-9.

    Columns are divided by their sums where these are off by more than rounding, so that a saved task loads unchanged.
    """
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds {array[~np.isfinite(array)][0]}: every entry must be finite")
    if (array < 0).any():
        raise ValueError(f"{name} holds the negative entry {array.min():g}: probabilities must be at least 0")
    sums = array.sum(axis=0)
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > 1e-9:
        raise ValueError(f"column {worst} of {name} sums to {sums[worst]:.12g}: every column must sum to 1")
    return array / np.where(np.abs(sums - 1) > 1e-14, sums, 1.0)


def check_sizes(N: int, T: int, sparsity: int) -> None:
    """Whether there can be a random task of these sizes."""
    if N < 2:
        raise ValueError(f"N = {N}: there must be at least 2 tokens")
    if T < 1:
        raise ValueError(f"T = {T}: there must be at least 1 position")
    if not 1 <= sparsity <= T:
        raise ValueError(f"sparsity = {sparsity}: it must lie between 1 and T = {T}")


def _matrix(name: str, value: ArrayLike) -> Array:
    array = np.array(value, dtype=float)
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}: it must be a matrix")
    return array
