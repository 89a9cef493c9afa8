"""Partitions on the workers of a Dask cluster: functions run there, and only sums are returned.

The following collections are accepted; a partition is a chunk of an array, a partition of a bag, or
one delayed object:

- ``recover``: a list of delayed ``Batch``es or a bag of them; with ``max_lag``, a 1-D array of
  tokens (one long sequence), a bag of sequences, or a list of delayed sequences;
- the estimator: a 1-D array of symbols, a 2-D array whose rows are sequences, a bag of sequences,
  or a list of delayed sequences.

Each partition becomes a ``Partition`` in compact tokens, which stays on its worker. Without a
cluster, partitions are in this process.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import uuid4

import numpy as np

from scb.inputs import InputError, InputTypeError
from scb.mixture.data import Source
from scb.mixture.executors import Executor, Here, added
from scb.provenance import code_digest, require_code

# Sums of partitions that are added in one place
TOGETHER = 8
# Bytes: larger arguments are sent once, not with every task
LARGE = 1 << 16
_KEY = "scb_fit"  # of tasks


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


class Workers:
    """The workers of a client. The data are held as futures: if a worker dies, Dask recomputes what
    that worker held from the source.

    All tasks have keys of one kind, and the first task does nothing. Dask assumes that tasks of an
    unknown kind are slow, and would otherwise move data to workers that are less busy.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        client.submit(added, [0], key=_key(), pure=False).result()

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
                sent = self.client.submit(tuple, same, key=_key(), pure=False)
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


def _key() -> str:
    return f"{_KEY}-{uuid4()}"


def _checked(code: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """On a worker: call the function, if the worker has the driver's code."""
    require_code(code)
    return function(*arguments)


def dask_source(name: str, data: Any, overlap: int) -> Source:
    """The partitions of a collection. Each partition of an array begins with the ``overlap`` tokens
    before it.
    """
    from dask.delayed import delayed as delay

    executor = current_executor()
    family = type(data).__module__.split(".")[:2]
    length = None
    skipped: list[int] = []
    if family == ["dask", "array"]:
        kind, delayed, skipped = _pieces_of_array(name, data, overlap)
        length = data.shape[0] if kind == "array" else None
    elif family == ["dask", "bag"] and hasattr(data, "to_delayed"):
        kind = "bag"
        delayed = data.to_delayed()
    else:
        kind = "delayed"
        delayed = list(data) if isinstance(data, list | tuple) else [data]
    for x in delayed:
        if type(x).__module__ != "dask.delayed":
            raise InputTypeError(
                f"{name} holds {type(x).__name__}: from Dask, only arrays, bags and lists of "
                "delayed objects are accepted"
            )

    def read(function: Callable[..., Any], *same: Any) -> list[Any]:
        code = code_digest()
        pieces = zip(delayed, skipped or [0] * len(delayed), strict=True)
        return executor.compute(
            [
                delay(_checked)(code, function, *piece, *same, dask_key_name=_key())
                for piece in pieces
            ]
        )

    return Source(executor, kind, read, length)


def _pieces_of_array(name: str, data: Any, overlap: int) -> tuple[str, list[Any], list[int]]:
    """The kind of an array, its pieces, and how many of their first tokens are repeated from the
    piece before.
    """
    if data.ndim not in (1, 2):
        raise InputError(
            f"{name} has {data.ndim} dimensions: one sequence has 1, rows of sequences have 2"
        )
    if np.isnan(sum(data.shape)):
        data = data.compute_chunk_sizes()
    if data.ndim == 2:
        return "rows", data.rechunk({1: -1}).to_delayed().ravel().tolist(), []
    stops = np.cumsum(data.chunks[0]).tolist()
    starts = [0, *stops[:-1]]
    before = [min(start, overlap) for start in starts]
    pieces = [
        data[start - b : stop].rechunk(-1)
        for start, stop, b in zip(starts, stops, before, strict=True)
    ]
    return "array", [piece.to_delayed().item() for piece in pieces], before
