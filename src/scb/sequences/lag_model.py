"""A fitted model of lags: the next symbol has the distribution b[k]·G + Σ_ℓ a[k, ℓ]·P_ℓ[:, x_ℓ],
where k is the current symbol.

G is the background: the distribution of all labels, or what the recent symbols predict. The model
holds weights and matrices, how the fit went and the evidence for each lag; it gives the
distribution of the next symbol, the likelihood of data, the influence of each lag, and sequences
drawn from it. ``lag_fit`` finds the lags, and ``model_file`` saves a model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from scb.arrays import Array
from scb.kernels.random import continue_lags
from scb.mixture.data import Data, Here
from scb.mixture.fit import incomplete_from
from scb.mixture.merging import Matrices
from scb.mixture.model import Background, Mixture
from scb.mixture.partition import Partition, Shape
from scb.mixture.rows import RowTable, Slots
from scb.mixture.windows import Block
from scb.sequences.baselines.background import WindowBackground
from scb.sequences.baselines.per_sequence import SequenceBackground
from scb.sequences.symbols import MISSING
from scb.sequences.tables import Arrays, Classes, Codes
from scb.task.sampling import closed_cumulative, token_dtype

# The key of a transition matrix that all lags share
SHARED = 0


@dataclass(frozen=True)
class FitFacts:
    """How a fit went: see the attributes of ``SparseContextualBigram`` with the same names."""

    loglik: float = 0.0
    n_windows: int = 0
    n_symbols: int = 0
    n_parameters: int = 0
    n_iter: int = 0
    gap: float = 0.0
    converged: bool = False
    criterion: dict[str, float] = field(default_factory=dict)
    choices: dict[str, float] = field(default_factory=dict)
    sequence_bits: float = np.nan


@dataclass(frozen=True)
class LagModel:
    """Everything that a fit of lags has found; all that is reported is read from it."""

    classes: Classes  # (N,), the symbols, sorted
    context: bool  # whether the current symbol chooses the weights
    # Sparse (K, max_lag): column ℓ − 1 has the weight of lag ℓ. K is N, or 1 without context
    attention: csr_array
    errors: csr_array  # standard errors of the weights, in the same places
    background_weight: Array  # (K,)
    background_ratio: Array  # (K,), twice the log-likelihood ratio of the background
    # Lag → (N, N); one matrix under ``SHARED`` where all lags share it
    matrices: dict[int, Array]
    prior: Array  # (N,), the distribution of the labels
    frequencies: Array  # (N,), the distribution of all symbols
    # (N,): what every distribution gives to a symbol that was never a label; 0 for the others
    unseen: Array
    # Gives each window a distribution of its own; without it, the background is ``prior``
    background: WindowBackground | None = None
    # Further columns of ``table``; see ``lag_fit.lag_evidence``
    evidence: Mapping[str, Array] = field(default_factory=dict)
    facts: FitFacts = field(default_factory=FitFacts)

    def __getstate__(self) -> dict[str, Any]:
        """The fields; what follows from them is not pickled."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def max_lag(self) -> int:
        """The longest lag that may matter."""
        return int(self.attention.shape[1])  # pyright: ignore[reportOptionalSubscript]

    @property
    def transition(self) -> Matrices:
        """How many matrices the lags have: one for all, one for each, or a number."""
        if SHARED in self.matrices:
            return "shared"
        number = len({matrix.tobytes() for matrix in self.matrices.values()})
        return "per_lag" if number == len(self.matrices) else number

    @property
    def rows(self) -> NDArray[np.intp]:
        """(lags,): the row of ``attention`` that each lag in the support belongs to."""
        return np.repeat(np.arange(len(self.background_weight)), np.diff(self.attention.indptr))

    def lags(self) -> Arrays:
        """The lags in the support: the columns context (the current symbol; None in a model
        without context), lag, weight and stderr.
        """
        rows = self.rows
        current = self.classes[rows] if self.context else np.full(rows.size, None, dtype=object)
        return {
            "context": current,
            "lag": self.attention.indices.astype(np.int64) + 1,
            "weight": self.attention.data.copy(),
            "stderr": self.errors.data.copy(),
        }

    def table(self) -> Arrays:
        """The lags in the support, with what each does and how sure that is.

        Besides the columns of ``lags`` it has:

        - influence, influence_stderr: how far the symbol at the lag moves the distribution of the
          next one; NaN where it is unknown, as it is for the current symbol, which cannot vary
        - nats: what the log-likelihood loses without the lag, everything else fitted again
        - nats_bound: 1 where it loses less than that, since the new fit was cut short; else 0
        - delta_bic: by how much the BIC is worse without it
        - found: the fraction of random halves of the data in which it is found again, once
          ``stability`` was called
        """
        lags = self.lags()
        influence = self.influence().data
        unknown = self.context & (lags["lag"] == 1)
        return {**lags, "influence": np.where(unknown, np.nan, influence), **self.evidence}

    @property
    def incomplete(self) -> NDArray[np.bool_]:
        """(K,): where lags were found, but the background is still needed beside them; never where
        the background is a model.
        """
        least = incomplete_from(len(self.background_ratio))
        return (self.background_ratio >= least) & (self.background is None)

    def matrix(self, lag: int) -> Array:
        """(N, N): the transition matrix of a lag."""
        return self.matrices[SHARED if SHARED in self.matrices else lag]

    def influence(self) -> csr_array:
        """How far each lag in the support moves the distribution of the next symbol, in total
        variation, on average over symbols.
        """
        influence = self.attention.copy()
        for i, lag in enumerate((influence.indices + 1).tolist()):
            if self.context and lag == 1:
                influence.data[i] = 0.0  # the current symbol is given and cannot vary
                continue
            P = self.matrix(lag)
            distance = np.abs(P - (P @ self.frequencies)[:, None]).sum(axis=0) / 2
            influence.data[i] *= float(distance @ self.frequencies)
        return influence

    # --------------------------------------------------------------------------------- as a mixture

    @cached_property
    def slots(self) -> Slots:
        """The positions in a window of max_lag symbols that the slots of the mixture look at; slot
        0 is the background.
        """
        positions = self.max_lag - 1 - self.attention.indices.astype(np.intp)
        owners = None if SHARED in self.matrices else [self.max_lag - lag for lag in self.matrices]
        return Slots.from_support(np.split(positions, self.attention.indptr[1:-1]), owners)

    @cached_property
    def mixture(self) -> Mixture:
        """The parameters as those of a mixture."""
        q = np.zeros(self.slots.positions.shape)
        q[:, 0] = self.background_weight
        for k, weights in enumerate(np.split(self.attention.data, self.attention.indptr[1:-1])):
            q[k, 1 : 1 + weights.size] = weights
        # Slots must point to some matrix, even where no lag was found
        unused = np.repeat(self.prior[:, None], len(self.classes), axis=1)
        matrices = list(self.matrices.values()) or [unused]
        return Mixture(np.column_stack(matrices), self.prior, q)

    def with_background(self, data: Data) -> Data:
        """Windows, each with its own background unless that is the distribution of all labels."""
        if self.background is None:
            return data
        data = self.background.attached(data)
        if not self.unseen.any():
            return data
        held = data.executor.map(_with_unseen, zip(data.partitions, strict=True), self.unseen)
        return replace(data, partitions=held)

    def loglik(self, data: Data) -> float:
        """Log-likelihood of the labels of windows, in nats; −∞ if one of them is impossible."""
        with np.errstate(divide="ignore"):
            rows = self.with_background(data).rows(self.slots)
            return rows.total(RowTable.evaluate, self.mixture).loglik

    def log_likelihoods(self, data: Data) -> Array:
        """(n,): the log-likelihood of each label of windows in this process, in nats."""
        (rows,) = self.with_background(data).rows(self.slots).held
        with np.errstate(divide="ignore"):
            return np.log(rows.likelihoods(self.mixture))[rows.row_numbers]

    @property
    def learns(self) -> bool:
        """Whether a sequence has frequencies of its own, learned as it goes on."""
        return isinstance(self.background, SequenceBackground)

    def past(self, codes: Any) -> Any:
        """The end of a sequence that the next symbol depends on: all of it, where a sequence has
        frequencies of its own.
        """
        return codes if self.learns else codes[-self.max_lag :]

    def next_distribution(self, codes: Codes) -> Array:
        """(N,): the distribution of the symbol after the end of a sequence."""
        past = self.past(codes)
        return self._distributions(past, np.array([past.size]))[0]

    def distributions(self, codes: Codes) -> Array:
        """(n, N): the distribution of the next symbol after each symbol of a sequence; missing
        symbols contribute the background.
        """
        return self._distributions(codes, np.arange(1, max(codes.size, 1) + 1))

    def _distributions(self, codes: Codes, ends: NDArray[np.intp]) -> Array:
        """(r, N): the distribution of the next symbol after the first ``ends`` (r,) symbols of a
        sequence; after an empty one, as if a symbol were missing.
        """
        N = len(self.classes)
        codes = codes if codes.size else np.array([MISSING])
        before = np.full(self.max_lag, N)
        tokens = np.concatenate([before, np.where(codes < 0, N, codes)]).astype(token_dtype(N + 1))
        return self.distributions_after(tokens, np.maximum(ends, 1))

    def distributions_after(self, tokens: NDArray[Any], starts: NDArray[Any]) -> Array:
        """(n, N): the distribution of the next symbol after windows of max_lag tokens, which begin
        at ``starts`` (n,) of a flat array; N stands for what is not there.
        """
        N = len(self.classes)
        current = tokens[starts + self.max_lag - 1].astype(np.int64)
        there = current < N
        last = np.where(there, current, 0) if self.context else np.zeros(starts.size, np.int64)
        # The labels are not used
        partition = Partition.from_blocks(
            [Block(tokens, starts, last, np.zeros(starts.size, np.int64))]
        )
        shape = Shape(N, N if self.context else 1, self.max_lag)
        data = self.with_background(
            Data.from_partitions(Here(), [partition], shape, self.frequencies, independent=False)
        )
        (partition,) = data.partitions
        rows = partition.rows(shape, self.slots, counted=False)
        distributions = rows.distributions(self.mixture)
        if self.context:  # without the current symbol, only the background is known
            given, state = rows.background_distributions(self.mixture)
            distributions[~there] = given[state[~there]]
        return distributions

    def draw(self, length: int, before: Codes | None, rng: np.random.Generator) -> NDArray[Any]:
        """(length,) codes that continue those ``before``; without them, a random start, after which
        the first 10·max_lag codes are discarded.
        """
        N = len(self.classes)
        skipped = 0
        if before is None:
            before = rng.choice(N, size=self.max_lag, p=self.prior / self.prior.sum())
            skipped = 10 * self.max_lag
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

    def _draw_step_by_step(self, length: int, before: Codes, rng: np.random.Generator) -> Codes:
        """Draw one symbol at a time, as gaps or a background of its own for each window require."""
        codes = before.tolist()
        for u in rng.random(length).tolist():
            distribution = self.next_distribution(np.array(self.past(codes), np.int64))
            codes.append(int(np.searchsorted(np.cumsum(distribution)[:-1], u, side="right")))
        return np.array(codes[before.size :], np.int64)


def said_of_matrices(kind: Matrices | str) -> str:
    """How many matrices the lags have, in words."""
    words = {"shared": "one matrix for all lags", "per_lag": "a matrix for each lag"}
    return words.get(str(kind), f"{kind} matrices for all lags")


def with_unseen(distributions: Array, unseen: Array) -> Array:
    """(n, N): distributions in rows that also give symbols what is ``unseen`` (N,)."""
    return (1 - unseen.sum()) * distributions + unseen


def _with_unseen(partition: Partition, unseen: Array) -> Partition:
    distributions, which = partition.background or (np.zeros((0, unseen.size)), partition.label)
    return partition.with_background(Background(with_unseen(distributions, unseen), which))
