"""Ragged columns in rectangular arrays: entry i of a column goes to slot i, and shorter columns leave slots free."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def slots_of(counts: NDArray[np.integer]) -> NDArray[np.intp]:
    """0, 1, …, counts[0] − 1, 0, 1, …, counts[1] − 1, …: the slots of entries that are sorted by column."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
