"""Samples reduced to the positions that matter: what the likelihood needs of them, and nothing else.

A *slot* of a context k is a place in its mixture: the position that it looks at, and the matrix from which it takes a column.
Slots that look at no position take the *background*, a fixed law of the label. A *row* is the last token, the label and the
columns that the slots point to; samples with equal rows can be counted as one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.kernels.mixture import likelihood_curvature, likelihood_gradient, likelihood_information
from scb.mixture.law import Mixture
from scb.mixture.levels import ScoreNoise
from scb.task.sampling import token_dtype
from scb.theory.information import blocks

Ints = NDArray[np.int64]
Support = list[NDArray[np.intp]]  # for each context, the positions that matter
NO_POSITION = -1
LARGEST_TABLE = 1 << 22  # different rows that are counted in a table, at most
_TINY = 1e-300


@dataclass(frozen=True)
class Slots:
    """Where the slots of every context look."""

    positions: NDArray[np.intp]  # (K, s), ``NO_POSITION`` where a slot takes the background
    matrix: NDArray[np.intp]  # (K, s), the number of the matrix that a slot takes its column from
    matrices: int = 1  # how many matrices there are

    @classmethod
    def everywhere(cls, positions: NDArray[np.intp], contexts: int, matrices: int = 1) -> "Slots":
        """One slot for each of some positions (s,), alike in every context; they share a matrix, or have one each."""
        matrix = np.arange(len(positions)) if matrices > 1 else np.zeros(len(positions), np.intp)
        return cls(np.tile(positions, (contexts, 1)), np.tile(matrix, (contexts, 1)), matrices)

    @classmethod
    def of(cls, support: Support, owners: Sequence[int] | None = None, width: int | None = None) -> "Slots":
        """Slot 0 of every context is the background, the others look at its support; position ``owners[i]`` has matrix i."""
        shape = len(support), width or 1 + max(len(s) for s in support)
        positions = np.full(shape, NO_POSITION)
        matrix = np.zeros(shape, np.intp)
        for k, s in enumerate(support):
            positions[k, 1 : 1 + len(s)] = s
            if owners is not None:
                matrix[k, 1 : 1 + len(s)] = [owners.index(t) for t in s]
        return cls(positions, matrix, 1 if owners is None else max(len(owners), 1))


@dataclass(frozen=True)
class RowCode:
    """One integer for (last token, label, tokens at the slots); equal samples share a code."""

    N: int  # tokens are 0 … N − 1, and N where a slot looks at no position
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
        """Whether counting n samples by their codes takes fewer rows, in a table that fits into memory."""
        return self.size <= min(LARGEST_TABLE, 4 * n)

    def encode(self, last: Ints, label: Ints, tokens: NDArray[Any]) -> Ints:
        """(n,): the code of each sample, from its tokens (n, s)."""
        code = last * self.N + label
        for j in self.used:
            code = code * (self.N + 1) + tokens[:, j]
        return code

    def table(self, codes: Ints, weight: Array, index: Ints | None = None) -> "RowTable":
        """One row for each code."""
        rest = codes
        tokens = np.full((codes.size, self.slots.positions.shape[1]), self.N, dtype=token_dtype(self.N + 1))
        for j in self.used[::-1]:
            rest, tokens[:, j] = np.divmod(rest, self.N + 1)
        last, label = np.divmod(rest, self.N)
        return RowTable(self.columns(tokens, last), last, label, weight, codes, index)

    def columns(self, tokens: NDArray[Any], last: Ints) -> NDArray[Any]:
        """(n, s): tokens as columns of the mixture, which has its matrices side by side and the background after the last."""
        if self.slots.matrices == 1:
            return tokens
        return np.where(tokens < self.N, tokens + self.N * self.slots.matrix[last], self.N * self.slots.matrices)


class Sums(NamedTuple):
    """What one pass over rows adds up: the log-likelihood, its derivatives in the columns (N, C + 1) and in q (K, s)."""

    loglik: float
    columns: Array
    q: Array


@dataclass(frozen=True)
class RowTable:
    """Rows that lie in one place, and sums over them."""

    columns: NDArray[Any]  # (r, s), the column of the mixture that each slot points to
    last: Ints  # (r,), which context
    label: Ints  # (r,)
    weight: Array  # (r,), how many samples this is
    code: Ints | None = None  # (r,), ascending, where equal samples are one row; None where each sample has a row of its own
    index: Ints | None = None  # (n,), the row of each sample; None where each has its own

    def __sizeof__(self) -> int:
        return sum(x.nbytes for x in (*self.samples, self.code, self.index) if x is not None)

    @property
    def samples(self) -> tuple[NDArray[Any], Ints, Ints, Array]:
        """What the kernels take."""
        return self.columns, self.last, self.label, self.weight

    def code_counts(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The codes that occur and how often, in few bytes: they are sent to the driver."""
        assert self.code is not None
        code, weight = (x.astype(np.min_scalar_type(int(x.max(initial=0)))) for x in (self.code, self.weight))
        return code, weight

    def of(self, k: int) -> "RowTable":
        """The rows whose last token is k."""
        mine = self.last == k
        return RowTable(self.columns[mine], self.last[mine], self.label[mine], self.weight[mine])

    def evaluate(self, at: Mixture) -> Sums:
        """Log-likelihood and its first derivatives."""
        g_columns = np.empty_like(at.columns)
        gq = np.empty_like(at.q)
        loglik = likelihood_gradient(*self.samples, at.q, at.columns, gq, g_columns)
        return Sums(loglik, g_columns, gq)

    def curvature(self, at: Mixture) -> tuple[Array, Array, Array]:
        """Minus the second derivatives of the log-likelihood, by blocks: PP (N, C, C), Pq (N, C, K, s), qq (K, s, s)."""
        out = blocks(at.P, at.q)
        likelihood_curvature(*self.samples, at.q, at.columns, *out)
        return out

    def information(self, P: Array, q: Array) -> tuple[Array, Array, Array]:
        """Fisher information by blocks PP, Pq, qq, given contexts and last tokens; the background must have weight 0."""
        out = blocks(P, q)
        inside = np.minimum(self.columns, P.shape[1] - 1)  # its columns are not among those of P
        likelihood_information(inside, self.last, self.weight, q, P, *out)
        return out

    def pairs(self, j: int, N: int) -> Array:
        """(N, N): how often each label came with each token in slot j, where there is one matrix."""
        code = self.label * N + self.columns[:, j]
        return np.bincount(code, self.weight, minlength=N * N).reshape(N, N).astype(float)

    @property
    def row_numbers(self) -> Ints:
        """(n,): the row of each sample."""
        return np.arange(len(self.label)) if self.index is None else self.index

    def likelihoods(self, at: Mixture) -> Array:
        """(r,): the probability f of each row's label."""
        f = np.zeros(len(self.label))
        for j in range(self.columns.shape[1]):
            f += at.q[self.last, j] * at.columns[self.label, self.columns[:, j]]
        return f

    def inverse_laws(self, at: Mixture) -> Array:
        """(r, N): one over the probability of every label, for each row."""
        f = np.zeros((len(self.label), at.N))
        for j in range(self.columns.shape[1]):
            f += at.q[self.last, j][:, None] * at.columns.T[self.columns[:, j]]
        return 1 / np.maximum(f, _TINY)

    def loglik_by_context(self, at: Mixture) -> Array:
        """(K,): the log-likelihood of each context's samples."""
        terms = self.weight * np.log(self.likelihoods(at))
        return np.bincount(self.last, terms, minlength=len(at.q)).astype(float)


class ContextScores:
    """For each context, the law of the score Σ_i U[o_i, x_i]/f_i over its rows, where tokens x are iid μ."""

    def __init__(self, rows: RowTable, U: Array, at: Mixture, mu: Array) -> None:
        self.rows = rows
        self.U = U
        self.f = rows.likelihoods(at)
        self.mu = mu
        self.kept: dict[int, ScoreNoise] = {}  # laws that were made, where all (r, N) terms fit into memory together

    def __call__(self, k: int) -> ScoreNoise:
        """The law of context k."""
        if k in self.kept:
            return self.kept[k]
        mine = self.rows.last == k
        made = ScoreNoise(self.U[self.rows.label[mine]] / self.f[mine, None], self.rows.weight[mine], self.mu)
        if self.f.size * len(self.mu) <= LARGEST_TABLE:
            self.kept[k] = made
        return made
