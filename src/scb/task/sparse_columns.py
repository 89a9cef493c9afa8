"""Checks of the arrays that a task is made from, and sparse columns as padded (slots, N) arrays."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scb.arrays import Array
from scb.inputs import InputError, integer, real_array, unmasked


def slots(counts: NDArray[Any]) -> NDArray[np.intp]:
    """Return the place of each entry in its column, if entries are sorted by column: 0 … counts[0]
    − 1, 0 … counts[1] − 1, ….
    """
    first = np.cumsum(counts) - counts
    return np.arange(counts.sum()) - np.repeat(first, counts)


def pack(
    rows: NDArray[Any], columns: NDArray[Any], values: Array, N: int
) -> tuple[NDArray[np.intp], Array]:
    """Return a sparse matrix as two (slots, N) arrays: column k lists the rows of its nonzero
    entries, in ascending order, and their values.

    The arrays are as high as the longest column; shorter columns are padded with value 0 at row 0.
    """
    # By column, and by row within a column
    order = np.lexsort((rows, columns))
    order = order[values[order] != 0]
    rows, columns, values = rows[order], columns[order], values[order]
    counts = np.bincount(columns, minlength=N)
    slot = slots(counts)
    height = int(counts.max(initial=1))
    packed_rows = np.zeros((height, N), dtype=np.intp, order="F")
    packed_values = np.zeros(packed_rows.shape, order="F")
    packed_rows[slot, columns] = rows
    packed_values[slot, columns] = values
    return packed_rows, packed_values


def transition_matrix(P: ArrayLike) -> Array:
    """Return P as a column-contiguous square matrix of at least two columns, each of which is a
    distribution; with several heads, return one such matrix for each head, (H, N, N).
    """
    array = real_array("P", P)
    if array.ndim == 3 and len(array) == 1:
        array = array[0]
    if array.ndim not in (2, 3):
        raise InputError(f"P has shape {array.shape}: it must be a matrix, or one for each head")
    N = array.shape[-1]
    if array.size == 0 or array.shape[-2] != N:
        raise InputError(f"P has shape {array.shape}: it must be square, (N, N) or (H, N, N)")
    if N < 2:
        raise InputError(f"P has N = {N} tokens: there must be at least 2")
    if array.ndim == 2:
        return np.asfortranarray(distributions("P", array))
    return np.stack([distributions(f"P[{h}]", one) for h, one in enumerate(array)])


def attention_entries(Q: Any, P: Array) -> tuple[NDArray[Any], NDArray[Any], Array, int]:
    """Return the rows, columns and values of the nonzero entries of Q (T, N), and T; Q may be dense
    or a scipy sparse array. With several heads, Q has shape (H, T, N), and row t of head h is row
    h·T + t.
    """
    N = P.shape[-1]
    H = len(P) if P.ndim == 3 else 1
    if H > 1:
        array = real_array("Q", Q)
        if array.ndim != 3 or len(array) != H:
            raise InputError(
                f"Q has shape {array.shape}, but P has H = {H} heads: Q must be (H, T, N)"
            )
        rows, columns, values, height = attention_entries(array.reshape(-1, array.shape[-1]), P[0])
        return rows, columns, values, height // H
    if hasattr(Q, "tocoo"):  # any scipy sparse array
        entries = Q.tocoo(copy=True)
        entries.sum_duplicates()
        shape = Q.shape
        rows = entries.row
        columns = entries.col
        values = real_array("Q", entries.data)
    else:
        dense = real_array("Q", Q)
        if dense.ndim == 3 and len(dense) == 1:
            dense = dense[0]
        if dense.ndim != 2:
            raise InputError(f"Q has shape {dense.shape}: it must be a matrix")
        shape = dense.shape
        rows, columns = np.nonzero(dense)
        values = dense[rows, columns]
    if shape[1] != N:
        raise InputError(f"Q has shape {shape}, but P has N = {N} tokens: Q must have {N} columns")
    return rows, columns, values, shape[0]


def sparse_entries(
    positions: ArrayLike, weights: ArrayLike, owners: ArrayLike | None, P: Array, T: int
) -> tuple[NDArray[Any], NDArray[Any], Array]:
    """Return the rows, columns and values of the entries that ``positions``, ``weights`` and
    ``owners``, all (Q, N), define; a weight of 0 defines no entry. Row t of head h is row h·T + t.
    """
    N = P.shape[-1]
    H = len(P) if P.ndim == 3 else 1
    T = integer("T", T, low=1)
    positions = np.asarray(unmasked("positions", positions))
    weights = real_array("weights", weights)
    if positions.shape != weights.shape or positions.ndim != 2 or positions.shape[1] != N:
        raise InputError(
            f"positions has shape {positions.shape} and weights {weights.shape}: "
            f"both must be (Q, N) with N = {N}"
        )
    if not np.issubdtype(positions.dtype, np.integer):
        raise InputError(f"positions has dtype {positions.dtype}: it must hold integers")
    slot, columns = np.nonzero(weights)
    rows = positions[slot, columns]
    outside = rows[(rows < 0) | (rows >= T)]
    if outside.size:
        raise InputError(
            f"positions holds {outside[0]}: each must lie in [0, T - 1] = [0, {T - 1}]"
        )
    if H > 1 or owners is not None:
        owners = np.asarray(unmasked("owners", owners))
        if owners.shape != positions.shape or not np.issubdtype(owners.dtype, np.integer):
            raise InputError(
                f"owners has shape {owners.shape} and dtype {owners.dtype}: with {H} heads it must "
                f"hold the head of each position, as integers of shape {positions.shape}"
            )
        heads = owners[slot, columns]
        if ((heads < 0) | (heads >= H)).any():
            raise InputError(f"owners holds a head outside [0, {H - 1}]: P has {H} heads")
        rows = rows + T * heads
    if len(set(zip(rows.tolist(), columns.tolist(), strict=True))) < rows.size:
        raise InputError("positions repeats a position within a column: each may occur only once")
    return rows, columns, weights[slot, columns]


def distributions(name: str, array: Array) -> Array:
    """Return the array, whose columns must be distributions to within 1e-9.

    A column is divided by its sum only if the sum is off by more than rounding, so a saved task
    loads unchanged.
    """
    if not np.isfinite(array).all():
        raise InputError(
            f"{name} holds {array[~np.isfinite(array)][0]}: every entry must be finite"
        )
    if (array < 0).any():
        raise InputError(
            f"{name} holds the negative entry {array.min():g}: probabilities must be at least 0"
        )
    sums = array.sum(axis=0)
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > 1e-9:
        raise InputError(
            f"column {worst} of {name} sums to {sums[worst]:.12g}: every column must sum to 1"
        )
    return array / np.where(np.abs(sums - 1) > 1e-14, sums, 1.0)
