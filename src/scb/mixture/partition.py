"""A partition of the samples, and everything that a fit counts in it.

A fit needs only sums over samples. ``Partition`` computes such a sum over the samples in one place;
``data.Data`` adds the sums of all places. On one machine there is one partition.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from scb.arrays import AnyArray, Array, Flags, Ints, Positions
from scb.inputs import InputError
from scb.kernels.windows import (
    add_label_tables,
    add_pair_scores,
    add_source_tables,
    add_weight_scores,
    encode_rows,
    gather_tokens,
    pair_chi_squares,
)
from scb.mixture.model import Background, Mixture
from scb.mixture.rows import RowTable, Slots
from scb.mixture.tuning import TUNING
from scb.mixture.windows import Block
from scb.task.sampling import token_dtype
from scb.task.sparse_columns import slots


class Shape(NamedTuple):
    """N tokens, K states that choose the attention (the last tokens, or one), T positions."""

    N: int
    K: int
    T: int


@dataclass(frozen=True)
class Partition:
    """Samples in one place."""

    blocks: Iterable[Block]  # the samples, to be walked through as often as needed
    # (n,), the state of all samples in the order of the blocks
    last: Ints
    label: Ints  # (n,)
    # Of each sample; None where it is the distribution of all labels
    background: Background | None = None
    # (n,), how often each sample counts; None where all count once
    weight: Array | None = None
    # (n, covariates), codes of what is known beside the tokens, −1 where it is missing
    beside: Ints | None = None

    @classmethod
    def from_blocks(cls, walked: list[Block], blocks: Iterable[Block] | None = None) -> "Partition":
        """The samples in some blocks; there may be none. If the blocks that were ``walked`` lack
        their tokens, ``blocks`` produces them again.
        """
        nothing = np.zeros(0, np.int64)
        last = np.concatenate([nothing, *(block.last for block in walked)])
        label = np.concatenate([nothing, *(block.label for block in walked)])
        return cls(walked if blocks is None else blocks, last, label)

    def __sizeof__(self) -> int:
        """Lets Dask account for the size of partitions when it decides whether to move them."""
        tokens = (array for block in self.blocks for array in block)
        arrays = self.last, self.label, *(self.background or ()), *tokens
        return sum(array.nbytes for array in arrays)

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.last.size

    @property
    def weights(self) -> Array:
        """(n,): how often each sample counts."""
        return np.ones(self.n) if self.weight is None else self.weight

    @property
    def total_weight(self) -> float:
        """The total weight of all samples, which is their number unless they have weights."""
        return self.n if self.weight is None else float(self.weight.sum())

    @cached_property
    def order(self) -> Ints:
        """(n,): the samples sorted by state."""
        return np.argsort(self.last, kind="stable")

    def by_label(self, shape: Shape) -> Array:
        """(K, N): samples with each state and label."""
        pairs = self.last * shape.N + self.label
        counts = np.bincount(pairs, self.weight, minlength=shape.K * shape.N)
        return counts.reshape(shape.K, shape.N).astype(float)

    def with_background(self, background: Background) -> "Partition":
        """The same samples, each with its own background."""
        given = background.which.size
        if given != self.n:
            raise InputError(f"the background is given for {given} samples, but there are {self.n}")
        return replace(self, background=background)

    def with_one_state(self) -> "Partition":
        """The same samples, all in state 0."""
        blocks = [block._replace(last=0 * block.last) for block in self.blocks]
        return replace(self, blocks=blocks, last=0 * self.last)

    # -------------------------------------------------------------------------------------- walking

    def chunks(self, most: int | None = None) -> Iterator[tuple[slice, Block]]:
        """Parts of the blocks with at most the given number of samples, or whole blocks, each with
        its place among all samples.
        """
        done = 0
        for block in self.blocks:
            for first in range(0, block.n, most or max(block.n, 1)):
                chunk = block.some(slice(first, first + most if most else None))
                yield slice(done, done + chunk.n), chunk
                done += chunk.n

    def head(self) -> Block:
        """The first samples, up to ``start_tokens`` tokens, on one array."""
        blocks: list[Block] = []
        ends = [0]
        for block in self.blocks:
            blocks.append(block)
            ends.append(ends[-1] + block.tokens.size)
            if ends[-1] >= TUNING.start_tokens:
                break
        if len(blocks) == 1:
            return blocks[0]
        tokens = np.concatenate([block.tokens for block in blocks])
        starts = [block.starts + end for block, end in zip(blocks, ends[:-1], strict=True)]
        n = sum(block.n for block in blocks)
        return Block(tokens, np.concatenate(starts), self.last[:n], self.label[:n])

    def gather(self, positions: Positions, N: int) -> AnyArray:
        """(n, s): the tokens of samples at ``positions[state]`` (K, s); N if there is no token."""
        out = np.empty((self.n, positions.shape[1]), dtype=token_dtype(N + 1))
        for at, chunk in self.chunks():
            gather_tokens(chunk.tokens, chunk.starts, chunk.last, positions, N, out[at])
        return out

    def only(self, first: int, choose: Callable[..., Flags], *arguments: Any) -> "Partition":
        """The samples that choose(partition, their numbers (n,), *arguments) marks; no token is
        copied. The first sample has the number ``first`` among the samples of all partitions.
        """
        chosen = choose(self, first + np.arange(self.n), *arguments)
        blocks = [block.some(np.flatnonzero(chosen[at])) for at, block in self.chunks()]
        background = self.background and self.background.some(np.flatnonzero(chosen))
        weight = None if self.weight is None else self.weight[chosen]
        beside = None if self.beside is None else self.beside[chosen]
        some = Partition.from_blocks(blocks)
        return replace(some, background=background, weight=weight, beside=beside)

    # ------------------------------------------------------------------------------------- counting

    def rows(self, shape: Shape, at: Slots, counted: bool) -> RowTable:
        """The samples at these slots, as one row each or with equal samples ``counted``."""
        if not counted:
            columns = at.columns(shape.N, self.gather(at.positions, shape.N), self.last)
            samples = columns, self.last, self.label, self.weights
            return RowTable(*samples, background=self.background)
        codes = np.empty(self.n, np.int64)
        used = at.positions[:, at.used]
        for where, chunk in self.chunks():
            encode_rows(*chunk, used, shape.N, codes[where])
        counts = np.bincount(codes, self.weight, minlength=at.codes(shape.N))
        occurring = np.flatnonzero(counts)
        row = np.cumsum(counts > 0) - 1
        return at.table(shape.N, occurring, counts[occurring].astype(float), index=row[codes])

    def sorted_rows(self, shape: Shape, at: Slots) -> RowTable:
        """The samples at these slots, equal ones counted; or if few are equal, one row each.

        Rows are in the order of their labels and states: kernels then read P row by row, and meet
        each state's zero weights many times in succession.
        """
        distributions, *own = self.background or ((),)
        tokens = self.gather(at.positions, shape.N)
        equal = tokens, self.last, self.label, *own
        most = TUNING.fewer_rows * self.n
        first = np.zeros(0, np.intp)
        index = None
        if len(distributions) <= most:
            # A hash that wraps around: equal rows have equal ones
            key = (self.last * shape.N + self.label).astype(np.uint64)
            for x in (*tokens[:, at.used].T, *own):
                key = key * np.uint64(TUNING.multiplier) + x.astype(np.uint64)
            _, first, index = np.unique(key, return_index=True, return_inverse=True)
        if index is None or first.size > most or any((x != x[first][index]).any() for x in equal):
            first = index = np.arange(self.n)
        small = token_dtype(max(shape.N, shape.K))
        order = np.lexsort([x[first].astype(small) for x in (self.last, self.label)])
        place = np.empty(order.size, np.intp)
        place[order] = np.arange(order.size)
        first, index = first[order], place[index]
        columns = at.columns(shape.N, tokens[first], self.last[first])
        weight = np.bincount(index, self.weight).astype(float)
        samples = columns, self.last[first], self.label[first], weight
        background = self.background and self.background.some(first)
        return RowTable(*samples, index=index, background=background)

    def scores(
        self, shape: Shape, table: Array, weight: Array | None = None, folds: Ints | None = None
    ) -> Array:
        """(K, T): Σ_i weight_i · table[o_i, x_it] over the samples of each state, where o_i is the
        label; each term is also multiplied by how often its sample counts.

        Where states have ``folds`` (K,), each fold has N rows of the table.
        """
        scores = np.zeros((shape.K, shape.T))
        weight = self.weights if weight is None else self.weights * weight
        for at, chunk in self.chunks(TUNING.samples_at_once):
            row = chunk.label if folds is None else chunk.label + shape.N * folds[chunk.last]
            _add_scores(chunk, row, weight[at], table, scores)
        return scores

    def likelihood_scores(
        self, rows: RowTable, shape: Shape, tables: Array, folds: Ints, at: Mixture
    ) -> Array:
        """(K, T): Σ_i tables[folds[k], o_i, x_it]/f_i over the samples of each state k, where f_i
        is the probability of each label.
        """
        weight = (1 / rows.likelihoods(at))[rows.row_numbers]
        return self.scores(shape, tables.reshape(-1, shape.N), weight, folds)

    def distribution_scores(self, rows: RowTable, shape: Shape, table: Array, at: Mixture) -> Array:
        """(K, T): Σ_i Σ_o table[o, x_it]/f_io, where f_i is the distribution of each label."""
        scores = np.zeros((shape.K, shape.T))
        for chunk, inverse, row, weight in self.inverse_probabilities(rows, at):
            _add_scores(chunk, row, weight, inverse @ table, scores)
        return scores

    def distributions(
        self, rows: RowTable, at: Mixture, k: int | None = None
    ) -> Iterator[tuple[Block, Array, Ints, Array]]:
        """For parts of the samples of state k, or of all samples: the distributions (r, N) of the
        label in some rows, and the row and the weight of each sample.
        """
        weights = self.weights
        chosen = np.ones(len(rows.last), bool) if k is None else rows.last == k
        counted = None
        if len(rows.last) < self.n:
            counted = rows.some(np.flatnonzero(chosen)).distributions(at)
        number = np.cumsum(chosen) - 1
        # Those of counted rows serve a whole block; others take much memory
        for where, chunk in self.chunks(TUNING.samples_at_once if counted is None else None):
            mine = np.flatnonzero((chunk.last == k) | (k is None))
            row = rows.row_numbers[where][mine]
            weight = weights[where][mine]
            if counted is not None:
                yield chunk.some(mine), counted, number[row], weight
            else:
                f = rows.some(row).distributions(at)
                yield chunk.some(mine), f, np.arange(mine.size), weight

    def inverse_probabilities(
        self, rows: RowTable, at: Mixture, k: int | None = None
    ) -> Iterator[tuple[Block, Array, Ints, Array]]:
        """The same as ``distributions``, with one over the probability of every label (r, N)."""
        for chunk, f, row, weight in self.distributions(rows, at, k):
            yield chunk, 1 / np.maximum(f, TUNING.tiny), row, weight

    def missing(self, shape: Shape) -> Array:
        """(K, T): how many samples with each state have no token at each position."""
        absent = np.zeros((shape.K, shape.T))
        most = TUNING.samples_at_once
        for at, chunk in self.chunks():
            weights = self.weights[at]
            cut = np.flatnonzero(chunk.has_gap(shape.N, shape.T))
            for first in range(0, cut.size, most):
                part = chunk.some(cut[first : first + most])
                where = part.tokens[part.starts[:, None] + np.arange(shape.T)] == shape.N
                np.add.at(absent, part.last, where * weights[cut[first : first + most], None])
        return absent

    def source_tables(
        self, rows: RowTable, shape: Shape, k: int, at: Mixture, most: Array | float = np.inf
    ) -> tuple[Array, Array]:
        """The score and the information (T, N, N) of a matrix (token, label) that a position may
        get, over the samples with state k. An inverse probability counts as at most ``most``.
        """
        scores = np.zeros((shape.T, shape.N, shape.N))
        information = np.zeros_like(scores)
        for chunk, inverse, row, weight in self.inverse_probabilities(rows, at, k):
            samples = *chunk.pairs, row, np.minimum(inverse, most), weight
            add_source_tables(*samples, scores, information)
        return scores, information

    def label_tables(self, rows: RowTable, shape: Shape, at: Mixture) -> tuple[Array, Array]:
        """Tables (T, N, N): how often each token occurred with each label, and the expectation."""
        came = np.zeros((shape.T, shape.N, shape.N))
        expected = np.zeros_like(came)
        for chunk, f, row, weight in self.distributions(rows, at):
            add_label_tables(*chunk.pairs, row, f, weight, came, expected)
        return came, expected

    def weight_scores(
        self,
        rows: RowTable,
        shape: Shape,
        positions: Ints,
        matrices: Array,
        at: Mixture,
        floor: Array,
    ) -> tuple[Array, Array]:
        """(K, r): Σ_i P_t[o_i, x_it]/f_i and Σ_i Σ_o P_t[o, x_it]²/f_io, for r positions with
        matrices P_t (r, token, label).

        Each label o counts as having at least the probability ``floor[o]``. Otherwise the second
        sum would be infinite if f made a label impossible that P_t allows.
        """
        scores = np.zeros((shape.K, len(positions)))
        information = np.zeros_like(scores)
        for chunk, inverse, row, weight in self.inverse_probabilities(rows, at):
            samples = *chunk, row, np.minimum(inverse, 1 / floor), weight
            add_weight_scores(*samples, positions, matrices, scores, information)
        return scores, information

    def pair_tables(self, shape: Shape, pairs: Positions) -> Array:
        """(r, N, N): how often each label occurred with each token at each (k, t) of ``pairs`` (r,
        2), which are sorted by k.
        """
        N = shape.N
        states = pairs[:, 0]
        slot = slots(np.bincount(states, minlength=shape.K))
        positions = np.full((shape.K, int(slot.max()) + 1), -1)
        positions[states, slot] = pairs[:, 1]
        bounds = np.searchsorted(self.last[self.order], np.arange(shape.K + 1))
        tables = np.empty((len(pairs), N, N))
        most = TUNING.positions_at_once
        for first in range(0, positions.shape[1], most):
            code = self.label[:, None] * N + self.gather(positions[:, first : first + most], N)
            for i in np.flatnonzero((first <= slot) & (slot < first + most)):
                mine = self.order[bounds[states[i]] : bounds[states[i] + 1]]
                own = None if self.weight is None else self.weight[mine]
                counts = np.bincount(code[mine, slot[i] - first], own, minlength=N * N)
                tables[i] = counts.reshape(N, N)
        return tables

    def chi_squares(self, shape: Shape, mu: Array) -> Array:
        """(K, T): χ² of label against token at each position of iid contexts, from the first
        ``start_tokens`` tokens.
        """
        head = self.head()
        chi = np.zeros((shape.K, shape.T))
        order = np.argsort(head.last, kind="stable")
        bounds = np.searchsorted(head.last[order], np.arange(shape.K + 1))
        pair_chi_squares(head.tokens, head.starts, head.label, order, bounds, mu, chi)
        return chi


def _add_scores(chunk: Block, row: Ints, weight: Array, table: Array, scores: Array) -> None:
    """Add weight_i · table[row_i, x_it] to the scores (K, T); what is not there adds nothing."""
    order = np.argsort(chunk.last, kind="stable")
    padded = np.c_[table, np.zeros(len(table))]
    add_pair_scores(chunk.tokens, chunk.starts, chunk.last, row, weight, order, padded, scores)
