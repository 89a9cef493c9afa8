"""The data of a fit: samples that can be walked through several times, in parts, without being copied.

What is accepted, and how much of it is held in memory:

- a ``Batch``: used where it lies if its tokens are unsigned integers, else one compact copy;
- a list or tuple of batches, or anything else that can be iterated again and again: one batch at a time;
- a function without arguments that returns an iterator of batches: called anew for every pass, one batch at a time;
- an iterator of batches, which can be walked once only: it is kept as compact tokens (1 byte each up to N = 256);
- one sequence of tokens or a list of sequences, with ``max_lag``: every window of max_lag + 2 tokens is a sample;
- collections of Dask: see ``distributed``.

Everything that a fit asks of the samples themselves is a sum over them, and a method here or of ``Rows``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.mixture.likelihood import AnyRows, Rows
from scb.task.sampling import Batch, token_dtype

Ints = NDArray[np.int64]
ROWS = 1 << 14  # samples in a part
_INDEX = 1 << 22  # indices held at a time while gathering
_SLOTS = 64  # positions of each last token at a time, while counting pairs
_TINY = 1e-300
_TABLE = 1 << 22  # cells that equal rows are counted in, at most
HEAD = 1 << 30  # tokens of the data in which the spectral start is looked for


class Part(NamedTuple):
    """Some samples: token t of sample i is ``tokens[starts[i] + t]``."""

    tokens: NDArray[Any]
    starts: Ints
    last: Ints
    label: Ints

    def __len__(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.starts.size

    def rows(self, at: slice) -> Part:
        """Some of the samples; no token is copied."""
        return Part(self.tokens, self.starts[at], self.last[at], self.label[at])


@dataclass(frozen=True)
class Cells:
    """All rows that there can be at ``positions`` (K, s), numbered by last token, label and the tokens there."""

    N: int
    positions: NDArray[np.intp]

    @property
    def used(self) -> NDArray[np.intp]:
        """The slots that are more than background."""
        return np.flatnonzero((self.positions >= 0).any(axis=0))

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.positions) * int(self.N) * (int(self.N) + 1) ** self.used.size

    def are_few(self, n: int) -> bool:
        """Whether counting n samples by cell is worth while."""
        return self.size <= min(_TABLE, 4 * n)

    def number(self, last: Ints, label: Ints, tokens: NDArray[Any]) -> Ints:
        """(n,): the cell of each sample, from its tokens (n, s)."""
        code = last * self.N + label
        for j in self.used:
            code = code * (self.N + 1) + tokens[:, j]
        return code

    def rows(self, cells: Ints, weight: Array, index: Ints | None = None) -> Rows:
        """The rows with these numbers, each so many samples."""
        tokens = np.full((cells.size, self.positions.shape[1]), self.N, dtype=token_dtype(self.N + 1))
        for j in self.used[::-1]:
            cells, tokens[:, j] = np.divmod(cells, self.N + 1)
        last, label = np.divmod(cells, self.N)
        return Rows(tokens, last, label, weight, index)


class Samples(Protocol):
    """What a fit asks of its data, whether they lie here (``Data``) or elsewhere (``distributed.Partitioned``)."""

    @property
    def N(self) -> int: ...  # noqa: D102
    @property
    def K(self) -> int: ...  # noqa: D102
    @property
    def T(self) -> int: ...  # noqa: D102
    @property
    def n(self) -> int: ...  # noqa: D102
    @property
    def mu(self) -> Array: ...  # noqa: D102
    @property
    def independent(self) -> bool: ...  # noqa: D102
    @cached_property
    def by_label(self) -> Array: ...  # noqa: D102
    @property
    def label_law(self) -> Array: ...  # noqa: D102
    @property
    def counts(self) -> Array: ...  # noqa: D102
    def rows(self, positions: NDArray[np.intp], matrix: NDArray[np.intp] | None = None) -> AnyRows: ...  # noqa: D102
    def label_scores(  # noqa: D102
        self, table: Array, rows: Any = None, P: Array | None = None, q: Array | None = None
    ) -> Array: ...
    def law_scores(self, table: Array, rows: Any, P: Array, q: Array) -> Array: ...  # noqa: D102
    def source_tables(self, k: int, rows: Any, P: Array, q: Array) -> tuple[Array, Array]: ...  # noqa: D102
    def pair_tables(self, pairs: NDArray[np.intp]) -> Array: ...  # noqa: D102
    def chi_squares(self) -> Array: ...  # noqa: D102
    def thinned(self, samples: int) -> Samples: ...  # noqa: D102


@dataclass(frozen=True)
class Data:
    """Samples in parts, and what one pass over them counts.

    Attributes
    ----------
    whole : makes the parts anew for each pass, as large as they are stored
    N, K, T : tokens, contexts that choose the attention (the last tokens, or one for all), positions
    mu : (N,), how often each token occurs in the contexts
    last, label : (n,), of all samples in the order of the parts
    independent : whether contexts may be taken as iid tokens; not so for sequences
    """

    whole: Callable[[], Iterator[Part]]
    N: int
    K: int
    T: int
    mu: Array
    last: Ints
    label: Ints
    independent: bool

    @classmethod
    def of(cls, parts: Sequence[Part], N: int, K: int, T: int, mu: Array, independent: bool) -> Self:
        """Data that lie in these parts; there may be none."""
        last, label = (
            np.concatenate([np.zeros(0, np.int64), *(getattr(part, name) for part in parts)])
            for name in ("last", "label")
        )
        return cls(lambda: iter(parts), N, K, T, mu, last, label, independent)

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.last.size

    @cached_property
    def by_label(self) -> Array:
        """(K, N): samples with each last token and label."""
        code = np.bincount(self.last * self.N + self.label, minlength=self.K * self.N)
        return code.reshape(self.K, self.N).astype(float)

    @property
    def label_law(self) -> Array:
        """(N,): how often each token is the label."""
        return self.by_label.sum(axis=0) / self.n

    @property
    def counts(self) -> Array:
        """(K,): samples with each last token."""
        return self.by_label.sum(axis=1)

    @cached_property
    def order(self) -> tuple[Ints, Ints]:
        """(n,) samples sorted by last token, and (K + 1,) where each begins."""
        order = np.argsort(self.last, kind="stable")
        return order, np.searchsorted(self.last[order], np.arange(self.K + 1))

    def parts(self, rows: int = ROWS) -> Iterator[tuple[slice, Part]]:
        """Parts of at most ``rows`` samples, each with its place among all."""
        done = 0
        for part in self.whole():
            for first in range(0, len(part), rows):
                piece = part.rows(slice(first, first + rows))
                yield slice(done, done + len(piece)), piece
                done += len(piece)

    def head(self) -> Part:
        """The data itself if it is one part; else its first parts, up to ``HEAD`` tokens, as one."""
        pieces, size = [], 0
        for part in self.whole():
            pieces.append(part)
            size += part.tokens.size
            if size >= HEAD:
                break
        if len(pieces) == 1:
            return pieces[0]
        offsets = np.cumsum([0] + [p.tokens.size for p in pieces[:-1]])
        starts = [p.starts + offset for p, offset in zip(pieces, offsets, strict=True)]
        return Part(
            np.concatenate([p.tokens for p in pieces]),
            np.concatenate(starts),
            np.concatenate([p.last for p in pieces]),
            np.concatenate([p.label for p in pieces]),
        )

    def gather(self, positions: NDArray[np.intp]) -> NDArray[Any]:
        """(n, s): the tokens at ``positions[k]`` (K, s) of each sample, where k is its last token; token N at position −1."""
        out = np.empty((self.n, positions.shape[1]), dtype=token_dtype(self.N + 1))
        rows = max(1, min(ROWS, _INDEX // max(positions.shape[1], 1)))
        for at, part in self.parts(rows):
            chosen = positions[part.last]
            x = part.tokens[part.starts[:, None] + np.maximum(chosen, 0)]
            out[at] = np.where(chosen >= 0, x, self.N)
        return out

    def rows(self, positions: NDArray[np.intp], matrix: NDArray[np.intp] | None = None) -> Rows:
        """The samples at ``positions`` (K, s), where −1 is the background; equal ones as one row, if that makes far fewer.

        Slot j of last token k takes its column from matrix number ``matrix[k, j]``; all from one unless given.
        """
        cells, tokens = Cells(self.N, positions), self.gather(positions)
        if cells.are_few(self.n):
            code = cells.number(self.last, self.label, tokens)
            counts = np.bincount(code, minlength=cells.size)
            found = np.flatnonzero(counts)
            number = np.zeros(cells.size, np.int64)
            number[found] = np.arange(found.size)
            rows = cells.rows(found, counts[found].astype(float), number[code])
        else:
            rows = Rows(tokens, self.last, self.label, np.ones(self.n))
        return rows if matrix is None else rows.moved(matrix, self.N)

    def cells(self, positions: NDArray[np.intp]) -> tuple[Ints, Ints]:
        """The numbers of the rows that occur at ``positions`` (K, s), ascending, and how often each does."""
        code = Cells(self.N, positions).number(self.last, self.label, self.gather(positions))
        return np.unique(code, return_counts=True)

    def scores(self, table: Array, row: Ints, weight: Array) -> Array:
        """(K, T): Σ_i weight_i · table[row_i, x_it] over the samples with each last token."""
        from scb.kernels.pairs import add_pair_scores

        scores, table = np.zeros((self.K, self.T)), np.ascontiguousarray(table)
        for at, part in self.parts():
            order = np.argsort(part.last, kind="stable")
            add_pair_scores(part.tokens, part.starts, part.last, row[at], weight[at], order, table, scores)
        return scores

    def label_scores(
        self, table: Array, rows: Rows | None = None, P: Array | None = None, q: Array | None = None
    ) -> Array:
        """(K, T): Σ_i table[o_i, x_it], each term over the likelihood f_i of its row at (P, q) if they are given."""
        weight = np.ones(self.n) if rows is None or P is None or q is None else rows.spread(1 / rows.fits(P, q))
        return self.scores(table, self.label, weight)

    def law_scores(self, table: Array, rows: Rows, P: Array, q: Array) -> Array:
        """(K, T): Σ_i Σ_o table[o, x_it]/f_io, with the laws f_i of the rows at (P, q)."""
        inverse = 1 / np.maximum(rows.laws(P, q), _TINY)
        return self.scores(inverse @ table, rows.spread(np.arange(len(inverse))), np.ones(self.n))

    def source_tables(self, k: int, rows: Rows, P: Array, q: Array) -> tuple[Array, Array]:
        """Score and information (T, N, N), by position, token there and label, for a matrix that each position may get.

        They are of the samples with last token k, whose labels have the laws of the rows at (P, q).
        """
        from scb.kernels.pairs import add_source_tables

        scores, information = np.zeros((self.T, self.N, self.N)), np.zeros((self.T, self.N, self.N))
        inverse, row = 1 / np.maximum(rows.laws(P, q), _TINY), rows.spread(np.arange(len(rows.label)))
        for at, part in self.parts():
            chosen = np.flatnonzero(part.last == k)
            add_source_tables(part.tokens, part.starts, part.label, row[at], inverse, chosen, scores, information)
        return scores, information

    def pair_tables(self, pairs: NDArray[np.intp]) -> Array:
        """(r, N, N): how often each label came with each token at each (k, t) of ``pairs`` (r, 2), which are sorted by k."""
        N, columns = self.N, pairs[:, 0]
        counts = np.bincount(columns, minlength=self.K)
        slot = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
        positions = np.full((self.K, int(slot.max()) + 1), -1)
        positions[columns, slot] = pairs[:, 1]
        (order, bounds), tables = self.order, np.empty((len(pairs), N, N))
        for first in range(0, positions.shape[1], _SLOTS):
            code = self.label[:, None] * N + self.gather(positions[:, first : first + _SLOTS])
            for i in np.flatnonzero((first <= slot) & (slot < first + _SLOTS)):
                mine = order[bounds[columns[i]] : bounds[columns[i] + 1]]
                tables[i] = np.bincount(code[mine, slot[i] - first], minlength=N * N).reshape(N, N)
        return tables

    def chi_squares(self) -> Array:
        """(K, T): χ² of label against token, for contexts of iid tokens; of the first ``HEAD`` tokens of the data."""
        from scb.kernels.pairs import pair_chi_squares

        head, chi = self.head(), np.zeros((self.K, self.T))
        order = np.argsort(head.last, kind="stable")
        bounds = np.searchsorted(head.last[order], np.arange(self.K + 1))
        pair_chi_squares(head.tokens, head.starts, head.label, order, bounds, self.mu, chi)
        return chi

    def thinned(self, samples: int) -> Data:
        """At most so many of the samples, in blocks that lie evenly among all."""
        return self if self.n <= samples else self.thinned_from(0, self.n / samples)

    def thinned_from(self, first: int, stride: float) -> Data:
        """One block in ``stride``, where sample 0 has the number ``first`` among all."""
        block = 1 << 10
        return self.only((first + np.arange(self.n)) // block / stride % 1 < 1 / stride)

    def cut(self, n: int) -> tuple[Data, Data]:
        """The first n samples, and the others."""
        first = np.arange(self.n) < n
        return self.only(first), self.only(~first)

    def only(self, chosen: NDArray[np.bool_]) -> Data:
        """Those of the samples (n,) that are chosen; no token is copied."""
        parts, done = [], 0
        for part in self.whole():
            kept = np.flatnonzero(chosen[done : done + len(part)])
            parts.append(Part(part.tokens, part.starts[kept], part.last[kept], part.label[kept]))
            done += len(part)
        return type(self).of(parts, self.N, self.K, self.T, self.mu, self.independent)


def check_sizes(N: int | None, max_lag: int | None) -> None:
    """Refuse what makes no sense, before any data are looked at."""
    if N is not None and (not isinstance(N, int | np.integer) or N < 2):
        raise ValueError(f"N = {N}: there must be at least 2 tokens")
    if max_lag is not None and (not isinstance(max_lag, int | np.integer) or max_lag < 1):
        raise ValueError(f"max_lag = {max_lag}: it must be at least 1")


def as_data(data: Any, N: int | None = None, max_lag: int | None = None) -> Data:
    """Check ``data`` in one pass and make it walkable; see the module's text for what is accepted."""
    check_sizes(N, max_lag)
    if max_lag is not None:
        batches = _windows(data, max_lag)
        return _counted(batches, N, independent=False)
    if isinstance(data, Batch):
        parts = [as_part(data, N)]
        return _counted(lambda: iter(parts), N)
    if callable(data):
        return _counted(lambda: (as_part(b, N) for b in data()), N)  # type: ignore[union-attr]
    if isinstance(data, np.ndarray) or not isinstance(data, Iterable):
        raise ValueError(
            f"data is of type {type(data).__name__}: it must be a Batch, batches, or a sequence of tokens with max_lag"
        )
    if isinstance(data, Iterator):
        parts = [as_part(b, N) for b in data]
        return _counted(lambda: iter(parts), N)
    return _counted(lambda: (as_part(b, N) for b in data), N)


