"""Some samples, and everything that a fit counts on them.

A fit asks for sums over samples and for nothing else. ``Partition`` takes such a sum over the
samples that lie in one place; ``data.Data`` adds the sums of all places. On one machine there is
one partition, and its sums are the answer.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.inputs import InputError
from scb.kernels.windows import (
    add_pair_scores,
    add_source_tables,
    add_weight_scores,
    encode_rows,
    gather_tokens,
    pair_chi_squares,
)
from scb.mixture.model import Background, Mixture
from scb.mixture.rows import RowCode, RowTable, Slots
from scb.mixture.windows import Block, Ints
from scb.task.sampling import token_dtype
from scb.task.sparse_columns import slots

ROWS = 1 << 14  # samples that are worked on at a time
HEAD = 1 << 30  # tokens in which the spectral start is looked for, at most
_SLOTS = 64  # positions of each last token at a time, while counting pairs
_THINNED = 1 << 10  # neighbouring samples that are kept or left out together


class Shape(NamedTuple):
    """N tokens, K contexts that choose the attention (the last tokens, or one for all), T
    positions.
    """

    N: int
    K: int
    T: int


@dataclass(frozen=True)
class Partition:
    """Samples that lie in one place."""

    blocks: Iterable[Block]  # the samples, to be walked through as often as needed
    # (n,), of all samples in the order of the blocks
    last: Ints
    label: Ints  # (n,)
    # Of each sample; None where it is the distribution of all labels
    background: Background | None = None

    @classmethod
    def of(cls, walked: list[Block], blocks: Iterable[Block] | None = None) -> "Partition":
        """The samples in some blocks; there may be none. ``blocks`` makes them anew where those
        ``walked`` lack their tokens.
        """
        nothing = np.zeros(0, np.int64)
        last = np.concatenate([nothing, *(block.last for block in walked)])
        label = np.concatenate([nothing, *(block.label for block in walked)])
        return cls(walked if blocks is None else blocks, last, label)

    def __sizeof__(self) -> int:
        """Dask asks for it: else it would think nothing of moving partitions about."""
        arrays = [
            self.last,
            self.label,
            *(self.background or ()),
            *(array for block in self.blocks for array in block),
        ]
        return sum(array.nbytes for array in arrays)

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.last.size

    @cached_property
    def order(self) -> Ints:
        """(n,): the samples sorted by last token."""
        return np.argsort(self.last, kind="stable")

    def by_label(self, shape: Shape) -> Array:
        """(K, N): samples with each last token and label."""
        counts = np.bincount(self.last * shape.N + self.label, minlength=shape.K * shape.N)
        return counts.reshape(shape.K, shape.N).astype(float)

    def with_background(self, background: Background) -> "Partition":
        """The same samples, each with a background of its own."""
        if background.state.shape != (self.n,):
            raise InputError(
                f"the background is given for {background.state.size} samples: here are {self.n}"
            )
        return replace(self, background=background)

    # -------------------------------------------------------------------------------------- walking

    def chunks(self, most: int) -> Iterator[tuple[slice, Block]]:
        """Parts with a limited number of samples, each with its place among all."""
        done = 0
        for block in self.blocks:
            for first in range(0, block.n, most):
                chunk = block.some(slice(first, first + most))
                yield slice(done, done + chunk.n), chunk
                done += chunk.n

    def head(self) -> Block:
        """The first samples, up to ``HEAD`` tokens, on one array; that of the block if there is
        only one.
        """
        blocks: list[Block] = []
        size = 0
        for block in self.blocks:
            blocks.append(block)
            size += block.tokens.size
            if size >= HEAD:
                break
        if len(blocks) == 1:
            return blocks[0]
        offsets = np.cumsum([0] + [block.tokens.size for block in blocks[:-1]])
        tokens = np.concatenate([block.tokens for block in blocks])
        starts = np.concatenate(
            [block.starts + offset for block, offset in zip(blocks, offsets, strict=True)]
        )
        return Block(tokens, starts, self.last[: starts.size], self.label[: starts.size])

    def gather(self, positions: NDArray[np.intp], N: int) -> NDArray[Any]:
        """(n, s): the tokens at ``positions[k]`` (K, s) of each sample, where k is its last token;
        N where there is none.
        """
        out = np.empty((self.n, positions.shape[1]), dtype=token_dtype(N + 1))
        for at, chunk in self.chunks(max(self.n, 1)):
            gather_tokens(chunk.tokens, chunk.starts, chunk.last, positions, N, out[at])
        return out

    def only(self, chosen: NDArray[np.bool_]) -> "Partition":
        """The samples (n,) that are chosen; no token is copied."""
        part = Partition.of(
            [block.some(np.flatnonzero(chosen[at])) for at, block in self.chunks(max(self.n, 1))]
        )
        return (
            part
            if self.background is None
            else replace(part, background=self.background.some(np.flatnonzero(chosen)))
        )

    def of_groups(self, first: int, size: int, chosen: NDArray[np.bool_]) -> "Partition":
        """The samples of some groups of ``size`` neighbours, where the first sample has the number
        ``first`` among all.
        """
        return self.only(chosen[(first + np.arange(self.n)) // size])

    def thinned(self, first: int, stride: float) -> "Partition":
        """One group of neighbouring samples in ``stride``, where the first sample has the number
        ``first`` among all.
        """
        group = (first + np.arange(self.n)) // _THINNED
        return self.only(group / stride % 1 < 1 / stride)

    # ------------------------------------------------------------------------------------- counting

    def rows(self, shape: Shape, at: Slots, counted: bool) -> RowTable:
        """The samples at these slots, as one row each or with equal ones ``counted``."""
        code = RowCode(shape.N, at)
        if not counted:
            columns = code.columns(self.gather(at.positions, shape.N), self.last)
            return RowTable(
                columns, self.last, self.label, np.ones(self.n), background=self.background
            )
        codes = np.empty(self.n, np.int64)
        used = at.positions[:, code.used]
        for where, chunk in self.chunks(max(self.n, 1)):
            encode_rows(
                chunk.tokens, chunk.starts, chunk.last, chunk.label, used, shape.N, codes[where]
            )
        counts = np.bincount(codes, minlength=code.size)
        found = np.flatnonzero(counts)
        row = np.zeros(code.size, np.int64)
        row[found] = np.arange(found.size)
        return code.table(found, counts[found].astype(float), index=row[codes])

    def scores(
        self, shape: Shape, table: Array, row: Ints | None = None, weight: Array | None = None
    ) -> Array:
        """(K, T): Σ_i weight_i · table[row_i, x_it] over the samples with each last token; row_i is
        the label o_i unless given.
        """
        scores = np.zeros((shape.K, shape.T))
        table = np.c_[table, np.zeros(len(table))]  # what is not there adds nothing
        row = self.label if row is None else row
        weight = np.ones(self.n) if weight is None else weight
        for at, chunk in self.chunks(ROWS):
            order = np.argsort(chunk.last, kind="stable")
            add_pair_scores(
                chunk.tokens, chunk.starts, chunk.last, row[at], weight[at], order, table, scores
            )
        return scores

    def likelihood_scores(self, rows: RowTable, shape: Shape, table: Array, at: Mixture) -> Array:
        """(K, T): Σ_i table[o_i, x_it]/f_i, with the probability f_i of each label under a mixture."""
        return self.scores(shape, table, weight=(1 / rows.likelihoods(at))[rows.row_numbers])

    def distribution_scores(self, rows: RowTable, shape: Shape, table: Array, at: Mixture) -> Array:
        """(K, T): Σ_i Σ_o table[o, x_it]/f_io, with the distribution f_i of each label under a
        mixture.
        """
        scores = np.zeros((shape.K, shape.T))
        for chunk, inverse, row in self.inverse_probabilities(rows, at):
            sums = np.c_[inverse @ table, np.zeros(len(inverse))]
            order = np.argsort(chunk.last, kind="stable")
            add_pair_scores(
                chunk.tokens, chunk.starts, chunk.last, row, np.ones(chunk.n), order, sums, scores
            )
        return scores

    def inverse_probabilities(
        self, rows: RowTable, at: Mixture
    ) -> Iterator[tuple[Block, Array, Ints]]:
        """The samples in parts; one over the probability of every label (r, N), for some rows; the
        row of each sample.
        """
        counted = rows.inverse_probabilities(at) if rows.index is not None else None
        for where, chunk in self.chunks(ROWS):
            if counted is not None:
                yield chunk, counted, rows.row_numbers[where]
            else:
                yield chunk, rows.some(where).inverse_probabilities(at), np.arange(chunk.n)

    def missing(self, shape: Shape) -> Array:
        """(K, T): of the samples with each last token, how many have no token at each position."""
        absent = np.zeros((shape.K, shape.T))
        for _, chunk in self.chunks(self.n + 1):
            cut = np.flatnonzero(chunk.has_gap(shape.N, shape.T))
            for first in range(0, cut.size, ROWS):
                part = chunk.some(cut[first : first + ROWS])
                where = part.tokens[part.starts[:, None] + np.arange(shape.T)] == shape.N
                np.add.at(absent, part.last, where)
        return absent

    def whole(self, shape: Shape) -> "Partition":
        """The samples that have a token at every position."""
        gaps = [chunk.has_gap(shape.N, shape.T) for _, chunk in self.chunks(self.n + 1)]
        return self.only(~np.concatenate([np.zeros(0, bool), *gaps]))

    def source_tables(
        self, rows: RowTable, shape: Shape, k: int | None, at: Mixture
    ) -> tuple[Array, Array]:
        """Score and information (T, N, N) of a matrix (token, label) that a position may get.

        Over the samples with last token k; over all samples if it is None.
        """
        scores = np.zeros((shape.T, shape.N, shape.N))
        information = np.zeros_like(scores)
        for chunk, inverse, row in self.inverse_probabilities(rows, at):
            chosen = np.arange(chunk.n) if k is None else np.flatnonzero(chunk.last == k)
            add_source_tables(
                chunk.tokens, chunk.starts, chunk.label, row, inverse, chosen, scores, information
            )
        return scores, information

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

        Each label o counts as having at least the probability ``floor[o]``: where f makes one
        impossible that P_t allows, the second sum would be infinite.
        """
        scores = np.zeros((shape.K, len(positions)))
        information = np.zeros_like(scores)
        for chunk, inverse, row in self.inverse_probabilities(rows, at):
            arrays = chunk.tokens, chunk.starts, chunk.last, chunk.label
            bounded = np.minimum(inverse, 1 / floor)
            add_weight_scores(*arrays, row, bounded, positions, matrices, scores, information)
        return scores, information

    def pair_tables(self, shape: Shape, pairs: NDArray[np.intp]) -> Array:
        """(r, N, N): how often each label came with each token at each (k, t) of ``pairs`` (r, 2),
        which are sorted by k.
        """
        N = shape.N
        contexts = pairs[:, 0]
        slot = slots(np.bincount(contexts, minlength=shape.K))
        positions = np.full((shape.K, int(slot.max()) + 1), -1)
        positions[contexts, slot] = pairs[:, 1]
        bounds = np.searchsorted(self.last[self.order], np.arange(shape.K + 1))
        tables = np.empty((len(pairs), N, N))
        for first in range(0, positions.shape[1], _SLOTS):
            code = self.label[:, None] * N + self.gather(positions[:, first : first + _SLOTS], N)
            for i in np.flatnonzero((first <= slot) & (slot < first + _SLOTS)):
                mine = self.order[bounds[contexts[i]] : bounds[contexts[i] + 1]]
                tables[i] = np.bincount(code[mine, slot[i] - first], minlength=N * N).reshape(N, N)
        return tables

    def chi_squares(self, shape: Shape, mu: Array) -> Array:
        """(K, T): χ² of label against token at every position, for contexts of iid tokens; from the
        first ``HEAD`` tokens.
        """
        head = self.head()
        chi = np.zeros((shape.K, shape.T))
        order = np.argsort(head.last, kind="stable")
        bounds = np.searchsorted(head.last[order], np.arange(shape.K + 1))
        pair_chi_squares(head.tokens, head.starts, head.label, order, bounds, mu, chi)
        return chi
