"""Sequences of symbols as windows of codes, laid out for a fit; here or on a cluster, by the same functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.mixture.data import Data, Here, Source, is_dask
from scb.mixture.partition import Partition, Shape
from scb.mixture.reading import PARTITION, source_of
from scb.mixture.windows import sequence_blocks, symbol_counts
from scb.sequences.symbols import MISSING, Sequences, as_sequences, encode

Codes = NDArray[np.int64]


class Windows(NamedTuple):
    """Data of the estimator."""

    data: Data  # every window of max_lag + 1 symbols without a gap; position max_lag − ℓ is lag ℓ
    classes: NDArray[Any]  # the symbols, sorted
    width: int | None  # the common length of the sequences, where there are many of one length


def windows_of_codes(codes: Sequence[Codes], N: int, max_lag: int, contexts: bool) -> Data:
    """The windows of sequences of codes, ``MISSING`` where there is a gap; all in one context unless symbols choose it."""
    blocks = sequence_blocks(codes, max_lag, nearest=1, contexts=contexts)
    if not blocks:
        raise _no_window(max((len(sequence) for sequence in codes), default=0), max_lag)
    counts = symbol_counts(codes, N)
    shape = _shape(N, max_lag, contexts)
    return Data.of(Here(), [Partition.of(blocks)], shape, counts / counts.sum(), independent=False)


def windows_of_symbols(X: Any, lengths: Any, max_lag: int, contexts: bool) -> Windows:
    """The windows of whatever holds sequences: see ``scb.sequences.symbols``, and ``scb.mixture.dask`` for collections."""
    if is_dask(X):
        if lengths is not None:
            raise ValueError("lengths are for one long X in memory; give a bag of sequences, or delayed ones")
        source = source_of("X", X, max_lag)
    else:
        source = Source.here(as_sequences(X, lengths))
    executor = source.executor
    coded = source.read(_code, source.kind)
    found = executor.results(executor.map(_Coded.summary, zip(coded, strict=True)))
    classes = _united([one.classes for one in found])
    held = executor.map(_windows, zip(coded, strict=True), classes, max_lag, contexts)
    counts = executor.total(executor.map(itemgetter(1), zip(held, strict=True)))
    partitions = executor.map(PARTITION, zip(held, strict=True))
    shape = _shape(len(classes), max_lag, contexts)
    data = Data.of(executor, partitions, shape, counts / counts.sum(), independent=False)
    longest = max(one.longest for one in found)
    if data.n == 0:
        raise _no_window(source.length or longest, max_lag)
    same = all(one.many for one in found) and min(one.shortest for one in found) == longest
    return Windows(data, classes, longest if same else None)


def _shape(N: int, max_lag: int, contexts: bool) -> Shape:
    return Shape(N=N, K=N if contexts else 1, T=max_lag)


def _no_window(longest: int, max_lag: int) -> ValueError:
    return ValueError(f"no window of max_lag + 1 = {max_lag + 1} symbols without a gap; the longest sequence has {longest}")


# ------------------------------------------------------------------------------------------------- piece by piece


class _Facts(NamedTuple):
    """What the driver has to know of a piece: its symbols, the lengths of its sequences, and whether these are many."""

    classes: NDArray[Any]
    shortest: float
    longest: int
    many: bool


@dataclass(frozen=True)
class _Coded:
    """A piece in codes of its own symbols; the first ``skipped`` of each sequence belong to the piece before it."""

    codes: list[Codes]
    classes: NDArray[Any]
    skipped: int
    many: bool

    def __sizeof__(self) -> int:
        return sum(x.nbytes for x in self.codes)

    def summary(self) -> _Facts:
        lengths = [len(x) for x in self.codes]
        return _Facts(self.classes, min(lengths, default=np.inf), max(lengths, default=0), self.many)


def _code(piece: Any, skipped: int, kind: str) -> _Coded:
    """Where a piece lies: its symbols as codes."""
    if kind == "here":
        return _Coded(*encode(piece), skipped, piece.many)
    items: Any = list(piece) if kind == "bag" else piece
    many = kind != "array"
    if len(items) == 0:
        return _Coded([], np.zeros(0), 0, many)
    sequences = as_sequences(items)
    if kind == "bag" and not sequences.many:
        raise ValueError(f"X is a bag that holds {items[0]!r}: it must hold sequences; one long one is a Dask array")
    if kind == "delayed" and not sequences.many:
        sequences = as_sequences([items])
    return _Coded(*_codes_and_classes(sequences), skipped, many)


def _codes_and_classes(sequences: Sequences) -> tuple[list[Codes], NDArray[Any]]:
    """Codes and classes of a piece, which may be all gaps where the others are not."""
    try:
        return encode(sequences)
    except ValueError as error:
        if "all are missing" not in str(error):
            raise
        return [np.full(length, MISSING) for length in sequences.lengths], np.zeros(0)


def _united(classes: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The symbols of all pieces, sorted; checked as those of one are."""
    if len(classes) == 1 and len(classes[0]):
        return classes[0]
    some = [x for x in classes if len(x)]
    if len({x.dtype.kind in "US" for x in some}) > 1:
        names = ", ".join(sorted({type(x[0].item()).__name__ for x in some}))
        raise TypeError(f"X holds symbols of type {names}: they must be of one type")
    together = np.concatenate(some) if some else np.zeros(0)
    return encode(as_sequences(together if len(together) else [None]))[1]


def _windows(coded: _Coded, classes: NDArray[Any], max_lag: int, contexts: bool) -> tuple[Partition, Array]:
    """Where a piece lies: its windows in codes of all symbols, and how often each symbol occurs in it."""
    place = np.append(np.searchsorted(classes, coded.classes), MISSING)
    codes = [place[x] for x in coded.codes]
    counts = symbol_counts([x[coded.skipped :] for x in codes], len(classes))
    return Partition.of(sequence_blocks(codes, max_lag, nearest=1, contexts=contexts)), counts