def as_part(batch: Any, N: int | None) -> Part:
    """A checked batch as a part, in compact tokens."""
    if not isinstance(batch, Batch):
        raise ValueError(
            f"data holds {type(batch).__name__}: it must hold Batches; sequences of tokens want max_lag as well"
        )
    last, label = as_tokens("last", batch.last, N), as_tokens("label", batch.label, N)
    tokens = as_tokens("context", np.ascontiguousarray(batch.context).reshape(-1), N)
    n, T = batch.context.shape
    if n and T < 1:
        raise ValueError(f"context has shape {batch.context.shape}: there must be at least 1 position")
    return Part(tokens, np.arange(n, dtype=np.int64) * T, last.astype(np.int64), label.astype(np.int64))


def _windows(data: Any, max_lag: int) -> Callable[[], Iterator[Part]]:
    """Every window of max_lag + 2 tokens of one or several sequences: context, last token, label."""
    if isinstance(data, Batch):
        raise ValueError("data is a Batch, whose context has its length already: leave max_lag out")
    if isinstance(data, Sequence | Iterable) and not isinstance(data, np.ndarray):
        data = list(data)
        several = bool(data) and np.ndim(data[0]) == 1
    else:
        data, several = np.asarray(data), False
    sequences = [np.asarray(s) for s in data] if several else [np.asarray(data)]
    parts = sequence_parts(sequences, max_lag)
    if not parts:
        raise too_short(max((s.size for s in sequences), default=0), max_lag)
    return lambda: iter(parts)


