"""Data that lie on the workers of a Dask cluster: the sums of a fit are taken there, and only sums come back.

What is accepted, where a partition is a chunk of the array, a partition of the bag, or one delayed object:

- ``recover``: a list of delayed ``Batch``es or a bag of them; with ``max_lag``, a 1-D array of tokens, which is one long
  sequence, a bag of sequences, or a list of delayed ones;
- the estimator: a 1-D array of symbols, a 2-D array whose rows are sequences, a bag of sequences, a list of delayed ones.

Each partition becomes a ``Data`` in compact tokens, which stays on its worker. ``Partitioned`` has the methods of ``Data``: it
runs them on every partition and adds up the answers, in the order of the partitions. So a fit is the one that a single machine
makes, but for the rounding of sums. Without a cluster, the partitions lie in this process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.mixture.data import (
    Cells,
    Data,
    Part,
    Seen,
    agreed,
    as_part,
    as_tokens,
    check_sizes,
    look_at,
    sequence_parts,
    too_short,
)
from scb.mixture.likelihood import Rows, Sums
from scb.mixture.sequences import no_window, symbol_counts, window_parts
from scb.mixture.tails import level_search
from scb.provenance import code_digest, require_code
from scb.sequences.symbols import as_sequences, encode
from scb.task.sampling import Batch

_TOGETHER = 8  # answers that are added in one place
_LARGE = 1 << 16  # bytes: larger arguments are sent once, not with every task
_KEY = "scb_fit"  # of tasks
_CELLS = 1 << 20  # cells of the tables of pairs that are asked for at a time


# ----------------------------------------------------------------------------------------------------- workers


class Workers(Protocol):
    """Where partitions lie and functions of them run."""

    def hold(self, function: Callable[..., Any], delayed: Iterable[tuple[Any, ...]], *same: Any) -> list[Any]:
        """As ``map``, of delayed objects."""
        ...

    def map(self, function: Callable[..., Any], held: Iterable[tuple[Any, ...]], *same: Any) -> list[Any]:
        """The function of each tuple of held objects and the ``same`` arguments; the answers are kept there."""
        ...

    def results(self, held: Sequence[Any]) -> list[Any]:
        """Bring answers here."""
        ...


class Here:
    """No cluster: everything lies in this process."""

    def hold(self, function: Callable[..., Any], delayed: Iterable[tuple[Any, ...]], *same: Any) -> list[Any]:
        """As ``Workers.hold``; threads of Dask read the data."""
        from dask.base import compute

        return list(compute(*_delayed(function, delayed, *same), scheduler="threads"))

    def map(self, function: Callable[..., Any], held: Iterable[tuple[Any, ...]], *same: Any) -> list[Any]:
        """As ``Workers.map``."""
        return [function(*mine, *same) for mine in held]

    def results(self, held: Sequence[Any]) -> list[Any]:
        """As ``Workers.results``."""
        return list(held)


class Cluster:
    """The workers of a client. What is held are futures: if a worker dies, Dask makes what it held again, from the source.

    All tasks have keys of one kind, and the first does nothing: Dask takes tasks of an unknown kind for slow, and would move data
    to workers that have less to do.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        client.submit(_added, [0], key=_key(), pure=False).result()

    def hold(self, function: Callable[..., Any], delayed: Iterable[tuple[Any, ...]], *same: Any) -> list[Any]:
        """As ``Workers.hold``; a worker with another code is refused."""
        return self.client.compute(_delayed(partial(_checked, function, code_digest()), delayed, *same))

    def map(self, function: Callable[..., Any], held: Iterable[tuple[Any, ...]], *same: Any) -> list[Any]:
        """As ``Workers.map``."""
        import dask.config
        from dask.sizeof import sizeof

        columns: list[Any] = [list(column) for column in zip(*held, strict=True)]
        if sizeof(same) > _LARGE:
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
                sent = self.client.submit(_Sent, same, key=_key(), pure=False)
            columns, same = [*columns, [sent] * len(columns[0])], ()
        return self.client.map(_apply, *columns, function=function, same=same, key=_KEY, pure=False)

    def results(self, held: Sequence[Any]) -> list[Any]:
        """As ``Workers.results``."""
        return self.client.gather(list(held))


