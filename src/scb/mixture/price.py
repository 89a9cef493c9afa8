"""What a transition matrix costs, in nats: its marginal likelihood, in place of a count of entries.

A matrix may gain as much as any by learning its labels by heart. So its gain is taken over all
matrices that it might have been: each column is drawn from a Dirichlet distribution α·G about the
distribution G of all labels (MacKay and Peto 1995). The price is how far that falls short of the
maximum:

    price = Σ_o C[o] log(C[o]/n) − log ∫ Π_o p[o]^C[o] Dirichlet(p | αG) dp

for the n labels C of a column. In a mixture C are expected labels; then the log-likelihood minus
the price is a lower bound on the marginal likelihood, that of the variational method. With many
labels for each entry a column costs (N − 1)/2 · log n, as in the BIC. With few, it costs about as
much as the entries in which it differs from G. So the same rule serves 2 symbols and 2,000.

The concentration α is the one that makes the labels of all columns most likely, up to N²/2: then
each entry of a column is worth as much as N/2 labels, on average. Beyond it a matrix whose columns
are all alike would cost nothing, and any lag would do.
"""

import numpy as np
from scipy.special import gammaln

from scb.arrays import Array
from scb.mixture.tuning import TUNING


class ColumnCounts:
    """Expected labels (N, C) of the columns of a matrix, and their marginal likelihood.

    ``base`` (N,) is the distribution of all labels, or (N, C), one for each column.
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
        """The concentration that makes the labels most likely, by halving and doubling; from the
        largest one unless another is given.
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


def column_prices(counts: Array, base: Array) -> Array:
    """(C,): what each column of a matrix of expected labels (N, C) costs, in nats; 0 for an empty
    one. See ``ColumnCounts`` for ``base``.
    """
    columns = ColumnCounts(counts, base)
    return np.maximum(columns.largest() - columns.marginal(columns.concentration()), 0.0)
