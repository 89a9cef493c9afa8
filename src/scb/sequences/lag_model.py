"""A fitted model of lags: the next symbol has the law Σ_ℓ a[k, ℓ]·P_ℓ[:, x_ℓ], where k is the current symbol.

Weights and matrices, and what follows from them: the law of the next symbol, the likelihood of data, how far each lag moves the
law, and sequences drawn from it. How the lags are found is told in ``lag_fit``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from scb.geometry import Array
from scb.kernels.random import continue_lags
from scb.mixture.data import Data
from scb.mixture.law import Mixture
from scb.mixture.rows import RowTable, Slots
from scb.sequences.symbols import MISSING
from scb.task.sampling import closed_cumulative, token_dtype

SHARED = 0
"""Stands for the lag of a matrix that all lags share."""
_BURN_IN = 10  # times max_lag: symbols that a sequence drawn from nothing loses at its start


@dataclass(frozen=True)
class FitFacts:
    """How a fit went: see the attributes of ``SparseContextualBigram`` with the same names."""

    loglik: float
    n_windows: int
    n_parameters: int
    n_iter: int
    gap: float
    converged: bool


@dataclass(frozen=True)
class LagModel:
    """Lags, weights and matrices."""

    classes: NDArray[Any]  # (N,), the symbols, sorted
    context: bool  # whether the current symbol chooses the weights
    # attention, errors: sparse (contexts, max_lag), the weight of lag ℓ in column ℓ − 1 and its standard error
    attention: csr_array
    errors: csr_array
    matrices: dict[int, Array]  # lag → (N, N); one matrix under ``SHARED`` where all lags share it
    # prior, frequencies: (N,), the law of the labels, and of all symbols
    prior: Array
    frequencies: Array

    @property
    def max_lag(self) -> int:
        """The longest lag that may matter."""
        return int(self.attention.shape[1])  # pyright: ignore[reportOptionalSubscript]

    @property
    def transition(self) -> Literal["shared", "per_lag"]:
        """Whether all lags share a matrix."""
        return "shared" if SHARED in self.matrices else "per_lag"

    def matrix(self, lag: int) -> Array:
        """(N, N): the matrix of a lag."""
        return self.matrices[SHARED] if SHARED in self.matrices else self.matrices[lag]

    def table(self) -> dict[str, NDArray[Any]]:
        """The lags in the support as columns context, lag, weight, stderr; the context is None in a model without."""
        a = self.attention
        rows = np.repeat(np.arange(len(a.indptr) - 1), np.diff(a.indptr))
        contexts = self.classes[rows] if self.context else np.full(rows.size, None, dtype=object)
        return {
            "context": contexts,
            "lag": a.indices.astype(np.int64) + 1,
            "weight": a.data.copy(),
            "stderr": self.errors.data.copy(),
        }

    def influence(self) -> csr_array:
        """How far each lag in the support moves the law of the next symbol, in total variation, on average over symbols."""
        influence = self.attention.copy()
        for i, lag in enumerate((influence.indices + 1).tolist()):
            if self.context and lag == 1:
                influence.data[i] = 0.0  # the current symbol cannot vary where it is the context
                continue
            P = self.matrix(lag)
            distance = np.abs(P - (P @ self.frequencies)[:, None]).sum(axis=0) / 2
            influence.data[i] *= float(distance @ self.frequencies)
        return influence

    # --------------------------------------------------------------------------------------------- as a mixture

    @cached_property
    def lags(self) -> list[NDArray[np.intp]]:
        """For each context, its lags, ascending."""
        a = self.attention
        return [a.indices[begin:end].astype(np.intp) + 1 for begin, end in zip(a.indptr[:-1], a.indptr[1:], strict=True)]

    @cached_property
    def slots(self) -> Slots:
        """Where the slots of a window of max_lag symbols look; slot 0 is the background, the law of all labels."""
        owners = None
        if SHARED not in self.matrices:
            owners = [self.max_lag - lag for lag in self.matrices]
        return Slots.of([self.max_lag - lags for lags in self.lags], owners)

    @cached_property
    def mixture(self) -> Mixture:
        """The parameters; the background has weight only in a context without lags."""
        a = self.attention
        q = np.zeros(self.slots.positions.shape)
        for k, lags in enumerate(self.lags):
            if lags.size:
                q[k, 1 : 1 + lags.size] = a.data[a.indptr[k] : a.indptr[k + 1]]
            else:
                q[k, 0] = 1.0
        nobody = np.repeat(self.prior[:, None], len(self.classes), axis=1)  # a matrix to point to where there is none
        matrices = list(self.matrices.values()) or [nobody]
        return Mixture.of(np.column_stack(matrices), self.prior, q)

    def loglik(self, data: Data) -> float:
        """Log-likelihood of the labels of windows, in nats; −∞ if one of them is impossible."""
        with np.errstate(divide="ignore"):
            return data.rows(self.slots).total(RowTable.evaluate, self.mixture).loglik

    def laws(self, codes: NDArray[np.int64]) -> Array:
        """(n, N): the law of what comes after each symbol of a sequence; after none, the law of all labels.

        A lag that reaches back beyond the start, or to a missing symbol, contributes the law of all labels; so does everything
        where the current symbol is missing and chooses the lags.
        """
        N = len(self.classes)
        n = max(codes.size, 1)
        codes = codes if codes.size else np.array([MISSING])
        context = codes if self.context else np.zeros(n, np.int64)
        positions, matrix = self.slots.positions[context], self.slots.matrix[context]
        laws = np.zeros((n, N))
        for j in range(positions.shape[1]):
            at = np.arange(n) + 1 - self.max_lag + positions[:, j]
            looks = (positions[:, j] >= 0) & (at >= 0)
            source = np.where(looks, codes[np.clip(at, 0, n - 1)], MISSING)
            column = np.where(source >= 0, N * matrix[:, j] + source, self.mixture.columns.shape[1] - 1)
            laws += self.mixture.q[context, j][:, None] * self.mixture.columns.T[column]
        laws[context < 0] = self.prior
        return laws

    def draw(self, length: int, before: NDArray[np.int64] | None, rng: np.random.Generator) -> NDArray[Any]:
        """(length,) codes that go on from those ``before``; from nothing unless given, with the first ones thrown away."""
        N = len(self.classes)
        skipped = 0
        if before is None:
            before = rng.choice(N, size=self.max_lag, p=self.prior / self.prior.sum())
            skipped = _BURN_IN * self.max_lag
        tokens = np.empty(before.size + skipped + length, dtype=token_dtype(N))
        tokens[: before.size] = before
        lags = np.where(self.slots.positions >= 0, self.max_lag - self.slots.positions, 0)
        first = np.where(lags > 0, N * self.slots.matrix, self.mixture.columns.shape[1] - 1)
        u = rng.random((skipped + length, 2))
        weights, columns = closed_cumulative(self.mixture.q.T), closed_cumulative(self.mixture.columns)
        continue_lags(tokens, before.size, weights, lags.T, columns, first.T, u)
        return tokens[before.size + skipped :]
