"""Columns with few entries each, kept as padded (slots, N) arrays instead of a matrix of mostly zeros."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array


def slots(counts: NDArray[Any]) -> NDArray[np.intp]:
    """0 … counts[0] − 1, 0 … counts[1] − 1, …: where each entry stands in its column, if entries are sorted by column."""
    first = np.cumsum(counts) - counts
    return np.arange(counts.sum()) - np.repeat(first, counts)


def pack(rows: NDArray[Any], columns: NDArray[Any], values: Array, N: int) -> tuple[NDArray[np.intp], Array]:
    """Entries of a matrix as (slots, N) arrays of their rows, ascending in each column, and of their values.

    Zeros are left out. Shorter columns are filled up with value 0 at row 0.
    """
    order = np.lexsort((rows, columns))
    order = order[values[order] != 0]
    rows, columns, values = rows[order], columns[order], values[order]
    counts = np.bincount(columns, minlength=N)
    slot = slots(counts)
    packed_rows = np.zeros((int(counts.max(initial=1)), N), dtype=np.intp, order="F")
    packed_values = np.zeros(packed_rows.shape, order="F")
    packed_rows[slot, columns] = rows
    packed_values[slot, columns] = values
    return packed_rows, packed_values
