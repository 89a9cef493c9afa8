"""Samples reduced to the positions that matter: what the likelihood needs of them, and nothing
else.

A *slot* of a context k is a place in its mixture: the position that it looks at, and the matrix
from which it takes a column. Slots that look at no position, or where no token is there, take the
*background*, a given distribution of the label. A *row* is the last token, the label and the
columns that the slots point to; samples with equal rows and the same background can be counted as
one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.kernels.mixture import (
    add_distributions,
    likelihood_curvature,
    likelihood_gradient,
    likelihood_information,
    likelihood_product,
    weight_curvature,
    weight_gradients,
)
from scb.mixture.levels import ScoreNoise
from scb.mixture.model import Background, Mixture
from scb.task.sampling import token_dtype
from scb.theory.fisher import blocks

Ints = NDArray[np.int64]
Support = list[NDArray[np.intp]]  # for each context, the positions that matter
NO_POSITION = -1
LARGEST_TABLE = 1 << 22  # different rows that are counted in a table, at most
_TINY = 1e-300


@dataclass(frozen=True)
class Slots:
    """Where the slots of every context look."""

    # (K, s), ``NO_POSITION`` where a slot takes the background
    positions: NDArray[np.intp]
    # (K, s), the number of the matrix that a slot takes its column from
    matrix: NDArray[np.intp]
    matrices: int = 1  # how many matrices there are

    @classmethod
    def everywhere(cls, positions: NDArray[np.intp], contexts: int, matrices: int = 1) -> "Slots":
        """One slot for each of some positions (s,), the same in every context; they share a matrix,
        or have one each.
        """
        matrix = np.arange(len(positions)) if matrices > 1 else np.zeros(len(positions), np.intp)
        return cls(np.tile(positions, (contexts, 1)), np.tile(matrix, (contexts, 1)), matrices)

    @classmethod
    def of(
        cls, support: Support, owners: Sequence[int] | None = None, width: int | None = None
    ) -> "Slots":
        """Slot 0 of every context is the background, the others look at its support; position
        ``owners[i]`` has matrix i.
        """
        shape = len(support), width or 1 + max(len(s) for s in support)
        positions = np.full(shape, NO_POSITION)
        matrix = np.zeros(shape, np.intp)
        for k, s in enumerate(support):
            positions[k, 1 : 1 + len(s)] = s
            if owners is not None:
                matrix[k, 1 : 1 + len(s)] = [owners.index(t) for t in s]
        return cls(positions, matrix, 1 if owners is None else max(len(owners), 1))

    def same(self, other: "Slots") -> bool:
        """Whether all slots look at the same places."""
        pairs = zip(
            (self.positions, self.matrix, self.matrices),
            (other.positions, other.matrix, other.matrices),
            strict=True,
        )
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)


@dataclass(frozen=True)
class RowCode:
    """One integer for (last token, label, tokens at the slots); equal samples share a code, which
    ``encode_rows`` makes.
    """

    # Tokens are 0 … N − 1, and N where a slot looks at no position
    N: int
    slots: Slots

    @property
    def used(self) -> NDArray[np.intp]:
        """The slots that look at a position in some context."""
        return np.flatnonzero((self.slots.positions >= 0).any(axis=0))

    @property
    def size(self) -> int:
        """How many codes there can be."""
        return len(self.slots.positions) * int(self.N) * (int(self.N) + 1) ** self.used.size

    def is_worth_counting(self, n: int) -> bool:
        """Whether counting n samples of one background by their codes takes fewer rows, in a table
        that fits into memory.
        """
        return self.size <= min(LARGEST_TABLE, 4 * n)

    def table(self, codes: Ints, weight: Array, index: Ints | None = None) -> "RowTable":
        """One row for each code."""
        rest = codes
        tokens = np.full(
            (codes.size, self.slots.positions.shape[1]), self.N, dtype=token_dtype(self.N + 1)
        )
        for j in self.used[::-1]:
            rest, tokens[:, j] = np.divmod(rest, self.N + 1)
        last, label = np.divmod(rest, self.N)
        return RowTable(self.columns(tokens, last), last, label, weight, codes, index)

    def columns(self, tokens: NDArray[Any], last: Ints) -> NDArray[Any]:
        """(n, s): tokens as columns of the mixture, which has its matrices side by side and the
        background after the last.
        """
        if self.slots.matrices == 1:
            return tokens
        return np.where(
            tokens < self.N, tokens + self.N * self.slots.matrix[last], self.N * self.slots.matrices
        )


class Sums(NamedTuple):
    """What one pass over rows adds up: the log-likelihood, its derivatives in the columns (N, C +
    1) and in q (K, s).
    """

    loglik: float
    columns: Array
    q: Array


@dataclass(frozen=True)
class RowTable:
    """Rows that lie in one place, and sums over them."""

    # (r, s), the column of the mixture that each slot points to
    columns: NDArray[Any]
    last: Ints  # (r,), which context
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
        return sum(
            x.nbytes
            for x in (*self.samples, self.code, self.index, *(self.background or ()))
            if x is not None
        )

    @property
    def samples(self) -> tuple[NDArray[Any], Ints, Ints, Array]:
        """What the kernels take first."""
        return self.columns, self.last, self.label, self.weight

    @cached_property
    def _own(self) -> Array:
        """(r,): the probability of each row's label under its own background."""
        assert self.background is not None
        return self.background.distributions[self.background.state, self.label]

    def given(self, at: Mixture) -> Array:
        """(r,): the probability of each row's label under the background."""
        return at.background[self.label] if self.background is None else self._own

    def background_distributions(self, at: Mixture) -> Background:
        """The background of each row as a distribution."""
        if self.background is not None:
            return self.background
        return Background(at.background[None], np.zeros(len(self.label), np.int64))

    def code_counts(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The codes that occur and how often, in few bytes: they are sent to the driver."""
        assert self.code is not None
        code, weight = (
            x.astype(np.min_scalar_type(int(x.max(initial=0)))) for x in (self.code, self.weight)
        )
        return code, weight

    def alone(self) -> "RowTable":
        """The rows without what ties them to samples."""
        return replace(self, code=None, index=None)

    def some(self, at: slice | Ints) -> "RowTable":
        """A part of the rows."""
        background = None if self.background is None else self.background.some(at)
        return RowTable(
            self.columns[at], self.last[at], self.label[at], self.weight[at], background=background
        )

    def evaluate(self, at: Mixture) -> Sums:
        """Log-likelihood and its first derivatives."""
        g_columns = np.empty_like(at.columns)
        gq = np.empty_like(at.q)
        loglik = likelihood_gradient(*self.samples, self.given(at), at.q, at.columns, gq, g_columns)
        return Sums(loglik, g_columns, gq)

    def weight_gradients(self, at: Mixture, asked: NDArray[np.bool_]) -> tuple[Array, Array]:
        """(K,) and (K, s): the log-likelihood of the contexts (K,) asked for, and its derivatives
        in q; 0 for the others.
        """
        logliks = np.empty(len(at.q))
        gq = np.empty_like(at.q)
        weight_gradients(*self.samples, self.given(at), at.q, at.columns, asked, logliks, gq)
        return logliks, gq

    def weight_curvature(self, at: Mixture, asked: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
        """(K,), (K, s) and (K, s, s): as ``weight_gradients``, and minus the second derivatives in
        q.
        """
        logliks = np.empty(len(at.q))
        gq = np.empty_like(at.q)
        qq = np.empty((*at.q.shape, at.q.shape[1]))
        weight_curvature(*self.samples, self.given(at), at.q, at.columns, asked, logliks, gq, qq)
        return logliks, gq, qq

    def curvature(self, at: Mixture) -> tuple[Array, Array, Array, Array]:
        """Minus the second derivatives of the log-likelihood, by blocks: PP (N, C, C), Pq (N, C, K,
        s), qq (K, s, s), and 1/f.

        That of P and q is Pq less the last block (N, C, K, s); the other parts are products of
        first derivatives.
        """
        PP, Pq, qq = blocks(at.P, at.q)
        out = PP, Pq, qq, np.zeros_like(Pq)
        likelihood_curvature(*self.samples, self.given(at), at.q, at.columns, *out)
        return out

    def curvature_along(self, at: Mixture, dP: Array, dq: Array) -> tuple[Array, Array]:
        """Minus the second derivatives of the log-likelihood times a direction: (N, C) in P, (K, s)
        in q.
        """
        h_columns = np.empty_like(at.columns)
        hq = np.empty_like(at.q)
        d_columns = np.c_[dP, np.zeros(at.N)]
        likelihood_product(
            *self.samples, self.given(at), at.q, at.columns, dq, d_columns, hq, h_columns
        )
        return h_columns[:, :-1], hq

    def information(self, at: Mixture) -> tuple[Array, Array, Array]:
        """Fisher information by blocks PP, Pq, qq, given contexts and last tokens."""
        P = np.ascontiguousarray(at.P)
        out = blocks(P, at.q)
        distributions, state = self.background_distributions(at)
        likelihood_information(
            self.columns, self.last, self.weight, state, distributions, at.q, P, *out
        )
        return out

    def pairs(self, j: int, N: int) -> Array:
        """(N, N): how often each label came with each token in slot j, where there is one matrix."""
        code = self.label * (N + 1) + self.columns[:, j]
        return (
            np.bincount(code, self.weight, minlength=N * (N + 1))
            .reshape(N, N + 1)[:, :N]
            .astype(float)
        )

    @property
    def row_numbers(self) -> Ints:
        """(n,): the row of each sample."""
        return np.arange(len(self.label)) if self.index is None else self.index

    def likelihoods(self, at: Mixture) -> Array:
        """(r,): the probability f of each row's label."""
        C = at.P.shape[1]
        given = self.given(at)
        f = np.zeros(len(self.label))
        for j in range(self.columns.shape[1]):
            column = self.columns[:, j]
            f += at.q[self.last, j] * np.where(column < C, at.columns[self.label, column], given)
        return f

    def inverse_probabilities(self, at: Mixture) -> Array:
        """(r, N): one over the probability of every label, for each row."""
        return 1 / np.maximum(self.distributions(at), _TINY)

    def distributions(self, at: Mixture) -> Array:
        """(r, N): the distribution of the label of each row."""
        f = np.zeros((len(self.label), at.N))
        distributions, state = self.background_distributions(at)
        add_distributions(
            self.columns, self.last, state, distributions, at.q, np.ascontiguousarray(at.P.T), f
        )
        return f

    def loglik_by_context(self, at: Mixture) -> Array:
        """(K,): the log-likelihood of each context's samples."""
        terms = self.weight * np.log(self.likelihoods(at))
        return np.bincount(self.last, terms, minlength=len(at.q)).astype(float)

    def removal_ratios(self, at: Mixture) -> Array:
        """(K, s): twice the log-likelihood ratio of each slot, taken out as by ``Mixture.without``,
        with nothing fitted again.
        """
        C = at.P.shape[1]
        given = self.given(at)
        f = self.likelihoods(at)
        ratios = np.zeros(at.q.shape)
        for j in range(1, self.columns.shape[1]):
            w = at.q[:, j]
            # What the background gets at least
            q0 = np.where(w > 0, np.maximum(at.q[:, 0], 0.01), at.q[:, 0]) - at.q[:, 0]
            column = self.columns[:, j]
            own = np.where(column < C, at.columns[self.label, column], given)
            rest = (f - w[self.last] * own + q0[self.last] * given) / np.maximum(
                1 - w + q0, 1e-300
            )[self.last]
            lost = 2 * self.weight * (np.log(f) - np.log(np.maximum(rest, _TINY)))
            ratios[:, j] = np.bincount(self.last, lost, minlength=len(at.q))
        return ratios


class ContextScores:
    """For each context, the distribution of the score Σ_i U[o_i, x_i]/f_i over its rows, where
    tokens x are iid μ.
    """

    def __init__(self, rows: RowTable, U: Array, at: Mixture, mu: Array) -> None:
        self.rows = rows
        self.U = U
        self.f = rows.likelihoods(at)
        self.mu = mu
        # Distributions that were made, where all (r, N) terms fit into memory together
        self.kept: dict[int, ScoreNoise] = {}

    def __call__(self, k: int) -> ScoreNoise:
        """The distribution of context k."""
        if k in self.kept:
            return self.kept[k]
        mine = self.rows.last == k
        made = ScoreNoise(
            self.U[self.rows.label[mine]] / self.f[mine, None], self.rows.weight[mine], self.mu
        )
        if self.f.size * len(self.mu) <= LARGEST_TABLE:
            self.kept[k] = made
        return made
