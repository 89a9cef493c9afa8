"""The data of a fit: partitions, and the executor that runs functions of them where they lie.

Every method is a sum over partitions, taken in their order. On one machine there is one partition
in this process; with Dask the partitions lie on workers, and only sums come back. A fit is the same
code for both, and its result the same but for the rounding of sums.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add, attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.mixture.levels import cumulants, score_levels, variances
from scb.mixture.model import Background, Mixture
from scb.mixture.partition import Partition, Shape
from scb.mixture.rows import ContextScores, RowCode, RowTable, Slots

if TYPE_CHECKING:
    from scb.mixture.dask import Workers

SIZE = attrgetter("n")
_NEARLY_ALL = 0.95
LARGEST_TABLES = 1 << 20  # entries of the tables of pairs that are asked for at a time


class Here:
    """An executor: this process holds the partitions and runs everything. The other one is
    ``dask.Workers``.
    """

    def compute(self, delayed: list[Any]) -> list[Any]:
        """Hold what Dask's delayed objects give; its threads read them."""
        from dask.base import compute

        return list(compute(*delayed, scheduler="threads"))

    def map(
        self, function: Callable[..., Any], held: Iterable[tuple[Any, ...]], *same: Any
    ) -> list[Any]:
        """Apply a function to each tuple of held objects and the ``same`` arguments; the answers
        are held.
        """
        return [function(*mine, *same) for mine in held]

    def results(self, held: Sequence[Any]) -> list[Any]:
        """Bring what is held here, where it is already."""
        return list(held)

    def total(self, held: list[Any]) -> Any:
        """Bring the sum here of arrays, or of tuples of them; they are added in the order of the
        partitions.
        """
        return added(held)


def added(terms: list[Any]) -> Any:
    """The sum of arrays, or of tuples of arrays entry by entry."""
    first = terms[0]
    if isinstance(first, tuple):
        sums = (reduce(add, column) for column in zip(*terms, strict=True))
        make = getattr(first, "_make", tuple)  # a named tuple stays one
        return make(sums)
    return reduce(add, terms)


@dataclass(frozen=True)
class Rows:
    """The samples of all partitions at some slots."""

    # Runs functions of what is ``held``
    executor: "Here | Workers"
    # a ``RowTable`` for each partition, beside it
    held: list[Any]
    # The rows of all partitions together, here; None where they are too different to be counted
    counted: RowTable | None

    def total(self, function: Callable[..., Any], *same: Any) -> Any:
        """The sum of a function of ``RowTable`` over all rows."""
        if self.counted is not None:
            return function(self.counted, *same)
        return self.executor.total(self.mapped(function, *same).held)

    def mapped(self, function: Callable[..., Any], *same: Any) -> "Rows":
        """What a function makes of the rows, held where they lie; of the counted ones, here, where
        there are any.
        """
        if self.counted is not None:
            return replace(self, held=[], counted=function(self.counted, *same))
        return replace(self, held=self.executor.map(function, zip(self.held, strict=True), *same))

    def alone(self) -> "Rows | None":
        """The rows in this process, without the numbers of the samples; None where they lie
        elsewhere.
        """
        if self.counted is not None:
            return Rows(Here(), [], self.counted.alone())
        if not all(isinstance(table, RowTable) for table in self.held):
            return None
        return Rows(Here(), [table.alone() for table in self.held], None)

    @property
    def nbytes(self) -> int:
        """Memory of the rows in this process."""
        return sum(
            sys.getsizeof(table)
            for table in (self.held if self.counted is None else [self.counted])
        )

    def score_levels(self, U: Array, at: Mixture, mu: Array, z: Array) -> Array:
        """(K,): what Σ_i U[o_i, x_i]/f_i reaches as rarely as a Gaussian z standard deviations, for
        tokens x iid μ; ∞ if never.
        """
        noises = self.mapped(ContextScores, U, at, mu)
        # One round trip to the partitions serves a step of all contexts' searches.
        return score_levels(noises.total(variances, len(z)), z, partial(noises.total, cumulants))