def sequence_parts(sequences: Sequence[NDArray[Any]], max_lag: int) -> list[Part]:
    """The windows of each sequence that has any."""
    parts = []
    for i, sequence in enumerate(sequences):
        if sequence.ndim != 1:
            raise ValueError(f"sequence {i} has shape {sequence.shape}: it must be one-dimensional")
        tokens = as_tokens(f"sequence {i}", sequence, None) if sequence.size else np.empty(0, np.uint8)
        n = tokens.size - max_lag - 1
        if n > 0:
            last, label = tokens[max_lag:-1].astype(np.int64), tokens[max_lag + 1 :].astype(np.int64)
            parts.append(Part(tokens, np.arange(n, dtype=np.int64), last, label))
    return parts


def too_short(longest: int, max_lag: int) -> ValueError:
    """No sequence has a window."""
    return ValueError(
        f"the longest sequence has {longest} tokens: with max_lag = {max_lag}, at least {max_lag + 2} are needed"
    )


def as_tokens(name: str, values: Any, N: int | None) -> NDArray[Any]:
    """Tokens as the smallest unsigned integers; the same array if it has such a type already."""
    values = np.asarray(values)
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError(f"{name} holds NaN: tokens must be integers from 0 on")
    if values.dtype.kind not in "iu":
        raise ValueError(f"{name} has dtype {values.dtype}: tokens must be integers from 0 on")
    if values.size and values.dtype.kind == "i" and values.min() < 0:
        raise ValueError(f"{name} holds {values.min()}: tokens must be integers from 0 on")
    top = int(values.max()) if values.size else 0
    if N is not None and top >= N:
        raise ValueError(f"{name} holds token {top}: with N = {N}, tokens must lie in [0, {N - 1}]")
    if top >= 1 << 16:
        raise ValueError(f"{name} holds token {top}: tokens must be numbered 0, 1, 2, … (at most 65536 of them)")
    kind = token_dtype(top + 1)
    return values if values.dtype.kind == "u" and values.dtype.itemsize <= 2 else values.astype(kind)


