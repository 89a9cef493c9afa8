"""A fitted model of lags: the next symbol has the distribution b[k]·G + Σ_ℓ a[k, ℓ]·P_ℓ[:, x_ℓ],
where k is the current symbol.

G is the background, such as the distribution of all labels or a prediction from the recent symbols.
The model holds weights and matrices, facts about the fit and the evidence for each lag. It computes
the distribution of the next symbol, the likelihood of data, the influence of each lag, and random
sequences. ``lag_fit`` finds the lags, and ``model_file`` saves a model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from scb.arrays import AnyArray, Array, Flags, Ints, Positions
from scb.mixture.beside import wide_shape, with_sources
from scb.mixture.data import Data, Here
from scb.mixture.fit import incomplete_from
from scb.mixture.merging import Matrices
from scb.mixture.model import Background, Mixture
from scb.mixture.partition import Partition, Shape
from scb.mixture.rows import RowTable, Slots
from scb.mixture.windows import Block
from scb.sequences.baselines.background import WindowBackground
from scb.sequences.baselines.per_sequence import SequenceBackground
from scb.sequences.coding import windows_of_codes
from scb.sequences.covariates import Covariate
from scb.sequences.fit_facts import FitFacts
from scb.sequences.symbols import MISSING, readable
from scb.sequences.tables import Arrays, Classes, Codes
from scb.task.sampling import token_dtype

# The key of a transition matrix that all lags share
SHARED = 0


@dataclass(frozen=True)
class LagModel:
    """Everything that a fit of lags has found; all reports are based on it."""

    classes: Classes  # (N,), the symbols, sorted
    context: bool  # whether the current symbol chooses the weights
    # Sparse (K, max_lag + covariates): column ℓ − 1 has the weight of lag ℓ, and the covariates
    # follow as if they were longer lags. K is N, or 1 without context; with a covariate that
    # chooses, N for each of its values and N for a missing one
    attention: csr_array
    errors: csr_array  # standard errors of the weights, in the same places
    background_weight: Array  # (K,)
    background_ratio: Array  # (K,), twice the log-likelihood ratio of the background
    # Lag → (N, values); one matrix under ``SHARED`` where all lags share it
    matrices: dict[int, Array]
    prior: Array  # (N,), the distribution of the labels
    frequencies: Array  # (N,), the distribution of all symbols
    # (N,): what every distribution gives to a symbol that was never a label; 0 for the others
    unseen: Array
    # Gives each window a distribution of its own; without it, the background is ``prior``
    background: WindowBackground | None = None
    # What may be known beside the symbols, and the number of the one that chooses, if one does
    covariates: tuple[Covariate, ...] = ()
    chooser: int | None = None
    # Further columns of ``table``; see ``lag_fit.lag_evidence``
    evidence: Mapping[str, Array] = field(default_factory=dict)
    facts: FitFacts = field(default_factory=FitFacts)

    def __getstate__(self) -> dict[str, Any]:
        """The fields; what follows from them is not pickled."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def max_lag(self) -> int:
        """The longest lag that may matter."""
        return self._sources - len(self.covariates)

    @property
    def _sources(self) -> int:
        """Lags and covariates."""
        return int(self.attention.shape[1])  # pyright: ignore[reportOptionalSubscript]

    def source_name(self, lag: int) -> str:
        """The name of a column of ``attention``, numbered from 1: "lag 3", or a covariate."""
        if lag <= self.max_lag:
            if lag == 1 and self.chooser is not None:
                return f"lag 1 with {self.covariates[self.chooser].name}"
            return f"lag {lag}"
        return self.covariates[lag - self.max_lag - 1].name

    @property
    def used_covariates(self) -> set[str]:
        """The names of the covariates that the model needs."""
        used = set((self.attention.indices - self.max_lag).tolist()) | {self.chooser}
        return {one.name for i, one in enumerate(self.covariates) if i in used}

    @cached_property
    def contexts(self) -> AnyArray:
        """(K,): what each row of ``attention`` is for, namely the current symbol with a value of
        the covariate that chooses the lags; None in a model without context.
        """
        if not self.context:
            return np.full(1, None, dtype=object)
        if self.chooser is None:
            return self.classes
        one = self.covariates[self.chooser]
        symbols = [readable(x) for x in self.classes.tolist()]
        values = [f"{one.name} {value}" for value in [*one.names, "missing"]]
        return np.array([f"{symbol}, {value}" for value in values for symbol in symbols])

    @property
    def transition(self) -> Matrices:
        """How many matrices the lags have: one for all, one for each, or a number."""
        if SHARED in self.matrices:
            return "shared"
        number = len({matrix.tobytes() for matrix in self.matrices.values()})
        # Fewer than two only where all are the same without being shared
        return "per_lag" if number in (0, 1, len(self.matrices)) else number

    @property
    def rows(self) -> Positions:
        """(lags,): the row of ``attention`` that each lag in the support belongs to."""
        return np.repeat(np.arange(len(self.background_weight)), np.diff(self.attention.indptr))

    def lags(self) -> Arrays:
        """The lags in the support, in the columns context (the current symbol; None in a model
        without context), lag, weight and stderr. The lag of a covariate is 0, and the column source
        holds its name.
        """
        lag = self.attention.indices.astype(np.int64) + 1
        columns = {
            "context": self.contexts[self.rows],
            "lag": np.where(lag > self.max_lag, 0, lag),
            "weight": self.attention.data.copy(),
            "stderr": self.errors.data.copy(),
        }
        if self.covariates:
            columns["source"] = np.array([self.source_name(x) for x in lag.tolist()], np.str_)
        return columns

    def table(self) -> Arrays:
        """The lags in the support, with the effect of each lag and how certain it is.

        In addition to the columns of ``lags``, the table has:

        - influence, influence_stderr: how far the symbol at the lag moves the distribution of the
          next one; NaN where it is unknown, as it is for the current symbol, which cannot vary
        - nats: what the log-likelihood loses without the lag, with everything else fitted again
        - nats_bound: 1 where ``nats`` is only an upper bound, because the new fit was cut short;
          else 0
        - delta_bic: by how much the BIC is worse without the lag; a matrix with few labels for each
          entry is charged its price (``mixture.price``) if that is less
        - found: the fraction of random halves of the data in which the lag is found again, once
          ``stability`` has been called
        """
        lags = self.lags()
        influence = self.influence().data
        unknown = self.context & (lags["lag"] == 1)
        return {**lags, "influence": np.where(unknown, np.nan, influence), **self.evidence}

    @property
    def incomplete(self) -> Flags:
        """(K,): whether lags were found but the background is still needed in addition to them;
        never true where the background is a model.
        """
        least = incomplete_from(len(self.background_ratio))
        return (self.background_ratio >= least) & (self.background is None)

    def matrix(self, lag: int) -> Array:
        """(N, values): the transition matrix of a lag or covariate."""
        return self.matrices[SHARED if SHARED in self.matrices else lag]

    def frequencies_at(self, lag: int) -> Array:
        """(values,): how often each symbol or value of a covariate occurs at a lag."""
        if lag <= self.max_lag:
            return self.frequencies
        return self.covariates[lag - self.max_lag - 1].frequencies

    def influence(self) -> csr_array:
        """How far each lag in the support moves the distribution of the next symbol, in total
        variation, averaged over symbols.
        """
        influence = self.attention.copy()
        for i, lag in enumerate((influence.indices + 1).tolist()):
            if self.context and lag == 1:
                influence.data[i] = 0.0  # the current symbol is given and cannot vary
                continue
            P = self.matrix(lag)
            occurs = self.frequencies_at(lag)
            distance = np.abs(P - (P @ occurs)[:, None]).sum(axis=0) / 2
            influence.data[i] *= float(distance @ occurs)
        return influence

    # --------------------------------------------------------------------------------- as a mixture

    @cached_property
    def slots(self) -> Slots:
        """The positions in a window of covariates and max_lag symbols that the slots of the mixture
        look at; slot 0 is the background.
        """
        positions = self._sources - 1 - self.attention.indices.astype(np.intp)
        owners = None if SHARED in self.matrices else [self._sources - lag for lag in self.matrices]
        return Slots.from_support(np.split(positions, self.attention.indptr[1:-1]), owners)

    @cached_property
    def mixture(self) -> Mixture:
        """The parameters as those of a mixture."""
        N = len(self.classes)
        tokens = self.shape.N
        q = np.zeros(self.slots.positions.shape)
        q[:, 0] = self.background_weight
        for k, weights in enumerate(np.split(self.attention.data, self.attention.indptr[1:-1])):
            q[k, 1 : 1 + weights.size] = weights
        # Slots must point to some matrix, even where no lag was found
        unused = np.repeat(self.prior[:, None], N, axis=1)
        matrices = list(self.matrices.values()) or [unused]
        padded = [np.pad(P, ((0, tokens - N), (0, tokens - P.shape[1]))) for P in matrices]
        return Mixture(np.column_stack(padded), np.pad(self.prior, (0, tokens - N)), q)

    @property
    def shape(self) -> Shape:
        """The shape of ``prepared`` windows."""
        N = len(self.classes)
        sizes = [len(one.values) for one in self.covariates]
        return wide_shape(Shape(N, N if self.context else 1, self.max_lag), sizes, self.chooser)

    def prepared(self, data: Data) -> Data:
        """Windows of symbols in the form that the mixture requires: with their backgrounds, and
        with their covariates as positions.
        """
        sizes = [len(one.values) for one in self.covariates]
        return with_sources(self.with_background(data), sizes, self.chooser)

    def windows(
        self, codes: Sequence[Codes], beside: Ints | None = None, skipped: int | Sequence[int] = 0
    ) -> Data:
        """The windows of sequences in codes of the symbols; see ``windows_of_codes``."""
        N = len(self.classes)
        return windows_of_codes(codes, N, self.max_lag, self.context, skipped, beside)

    def rows_of(self, data: Data) -> RowTable:
        """The windows of data in this process, one row each."""
        (partition,) = self.prepared(data).partitions
        return partition.rows(self.shape, self.slots, counted=False)

    def lags_of(self, rows: RowTable) -> Ints:
        """(r, s): the lag that each slot of a row looks at, 0 where it takes the background."""
        there = rows.columns < self.mixture.P.shape[1]
        return np.where(there, self.shape.T - self.slots.positions[rows.last], 0)

    def with_background(self, data: Data) -> Data:
        """Windows, each with its own background unless that is the distribution of all labels."""
        if self.background is None:
            return data
        data = self.background.attached(data)
        if not self.unseen.any():
            return data
        return replace(data, partitions=data.mapped(_with_unseen, self.unseen))

    def loglik(self, data: Data) -> float:
        """Log-likelihood of the labels of windows, in nats; −∞ if one of them is impossible."""
        with np.errstate(divide="ignore"):
            rows = self.prepared(data).rows(self.slots)
            return rows.total(RowTable.evaluate, self.mixture).loglik

    def log_likelihoods(self, data: Data) -> Array:
        """(n,): the log-likelihood of each label of windows in this process, in nats."""
        (rows,) = self.prepared(data).rows(self.slots).held
        with np.errstate(divide="ignore"):
            return np.log(rows.likelihoods(self.mixture))[rows.row_numbers]

    @property
    def learns(self) -> bool:
        """Whether each sequence has separate frequencies, learned symbol by symbol."""
        return isinstance(self.background, SequenceBackground)

    def past(self, codes: Any) -> Any:
        """The end of a sequence that the next symbol depends on; this is the whole sequence if each
        sequence has separate frequencies.
        """
        return codes if self.learns else codes[-self.max_lag :]

    def next_distribution(self, codes: Codes, beside: Ints | None = None) -> Array:
        """(N,): the distribution of the symbol after the end of a sequence, whose covariates are
        ``beside`` (1, covariates).
        """
        past = self.past(codes)
        return self._distributions(past, np.array([past.size]), beside)[0]

    def distributions(self, codes: Codes, beside: Ints | None = None) -> Array:
        """(n, N): the distribution of the next symbol after each symbol of a sequence, whose
        covariates are ``beside`` (n, covariates); missing symbols contribute the background.
        """
        return self._distributions(codes, np.arange(1, max(codes.size, 1) + 1), beside)

    def _distributions(self, codes: Codes, ends: Positions, beside: Ints | None) -> Array:
        """(r, N): the distribution of the next symbol after the first ``ends`` (r,) symbols of a
        sequence; after an empty one, as if a symbol were missing.
        """
        N = len(self.classes)
        codes = codes if codes.size else np.array([MISSING])
        before = np.full(self.max_lag, N)
        tokens = np.concatenate([before, np.where(codes < 0, N, codes)]).astype(token_dtype(N + 1))
        return self.distributions_after(tokens, np.maximum(ends, 1), beside)

    def distributions_after(
        self, tokens: AnyArray, starts: AnyArray, beside: Ints | None = None
    ) -> Array:
        """(n, N): the distribution of the next symbol after windows of max_lag tokens, which begin
        at ``starts`` (n,) of a flat array; N stands for a missing token. The covariates of the next
        symbols are ``beside`` (n, covariates).
        """
        N = len(self.classes)
        current = tokens[starts + self.max_lag - 1].astype(np.int64)
        there = current < N
        last = np.where(there, current, 0) if self.context else np.zeros(starts.size, np.int64)
        # The labels are not used
        partition = Partition.from_blocks(
            [Block(tokens, starts, last, np.zeros(starts.size, np.int64))]
        )
        partitions = [replace(partition, beside=beside)]
        shape = Shape(N, N if self.context else 1, self.max_lag)
        rows = self.rows_of(
            Data.from_partitions(Here(), partitions, shape, self.frequencies, independent=False)
        )
        distributions = rows.distributions(self.mixture)
        if self.context:  # without the current symbol, only the background is known
            given, state = rows.background_distributions(self.mixture)
            distributions[~there] = given[state[~there]]
        return distributions[:, :N]


def said_of_matrices(kind: Matrices | str) -> str:
    """A phrase that says how many matrices the lags have."""
    words = {"shared": "one matrix for all lags", "per_lag": "a matrix for each lag"}
    return words.get(str(kind), f"{kind} matrices for all lags")


def with_unseen(distributions: Array, unseen: Array) -> Array:
    """(n, N): distributions in rows, with the probabilities ``unseen`` (N,) of symbols mixed in."""
    return (1 - unseen.sum()) * distributions + unseen


def _with_unseen(partition: Partition, unseen: Array) -> Partition:
    distributions, which = partition.background or (np.zeros((0, unseen.size)), partition.label)
    return partition.with_background(Background(with_unseen(distributions, unseen), which))