@dataclass(frozen=True)
class Data:
    """All samples of a fit."""

    executor: "Here | Workers"  # holds the partitions
    # a ``Partition`` each, or what stands for it where the executor keeps it
    partitions: list[Any]
    sizes: list[int]  # samples in each
    shape: Shape  # numbers of tokens, contexts and positions
    # (N,), how often each token occurs in the contexts
    mu: Array
    # Whether contexts may be taken as iid tokens; not so for sequences
    independent: bool
    own_background: bool = False  # whether samples have backgrounds of their own
    tokens: float = np.nan  # how many tokens there are in sequences, where they were counted

    @classmethod
    def of(
        cls,
        executor: "Here | Workers",
        partitions: list[Any],
        shape: Shape,
        mu: Array,
        *,
        independent: bool,
    ) -> "Data":
        """Partitions that an executor holds."""
        sizes = executor.results(executor.map(SIZE, zip(partitions, strict=True)))
        return cls(executor, partitions, sizes, shape, mu, independent)

    @property
    def N(self) -> int:
        """Number of tokens."""
        return self.shape.N

    @property
    def K(self) -> int:
        """Number of contexts that choose the attention."""
        return self.shape.K

    @property
    def T(self) -> int:
        """Number of positions."""
        return self.shape.T

    @property
    def n(self) -> int:
        """Number of samples."""
        return sum(self.sizes)

    def total(self, function: Callable[..., Any], *same: Any, rows: Rows | None = None) -> Any:
        """The sum over all partitions of a function of ``Partition``, its ``RowTable`` if ``rows``
        are given, and the shape.
        """
        tables = [] if rows is None else [rows.held]
        held = zip(self.partitions, *tables, strict=True)
        return self.executor.total(self.executor.map(function, held, self.shape, *same))

    @cached_property
    def by_label(self) -> Array:
        """(K, N): samples with each last token and label."""
        return self.total(Partition.by_label)

    @property
    def label_distribution(self) -> Array:
        """(N,): how often each token is the label."""
        return self.by_label.sum(axis=0) / self.n

    @property
    def counts(self) -> Array:
        """(K,): samples with each last token."""
        return self.by_label.sum(axis=1)

    @cached_property
    def present(self) -> Array:
        """(K, T): samples with each last token that have a token at each position."""
        everywhere = np.repeat(self.counts[:, None], self.T, axis=1)
        return everywhere if self.independent else everywhere - self.total(Partition.missing)

    def with_background(self, function: Callable[..., Background], *same: Any) -> "Data":
        """The same samples, each with a background of its own: function(partition, shape, *same),
        called where a partition lies.
        """
        held = zip(self.partitions, strict=True)
        partitions = self.executor.map(_with_background, held, function, self.shape, *same)
        return replace(self, partitions=partitions, own_background=True)

    def without_samples(self) -> "Data":
        """Their numbers and nothing else."""
        return replace(self, executor=Here(), partitions=[])

    def rows(self, slots: Slots) -> Rows:
        """The samples at these slots; equal ones are counted as one row where that makes far fewer."""
        code = RowCode(self.N, slots)
        worthwhile = not self.own_background and code.is_worth_counting(self.n)
        held = self.executor.map(
            Partition.rows, zip(self.partitions, strict=True), self.shape, slots, worthwhile
        )
        if not worthwhile:
            return Rows(self.executor, held, None)
        if len(held) == 1 and isinstance(held[0], RowTable):
            return Rows(self.executor, held, held[0])
        counts = np.zeros(code.size)
        for found, times in self.executor.results(
            self.executor.map(RowTable.code_counts, zip(held, strict=True))
        ):
            counts[found] += times
        codes = np.flatnonzero(counts)
        return Rows(self.executor, held, code.table(codes, counts[codes]))

    def chi_squares(self) -> Array:
        """(K, T): χ² of label against token at every position, for contexts of iid tokens; −∞ where
        others are larger for sure.

        χ² is no sum over partitions, but the tables of pairs are. Where those of all (k, t) are too
        many, a sum says which to ask for: the χ² of the partitions, Σ_b C_b²/E_b ≥ (Σ_b C_b)²/Σ_b
        E_b. One partition has nothing to be added to.
        """
        if len(self.partitions) == 1:
            return self.total(Partition.chi_squares, self.mu)
        chi = np.full((self.K, self.T), -np.inf)
        most = max(64, LARGEST_TABLES // self.N**2)
        chosen = np.ones(chi.shape, bool)
        if chi.size > most:
            bound = self.total(Partition.chi_squares, self.mu)
            freedom = self.degrees_of_freedom()[:, None]
            excess = (bound - len(self.partitions) * freedom) / np.sqrt(freedom)
            chosen = excess >= np.partition(excess, -most, axis=None)[-most]
        pairs = np.argwhere(chosen)
        expected = self.by_label[pairs[:, 0], :, None] * self.mu
        tables = self.total(Partition.pair_tables, pairs)
        terms = np.divide(tables**2, expected, out=np.zeros_like(tables), where=expected > 0)
        chi[chosen] = terms.sum(axis=(1, 2)) - self.counts[pairs[:, 0]]
        return chi

    def degrees_of_freedom(self) -> NDArray[np.int64]:
        """(K,): of the χ² of each last token."""
        labels = (self.by_label > 0).sum(axis=1)
        tokens = (self.mu > 0).sum()
        return np.maximum(labels * (tokens - 1), 1)

    def thinned(self, samples: int) -> "Data":
        """A limited number of the samples, in groups that are spread evenly over all."""
        if self.n <= samples:
            return self
        held = self.executor.map(
            Partition.thinned, zip(self.partitions, self.firsts, strict=True), self.n / samples
        )
        return self._with_partitions(held)

    def whole(self) -> "Data":
        """The samples that have a token at every position, where these are nearly all; else all
        samples.
        """
        most = self.present.min(axis=1).sum()  # whole samples, at most
        if not _NEARLY_ALL * self.n <= most < self.n:
            return self
        others = self._with_partitions(
            self.executor.map(Partition.whole, zip(self.partitions, strict=True), self.shape)
        )
        return others if others.n >= _NEARLY_ALL * self.n else self

    def of_groups(self, chosen: NDArray[np.bool_]) -> "Data":
        """The samples of some groups of neighbours (G,), which are all of one size."""
        size = -(-self.n // len(chosen))
        held = self.executor.map(
            Partition.of_groups, zip(self.partitions, self.firsts, strict=True), size, chosen
        )
        return self._with_partitions(held)

    @property
    def firsts(self) -> list[int]:
        """The number of each partition's first sample among all."""
        return np.cumsum([0, *self.sizes[:-1]]).tolist()

    def _with_partitions(self, held: list[Any]) -> "Data":
        """Other samples of the same kind."""
        other = Data.of(self.executor, held, self.shape, self.mu, independent=self.independent)
        return replace(other, own_background=self.own_background)


def _with_background(
    partition: Partition, function: Callable[..., Background], shape: Shape, *same: Any
) -> Partition:
    return partition.with_background(function(partition, shape, *same))


# ----------------------------------------------------------------------------- where data come from


@dataclass(frozen=True)
class Source:
    """Data in pieces."""

    executor: "Here | Workers"  # where the pieces will be held
    # "here", or "array", "rows", "bag", "delayed" for collections of Dask
    kind: str
    # (function, *same) → what the function makes of (piece, skipped, *same), held, for every piece;
    # ``skipped`` is how many of the piece's first tokens are repeated from the piece before it
    read: Callable[..., list[Any]]
    length: int | None = None  # of all pieces of an array together

    @classmethod
    def here(cls, data: Any) -> "Source":
        """One piece in this process."""
        return cls(Here(), "here", lambda function, *same: [function(data, 0, *same)])


def is_dask(data: Any) -> bool:
    """Whether data is a collection of Dask, or a list of them. Dask is not imported to find out."""
    first = data[0] if isinstance(data, list | tuple) and data else data
    return type(first).__module__.split(".")[0] == "dask"
