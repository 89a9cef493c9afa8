"""Samples reduced to the positions that matter, with only what the likelihood needs.

A *slot* of a state k is a place in its mixture: the position that it looks at, and the matrix from
which it takes a column. Slots that look at no position, or at a position without a token, use the
*background*, a given distribution of the label. A *row* is the state, the label and the columns
that the slots point to; samples with equal rows and the same background can be counted as one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from scb.arrays import AnyArray, Array, Flags, Ints, Positions
from scb.kernels.mixture import (
    add_distributions,
    likelihood_curvature,
    likelihood_gradient,
    likelihood_information,
    likelihood_product,
    weight_curvature,
)
from scb.mixture.levels import ScoreNoise
from scb.mixture.model import Background, Mixture
from scb.mixture.tuning import TUNING
from scb.task.sampling import token_dtype
from scb.theory.fisher import blocks

Support = list[Positions]  # for each state, the positions that matter
NO_POSITION = -1


@dataclass(frozen=True)
class Slots:
    """The positions that the slots of every state look at."""

    # (K, s), ``NO_POSITION`` where a slot takes the background
    positions: Positions
    # (K, s), the number of the matrix that a slot takes its column from
    matrix: Positions
    matrices: int = 1  # how many matrices there are

    @classmethod
    def everywhere(cls, positions: Positions, states: int, matrices: int = 1) -> "Slots":
        """One slot for each of some positions (s,), the same in every state. The slots share a
        matrix or have one each.
        """
        matrix = np.arange(len(positions)) if matrices > 1 else np.zeros(len(positions), np.intp)
        return cls(np.tile(positions, (states, 1)), np.tile(matrix, (states, 1)), matrices)

    @classmethod
    def from_support(
        cls,
        support: Support,
        owners: Sequence[int] | None = None,
        width: int | None = None,
        folds: Ints | None = None,
    ) -> "Slots":
        """Slot 0 of every state is the background, and the other slots look at its support;
        position ``owners[i]`` has matrix i. Without owners, state k has matrix ``folds[k]``, or the
        only matrix.
        """
        shape = len(support), width or 1 + max(len(s) for s in support)
        positions = np.full(shape, NO_POSITION)
        matrix = np.zeros(shape, np.intp)
        for k, s in enumerate(support):
            positions[k, 1 : 1 + len(s)] = s
            if owners is not None:
                matrix[k, 1 : 1 + len(s)] = [owners.index(t) for t in s]
            elif folds is not None:
                matrix[k] = folds[k]
        if owners is not None:
            return cls(positions, matrix, max(len(owners), 1))
        return cls(positions, matrix, 1 if folds is None else int(folds.max()) + 1)

    def same(self, other: "Slots") -> bool:
        """Whether all slots look at the same places."""
        return (
            self.matrices == other.matrices
            and np.array_equal(self.positions, other.positions)
            and np.array_equal(self.matrix, other.matrix)
        )

    # -------------------------------------------------------------------------- rows as integers

    @property
    def used(self) -> Positions:
        """The slots that look at a position in some state."""
        return np.flatnonzero((self.positions >= 0).any(axis=0))

    def codes(self, N: int) -> int:
        """The number of possible codes; a code is one integer for (state, label, tokens at the
        slots), which ``encode_rows`` computes. Tokens are 0 … N − 1, and N where a slot looks at no
        position.
        """
        return len(self.positions) * int(N) * (int(N) + 1) ** self.used.size

    def table(self, N: int, codes: Ints, weight: Array, index: Ints | None = None) -> "RowTable":
        """One row for each code."""
        shape = codes.size, self.positions.shape[1]
        tokens = np.full(shape, N, dtype=token_dtype(N + 1))
        digits = codes
        for j in self.used[::-1]:
            digits, tokens[:, j] = np.divmod(digits, N + 1)
        last, label = np.divmod(digits, N)
        return RowTable(self.columns(N, tokens, last), last, label, weight, codes, index)

    def columns(self, N: int, tokens: AnyArray, last: Ints) -> AnyArray:
        """(n, s): tokens as columns of the matrices side by side; the number after the last column
        stands for the background.
        """
        if self.matrices == 1:
            return tokens
        return np.where(tokens < N, tokens + N * self.matrix[last], N * self.matrices)


class Sums(NamedTuple):
    """The sums of one pass over rows: the log-likelihood and its derivatives."""

    loglik: float
    P: Array  # (N, C)
    q: Array  # (K, s)


@dataclass(frozen=True)
class RowTable:
    """Rows in one place, and sums over them."""

    # (r, s), the column of P that each slot points to; C for the background
    columns: AnyArray
    last: Ints  # (r,), the state
    label: Ints  # (r,)
    # (r,), how many samples this is
    weight: Array
    # (r,), ascending, where equal samples are one row; None where each sample has a row of its own
    code: Ints | None = None
    # (n,), the row of each sample; None where each has its own
    index: Ints | None = None
    # Of each row; None where it is the distribution of all labels
    background: Background | None = None

    def __sizeof__(self) -> int:
        arrays = *self.samples, self.code, self.index, *(self.background or ())
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def samples(self) -> tuple[AnyArray, Ints, Ints, Array]:
        """The first arguments of the kernels."""
        return self.columns, self.last, self.label, self.weight

    @cached_property
    def _under_own_background(self) -> Array:
        """(r,): the probability of each row's label under its own background."""
        assert self.background is not None
        return self.background.distributions[self.background.which, self.label]

    def under_background(self, at: Mixture) -> Array:
        """(r,): the probability of each row's label under the background."""
        return at.background[self.label] if self.background is None else self._under_own_background

    def background_distributions(self, at: Mixture) -> Background:
        """The background of each row as a distribution."""
        if self.background is not None:
            return self.background
        return Background(at.background[None], np.zeros(len(self.label), np.int64))

    def code_counts(self) -> tuple[AnyArray, AnyArray]:
        """The codes that occur and how often, in few bytes, since they are sent to the driver."""
        assert self.code is not None
        code, weight = (
            x.astype(np.min_scalar_type(int(x.max(initial=0)))) for x in (self.code, self.weight)
        )
        return code, weight

    def some(self, at: slice | Ints) -> "RowTable":
        """Some of the rows."""
        background = None if self.background is None else self.background.some(at)
        columns, last, label, weight = self.samples
        return RowTable(columns[at], last[at], label[at], weight[at], background=background)

    @classmethod
    def joined(cls, tables: "Sequence[RowTable]") -> "RowTable":
        """The rows of several tables in one table, one after another."""
        columns, last, label, weight = (
            np.concatenate(x) for x in zip(*(table.samples for table in tables), strict=True)
        )
        return cls(columns, last, label, weight)

    def of_states(self, states: Flags) -> "RowTable":
        """The rows of some states (K,)."""
        return self.some(np.flatnonzero(states[self.last]))

    # ------------------------------------------------------------------------------ by the kernels

    def _arguments(self, at: Mixture) -> tuple[AnyArray, ...]:
        """What kernels of the likelihood take first; they are compiled for contiguous arrays."""
        parameters = np.ascontiguousarray(at.q), np.ascontiguousarray(at.P)
        return *self.samples, self.under_background(at), *parameters

    def evaluate(self, at: Mixture) -> Sums:
        """Log-likelihood and its first derivatives."""
        gP = np.empty(at.P.shape)
        gq = np.empty(at.q.shape)
        loglik = likelihood_gradient(*self._arguments(at), gq, gP)
        return Sums(loglik, gP, gq)

    def weight_curvature(self, at: Mixture, asked: Flags) -> tuple[Array, Array, Array]:
        """(K,), (K, s) and (K, s, s): the log-likelihood of the requested states (K,), its first
        derivatives in q, and minus its second derivatives; 0 for the other states.
        """
        K, s = at.q.shape
        logliks = np.empty(K)
        gq = np.empty((K, s))
        qq = np.empty((K, s, s))
        weight_curvature(*self._arguments(at), asked, logliks, gq, qq)
        return logliks, gq, qq

    def curvature(self, at: Mixture) -> tuple[Array, Array, Array, Array]:
        """Minus the second derivatives of the log-likelihood, by blocks: PP (N, C, C), Pq (N, C, K,
        s), qq (K, s, s), and 1/f.

        The block for P and q is Pq minus the last block (N, C, K, s); the other parts are products
        of first derivatives.
        """
        PP, Pq, qq = blocks(at.P, at.q)
        mixed = np.zeros_like(Pq)
        likelihood_curvature(*self._arguments(at), PP, Pq, qq, mixed)
        return PP, Pq, qq, mixed

    def curvature_along(self, at: Mixture, dP: Array, dq: Array) -> tuple[Array, Array]:
        """Minus the second derivatives of the log-likelihood times a direction, which is (N, C) in
        P and (K, s) in q.
        """
        hP = np.empty(at.P.shape)
        hq = np.empty(at.q.shape)
        likelihood_product(*self._arguments(at), dq, dP, hq, hP)
        return hP, hq

    def information(self, at: Mixture) -> tuple[Array, Array, Array]:
        """Fisher information by blocks PP, Pq, qq, given contexts and last tokens."""
        P = np.ascontiguousarray(at.P)
        out = blocks(P, at.q)
        distributions, which = self.background_distributions(at)
        likelihood_information(
            self.columns, self.last, self.weight, which, distributions, at.q, P, *out
        )
        return out

    def distributions(self, at: Mixture) -> Array:
        """(r, N): the distribution of the label of each row."""
        f = np.zeros((len(self.label), at.N))
        distributions, which = self.background_distributions(at)
        columns = np.ascontiguousarray(at.P.T)
        add_distributions(self.columns, self.last, which, distributions, at.q, columns, f)
        return f

    # ------------------------------------------------------------------------------- slot by slot

    @property
    def row_numbers(self) -> Ints:
        """(n,): the row of each sample."""
        return np.arange(len(self.label)) if self.index is None else self.index

    def pairs(self, j: int, N: int) -> Array:
        """(N, N): how often each label occurred with each token in slot j, for one matrix."""
        code = self.label * (N + 1) + self.columns[:, j]
        counts = np.bincount(code, self.weight, minlength=N * (N + 1))
        return counts.reshape(N, N + 1)[:, :N].astype(float)

    def _slot_term(self, j: int, at: Mixture, under_background: Array) -> Array:
        """(r,): the weight of slot j times the probability of each row's label under it."""
        column = self.columns[:, j]
        there = column < at.P.shape[1]
        under = np.where(there, at.P[self.label, np.where(there, column, 0)], under_background)
        return at.q[self.last, j] * under

    def likelihoods(self, at: Mixture) -> Array:
        """(r,): the probability f of each row's label."""
        under_background = self.under_background(at)
        f = np.zeros(len(self.label))
        for j in range(self.columns.shape[1]):
            f += self._slot_term(j, at, under_background)
        return f

    def slot_terms(self, at: Mixture) -> Array:
        """(r, s): the weight of each slot times the probability of the row's label under it."""
        under_background = self.under_background(at)
        slots = range(self.columns.shape[1])
        return np.column_stack([self._slot_term(j, at, under_background) for j in slots])

    def labels_by_slot(self, at: Mixture) -> Array:
        """(K, s, C): how many labels each slot explains with each column of P."""
        terms = self.slot_terms(at)
        labels = self.weight[:, None] * terms / terms.sum(axis=1, keepdims=True)
        (K, s), C = at.q.shape, at.P.shape[1]
        # Slots that look at no position have the column after the last one
        place = (self.last[:, None] * s + np.arange(s)) * (C + 1) + self.columns
        counts = np.bincount(place.ravel(), labels.ravel(), minlength=K * s * (C + 1)).astype(float)
        return counts.reshape(K, s, C + 1)[..., :C]

    def logliks(self, at: Mixture) -> Array:
        """(K,): the log-likelihood of each state's samples."""
        return self._sum_by_state(np.log(self.likelihoods(at)), at)

    def removal_ratios(self, at: Mixture) -> Array:
        """(K, s): twice the log-likelihood ratio for removing each slot by ``Mixture.without``,
        with nothing fitted again.
        """
        under_background = self.under_background(at)
        f = self.likelihoods(at)
        gained = np.maximum(TUNING.background_left - at.q[:, 0], 0.0)
        ratios = np.zeros(at.q.shape)
        for j in range(1, self.columns.shape[1]):
            w = at.q[:, j]
            left = (
                f - self._slot_term(j, at, under_background) + gained[self.last] * under_background
            )
            left /= np.maximum(1 - w + gained, TUNING.tiny)[self.last]
            lost = np.log(f) - np.log(np.maximum(left, TUNING.tiny))
            ratios[:, j] = 2 * self._sum_by_state(lost, at)
        return ratios

    def _sum_by_state(self, terms: Array, at: Mixture) -> Array:
        return np.bincount(self.last, self.weight * terms, minlength=len(at.q)).astype(float)


class StateScores:
    """The distribution of the score Σ_i U_k[o_i, x_i]/f_i of each state, a sum over its samples.

    U_k is ``U[folds[k]]`` of the (F, N, N) tables, o_i is the label of a sample and f_i its
    probability under the mixture ``at``. The labels are given, and the tokens x_i are iid μ.
    """

    def __init__(self, rows: RowTable, U: Array, folds: Ints, at: Mixture, mu: Array) -> None:
        self.rows = rows
        self.U = U
        self.folds = folds
        self.f = rows.likelihoods(at)
        self.mu = mu
        # Distributions by state, kept only where the (r, N) terms of all rows are few
        self.kept: dict[int, ScoreNoise] = {}

    def __call__(self, k: int) -> ScoreNoise:
        """The distribution of the score of state k."""
        if k in self.kept:
            return self.kept[k]
        of_state = self.rows.last == k
        terms = self.U[self.folds[k], self.rows.label[of_state]] / self.f[of_state, None]
        noise = ScoreNoise(terms, self.rows.weight[of_state], self.mu)
        if self.f.size * len(self.mu) <= TUNING.table_rows:
            self.kept[k] = noise
        return noise