def workers() -> Workers:
    """The cluster of the current client; this process if there is none."""
    if "distributed" not in sys.modules:
        return Here()
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:
        return Here()
    if client.asynchronous:
        raise ValueError("the Dask client is asynchronous: fits need a synchronous one")
    return Cluster(client)


def total(workers: Workers, held: list[Any]) -> Any:
    """The sum of arrays, or of tuples of them; of many, first on the workers, a few at a time."""
    while len(held) > _TOGETHER:
        held = workers.map(_added, [(held[i : i + _TOGETHER],) for i in range(0, len(held), _TOGETHER)])
    return _added(workers.results(held))


def _delayed(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], *same: Any) -> list[Any]:
    from dask.delayed import delayed

    return [delayed(function)(*mine, *same, dask_key_name=_key()) for mine in arguments]


def _key() -> str:
    return f"{_KEY}-{uuid4()}"


def _added(parts: list[Any]) -> Any:
    if isinstance(parts[0], tuple):
        return tuple(reduce(add, column) for column in zip(*parts, strict=True))
    return reduce(add, parts)


def _checked(function: Callable[..., Any], code: str, *arguments: Any) -> Any:
    """On a worker: the function, if the worker has the driver's code."""
    require_code(code)
    return function(*arguments)


def _apply(*mine: Any, function: Callable[..., Any], same: tuple[Any, ...]) -> Any:
    """On a worker: ``same`` is empty where it was sent on its own, as the last of ``mine``."""
    return function(*mine, *same) if same or not isinstance(mine[-1], _Sent) else function(*mine[:-1], *mine[-1])


class _Sent(tuple[Any, ...]):
    """Arguments that were sent once."""

    __slots__ = ()


# ----------------------------------------------------------------------------------------------------- rows


@dataclass(frozen=True)
class PartitionedRows:
    """``Rows`` that stay on the workers, where they are too different to be counted; one round trip for each sum."""

    workers: Workers
    held: list[Any]

    def _total(self, function: Callable[..., Any], *same: Any) -> Any:
        return total(self.workers, self.workers.map(function, zip(self.held, strict=True), *same))

    def of(self, k: int) -> PartitionedRows:
        """As ``Rows.of``."""
        return PartitionedRows(self.workers, self.workers.map(Rows.of, zip(self.held, strict=True), k))

    def evaluate(self, P: Array, q: Array) -> Sums:
        """As ``Rows.evaluate``."""
        return Sums(*self._total(Rows.evaluate, P, q))

    def curvature(self, P: Array, q: Array) -> tuple[Array, Array, Array]:
        """As ``Rows.curvature``."""
        return self._total(Rows.curvature, P, q)

    def information(self, P: Array, q: Array) -> tuple[Array, Array, Array]:
        """As ``Rows.information``."""
        return self._total(Rows.information, P, q)

    def pairs(self, j: int, N: int) -> Array:
        """As ``Rows.pairs``."""
        return self._total(Rows.pairs, j, N)

    def loglik_of(self, P: Array, q: Array) -> Array:
        """As ``Rows.loglik_of``."""
        return self._total(Rows.loglik_of, P, q)

    def score_levels(self, U: Array, P: Array, q: Array, mu: Array, z: Array) -> Array:
        """As ``Rows.score_levels``; the searches of all last tokens go side by side, one round trip for a step of each."""
        at = U, P, q, mu
        levels = np.full(len(q), np.inf)
        searches = {k: level_search(v, z[k]) for k, v in enumerate(self._total(_variances, *at))}
        answers: dict[int, Any] = dict.fromkeys(searches)
        while answers:
            asked = {}
            for k, answer in answers.items():
                try:
                    asked[k] = searches[k].send(answer)
                except StopIteration as end:
                    levels[k] = end.value
            sums = self._total(_cumulants, *at, asked) if asked else []
            answers = dict(zip(asked, sums, strict=True))
        return levels