def _counted(whole: Callable[[], Iterator[Part]], N: int | None, independent: bool = True) -> Data:
    """One pass: sizes, token counts, last tokens and labels."""
    seen = look_at(whole(), independent)
    size, T, mu = agreed([seen], N)
    last, label = np.concatenate(seen.lasts), np.concatenate(seen.labels)
    return Data(whole, size, size, T, mu, last, label, independent)


class Seen(NamedTuple):
    """What one pass over samples finds: their numbers of positions, token counts, last tokens and labels by part."""

    T: list[int]
    counts: Array
    lasts: list[Ints]
    labels: list[Ints]
    top: int


def look_at(parts: Iterable[Part], independent: bool) -> Seen:
    """One pass; there may be no samples. ``top`` is one more than the largest token."""
    from scb.kernels.pairs import count_tokens

    counts, lasts, labels, T = np.zeros(0), [], [], []
    for part in parts:
        if len(part) == 0:
            continue
        length = part.tokens.size // len(part) if independent else T[0] if T else part.tokens.size - len(part) - 1
        T += [] if length in T else [length]
        counts = np.pad(counts, (0, max(0, int(part.tokens.max()) + 1 - counts.size)))
        count_tokens(part.tokens, counts)
        lasts.append(part.last)
        labels.append(part.label)
    top = max((int(x.max()) + 1 for x in lasts + labels), default=0)
    return Seen(T, counts, lasts, labels, max(counts.size, top))


def agreed(seen: Sequence[Seen], N: int | None) -> tuple[int, int, Array]:
    """N, T and μ, from what was seen in all places."""
    lengths, top = list(dict.fromkeys(T for one in seen for T in one.T)), max(one.top for one in seen)
    if not lengths:
        raise ValueError("data is empty: there must be at least 1 sample")
    if len(lengths) > 1:
        raise ValueError(
            f"data holds batches with T = {lengths[0]} and with T = {lengths[1]} positions: they must agree"
        )
    if N is not None and top > N:
        raise ValueError(f"data holds token {top - 1}: with N = {N}, tokens must lie in [0, {N - 1}]")
    size = max(top, 2) if N is None else N
    counts = sum(np.pad(one.counts, (0, size - one.counts.size)) for one in seen)
    return size, lengths[0], counts / np.sum(counts)
