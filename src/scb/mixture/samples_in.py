"""Batches and sequences of tokens, laid out for a fit; the same functions run on a cluster."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from scb.arrays import Array
from scb.inputs import InputError
from scb.kernels.windows import count_tokens
from scb.mixture.dask import dask_source
from scb.mixture.data import Data, Source, is_dask
from scb.mixture.partition import Partition, Shape
from scb.mixture.windows import Block, batch_block, sequence_blocks, symbol_counts, token_sequences
from scb.task.sampling import Batch

PARTITION = itemgetter(0)
SUMMARY = itemgetter(1)


class Summary(NamedTuple):
    """What the driver must know about samples before they can be laid out for a fit."""

    widths: list[int]  # the different numbers of positions, in the order in which they came
    # How often each token occurs in the contexts; one entry for every token up to the largest,
    # labels included
    counts: Array
    longest: int = 0  # length of the longest sequence


@dataclass(frozen=True)
class Restarted:
    """Checked batches that are read again in each pass, so samples need not fit into memory."""

    batches: Any  # what can be iterated repeatedly, or a function that returns an iterator
    N: int | None

    def __iter__(self) -> Iterator[Block]:
        batches: Any = self.batches() if callable(self.batches) else self.batches
        return (batch_block(batch, self.N) for batch in batches)


def source_of(name: str, data: Any, overlap: int) -> Source:
    """The pieces of any data. If one long array is cut, each piece begins with the ``overlap``
    tokens before it.
    """
    if not is_dask(data):
        return Source.here(data)
    return dask_source(name, data, overlap)


def as_data(data: Any, N: int | None = None, max_lag: int | None = None) -> Data:
    """Check batches or sequences of tokens in one pass and lay them out for a fit.

    The following data are accepted, with different needs of memory:

    - a ``Batch``, which is used in place if its tokens are unsigned integers and otherwise copied
      once in compact form;
    - a list or tuple of batches, or anything else that can be iterated repeatedly, which is read
      one batch at a time;
    - a function without arguments that returns an iterator of batches, which is called for every
      pass and read one batch at a time;
    - an iterator of batches, which can be read only once and is therefore kept as compact tokens (1
      byte each up to N = 256);
    - one sequence of tokens or a list of sequences, with ``max_lag``, in which every window of
      max_lag + 2 tokens is a sample;
    - collections of Dask (see ``scb.mixture.dask``).
    """
    if N is not None and (not isinstance(N, int | np.integer) or N < 2):
        raise InputError(f"N = {N}: there must be at least 2 tokens")
    if max_lag is not None and (not isinstance(max_lag, int | np.integer) or max_lag < 1):
        raise InputError(f"max_lag = {max_lag}: it must be at least 1")
    source = source_of("data", data, 0 if max_lag is None else int(max_lag) + 1)
    if source.kind == "rows" or (source.kind == "array" and max_lag is None):
        raise InputError(
            "data is a Dask array: a 1-D array is a sequence if max_lag is given; pass batches "
            "as delayed objects or in a bag"
        )
    if max_lag is None:
        held = source.read(_read_batches, source.kind, N)
    else:
        held = source.read(_read_sequences, source.kind, int(max_lag))
    executor = source.executor
    summaries = executor.results(executor.map(SUMMARY, zip(held, strict=True)))
    if max_lag is not None and not any(summary.widths for summary in summaries):
        longest = source.length or max(summary.longest for summary in summaries)
        raise InputError(
            f"the longest sequence has {longest} tokens: "
            f"with max_lag = {max_lag}, at least {max_lag + 2} are needed"
        )
    size, T, mu = _agree(summaries, N)
    partitions = executor.map(PARTITION, zip(held, strict=True))
    return Data.from_partitions(
        executor, partitions, Shape(size, size, T), mu, independent=max_lag is None
    )


def _agree(summaries: Sequence[Summary], N: int | None) -> tuple[int, int, Array]:
    """N, T and the distribution μ of the tokens, from what was seen in all places; a ValueError
    where they contradict each other.
    """
    widths = list(dict.fromkeys(T for summary in summaries for T in summary.widths))
    tokens = max(summary.counts.size for summary in summaries)
    if not widths:
        raise InputError("data is empty: there must be at least 1 sample")
    if len(widths) > 1:
        raise InputError(
            f"data holds batches with T = {widths[0]} and with T = {widths[1]} positions: "
            "they must agree"
        )
    if N is not None and tokens > N:
        raise InputError(
            f"data holds token {tokens - 1}: with N = {N}, tokens must lie in [0, {N - 1}]"
        )
    counts = np.zeros(max(tokens, 2) if N is None else N)
    for summary in summaries:
        counts[: summary.counts.size] += summary.counts
    return counts.size, widths[0], counts / counts.sum()


# ----------------------------------------------------------------------------------- piece by piece


def _read_batches(data: Any, skipped: int, kind: str, N: int | None) -> tuple[Partition, Summary]:
    """The batches of a piece as a partition, in one pass, since each pass draws a stream again.
    Runs where the piece lies.
    """
    blocks = _blocks_of_batches(data, kind, N)
    walked: list[Block] = []
    widths: list[int] = []
    counts = np.zeros(0)
    for block in blocks:
        walked.append(block._replace(tokens=block.tokens[:0]))
        if block.n:
            widths.append(block.tokens.size // block.n)
            counts = np.pad(counts, (0, max(0, int(block.tokens.max()) + 1 - counts.size)))
            count_tokens(block.tokens, counts)
    partition = Partition.from_blocks(walked, blocks)
    largest = max(int(partition.last.max(initial=-1)), int(partition.label.max(initial=-1)))
    counts = np.pad(counts, (0, max(0, largest + 1 - counts.size)))
    return partition, Summary(list(dict.fromkeys(widths)), counts)


def _blocks_of_batches(data: Any, kind: str, N: int | None) -> Iterable[Block]:
    """Blocks that can be walked through again and again, without holding more than was given."""
    if kind != "here":
        items = list(data) if kind == "bag" else [data]
        batches = [batch for x in items for batch in (x if isinstance(x, list | tuple) else [x])]
        return [batch_block(batch, N) for batch in batches]
    if isinstance(data, Batch):
        return [batch_block(data, N)]
    if isinstance(data, np.ndarray) or not (callable(data) or hasattr(data, "__iter__")):
        raise InputError(
            f"data is of type {type(data).__name__}: "
            "it must be a Batch, batches, or a sequence of tokens with max_lag"
        )
    if isinstance(data, Iterator):
        return [batch_block(batch, N) for batch in data]
    return Restarted(data, N)


def _read_sequences(data: Any, skipped: int, kind: str, max_lag: int) -> tuple[Partition, Summary]:
    """The windows of the sequences of a piece as a partition. The first ``skipped`` tokens are
    counted elsewhere. Runs where the piece lies.
    """
    sequences = token_sequences(_sequences_of(data, kind))
    blocks = sequence_blocks(sequences, max_lag)
    tokens = max((int(x.max()) + 1 for x in sequences if x.size), default=0)
    counts = symbol_counts((x[skipped:] for x in sequences), tokens)
    longest = max((x.size for x in sequences), default=0)
    return Partition.from_blocks(blocks), Summary([max_lag] if blocks else [], counts, longest)


def _sequences_of(data: Any, kind: str) -> list[Any]:
    """One sequence or many, as they were given."""
    if kind == "here":
        if isinstance(data, Batch):
            raise InputError(
                "data is a Batch, whose context has its length already: leave max_lag out"
            )
        if isinstance(data, np.ndarray) or not hasattr(data, "__iter__"):
            return [data]
        items = list(data)
        many = bool(items) and np.ndim(items[0]) == 1
        return items if many else [items]
    items = list(data) if kind == "bag" else [data]
    if any(isinstance(x, Batch) for x in items):
        raise InputError(
            "data holds Batches, whose contexts have their length already: leave max_lag out"
        )
    return items
