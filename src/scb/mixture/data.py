"""The data of a fit: partitions, and the executor that runs functions of them where they are
stored.

Every method is a sum over partitions, taken in their order. On one machine there is one partition
in this process; with Dask the partitions are on workers, and only sums are returned. A fit runs the
same code in both cases, and its result is the same except for the rounding of sums.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any

import numpy as np

from scb.arrays import Array, Flags, Ints
from scb.mixture.executors import Executor, Here
from scb.mixture.levels import cumulants, score_levels, variances
from scb.mixture.model import Mixture, quotient
from scb.mixture.partition import Partition, Shape
from scb.mixture.rows import RowTable, Slots, StateScores
from scb.mixture.tuning import TUNING

SIZE = attrgetter("n", "total_weight")


@dataclass(frozen=True)
class Rows:
    """The samples of all partitions at some slots."""

    # Runs functions of what is ``held``
    executor: Executor
    # A ``RowTable`` for each partition, where that is stored
    held: list[Any]
    # The rows of all partitions together, here; None where they are too different to be counted
    counted: RowTable | None

    @property
    def divided(self) -> bool:
        """Whether rows are in several places, so a sum over them requires a round trip."""
        return self.counted is None and len(self.held) > 1

    def total(self, function: Callable[..., Any], *same: Any) -> Any:
        """The sum of a function of ``RowTable`` over all rows."""
        if self.counted is not None:
            return function(self.counted, *same)
        return self.executor.total(self.mapped(function, *same).held)

    def mapped(self, function: Callable[..., Any], *same: Any) -> "Rows":
        """The results of a function of the rows: here if the rows are counted, else kept where they
        are.
        """
        if self.counted is not None:
            return replace(self, held=[], counted=function(self.counted, *same))
        return replace(self, held=self.executor.map(function, zip(self.held, strict=True), *same))

    def to_keep(self, most_bytes: int) -> "Rows | None":
        """The rows without their links to samples; None if they are in another process or need more
        than the given memory.
        """
        tables = self.held if self.counted is None else [self.counted]
        if not all(isinstance(table, RowTable) for table in tables):
            return None
        kept = [replace(table, code=None, index=None) for table in tables]
        if sum(sys.getsizeof(table) for table in kept) > most_bytes:
            return None
        return Rows(Here(), kept, None if self.counted is None else kept[0])

    def score_levels(self, U: Array, folds: Ints, at: Mixture, mu: Array, z: Array) -> Array:
        """(K,): the level that Σ_i U[folds[k], o_i, x_i]/f_i reaches as rarely as a Gaussian
        reaches z[k] standard deviations, for tokens x iid μ; ∞ if it never does.
        """
        noises = self.mapped(StateScores, U, folds, at, mu)
        # One round trip to the partitions serves a step of the searches of all states.
        return score_levels(noises.total(variances, len(z)), z, partial(noises.total, cumulants))


@dataclass(frozen=True)
class Data:
    """All samples of a fit."""

    executor: Executor  # holds the partitions
    # A ``Partition`` each, or the executor's handle of it
    partitions: list[Any]
    sizes: list[int]  # samples in each
    weights: list[float]  # how often those in each count together
    shape: Shape  # numbers of tokens, states and positions
    # (N,), how often each token occurs in the contexts
    mu: Array
    # Whether contexts may be taken as iid tokens; not so for sequences
    independent: bool
    own_background: bool = False  # whether samples have backgrounds of their own
    tokens: float = np.nan  # how many tokens there are in sequences, where they were counted
    # Position → (N,), how often each token occurs there, for positions that are not ``mu``'s
    other_mu: Mapping[int, Array] = field(default_factory=dict)

    @classmethod
    def from_partitions(
        cls,
        executor: Executor,
        partitions: list[Any],
        shape: Shape,
        mu: Array,
        *,
        independent: bool,
    ) -> "Data":
        """Partitions that an executor holds."""
        held = executor.results(executor.map(SIZE, zip(partitions, strict=True)))
        sizes = [size for size, _ in held]
        weights = [weight for _, weight in held]
        return cls(executor, partitions, sizes, weights, shape, mu, independent)

    @property
    def N(self) -> int:
        """Number of tokens."""
        return self.shape.N

    @property
    def K(self) -> int:
        """Number of states that choose the attention."""
        return self.shape.K

    @property
    def T(self) -> int:
        """Number of positions."""
        return self.shape.T

    @property
    def n_samples(self) -> int:
        """Number of samples, whatever their weights."""
        return sum(self.sizes)

    @property
    def n(self) -> float:
        """The total weight of all samples, which is their number unless they have weights."""
        return sum(self.weights)

    @property
    def few_per_entry(self) -> bool:
        """Whether there are few samples for each entry of a matrix."""
        return self.n < TUNING.few_samples * self.N**2

    def mapped(self, function: Callable[..., Any], *same: Any) -> list[Any]:
        """What a function makes of each partition, held where the partition is."""
        return self.executor.map(function, zip(self.partitions, strict=True), *same)

    def total(self, function: Callable[..., Any], *same: Any, rows: Rows | None = None) -> Any:
        """The sum over all partitions of a function of ``Partition``, its ``RowTable`` if ``rows``
        are given, and the shape.
        """
        tables = [] if rows is None else [rows.held]
        held = zip(self.partitions, *tables, strict=True)
        return self.executor.total(self.executor.map(function, held, self.shape, *same))

    @cached_property
    def by_label(self) -> Array:
        """(K, N): samples with each state and label."""
        return self.total(Partition.by_label)

    @property
    def label_distribution(self) -> Array:
        """(N,): how often each token is the label."""
        return self.by_label.sum(axis=0) / self.n

    @property
    def labels(self) -> int:
        """How many tokens occur as labels."""
        return int(np.count_nonzero(self.label_distribution))

    def mu_at(self, t: int) -> Array:
        """(N,): how often each token occurs at position t."""
        return self.other_mu.get(t, self.mu)

    @property
    def counts(self) -> Array:
        """(K,): samples with each state."""
        return self.by_label.sum(axis=1)

    @cached_property
    def present(self) -> Array:
        """(K, T): samples with each state that have a token at each position."""
        everywhere = np.repeat(self.counts[:, None], self.T, axis=1)
        return everywhere if self.independent else everywhere - self.total(Partition.missing)

    def rows(self, slots: Slots) -> Rows:
        """The samples at these slots; equal samples are counted as one row if this saves many rows.

        If there are few rows for the size of P, they are fetched, since they are then smaller than
        a few sums.
        """
        most = slots.codes(self.N)
        worthwhile = not self.own_background and most <= min(TUNING.table_rows, 4 * self.n_samples)
        (first, *others) = self.partitions
        if not (worthwhile or others) and isinstance(first, Partition):
            table = first.sorted_rows(self.shape, slots)
            return Rows(self.executor, [table], table)
        held = self.mapped(Partition.rows, self.shape, slots, worthwhile)
        if not worthwhile:
            few = len(held) > 1 and self.n < TUNING.few_samples * self.N**2
            if few and not self.own_background:
                return Rows(self.executor, held, RowTable.joined(self.executor.results(held)))
            return Rows(self.executor, held, None)
        if len(held) == 1 and isinstance(held[0], RowTable):
            return Rows(self.executor, held, held[0])
        counts = np.zeros(most)
        sent = self.executor.map(RowTable.code_counts, zip(held, strict=True))
        for codes, times in self.executor.results(sent):
            counts[codes] += times
        occurring = np.flatnonzero(counts)
        table = slots.table(self.N, occurring, counts[occurring])
        return Rows(self.executor, held, table)

    def chi_squares(self) -> Array:
        """(K, T): χ² of label against token at every position, for contexts of iid tokens; −∞ where
        other values are certainly larger.

        χ² is not a sum over partitions, but the tables of pairs are. If there are too many tables
        for all (k, t), a sum shows which are needed: the χ² of the partitions, Σ_b C_b²/E_b ≥ (Σ_b
        C_b)²/Σ_b E_b. With a single partition, χ² is computed directly.
        """
        if len(self.partitions) == 1:
            return self.total(Partition.chi_squares, self.mu)
        chi = np.full((self.K, self.T), -np.inf)
        most = max(64, TUNING.pair_entries // self.N**2)
        chosen = np.ones(chi.shape, bool)
        if chi.size > most:
            bound = self.total(Partition.chi_squares, self.mu)
            freedom = self.degrees_of_freedom()[:, None]
            excess = (bound - len(self.partitions) * freedom) / np.sqrt(freedom)
            chosen = excess >= np.partition(excess, -most, axis=None)[-most]
        pairs = np.argwhere(chosen)
        expected = self.by_label[pairs[:, 0], :, None] * self.mu
        tables = self.total(Partition.pair_tables, pairs)
        chi[chosen] = quotient(tables**2, expected).sum(axis=(1, 2)) - self.counts[pairs[:, 0]]
        return chi

    def degrees_of_freedom(self) -> Ints:
        """(K,): the degrees of freedom of the χ² of each state."""
        labels = (self.by_label > 0).sum(axis=1)
        tokens = (self.mu > 0).sum()
        return np.maximum(labels * (tokens - 1), 1)

    def thinned(self, samples: int) -> "Data":
        """A limited number of the samples, in groups that are spread evenly over all samples."""
        number = self.n_samples
        return self if number <= samples else self._only(in_every, number / samples)

    def whole(self) -> "Data":
        """The samples that have a token at every position, if nearly all samples do; otherwise all
        samples.
        """
        enough = TUNING.nearly_all * self.n
        most = self.present.min(axis=1).sum()  # whole samples, at most
        if not enough <= most < self.n:
            return self
        others = self._only(without_gap, self.shape)
        return others if others.n >= enough else self

    def of_groups(self, chosen: Flags) -> "Data":
        """The samples of some groups of neighbours (G,), all of the same size."""
        return self._only(in_groups, -(-self.n_samples // len(chosen)), chosen)

    def with_one_state(self) -> "Data":
        """The same samples with weights that do not depend on the last token."""
        held = self.mapped(Partition.with_one_state)
        return replace(self, partitions=held, shape=self.shape._replace(K=1))

    def _only(self, choose: Callable[..., Flags], *same: Any) -> "Data":
        """The samples that a function marks; see ``Partition.only``."""
        firsts = np.cumsum([0, *self.sizes[:-1]]).tolist()
        held = zip(self.partitions, firsts, strict=True)
        partitions = self.executor.map(Partition.only, held, choose, *same)
        other = Data.from_partitions(
            self.executor, partitions, self.shape, self.mu, independent=self.independent
        )
        return replace(other, own_background=self.own_background, other_mu=self.other_mu)


# ------------------------------------------------------ which samples of a partition are chosen


def in_groups(partition: Partition, numbers: Ints, size: int, chosen: Flags) -> Flags:
    """(n,): the samples in some groups of ``size`` neighbours."""
    return chosen[numbers // size]


def in_every(partition: Partition, numbers: Ints, stride: float) -> Flags:
    """(n,): the samples of one in ``stride`` groups of neighbours."""
    return numbers // TUNING.neighbours / stride % 1 < 1 / stride


def without_gap(partition: Partition, numbers: Ints, shape: Shape) -> Flags:
    """(n,): the samples that have a token at every position."""
    gaps = [block.has_gap(shape.N, shape.T) for _, block in partition.chunks()]
    return ~np.concatenate([np.zeros(0, bool), *gaps])


# ----------------------------------------------------------------------------- where data come from


@dataclass(frozen=True)
class Source:
    """Data in pieces."""

    executor: Executor  # where the pieces will be held
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
