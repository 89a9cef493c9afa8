"""Executors, which hold the partitions of the data and run functions of them: this process, or a
cluster (``dask.Workers``).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any, Protocol


class Executor(Protocol):
    """An executor holds objects and runs functions of them where they are stored."""

    def compute(self, delayed: list[Any]) -> list[Any]:
        """Compute Dask's delayed objects, and hold the results."""
        ...

    def map(
        self, function: Callable[..., Any], held: Iterable[tuple[Any, ...]], *same: Any
    ) -> list[Any]:
        """Apply a function to each tuple of held objects and the ``same`` arguments; the results
        are held.
        """
        ...

    def results(self, held: Sequence[Any]) -> list[Any]:
        """Fetch what is held."""
        ...

    def total(self, held: list[Any]) -> Any:
        """Fetch the sum of arrays, or of tuples of them, added in the order of the partitions."""
        ...


class Here:
    """The executor that holds everything in this process."""

    def compute(self, delayed: list[Any]) -> list[Any]:
        """Compute Dask's delayed objects with its threads."""
        from dask.base import compute

        return list(compute(*delayed, scheduler="threads"))

    def map(
        self, function: Callable[..., Any], held: Iterable[tuple[Any, ...]], *same: Any
    ) -> list[Any]:
        """Call the function."""
        return [function(*mine, *same) for mine in held]

    def results(self, held: Sequence[Any]) -> list[Any]:
        """Return what is held, which is already in this process."""
        return list(held)

    def total(self, held: list[Any]) -> Any:
        """Return the sum of what is held."""
        return added(held)


def added(terms: list[Any]) -> Any:
    """The sum of arrays, or the entrywise sum of tuples of arrays."""
    first = terms[0]
    if isinstance(first, tuple):
        sums = (reduce(add, column) for column in zip(*terms, strict=True))
        make = getattr(first, "_make", tuple)  # a named tuple stays one
        return make(sums)
    return reduce(add, terms)
