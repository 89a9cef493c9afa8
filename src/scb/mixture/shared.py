"""The policy of a search in which all positions take their columns from one matrix P.

Growth. The derivative of the log-likelihood in a weight that is 0 is Σ_i (P[o_i, x_it]/f_i − 1).
For iid contexts, the tokens of a position without signal are iid μ whatever the other tokens are,
which yields the exact null distribution (``levels``). For sequences, the sum is a martingale at the
true parameters, with variance Σ_i (Σ_o P[o, x_it]²/f_io − 1). The best position of each state is
tried if its score is at least as unlikely as a Gaussian above √c, with the c defined below.

Criterion. A position of state k stays if twice the log-likelihood ratio reaches c. For sequences,
this is the extended BIC (Chen and Chen 2008), c = log n_k + 2 log(K·T), in which a parameter costs
log n_k and its choice among K·T positions costs 2 log(K·T). If the weight is 0, the ratio exceeds c
with the probability that a Gaussian exceeds √c, so about 1/√(2π n_k c) false positions would pass
in a fit. For iid contexts, c is lower: the probability of a false position among all K·T is 5/n_k,
but at most 5 %. (If P has entries near 0, the ratio has heavier tails than a Gaussian, but the exact
level of the score keeps the rate.) For sequences, a position is also charged for the columns of P
that it uses more than all others together.
"""

from dataclasses import replace

import numpy as np

from scb.arrays import Array, Ints
from scb.mixture.data import Data, Rows
from scb.mixture.em import Fit, maximise
from scb.mixture.lag_costs import Prices
from scb.mixture.partition import Partition
from scb.mixture.rows import RowTable
from scb.mixture.select import Pair, Policy, Proposal, Removal, Selection
from scb.mixture.tuning import TUNING
from scb.theory.gaussian import noise_quantile


def removals(search: Selection, rows: Rows) -> list[Removal]:
    """The slot of each state that is worth least beyond its cost."""
    limits = np.repeat(criterion(search.data)[:, None], search.mixture.q.shape[1], axis=1)
    if not search.data.independent:
        limits += _column_costs(search, rows)
    ratios = search.ratios(rows, search.all_slots(), TUNING.far_cost * limits.max(axis=1))
    chosen = [Removal([slot], float(limits[slot]), ratio) for slot, ratio in ratios.items()]
    chosen.sort(key=lambda one: one.ratio - one.cost, reverse=True)
    return list({one.slots[0][0]: one for one in chosen}.values())


def _column_costs(search: Selection, rows: Rows) -> Array:
    """(K, s): twice the cost in nats of the columns of P that explain more labels in this slot than
    in all others together. Such a column can learn what all samples of the state have in common,
    whatever the position. The cost of a column grows like the logarithm of its labels, so the slot
    is charged for the part of the logarithm that would be lost without it.
    """
    labels = rows.total(RowTable.labels_by_slot, search.mixture)
    n = labels.sum(axis=(0, 1))
    ratio = np.where(2 * labels > n, np.maximum(n, 1.0) / np.maximum(n - labels, 1.0), 1.0)
    part = np.log(ratio) / np.log(np.maximum(n, 2.0))
    price = Prices(search.data, rows, search.mixture).matrices[0]
    if search.data.K == 1:
        # What the columns have in common is what all labels have in common
        part *= price.differences / max(price.columns.sum(), TUNING.tiny)
    return 2 * part @ price.columns


def candidates(
    search: Selection,
    rows: Rows,
    fit: Fit,
    barred: list[Pair],
    least: float = 1.0,
    most: float = np.inf,
) -> Proposal:
    """For each state, the position with the largest score, if that score is at least ``least``
    times what noise reaches.
    """
    data = search.data
    scores = relative_scores(data, rows, fit, search.folds)
    return search.best_pairs(scores, least, search.closed(barred, most)), {}


def criterion(data: Data) -> Array:
    """(K,): what twice the log-likelihood ratio of a position must reach."""
    n = np.maximum(data.counts, 2)
    pairs = data.K * data.T
    extended_bic = np.log(n) + 2 * np.log(pairs)
    if not data.independent:
        return extended_bic
    chance = np.minimum(TUNING.false_position, TUNING.false_position_samples / n)
    return np.minimum(extended_bic, [noise_quantile(pairs, p) ** 2 for p in chance.tolist()])


def no_signal(data: Data, rows: Rows, fit: Fit, pruned: bool) -> bool:
    """Whether the gain over the background is less than the cost of P, whose entries adapt to any
    position, plus the cost of one position or, once weak positions are ``pruned``, of all
    positions.

    For iid contexts, the level of the scores is exact, so positions without signal are not added in
    the first place.
    """
    if data.independent:
        return False
    at = fit.mixture
    nothing = replace(at, q=np.eye(1, at.q.shape[1]).repeat(data.K, axis=0))
    without = float(rows.total(RowTable.logliks, nothing).sum())
    slots = (at.q[:, 1:] > 0).sum(axis=1)
    price = Prices(data, rows, at).in_states(0, np.flatnonzero(slots).tolist())
    positions = criterion(data)
    of_positions = slots @ positions if pruned else positions.max()
    return 2 * (fit.loglik - without) < 2 * price + of_positions


def relative_scores(data: Data, rows: Rows, fit: Fit, folds: Ints) -> Array:
    """(K, T): scores of all positions relative to what noise reaches, which is exact for iid
    contexts and a Gaussian quantile for others.
    """
    P = fit.mixture.P
    z = np.sqrt(criterion(data))
    if data.independent:
        matrices = P.reshape(data.N, -1, data.N).swapaxes(0, 1)  # (F, N, N)
        U = matrices - matrices @ data.mu[:, None]
        raw = data.total(Partition.likelihood_scores, U, folds, fit.mixture, rows=rows)
        return raw / rows.score_levels(U, folds, fit.mixture, data.mu, z)[:, None]
    raw = data.total(Partition.likelihood_scores, P, folds, fit.mixture, rows=rows) - data.present
    # That P and q are fitted makes the variance smaller than it is taken to be.
    variance = (
        data.total(Partition.distribution_scores, P**2, fit.mixture, rows=rows) - data.present
    )
    return raw / np.sqrt(np.maximum(variance, 1e-12)) / z[:, None]


SHARED_MATRIX = Policy(
    removals=removals,
    candidates=candidates,
    no_signal=no_signal,
    cost=lambda search, rows, pairs, to_prune: 0.0,  # there is no new matrix
    memorised=lambda search, rows, owners: 0.0,
    near_cost=TUNING.near_cost_shared,
    tries_of_many=2,
    fit=maximise,
)