def _variances(rows: Rows, *at: Array) -> Array:
    """(K,): of the scores of each last token's rows."""
    return np.array([rows.noise(k, *at).variance for k in range(len(at[2]))])


def _cumulants(rows: Rows, U: Array, P: Array, q: Array, mu: Array, asked: dict[int, float]) -> Array:
    """(r, 3): for each last token asked for, at its θ."""
    return np.array([rows.noise(k, U, P, q, mu).cumulants(theta) for k, theta in asked.items()])


@dataclass(frozen=True)
class CountedRows(Rows):
    """The rows of all partitions, counted; here, since they are few. No round trip for their sums."""

    make: Callable[[], list[Any]] = list

    @cached_property
    def held(self) -> list[Any]:
        """The partitions' own rows, on the workers, for what asks for the samples as well."""
        return self.make()


# ----------------------------------------------------------------------------------------------------- data


class Partition(Data):
    """The data of one partition; Dask learns how large they are, so that it does not move them about."""

    def __sizeof__(self) -> int:
        return self.last.nbytes + self.label.nbytes + _bytes(self.whole())


def _bytes(parts: Iterable[Part]) -> int:
    return sum(sum(x.nbytes for x in part) for part in parts)


@dataclass(frozen=True)
class Partitioned:
    """Data in partitions, with the methods of ``Data`` that a fit uses.

    Attributes
    ----------
    held : a ``Partition`` each, on the workers
    sizes : samples in each
    """

    workers: Workers
    held: list[Any]
    sizes: list[int]
    N: int
    K: int
    T: int
    mu: Array
    independent: bool

    def _each(self, function: Callable[..., Any], *same: Any) -> list[Any]:
        return self.workers.map(function, zip(self.held, strict=True), *same)

    def _total(self, function: Callable[..., Any], *same: Any) -> Any:
        return total(self.workers, self._each(function, *same))

    @property
    def n(self) -> int:
        """Number of samples."""
        return sum(self.sizes)

    @cached_property
    def by_label(self) -> Array:
        """As ``Data.by_label``."""
        return self._total(_by_label)

    @property
    def label_law(self) -> Array:
        """As ``Data.label_law``."""
        return self.by_label.sum(axis=0) / self.n

    @property
    def counts(self) -> Array:
        """As ``Data.counts``."""
        return self.by_label.sum(axis=1)

    def rows(
        self, positions: NDArray[np.intp], matrix: NDArray[np.intp] | None = None
    ) -> CountedRows | PartitionedRows:
        """As ``Data.rows``: counted here exactly where one machine would count them."""
        cells = Cells(self.N, positions)
        if not cells.are_few(self.n):
            return PartitionedRows(self.workers, self._each(Data.rows, positions, matrix))
        counts = np.zeros(cells.size)
        for found, times in self.workers.results(self._each(_cells, positions)):
            counts[found] += times
        found = np.flatnonzero(counts)
        rows = cells.rows(found, counts[found])
        rows = rows if matrix is None else rows.moved(matrix, self.N)
        return CountedRows(*rows.samples, make=lambda: self._each(Data.rows, positions, matrix))

    def _scores(self, name: str, rows: CountedRows | PartitionedRows, *same: Any) -> Any:
        held = zip(self.held, rows.held, strict=True)
        return total(self.workers, self.workers.map(_with_rows, held, name, *same))

    def label_scores(
        self,
        table: Array,
        rows: CountedRows | PartitionedRows | None = None,
        P: Array | None = None,
        q: Array | None = None,
    ) -> Array:
        """As ``Data.label_scores``."""
        return (
            self._total(Data.label_scores, table) if rows is None else self._scores("label_scores", rows, table, P, q)
        )

    def law_scores(self, table: Array, rows: CountedRows | PartitionedRows, P: Array, q: Array) -> Array:
        """As ``Data.law_scores``."""
        return self._scores("law_scores", rows, table, P, q)

    def source_tables(self, k: int, rows: CountedRows | PartitionedRows, P: Array, q: Array) -> tuple[Array, Array]:
        """As ``Data.source_tables``."""
        return self._scores("source_tables", rows, k, P, q)

    def pair_tables(self, pairs: NDArray[np.intp]) -> Array:
        """As ``Data.pair_tables``."""
        return self._total(Data.pair_tables, pairs)

    def chi_squares(self) -> Array:
        """As ``Data.chi_squares``, from all samples; −∞ where it is not known, because others look larger.

        χ² is no sum, but the tables of pairs are. Where those of all (k, t) are too many, a sum says which to ask for: the χ² of
        the partitions, Σ_b C_b²/E_b ≥ (Σ_b C_b)²/Σ_b E_b.
        """
        chi, most = np.full((self.K, self.T), -np.inf), max(64, _CELLS // self.N**2)
        chosen = np.ones(chi.shape, bool)
        if chi.size > most:
            bound, B = self._total(Data.chi_squares), len(self.held)
            freedom = np.maximum((self.by_label > 0).sum(axis=1) * ((self.mu > 0).sum() - 1), 1)[:, None]
            excess = (bound - B * freedom) / np.sqrt(freedom)
            chosen = excess >= np.partition(excess, -most, axis=None)[-most]
        pairs = np.argwhere(chosen)
        expected = self.by_label[pairs[:, 0], :, None] * self.mu
        tables = self.pair_tables(pairs)
        terms = np.divide(tables**2, expected, out=np.zeros_like(tables), where=expected > 0)
        chi[chosen] = terms.sum(axis=(1, 2)) - self.counts[pairs[:, 0]]
        return chi

    def thinned(self, samples: int) -> Partitioned:
        """As ``Data.thinned``: the same samples."""
        if self.n <= samples:
            return self
        firsts = np.cumsum([0, *self.sizes[:-1]]).tolist()
        held = self.workers.map(Data.thinned_from, zip(self.held, firsts, strict=True), self.n / samples)
        return _partitioned(self.workers, held, self.N, self.K, self.T, self.mu, self.independent)


def _partitioned(workers: Workers, held: list[Any], *sizes: Any) -> Partitioned:
    return Partitioned(workers, held, workers.results(workers.map(_size, zip(held, strict=True))), *sizes)


def _size(data: Data) -> int:
    return data.n


def _by_label(data: Data) -> Array:
    return data.by_label


def _cells(data: Data, positions: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[Any]]:
    """``Data.cells`` in few bytes."""
    found, times = data.cells(positions)
    return tuple(x.astype(np.min_scalar_type(x.max(initial=0))) for x in (found, times))  # pyright: ignore


def _with_rows(data: Data, rows: Rows, name: str, first: Any, *at: Array) -> Any:
    return getattr(data, name)(first, rows, *at)


# ----------------------------------------------------------------------------------------------------- reading


class Source(NamedTuple):
    """Delayed objects, one for a partition, and what they hold.

    Attributes
    ----------
    kind : "array", "rows", "bag" or "delayed"
    before : for an array, how many of each one's first tokens belong to the partition before it
    """

    delayed: list[Any]
    kind: str
    before: list[int]

    def pieces(self) -> Iterable[tuple[Any, int]]:
        """Each delayed object, and how many of its first tokens are another's."""
        return zip(self.delayed, self.before, strict=True)


@dataclass(frozen=True)
class Piece:
    """A partition as it was read: its samples, what was seen, and the length of its longest sequence."""

    parts: list[Part]
    seen: Seen
    longest: int

    def __sizeof__(self) -> int:
        return _bytes(self.parts)


def as_partitioned(data: Any, N: int | None = None, max_lag: int | None = None) -> Partitioned:
    """``as_data`` for collections of Dask."""
    check_sizes(N, max_lag)
    source, where = _source("data", data, 0 if max_lag is None else int(max_lag) + 1), workers()
    if source.kind == "rows" or (source.kind == "array" and max_lag is None):
        raise ValueError(
            "data is a Dask array: with max_lag, a 1-D one is a sequence; batches are delayed, or in a bag"
        )
    held = where.hold(_read, source.pieces(), source.kind, N, max_lag)
    seen, longest = zip(*where.results(where.map(_summary, zip(held, strict=True))), strict=True)
    if max_lag is not None and not any(one.T for one in seen):
        raise too_short(data.shape[0] if source.kind == "array" else max(longest), max_lag)
    size, T, mu = agreed(seen, N)
    return _placed(where, held, size, size, T, mu, max_lag is None)


def _placed(workers: Workers, pieces: list[Any], *sizes: Any) -> Partitioned:
    held = workers.map(_partition, zip(pieces, strict=True), *sizes)
    return _partitioned(workers, held, *sizes)


def _partition(piece: Piece, *sizes: Any) -> Partition:
    return Partition.of(piece.parts, *sizes)


def _source(name: str, data: Any, overlap: int) -> Source:
    """Delayed partitions; those of an array begin with the ``overlap`` tokens before them."""
    family = type(data).__module__.split(".")[:2]
    if family == ["dask", "array"]:
        return _array_source(name, data, overlap)
    if family == ["dask", "bag"] and hasattr(data, "to_delayed"):
        delayed, kind = data.to_delayed(), "bag"
    else:
        delayed, kind = list(data) if isinstance(data, list | tuple) else [data], "delayed"
    for x in delayed:
        if type(x).__module__ != "dask.delayed":
            raise TypeError(
                f"{name} holds {type(x).__name__}: of Dask, an array, a bag or a list of delayed objects is accepted"
            )
    return Source(delayed, kind, [0] * len(delayed))


def _array_source(name: str, data: Any, overlap: int) -> Source:
    if data.ndim not in (1, 2):
        raise ValueError(f"{name} has {data.ndim} dimensions: one sequence has 1, rows of sequences have 2")
    if np.isnan(sum(data.shape)):
        data = data.compute_chunk_sizes()
    if data.ndim == 2:
        delayed = data.rechunk({1: -1}).to_delayed().ravel().tolist()
        return Source(delayed, "rows", [0] * len(delayed))
    stops = np.cumsum(data.chunks[0]).tolist()
    starts = [0, *stops[:-1]]
    before = [min(start, overlap) for start in starts]
    delayed = [
        data[start - b : stop].rechunk(-1).to_delayed().item()
        for start, stop, b in zip(starts, stops, before, strict=True)
    ]
    return Source(delayed, "array", before)


def _read(data: Any, before: int, kind: str, N: int | None, max_lag: int | None) -> Piece:
    """On a worker: a partition for ``recover``."""
    items = list(data) if kind == "bag" else [data]
    if max_lag is None:
        items = [batch for x in items for batch in (x if isinstance(x, list | tuple) else [x])]
        parts = [as_part(batch, N) for batch in items]
        return Piece(parts, look_at(parts, independent=True), 0)
    if any(isinstance(x, Batch) for x in items):
        raise ValueError("data holds Batches, whose contexts have their length already: leave max_lag out")
    sequences = [np.asarray(x) for x in items]
    parts = sequence_parts(sequences, max_lag)
    longest = max((x.size for x in sequences), default=0)
    if kind != "array":
        return Piece(parts, look_at(parts, independent=False), longest)
    own = as_tokens("data", sequences[0][before:], None)
    counts = np.bincount(own).astype(float)
    return Piece(parts, Seen([max_lag] if parts else [], counts, [], [], counts.size), longest)


def _summary(piece: Piece) -> tuple[Seen, int]:
    """What the driver needs to know of a partition."""
    return piece.seen._replace(lasts=[], labels=[]), piece.longest


# ----------------------------------------------------------------------------------------------------- symbols


class Windows(NamedTuple):
    """The windows of an estimator: the data, their sorted symbols, and the length of all sequences if there are many of one."""

    data: Partitioned
    classes: NDArray[Any]
    width: int | None


@dataclass(frozen=True)
class Coded:
    """A partition in codes of its own symbols, −1 where one is missing."""

    codes: list[NDArray[np.int64]]
    classes: NDArray[Any]
    before: int

    def __sizeof__(self) -> int:
        return sum(x.nbytes for x in self.codes)


def partitioned_windows(X: Any, max_lag: int, context: bool) -> Windows:
    """``symbols.encode`` and ``sequences.windows`` for collections of Dask."""
    source, where = _source("X", X, max_lag), workers()
    coded = where.hold(_code, source.pieces(), source.kind)
    classes, shortest, longest = zip(*where.results(where.map(_symbols, zip(coded, strict=True))), strict=True)
    known = _united(classes)
    pieces = where.map(_windows, zip(coded, strict=True), known, max_lag, context)
    counts, n = total(where, where.map(_counts, zip(pieces, strict=True)))
    low, high = min(shortest), X.shape[0] if source.kind == "array" else max(longest)
    if n == 0:
        raise no_window(high, max_lag)
    N = len(known)
    data = _placed(where, pieces, N, N if context else 1, max_lag, counts / counts.sum(), False)
    return Windows(data, known, int(high) if source.kind != "array" and low == high else None)


def _code(X: Any, before: int, kind: str) -> Coded:
    """On a worker: a partition in codes."""
    items: Any = list(X) if kind == "bag" else X
    if len(items) == 0:
        return Coded([], np.zeros(0), 0)
    sequences = as_sequences(items)
    if kind == "bag" and not sequences.many:
        raise ValueError(f"X is a bag that holds {items[0]!r}: it must hold sequences; one long one is a Dask array")
    if kind == "delayed" and not sequences.many:
        sequences = as_sequences([items])
    try:
        return Coded(*encode(sequences), before)
    except ValueError as error:
        if "all are missing" not in str(error):
            raise
        return Coded([np.full(length, -1) for length in sequences.lengths], np.zeros(0), before)


def _symbols(coded: Coded) -> tuple[NDArray[Any], float, int]:
    """The symbols of a partition, and the lengths of its shortest and longest sequences."""
    lengths = [len(x) for x in coded.codes]
    return coded.classes, min(lengths, default=np.inf), max(lengths, default=0)


def _united(classes: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The symbols of all partitions, sorted; checked as those of one are."""
    some = [x for x in classes if len(x)]
    if len({x.dtype.kind in "US" for x in some}) > 1:
        names = ", ".join(sorted({type(x[0].item()).__name__ for x in some}))
        raise TypeError(f"X holds symbols of type {names}: they must be of one type")
    together = np.concatenate(some) if some else np.zeros(0)
    return encode(as_sequences(together if len(together) else [None]))[1]


def _windows(coded: Coded, classes: NDArray[Any], max_lag: int, context: bool) -> Piece:
    """On a worker: codes of all symbols, and the windows."""
    place = np.append(np.searchsorted(classes, coded.classes), -1)
    codes, N = [place[x] for x in coded.codes], len(classes)
    counts = symbol_counts([x[coded.before :] for x in codes], N)
    return Piece(window_parts(codes, N, max_lag, context), Seen([], counts, [], [], N), 0)


def _counts(piece: Piece) -> tuple[Array, int]:
    return piece.seen.counts, sum(len(part) for part in piece.parts)
