"""Sequences of symbols as windows of codes, laid out for a fit; here or on a cluster, by the same
functions.
"""

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.inputs import InputError, InputTypeError
from scb.mixture.data import Data, Here, is_dask
from scb.mixture.partition import Partition, Shape
from scb.mixture.samples_in import PARTITION, source_of
from scb.mixture.windows import label_block, symbol_counts
from scb.sequences.symbols import MISSING, as_sequences, checked_classes, factorise

Codes = NDArray[np.int64]


class Windows(NamedTuple):
    """Data of the estimator."""

    # Every symbol that follows one, with the max_lag before it; position max_lag − ℓ is lag ℓ
    data: Data
    classes: NDArray[Any]  # the symbols, sorted
    width: int | None  # the common length of the sequences, where there are many of one length


def windows_of_codes(
    codes: Sequence[Codes], N: int, max_lag: int, contexts: bool, skipped: int = 0
) -> Data:
    """The windows of sequences of codes, ``MISSING`` where there is a gap; all in one context
    unless symbols choose it.

    The first ``skipped`` symbols of each sequence are only there to be looked back at.
    """
    partition = Partition.from_blocks(
        [label_block(codes, N, max_lag, contexts=contexts, skipped=skipped)]
    )
    return _data(
        Here(), [partition], symbol_counts([x[skipped:] for x in codes], N), max_lag, contexts
    )


def windows_of_symbols(X: Any, lengths: Any, max_lag: int, contexts: bool) -> Windows:
    """The windows of whatever holds sequences: see ``scb.sequences.symbols``, and
    ``scb.mixture.dask`` for collections.
    """
    if not is_dask(X):
        X = as_sequences(X, lengths)
    elif lengths is not None:
        raise InputError(
            "lengths are for one long X in memory; give a bag of sequences, or delayed ones"
        )
    source = source_of("X", X, max_lag)
    executor = source.executor
    coded = source.read(_code, source.kind)
    summaries = executor.results(executor.map(_Coded.summary, zip(coded, strict=True)))
    symbols, shortest, longest, many = zip(*summaries, strict=True)
    classes = checked_classes(united_classes(symbols))
    held = executor.map(_windows, zip(coded, strict=True), classes, max_lag, contexts)
    counts = executor.total(executor.map(itemgetter(1), zip(held, strict=True)))
    partitions = executor.map(PARTITION, zip(held, strict=True))
    data = _data(executor, partitions, counts, max_lag, contexts)
    same = all(many) and min(shortest) == max(longest)
    return Windows(data, classes, max(longest) if same else None)


def _data(
    executor: Any, partitions: list[Any], counts: Array, max_lag: int, contexts: bool
) -> Data:
    """Partitions of windows as the data of a fit; each symbol occurs ``counts`` (N,) times in the
    sequences.
    """
    shape = Shape(N=len(counts), K=len(counts) if contexts else 1, T=max_lag)
    tokens = float(counts.sum())
    data = replace(
        Data.from_partitions(
            executor, partitions, shape, counts / max(tokens, 1), independent=False
        ),
        tokens=tokens,
    )
    if data.n == 0:
        raise InputError("no symbol follows another one without a gap: there is nothing to predict")
    return data


# ----------------------------------------------------------------------------------- piece by piece


class _Coded(NamedTuple):
    """A piece in codes of its own symbols; the first ``skipped`` of each sequence belong to the
    piece before it.
    """

    codes: list[Codes]
    classes: NDArray[Any]
    skipped: int
    many: bool

    def summary(self) -> tuple[NDArray[Any], float, int, bool]:
        """What the driver has to know: the symbols, the shortest and the longest sequence, and
        whether these are many.
        """
        lengths = [len(x) for x in self.codes]
        return self.classes, min(lengths, default=np.inf), max(lengths, default=0), self.many


def _code(piece: Any, skipped: int, kind: str) -> _Coded:
    """Where a piece lies: its symbols as codes. It may be all gaps where the others are not."""
    if kind == "here":
        return _Coded(*factorise(piece), skipped, piece.many)
    items: Any = list(piece) if kind == "bag" else piece
    many = kind != "array"
    if len(items) == 0:
        return _Coded([], np.zeros(0), 0, many)
    sequences = as_sequences(items)
    if kind == "bag" and not sequences.many:
        raise InputError(
            f"X is a bag that holds {items[0]!r}: it must hold sequences; one long one is a Dask array"
        )
    if kind == "delayed" and not sequences.many:
        sequences = as_sequences([items])
    return _Coded(*factorise(sequences), skipped, many)


def united_classes(classes: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The symbols of all pieces, sorted."""
    some = [x for x in classes if len(x)]
    if len({x.dtype.kind in "US" for x in some}) > 1:
        names = ", ".join(sorted({type(x[0].item()).__name__ for x in some}))
        raise InputTypeError(f"X holds symbols of type {names}: they must be of one type")
    return np.unique(np.concatenate(some)) if some else np.zeros(0)


def _windows(
    coded: _Coded, classes: NDArray[Any], max_lag: int, contexts: bool
) -> tuple[Partition, Array]:
    """Where a piece lies: its windows in codes of all symbols, and how often each symbol occurs in
    it.
    """
    place = np.append(np.searchsorted(classes, coded.classes), MISSING)
    codes = [place[x] for x in coded.codes]
    counts = symbol_counts([x[coded.skipped :] for x in codes], len(classes))
    block = label_block(codes, len(classes), max_lag, contexts=contexts, skipped=coded.skipped)
    return Partition.from_blocks([block]), counts
