"""Tidy tables: what experiments give, and figures and claims read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = dict[str, NDArray[Any]]
"""Column name → array, all of one length."""


def concatenate(tables: Sequence[Table]) -> Table:
    """One table after the other."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def pick(table: Table, **equal: Any) -> Table:
    """The rows whose columns have these values."""
    rows = np.ones(len(next(iter(table.values()))), dtype=bool)
    for name, value in equal.items():
        rows &= table[name] == value
    return {name: column[rows] for name, column in table.items()}


def at(table: Table, step: int | None = None) -> Table:
    """One row a replicate: the last one up to ``step``, or the last of all."""
    rows = []
    for replicate in np.unique(table["replicate"]):
        mine = np.flatnonzero(table["replicate"] == replicate)
        steps = table["step"][mine]
        early = mine if step is None else mine[steps <= step]
        rows.append(early[np.argmax(table["step"][early])])
    return {name: column[rows] for name, column in table.items()}


def quartiles(table: Table, x: str, y: str) -> tuple[NDArray[Any], ...]:
    """The values of x, and the three quartiles of y at each."""
    xs = np.unique(table[x])
    return xs, *np.array([np.percentile(table[y][table[x] == value], (25, 50, 75)) for value in xs]).T


def values(table: Table, name: str) -> list[Any]:
    """The different values of a column, in the order in which they come."""
    return list(dict.fromkeys(table[name].tolist()))


def wilson(successes: NDArray[Any], trials: NDArray[Any], z: float = 1.96) -> tuple[NDArray[Any], NDArray[Any]]:
    """Wilson's interval for probabilities, 95 % unless z says otherwise; (0, 1) where nothing was tried."""
    n = np.asarray(trials, dtype=float)
    scale = n + z * z
    middle = (successes + z * z / 2) / scale
    with np.errstate(divide="ignore", invalid="ignore"):
        half = z / scale * np.sqrt(np.where(n > 0, successes * (n - successes) / n, 0.0) + z * z / 4)
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)
