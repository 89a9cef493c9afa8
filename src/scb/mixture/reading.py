"""Batches and sequences of tokens, laid out for a fit; here or on a cluster, by the same functions."""

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

import numpy as np

from scb.mixture.dask import dask_source
from scb.mixture.data import Data, Source, is_dask
from scb.mixture.partition import Partition, Restarted, Shape
from scb.mixture.windows import (
    Block,
    Summary,
    agree,
    batch_block,
    sequence_blocks,
    summarise_batches,
    summarise_sequences,
    token_sequences,
)
from scb.task.sampling import Batch

Piece = tuple[Partition, Summary]
"""A partition as it was read, and what the driver has to know of it."""
PARTITION = itemgetter(0)
SUMMARY = itemgetter(1)


def source_of(name: str, data: Any, overlap: int) -> Source:
    """The pieces of any data; where one long array is cut, each begins with the ``overlap`` tokens before it."""
    if not is_dask(data):
        return Source.here(data)
    return dask_source(name, data, overlap)


def as_data(data: Any, N: int | None = None, max_lag: int | None = None) -> Data:
    """Check batches or sequences of tokens in one pass and lay them out for a fit.

    What is accepted, and how much of it is held in memory:

    - a ``Batch``: used where it lies if its tokens are unsigned integers, else one compact copy;
    - a list or tuple of batches, or anything else that can be iterated again and again: one batch at a time;
    - a function without arguments that returns an iterator of batches: called anew for every pass, one batch at a time;
    - an iterator of batches, which can be walked once only: it is kept as compact tokens (1 byte each up to N = 256);
    - one sequence of tokens or a list of sequences, with ``max_lag``: every window of max_lag + 2 tokens is a sample;
    - collections of Dask: see ``scb.mixture.dask``.
    """
    _check_sizes(N, max_lag)
    if max_lag is None:
        source = source_of("data", data, 0)
        _refuse_arrays(source, max_lag)
        held = source.read(_read_batches, source.kind, N)
    else:
        source = source_of("data", data, int(max_lag) + 1)
        _refuse_arrays(source, max_lag)
        held = source.read(_read_sequences, source.kind, int(max_lag))
    executor = source.executor
    summaries = executor.results(executor.map(SUMMARY, zip(held, strict=True)))
    if max_lag is not None and not any(summary.widths for summary in summaries):
        longest = source.length if source.length is not None else max(summary.longest for summary in summaries)
        raise ValueError(f"the longest sequence has {longest} tokens: with max_lag = {max_lag}, at least {max_lag + 2} are needed")
    size, T, mu = agree(summaries, N)
    partitions = executor.map(PARTITION, zip(held, strict=True))
    return Data.of(executor, partitions, Shape(size, size, T), mu, independent=max_lag is None)


def _check_sizes(N: int | None, max_lag: int | None) -> None:
    if N is not None and (not isinstance(N, int | np.integer) or N < 2):
        raise ValueError(f"N = {N}: there must be at least 2 tokens")
    if max_lag is not None and (not isinstance(max_lag, int | np.integer) or max_lag < 1):
        raise ValueError(f"max_lag = {max_lag}: it must be at least 1")


def _refuse_arrays(source: Source, max_lag: int | None) -> None:
    if source.kind == "rows" or (source.kind == "array" and max_lag is None):
        raise ValueError("data is a Dask array: with max_lag, a 1-D one is a sequence; batches are delayed, or in a bag")


def _read_batches(data: Any, skipped: int, kind: str, N: int | None) -> Piece:
    """Where the piece lies: its batches as a partition."""
    blocks = _blocks_of_batches(data, kind, N)
    walked: list[Block] = []
    summary = summarise_batches(_without_tokens(blocks, walked))  # one pass for both: a stream is drawn anew for each
    return Partition.of(walked, blocks), summary


def _without_tokens(blocks: Iterable[Block], walked: list[Block]) -> Iterator[Block]:
    """Walk through blocks, and remember all of them but their tokens."""
    for block in blocks:
        walked.append(block._replace(tokens=block.tokens[:0]))
        yield block


def _blocks_of_batches(data: Any, kind: str, N: int | None) -> Iterable[Block]:
    """Blocks that can be walked through again and again, without holding more than was given."""
    if kind != "here":
        items = list(data) if kind == "bag" else [data]
        batches = [batch for x in items for batch in (x if isinstance(x, list | tuple) else [x])]
        return [batch_block(batch, N) for batch in batches]
    if isinstance(data, Batch):
        return [batch_block(data, N)]
    if callable(data):
        return Restarted(lambda: _checked_blocks(data(), N))
    if isinstance(data, np.ndarray) or not hasattr(data, "__iter__"):
        raise ValueError(
            f"data is of type {type(data).__name__}: it must be a Batch, batches, or a sequence of tokens with max_lag"
        )
    if isinstance(data, Iterator):
        return list(_checked_blocks(data, N))
    return Restarted(lambda: _checked_blocks(data, N))


def _checked_blocks(batches: Any, N: int | None) -> Iterator[Block]:
    return (batch_block(batch, N) for batch in batches)


def _read_sequences(data: Any, skipped: int, kind: str, max_lag: int) -> Piece:
    """Where the piece lies: the windows of its sequences as a partition."""
    sequences = token_sequences(_sequences_of(data, kind))
    blocks = sequence_blocks(sequences, max_lag, nearest=2)
    return Partition.of(blocks), summarise_sequences(sequences, max_lag, len(blocks), skipped)


def _sequences_of(data: Any, kind: str) -> list[Any]:
    """One sequence or many, as they were given."""
    if kind == "here":
        if isinstance(data, Batch):
            raise ValueError("data is a Batch, whose context has its length already: leave max_lag out")
        if isinstance(data, np.ndarray) or not hasattr(data, "__iter__"):
            return [data]
        items = list(data)
        many = bool(items) and np.ndim(items[0]) == 1
        return items if many else [items]
    items = list(data) if kind == "bag" else [data]
    if any(isinstance(x, Batch) for x in items):
        raise ValueError("data holds Batches, whose contexts have their length already: leave max_lag out")
    return items
