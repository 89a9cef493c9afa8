"""Sequences of symbols as windows of codes, laid out for a fit, in this process or on a cluster."""

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from scb.arrays import AnyArray, Array, Flags, Ints
from scb.inputs import InputError, InputTypeError
from scb.mixture.data import Data, Here, is_dask
from scb.mixture.partition import Partition, Shape
from scb.mixture.samples_in import PARTITION, source_of
from scb.mixture.windows import label_block, of_each, symbol_counts
from scb.sequences.doubts import warn_of_symbols
from scb.sequences.symbols import as_sequences, checked_classes, factorise, recoded
from scb.sequences.tables import Classes, Codes, Sequences


def windows_of_codes(
    codes: Sequence[Codes],
    N: int,
    max_lag: int,
    context: bool,
    skipped: int | Sequence[int] = 0,
    beside: Ints | None = None,
) -> Data:
    """The windows of sequences of codes: every symbol that follows another, with the max_lag
    symbols before it. Lag ℓ is position max_lag − ℓ. Without ``context`` all windows have current
    symbol 0.

    The first ``skipped`` symbols of each sequence are history only; ``skipped`` is one number for
    all sequences or one for each. ``beside`` (symbols, covariates) holds the codes of covariates.
    """
    partition, counts = _partition(codes, N, max_lag, context, skipped)
    if beside is not None:
        partition = replace(partition, beside=beside[labels_among(codes, skipped)])
    return _data(Here(), [partition], counts, max_lag, context)


def labels_among(codes: Sequence[Codes], skipped: int | Sequence[int] = 0) -> Flags:
    """(symbols,): which symbols of sequences are predicted, namely those that follow another,
    except the first ``skipped`` of each sequence.
    """
    labels = []
    for x, first in zip(codes, of_each(codes, skipped), strict=True):
        follows = np.append(np.zeros(min(x.size, 1), bool), (x[1:] >= 0) & (x[:-1] >= 0))
        follows[:first] = False
        labels.append(follows)
    return np.concatenate(labels)


def windows_of_symbols(
    X: Any, lengths: Any, max_lag: int, context: bool
) -> tuple[Data, Classes, int | None]:
    """The windows of sequences in any form that ``scb.sequences.symbols`` or, for Dask,
    ``scb.mixture.dask`` accepts; the symbols; and the common length of several sequences, if there
    is one.
    """
    if not is_dask(X):
        X = as_sequences(X, lengths)
    elif lengths is not None:
        raise InputError(
            "lengths can be given only for one long X in memory: pass a bag of sequences, or "
            "delayed sequences"
        )
    source = source_of("X", X, max_lag)
    executor = source.executor
    coded = source.read(_code, source.kind)
    summaries = executor.results(executor.map(_Coded.summary, zip(coded, strict=True)))
    symbols, shortest, longest, many = zip(*summaries, strict=True)
    classes = checked_classes(united_classes(symbols))
    if isinstance(X, Sequences):
        warn_of_symbols(classes, sum(X.lengths))
    held = executor.map(_windows, zip(coded, strict=True), classes, max_lag, context)
    counts = executor.total(executor.map(itemgetter(1), zip(held, strict=True)))
    partitions = executor.map(PARTITION, zip(held, strict=True))
    data = _data(executor, partitions, counts, max_lag, context)
    same = all(many) and min(shortest) == max(longest)
    return data, classes, max(longest) if same else None


def _data(executor: Any, partitions: list[Any], counts: Array, max_lag: int, context: bool) -> Data:
    """Partitions of windows as the data of a fit; ``counts`` (N,) says how often each symbol
    occurs.
    """
    shape = Shape(N=len(counts), K=len(counts) if context else 1, T=max_lag)
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
    """A piece of the data in codes of its own symbols; the first ``skipped`` of each sequence
    repeat the end of the piece before it.
    """

    codes: list[Codes]
    classes: Classes
    skipped: int
    many: bool

    def summary(self) -> tuple[AnyArray, float, int, bool]:
        """What the driver needs: the symbols, the shortest and longest sequence, and whether there
        are several.
        """
        lengths = [len(x) for x in self.codes]
        return self.classes, min(lengths, default=np.inf), max(lengths, default=0), self.many


def _code(piece: Any, skipped: int, kind: str) -> _Coded:
    """Encode a piece where it is stored. All of its symbols may be missing."""
    if kind == "here":
        return _Coded(*factorise(piece), skipped, piece.many)
    items: Any = list(piece) if kind == "bag" else piece
    many = kind != "array"
    if len(items) == 0:
        return _Coded([], np.zeros(0), 0, many)
    sequences = as_sequences(items)
    if kind == "bag" and not sequences.many:
        raise InputError(
            f"X is a bag that holds {items[0]!r}: it must hold sequences; pass one long sequence "
            "as a Dask array"
        )
    if kind == "delayed" and not sequences.many:
        sequences = as_sequences([items])
    return _Coded(*factorise(sequences), skipped, many)


def united_classes(classes: Sequence[AnyArray]) -> AnyArray:
    """The symbols of all pieces, sorted."""
    some = [x for x in classes if len(x)]
    if len({x.dtype.kind in "US" for x in some}) > 1:
        names = ", ".join(sorted({type(x[0].item()).__name__ for x in some}))
        raise InputTypeError(f"X holds symbols of type {names}: they must be of one type")
    return np.unique(np.concatenate(some)) if some else np.zeros(0)


def _windows(
    coded: _Coded, classes: Classes, max_lag: int, context: bool
) -> tuple[Partition, Array]:
    """The windows of a piece in codes of all symbols, and how often each symbol occurs, computed
    where the piece is stored.
    """
    codes = recoded(coded.codes, np.searchsorted(classes, coded.classes))
    return _partition(codes, len(classes), max_lag, context, coded.skipped)


def _partition(
    codes: Sequence[Codes], N: int, max_lag: int, context: bool, skipped: int | Sequence[int]
) -> tuple[Partition, Array]:
    """The windows of sequences of codes, and how often each symbol occurs in them."""
    block = label_block(codes, N, max_lag, by_last=context, skipped=skipped)
    new = [x[first:] for x, first in zip(codes, of_each(codes, skipped), strict=True)]
    return Partition.from_blocks([block]), symbol_counts(new, N)
