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

from collections.abc import Callable
from typing import Any

import numpy as np

from scb.inputs import InputError, InputTypeError
from scb.mixture.data import Source
from scb.mixture.executors import current_executor, task_key
from scb.provenance import code_digest, require_code


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
                delay(_checked)(code, function, *piece, *same, dask_key_name=task_key())
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
