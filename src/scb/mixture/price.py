"""What a transition matrix costs, in nats: its marginal likelihood, in place of a count of entries.

A matrix may gain as much as any by learning its labels by heart. So its gain is taken over all
matrices that it might have been: each column is drawn from a Dirichlet distribution α·G about the
distribution G of all labels (MacKay and Peto 1995). The price is what that leaves of the maximum:

    price = Σ_o C[o] log(C[o]/n) − log ∫ Π_o p[o]^C[o] Dirichlet(p | αG) dp

for the n labels C of a column. In a mixture C are expected labels; then the log-likelihood less the
price is a lower bound of the marginal likelihood, that of the variational method. With many labels
for each entry a column costs (N − 1)/2 · log n, as in the BIC. With few, it costs about as much as
the entries in which it differs from G. So the same rule serves 2 symbols and 2,000.

The concentration α is the one that makes the labels of all columns most likely, up to N/2, that of
Jeffreys' prior. Beyond it a matrix whose columns are all alike would cost nothing, and any lag
would do.
"""

import numpy as np
from scipy.special import gammaln

from scb.arrays import Array
from scb.mixture.tuning import TUNING


def column_prices(counts: Array, base: Array) -> Array:
    """(C,): what each column of a matrix of expected labels (N, C) costs, in nats; 0 for an empty
    one. ``base`` (N,) is the distribution of all labels, or (N, C), one for each column.
    """
    columns, labels = np.nonzero(counts.T > TUNING.least_count)
    c = counts[labels, columns]
    n = np.bincount(columns, c, minlength=counts.shape[1])
    G = base[labels] if base.ndim == 1 else base[labels, columns]

    def by_column(terms: Array) -> Array:
        return np.bincount(columns, terms, minlength=counts.shape[1]).astype(float)

    largest = by_column(c * np.log(c / n[columns]))

    def marginal(alpha: float) -> Array:
        a = np.maximum(alpha * G, TUNING.least_count)
        return by_column(gammaln(a + c) - gammaln(a)) + gammaln(alpha) - gammaln(alpha + n)

    alpha = len(counts) / 2
    best = marginal(alpha)
    for _ in range(TUNING.concentrations):
        alpha /= TUNING.concentration_step
        other = marginal(alpha)
        if other.sum() <= best.sum():
            break
        best = other
    return np.maximum(largest - best, 0.0)


def matrix_price(prices: Array, share: float) -> float:
    """What a matrix costs beside the background, from the prices of its columns.

    What is common to all columns may as well stand in the background. So the dearest column is free
    where all labels come from the matrix, and in part where a ``share`` of them does.
    """
    return float(prices.sum() - share * prices.max(initial=0.0))
