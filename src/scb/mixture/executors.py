"""Executors, which hold the partitions of the data and run functions of them where they are stored:
this process, or a cluster.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any
from uuid import uuid4

from scb.inputs import InputError

# Sums of partitions that are added in one place
TOGETHER = 8
# Bytes: larger arguments are sent once, not with every task
LARGE = 1 << 16
_KEY = "scb_fit"  # of tasks


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


class Workers:
    """The workers of a client. The data are held as futures: if a worker dies, Dask recomputes what
    that worker held from the source.

    All tasks have keys of one kind, and the first task does nothing. Dask assumes that tasks of an
    unknown kind are slow, and would otherwise move data to workers that are less busy.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        client.submit(added, [0], key=task_key(), pure=False).result()

    def compute(self, delayed: list[Any]) -> list[Any]:
        """Let the workers read the data."""
        return self.client.compute(delayed)

    def map(
        self, function: Callable[..., Any], held: Iterable[tuple[Any, ...]], *same: Any
    ) -> list[Any]:
        """Call the function on the workers that hold its arguments."""
        import dask.config
        from dask.sizeof import sizeof

        columns = [list(column) for column in zip(*held, strict=True)]
        sent: Any = same
        if sizeof(same) > LARGE:
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
                sent = self.client.submit(tuple, same, key=task_key(), pure=False)
        return self.client.map(
            _apply, [sent] * len(columns[0]), *columns, function=function, key=_KEY, pure=False
        )

    def results(self, held: Sequence[Any]) -> list[Any]:
        """Fetch what the workers hold."""
        return self.client.gather(list(held))

    def total(self, held: list[Any]) -> Any:
        """Add up on the workers, a few sums at a time, and fetch the last few sums."""
        while len(held) > TOGETHER:
            groups = [(held[i : i + TOGETHER],) for i in range(0, len(held), TOGETHER)]
            held = self.map(added, groups)
        return added(self.results(held))


def _apply(same: tuple[Any, ...], *mine: Any, function: Callable[..., Any]) -> Any:
    """On a worker: call the function."""
    return function(*mine, *same)


def task_key() -> str:
    """A new key of one kind for a task."""
    return f"{_KEY}-{uuid4()}"


Executor = Here | Workers
"""An executor holds objects. ``map`` applies a function to each tuple of held objects and the same
further arguments, and holds the results; ``total`` fetches the sum of arrays, or of tuples of them,
added in the order of the partitions.
"""


def current_executor() -> Executor:
    """The cluster of the current client, or this process if there is no client."""
    if "distributed" not in sys.modules:
        return Here()
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:
        return Here()
    if client.asynchronous:
        raise InputError("the Dask client is asynchronous: fits need a synchronous one")
    return Workers(client)


def added(terms: list[Any]) -> Any:
    """The sum of arrays, or the entrywise sum of tuples of arrays."""
    first = terms[0]
    if isinstance(first, tuple):
        sums = (reduce(add, column) for column in zip(*terms, strict=True))
        make = getattr(first, "_make", tuple)  # a named tuple stays one
        return make(sums)
    return reduce(add, terms)
