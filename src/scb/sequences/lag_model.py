"""A fitted model of lags: the next symbol has the distribution a[k, 0]·G + Σ_ℓ a[k, ℓ]·P_ℓ[:, x_ℓ],
where k is the current symbol.

G is the background: the distribution of all labels, or what the recent symbols say. Weights and
matrices, and what follows from them: the distribution of the next symbol, the likelihood of data,
how far each lag moves the distribution, sequences drawn from it, and a picture. How the lags are
found is told in ``lag_fit``, and how it is kept on disk in ``model_file``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from scb.arrays import Array
from scb.kernels.random import continue_lags
from scb.mixture.data import Data, Here
from scb.mixture.fit import INCOMPLETE
from scb.mixture.model import Mixture
from scb.mixture.partition import Partition, Shape
from scb.mixture.rows import RowTable, Slots
from scb.mixture.windows import Block
from scb.sequences.baselines.background import WindowBackground
from scb.sequences.symbols import MISSING
from scb.task.sampling import closed_cumulative, token_dtype

if TYPE_CHECKING:
    pass

SHARED = 0  # stands for the lag of a matrix that all lags share
# Times max_lag: symbols that a sequence drawn from nothing loses at its start
_BURN_IN = 10


@dataclass(frozen=True)
class FitFacts:
    """How a fit went: see the attributes of ``SparseContextualBigram`` with the same names."""

    loglik: float
    n_windows: int
    n_labels: int
    n_parameters: int
    n_iter: int
    gap: float
    converged: bool
    criterion: dict[str, float]


@dataclass(frozen=True)
class LagModel:
    """Lags, weights and matrices."""

    classes: NDArray[Any]  # (N,), the symbols, sorted
    context: bool  # whether the current symbol chooses the weights
    # attention, errors: sparse (contexts, max_lag), the weight of lag ℓ in column ℓ − 1 and its
    # standard error
    attention: csr_array
    errors: csr_array
    # rest, rest_ratio: (contexts,), the weight of the background, and twice its log-likelihood
    # ratio beside the lags
    rest: Array
    rest_ratio: Array
    # Lag → (N, N); one matrix under ``SHARED`` where all lags share it
    matrices: dict[int, Array]
    # prior, frequencies: (N,), the distribution of the labels, and of all symbols
    prior: Array
    frequencies: Array
    # Gives each window a distribution of its own; without, the background is ``prior``
    background: WindowBackground | None = None
    # Columns beside those of ``table``; see ``lag_evidence``
    evidence: Mapping[str, Array] = field(default_factory=dict)

    @property
    def max_lag(self) -> int:
        """The longest lag that may matter."""
        return int(self.attention.shape[1])  # pyright: ignore[reportOptionalSubscript]

    @property
    def transition(self) -> Literal["shared", "per_lag"]:
        """Whether all lags share a matrix."""
        return "shared" if SHARED in self.matrices else "per_lag"

    def table(self) -> dict[str, NDArray[Any]]:
        """The lags in the support as columns context, lag, weight, stderr; the context is None in a
        model without.
        """
        a = self.attention
        rows = np.repeat(np.arange(len(a.indptr) - 1), np.diff(a.indptr))
        contexts = self.classes[rows] if self.context else np.full(rows.size, None, dtype=object)
        weights = {"weight": a.data.copy(), "stderr": self.errors.data.copy()}
        return {"context": contexts, "lag": a.indices.astype(np.int64) + 1} | weights

    def whole_table(self) -> dict[str, NDArray[Any]]:
        """``table``, and beside it what each lag does and how sure that is.

        - influence, influence_stderr: how far the symbol at the lag moves the distribution of the
          next one; NaN where it cannot be said
        - nats: what the log-likelihood loses without the lag, everything else fitted again
        - delta_bic: by how much the BIC is worse without it
        - found: in which part of random halves of the data it is found again, once that was asked
          for
        """
        return {**self.table(), "influence": self.influence().data, **self.evidence}

    @property
    def incomplete(self) -> NDArray[np.bool_]:
        """(contexts,): where lags were found, but something is left that no lag explains; never
        where the background is a model.
        """
        return (self.rest_ratio >= INCOMPLETE) & (self.background is None)

    def influence(self) -> csr_array:
        """How far each lag in the support moves the distribution of the next symbol, in total
        variation, on average over symbols.
        """
        influence = self.attention.copy()
        for i, lag in enumerate((influence.indices + 1).tolist()):
            if self.context and lag == 1:
                influence.data[i] = 0.0  # the current symbol cannot vary where it is the context
                continue
            P = self.matrices[SHARED if SHARED in self.matrices else lag]
            distance = np.abs(P - (P @ self.frequencies)[:, None]).sum(axis=0) / 2
            influence.data[i] *= float(distance @ self.frequencies)
        return influence

    # --------------------------------------------------------------------------------- as a mixture

    @cached_property
    def slots(self) -> Slots:
        """Where the slots of a window of max_lag symbols look; slot 0 is the background, the
        distribution of all labels.
        """
        positions = self.max_lag - 1 - self.attention.indices.astype(np.intp)
        owners = None if SHARED in self.matrices else [self.max_lag - lag for lag in self.matrices]
        return Slots.from_support(np.split(positions, self.attention.indptr[1:-1]), owners)

    @cached_property
    def mixture(self) -> Mixture:
        """The parameters."""
        q = np.zeros(self.slots.positions.shape)
        q[:, 0] = self.rest
        for k, weights in enumerate(np.split(self.attention.data, self.attention.indptr[1:-1])):
            q[k, 1 : 1 + weights.size] = weights
        # a matrix to point to where there is none
        nobody = np.repeat(self.prior[:, None], len(self.classes), axis=1)
        matrices = list(self.matrices.values()) or [nobody]
        return Mixture(np.column_stack(matrices), self.prior, q)

    def with_background(self, data: Data) -> Data:
        """Windows, each with its own background where there is more than the distribution of all
        labels.
        """
        return data if self.background is None else self.background.attached(data)

    def loglik(self, data: Data) -> float:
        """Log-likelihood of the labels of windows, in nats; −∞ if one of them is impossible."""
        with np.errstate(divide="ignore"):
            return (
                self.with_background(data)
                .rows(self.slots)
                .total(RowTable.evaluate, self.mixture)
                .loglik
            )

    def log_likelihoods(self, data: Data) -> Array:
        """(n,): the log-likelihood of each label of windows that lie in this process, in nats."""
        (rows,) = self.with_background(data).rows(self.slots).held
        with np.errstate(divide="ignore"):
            return np.log(rows.likelihoods(self.mixture))[rows.row_numbers]

    def distributions(self, codes: NDArray[np.int64]) -> Array:
        """(n, N): the distribution of what comes after each symbol of a sequence; the background
        stands for what is not there.
        """
        N = len(self.classes)
        codes = codes if codes.size else np.array([MISSING])
        there = codes >= 0
        tokens = np.concatenate([np.full(self.max_lag, N), np.where(there, codes, N)]).astype(
            token_dtype(N + 1)
        )
        starts = np.arange(1, codes.size + 1)
        last = np.where(there, codes, 0) if self.context else np.zeros(codes.size, np.int64)
        # Nobody looks at the labels
        partition = Partition.from_blocks(
            [Block(tokens, starts, last, np.zeros(codes.size, np.int64))]
        )
        shape = Shape(N, N if self.context else 1, self.max_lag)
        data = self.with_background(
            Data.from_partitions(Here(), [partition], shape, self.frequencies, independent=False)
        )
        (partition,) = data.partitions
        rows = partition.rows(shape, self.slots, counted=False)
        distributions = rows.distributions(self.mixture)
        if self.context:  # nothing is known of the context where the current symbol is missing
            given, state = rows.background_distributions(self.mixture)
            distributions[~there] = given[state[~there]]
        return distributions

    def draw(
        self, length: int, before: NDArray[np.int64] | None, rng: np.random.Generator
    ) -> NDArray[Any]:
        """(length,) codes that go on from those ``before``; from nothing unless given, with the
        first ones thrown away.
        """
        N = len(self.classes)
        skipped = 0
        if before is None:
            before = rng.choice(N, size=self.max_lag, p=self.prior / self.prior.sum())
            skipped = _BURN_IN * self.max_lag
        if self.background is not None or before.size < self.max_lag or (before < 0).any():
            return self._draw_step_by_step(skipped + length, before, rng)[skipped:]
        tokens = np.empty(before.size + skipped + length, dtype=token_dtype(N))
        tokens[: before.size] = before
        lags = np.where(self.slots.positions >= 0, self.max_lag - self.slots.positions, 0)
        first = np.where(lags > 0, N * self.slots.matrix, self.mixture.P.shape[1])
        u = rng.random((skipped + length, 2))
        weights = closed_cumulative(self.mixture.q.T)
        columns = closed_cumulative(np.c_[self.mixture.P, self.mixture.background])
        continue_lags(tokens, before.size, weights, lags.T, columns, first.T, u)
        return tokens[before.size + skipped :]

    def _draw_step_by_step(
        self, length: int, before: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """The same one distribution after the other, where gaps or a background ask for it."""
        codes = before.tolist()
        for u in rng.random(length).tolist():
            distribution = self.distributions(np.array(codes[-self.max_lag :], np.int64))[-1]
            codes.append(int(np.searchsorted(np.cumsum(distribution)[:-1], u, side="right")))
        return np.array(codes[before.size :], np.int64)
