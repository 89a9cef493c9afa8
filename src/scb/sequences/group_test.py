"""A permutation test of whether groups of sequences share their lags, weights and matrices, and how
well each group is predicted.

The expected number of times that each source was used, and with which symbols, is a sum over
sequences. The counts of a group are the sum over its sequences, and permuting the groups changes
only which sequences are added up. The statistics are those of likelihood-ratio tests for these
counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from scb.arrays import AnyArray, Array, Ints
from scb.inputs import InputError, integer
from scb.sequences.coding import labels_among
from scb.sequences.lag_model import LagModel
from scb.sequences.paired import paired_error
from scb.sequences.summary import text_table
from scb.sequences.tables import Arrays, Codes


@dataclass(frozen=True, repr=False)
class GroupTest:
    """A test of whether groups of sequences share their lags, weights and matrices.

    This is the result of ``SparseContextualBigram.compare_groups``. Printing the result shows the
    tables ``parts`` and ``scores``.

    Attributes
    ----------
    parts : dict of (parts,) arrays
        Tests of the parts that may differ between groups: ``part`` ("weights", "matrices", and each
        lag by name), the ``statistic`` and its ``p`` value. The p value of a lag is adjusted for
        the number of lags (Westfall and Young): if no weight differs between groups, some lag has a
        p value of at most 0.05 in 1 of 20 tests.
    scores : dict of (groups,) arrays
        How well the groups are predicted: ``group``, the number ``n`` of symbols, the mean number
        of ``bits`` per symbol, and its standard ``error``.

    Examples
    --------
    >>> import scb
    >>> tasks = [scb.Task.random(N=3, T=5, sparsity=1, seed=seed) for seed in (0, 1)]
    >>> x = [scb.generate(tasks[i % 2], 60, seed=i).tolist() for i in range(60)]
    >>> model = scb.SparseContextualBigram(max_lag=6).fit(x)
    >>> test = model.compare_groups(x, ["odd" if i % 2 else "even" for i in range(60)])
    >>> test.parts["part"][:2], test.parts["p"][:2]
    (array(['weights', 'matrices'], dtype='<U8'), array([0.001, 0.001]))
    """

    parts: Arrays
    scores: Arrays

    def __str__(self) -> str:
        parts = {
            "shared?": self.parts["part"].tolist(),
            "statistic": [f"{x:,.1f}" for x in self.parts["statistic"]],
            "p": [f"{x:.3f}" for x in self.parts["p"]],
        }
        scores = {
            "group": [str(x) for x in self.scores["group"]],
            "symbols": [f"{x:,}" for x in self.scores["n"]],
            "bits": [f"{x:.4f}" for x in self.scores["bits"]],
            "± s.e.": [f"{x:.4f}" for x in self.scores["error"]],
        }
        return "\n".join([*text_table(parts), "", *text_table(scores)])

    __repr__ = __str__


def compare_groups(
    model: LagModel,
    codes: Sequence[Codes],
    groups: Sequence[Any],
    permutations: int,
    rng: np.random.Generator,
    beside: Ints | None = None,
) -> GroupTest:
    """The test for sequences of codes, with one group for each sequence; ``beside`` (symbols,
    covariates) holds the codes of covariates.
    """
    if len(groups) != len(codes):
        raise InputError(f"groups has {len(groups)} entries, but X has {len(codes)} sequences")
    names, number = np.unique(np.asarray(groups), return_inverse=True)
    if len(names) < 2:
        raise InputError("groups: there must be at least 2 groups")
    integer("n_permutations", permutations, low=1)
    counts = _SourceCounts.expected(model, codes, beside)
    observed = counts.statistics(number)
    drawn = np.array([counts.statistics(rng.permutation(number)) for _ in range(permutations)])
    # Each lag is compared with the largest statistic of any lag
    drawn[:, 2:] = drawn[:, 2:].max(axis=1, initial=-np.inf)[:, None]
    # A permutation that gives the same groups may differ by a rounding
    p = (1 + (drawn >= observed - 1e-9).sum(axis=0)) / (1 + permutations)
    part = ["weights", "matrices", *map(model.source_name, counts.lags)]
    parts = {"part": np.array(part), "statistic": observed, "p": p}
    return GroupTest(parts, _scores(counts.bits, names, number))


@dataclass(frozen=True)
class _SourceCounts:
    """Expected counts of each sequence (rows), and what they are of."""

    lags: list[int]
    # (sequences, states · (1 + lags)): how often each source was used after each current symbol
    sources: csr_array
    # (sequences, lags · N · N): how often symbol and label came together by way of each lag
    pairs: csr_array
    # The bits of the predicted symbols of each sequence
    bits: list[Array]
    states: int
    N: int

    @classmethod
    def expected(
        cls, model: LagModel, codes: Sequence[Codes], beside: Ints | None
    ) -> "_SourceCounts":
        """By the posterior of the sources of each symbol."""
        N = model.shape.N
        rows = model.rows_of(model.windows(codes, beside))
        terms = rows.slot_terms(model.mixture)
        f = terms.sum(axis=1)
        # Matrices are side by side
        tokens = rows.columns.astype(np.int64) % N
        lags = (np.unique(model.attention.indices) + 1).tolist()
        source = np.searchsorted([0, *lags], model.lags_of(rows))
        each = [int(labels_among([x]).sum()) for x in codes]
        sequence = np.repeat(np.arange(len(codes)), each)
        share = (terms / f[:, None]).ravel()
        owner = np.repeat(sequence, terms.shape[1])
        states = len(model.background_weight)
        at_source = (rows.last[:, None] * (1 + len(lags)) + source).ravel()
        cell = (((source - 1) * N + tokens) * N + rows.label[:, None]).ravel()
        used = source.ravel() > 0
        return cls(
            lags,
            csr_array((share, (owner, at_source)), (len(codes), states * (1 + len(lags)))),
            csr_array((share[used], (owner[used], cell[used])), (len(codes), len(lags) * N * N)),
            np.split(-np.log2(f), np.cumsum(each)[:-1]),
            states,
            N,
        )

    def statistics(self, number: Ints) -> Array:
        """(2 + lags,): of weights, of matrices, and of the weight of each lag."""
        sequences = np.arange(number.size)
        indicator: Any = csr_array((np.ones(number.size), (number, sequences)))
        used = (indicator @ self.sources).toarray().reshape(-1, self.states, 1 + len(self.lags))
        together = (indicator @ self.pairs).toarray().reshape(len(used), -1, self.N)
        whole = used.sum(axis=2, keepdims=True)
        of_lag = [
            _likelihood_ratio(np.concatenate([used[..., [j]], whole - used[..., [j]]], axis=2))
            for j in range(1, used.shape[2])
        ]
        return np.array([_likelihood_ratio(used), _likelihood_ratio(together), *of_lag])


def _likelihood_ratio(counts: Array) -> float:
    """Twice the log-likelihood ratio of a distribution over the last axis for each group (first
    axis) against one for all groups, summed over the axis between.
    """
    return float(2 * (_loglik(counts).sum() - _loglik(counts.sum(axis=0)).sum()))


def _loglik(counts: Array) -> Array:
    total = counts.sum(axis=-1, keepdims=True)
    part = np.divide(counts, total, out=np.ones_like(counts), where=counts > 0)
    return counts * np.log(np.maximum(part, 1e-300))


def _scores(bits: list[Array], names: AnyArray, number: Ints) -> Arrays:
    """How well each group is predicted."""
    own = [
        np.concatenate([bits[i] for i in np.flatnonzero(number == g)]) for g in range(len(names))
    ]
    return {
        "group": names,
        "n": np.array([one.size for one in own]),
        "bits": np.array([one.mean() if one.size else np.nan for one in own]),
        "error": np.array([paired_error(one) if one.size else np.nan for one in own]),
    }
