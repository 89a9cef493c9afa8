"""The cost of a transition matrix in nats, based on its marginal likelihood instead of its number
of entries.

A matrix that merely memorises its labels can gain as much as any other. So its gain is averaged
over all matrices that it might have been: each column is drawn from a Dirichlet distribution α·G
about the distribution G of all labels (MacKay and Peto 1995). The price is how far this average
falls short of the maximum:

    price = Σ_o C[o] log(C[o]/n) − log ∫ Π_o p[o]^C[o] Dirichlet(p | αG) dp

for the n labels C of a column. In a mixture, C are expected labels; then the log-likelihood minus
the price is the lower bound on the marginal likelihood that the variational method uses. With many
labels for each entry, a column costs (N − 1)/2 · log n, as in the BIC. With few labels, a column
costs about as much as the entries in which it differs from G. So the same rule works for 2 symbols
and for 2,000.

The concentration α is the value that makes the labels of all columns most likely, but at most N²/2;
at this limit, each entry of a column is worth N/2 labels on average. Without a limit, a matrix
whose columns are all alike would cost nothing, so any lag could be added.

This price takes G as known, but G is estimated from the same labels, with and without the matrix.
Without the matrix, all n labels say what G is. With it, they say only as much about G as
Σ_o n_o·α/(n_o + α) labels would, since they also have to say how the columns differ from G. The
columns have G in common, so the part of the price that is due to G alone has been paid already: it
is the cost of learning G from n labels minus that of learning it from the smaller number.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from scb.arrays import Array
from scb.mixture.tuning import TUNING


class ColumnCounts:
    """Expected labels (N, C) of the columns of a matrix, and their marginal likelihood.

    ``base`` is the distribution (N,) of all labels, or (N, C), with one distribution for each
    column.
    """

    def __init__(self, counts: Array, base: Array) -> None:
        self.C = counts.shape[1]
        # Labels that occur
        self.N = max(1, np.count_nonzero(base if base.ndim == 1 else base.max(axis=1)))
        self.column, label = np.nonzero(TUNING.least_count < counts.T)
        self.counts = counts[label, self.column]
        self.base = base[label] if base.ndim == 1 else base[label, self.column]
        self.n = self._by_column(self.counts)

    def _by_column(self, terms: Array) -> Array:
        return np.bincount(self.column, terms, minlength=self.C).astype(float)

    def largest(self) -> Array:
        """(C,): the log-likelihood of each column at its maximum."""
        return self._by_column(self.counts * np.log(self.counts / self.n[self.column]))

    def marginal(self, alpha: float) -> Array:
        """(C,): the log marginal likelihood of each column, with concentration α."""
        a = np.maximum(alpha * self.base, TUNING.least_count)
        ratio = gammaln(a + self.counts) - gammaln(a)
        return self._by_column(ratio) + gammaln(alpha) - gammaln(alpha + self.n)

    def concentration(self, start: float | None = None) -> float:
        """The concentration that makes the labels most likely, found by halving and doubling. The
        search starts from the largest concentration unless another is given.
        """
        largest = self.N**2 / 2
        best = largest if start is None else start
        marginal = self.marginal(best).sum()
        for factor in (0.5, 2.0):
            while TUNING.least_concentration <= best * factor <= largest:
                other = self.marginal(best * factor).sum()
                if other <= marginal:
                    break
                best *= factor
                marginal = other
        return best

    def prices(self, alpha: float) -> Array:
        """(C,): the cost of each column, with concentration α."""
        return np.maximum(self.largest() - self.marginal(alpha), 0.0)


class MatrixPrice(NamedTuple):
    """The cost of a matrix, in nats."""

    columns: Array  # (C,), of each column; an empty column costs 0
    common: float  # how much of it is due to what the columns have in common

    @classmethod
    def of(cls, counts: Array, base: Array) -> "MatrixPrice":
        """The cost of a matrix of expected labels (N, C). See ``ColumnCounts`` for ``base``."""
        columns = ColumnCounts(counts, base)
        alpha = columns.concentration()
        n = columns.n
        share = float((n * alpha / (n + alpha)).sum() / max(n.sum(), TUNING.tiny))
        labels = counts.sum(axis=1)
        common = _price_of_distribution(labels) - _price_of_distribution(share * labels)
        return cls(columns.prices(alpha), common)

    @property
    def differences(self) -> float:
        """The cost of what differs between columns."""
        return max(0.0, float(self.columns.sum()) - self.common)


def _price_of_distribution(labels: Array) -> float:
    """What it costs to learn a distribution from labels (N,), if each is equally likely a priori."""
    labels = labels[labels > TUNING.least_count, None]
    N = len(labels)
    return float(ColumnCounts(labels, np.full(N, 1 / N)).prices(N)[0]) if N else 0.0
