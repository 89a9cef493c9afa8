"""The policy of a search in which each position has a matrix of its own: an additive model, f = Σ_ℓ
q_ℓ^(k) P_ℓ[o, x_ℓ].

A position that has no matrix yet is judged by a score test on all entries of the matrix that it
would get; one whose matrix is known from other states by a test on its weight alone. What must be
reached is the extended BIC, with as many parameters as the data can tell apart: (N − 1)² for a
matrix, since what is common to its columns may as well stand in another; N − 1 for the current
symbol where that is the state (its matrix has one column there); 1 for a weight. A parameter costs
the logarithm of the number of samples that speak of it: for a column, those with its symbol.

Where the current symbol is the state, it stands for what is common: it is in every state from the
start, so that another lag is judged by what its symbol changes, and by nothing else. At the end it
goes where the other lags can say the same without it.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from scb.arrays import Array
from scb.mixture.arrays import Flags
from scb.mixture.data import Data, Rows
from scb.mixture.em import Fit, maximise
from scb.mixture.executors import added
from scb.mixture.model import Mixture, quotient, rounded, smoothed_columns
from scb.mixture.partition import Partition
from scb.mixture.rows import RowTable
from scb.mixture.select import Pair, Policy, Proposal, Removal, Selection, Slot
from scb.mixture.tuning import TUNING


def is_current(data: Data, t: int) -> bool:
    """Whether position t is the current symbol, where windows end with it and it is the state."""
    return data.K > 1 and t == data.T - 1


def costs(data: Data, states: list[int], known: bool) -> Array:
    """(T,): what twice the log-likelihood ratio of each position must reach in these states, where
    its matrix is ``known`` or not.
    """
    n = np.maximum(data.present[states], 2)
    labels = data.N - 1
    choice = 2 * np.log(data.K * data.T)
    least = np.log(n).sum(axis=0) + choice
    if not known:
        columns = np.sort(np.log(1 + n.sum(axis=0)[:, None] * data.mu), axis=1)[:, :-1]
        least += labels * columns.sum(axis=1) - np.log(n.sum(axis=0))
    if data.K > 1:
        # The current symbol has one column for each state, known or not.
        least[-1] = (labels * np.log(1 + n[:, -1]) + choice).sum()
    return least


def removals(search: Selection, rows: Rows) -> list[Removal]:
    """Every slot, and every lag that several states attend to, with its cost; except the current
    symbol beside other lags.
    """
    data = search.data
    prices: dict[Slot, float] = {}
    for k, s in enumerate(search.support):
        for j, t in enumerate(s.tolist(), start=1):
            if len(s) == 1 or not is_current(data, t):
                shared = len(search.users(t)) > 1
                prices[k, j] = float(costs(data, [k], known=shared)[t])
    most = np.zeros(data.K)
    for (k, _), price in prices.items():
        most[k] = max(most[k], TUNING.far_cost * price)
    ratios = search.ratios(rows, list(prices), most)
    chosen = [Removal([slot], price, ratios[slot]) for slot, price in prices.items()]
    for t in search.mixture.owners or ():
        users = search.users(t)
        if len(users) > 1 and not is_current(data, t):
            slots = [search.slot(k, t) for k in users]
            price = costs(data, users, known=False)[t]
            chosen.append(Removal(slots, price, sum(ratios[slot] for slot in slots)))
    return chosen


# ------------------------------------------------------------------------------------------- growth


def candidates(
    search: Selection,
    rows: Rows,
    fit: Fit,
    barred: list[Pair],
    least: float = 1.0,
    most: float = np.inf,
) -> Proposal:
    """For each state the position that gains most beyond ``least`` times its cost, and the one that
    does so for all together.
    """
    data = search.data
    occurring = np.flatnonzero(data.counts).tolist()
    # No log-likelihood ratio is larger.
    reach = -2 * rows.total(RowTable.logliks, fit.mixture)
    gains, new_scores, pooled = _gains_by_state(search, rows, fit, reach, least)
    proposed = set(search.best_pairs(gains, 0.0, barred, most))
    scores: dict[int, Array] = {}
    for pair in sorted(proposed & new_scores.keys()):
        scores[pair[1]] = scores.get(pair[1], 0.0) + new_scores[pair]
    for_all = costs(data, occurring, known=False)
    if len(occurring) > 1 and least > 0 and reach.sum() >= for_all.min():
        tables = pooled or data.total(Partition.source_tables, None, fit.mixture, rows=rows)
        gain = _score_statistics(*tables) - for_all
        gain[[*(search.mixture.owners or ()), *(t for _, t in barred), data.T - 1]] = -np.inf
        best = int(gain.argmax())
        if gain[best] >= 0:
            proposed |= {(k, best) for k in occurring}
            scores[best] = tables[0][best]
    # A new matrix starts as the distribution of the labels, times how much more often than expected
    # each label came after each symbol.
    distribution = data.label_distribution
    matrices = {
        t: rounded(smoothed_columns(distribution[:, None] * scores[t].T, distribution))
        for t in sorted(scores.keys() - set(search.mixture.owners or ()))
    }
    return sorted(proposed), matrices


def _gains_by_state(
    search: Selection, rows: Rows, fit: Fit, reach: Array, least: float
) -> tuple[Array, dict[Pair, Array], tuple[Array, Array] | None]:
    """The gains (K, T) of all positions, the scores (token, label) that new matrices may start
    from, and the tables of all states together.

    The tables are None if one state did not need its own.
    """
    data = search.data
    gains = _weight_gains(search, rows, fit, least)
    new_scores: dict[Pair, Array] = {}
    tables = []
    complete = True
    for k in np.flatnonzero(data.counts).tolist():
        limits = least * costs(data, [k], known=False)
        new = np.flatnonzero((gains[k] == -np.inf) & (reach[k] >= limits))
        complete &= new.size > 0
        if new.size:
            scores, information = data.total(Partition.source_tables, k, fit.mixture, rows=rows)
            gains[k, new] = (_score_statistics(scores, information) - limits)[new]
            # Not of the best position alone, which may be barred.
            new_scores |= {(k, t): scores[t] for t in new.tolist() if gains[k, t] >= 0}
            tables = [added([*tables, (scores, information)])]
    return gains, new_scores, tables[0] if complete and tables else None


def _weight_gains(search: Selection, rows: Rows, fit: Fit, least: float) -> Array:
    """(K, T): by how much the score statistic of a weight exceeds ``least`` times its cost, where
    the matrix is known; else −∞.
    """
    data = search.data
    gains = np.full((data.K, data.T), -np.inf)
    known = np.array([t for t in search.mixture.owners or () if not is_current(data, t)], np.int64)
    if known.size == 0:
        return gains
    matrices = np.array([search.mixture.matrix(t).T for t in known])
    floor = TUNING.least_probability * np.maximum(data.label_distribution, 1 / data.n)
    scores, information = data.total(
        Partition.weight_scores, known, matrices, fit.mixture, floor, rows=rows
    )
    scores = scores - data.present[:, known]
    variance = information - data.present[:, known]
    # A weight cannot be negative.
    statistic = quotient(np.maximum(scores, 0.0) ** 2, variance)
    limits = np.array([costs(data, [k], known=True)[known] for k in range(data.K)])
    gains[:, known] = statistic - least * limits
    return gains


def _score_statistics(scores: Array, information: Array) -> Array:
    """(T,): the score statistic of a whole new matrix at each position, χ² with (N − 1)² degrees of
    freedom; from the tables (T, N, N) of its entries (token, label).
    """
    w = quotient(1.0, information)
    mean = quotient((w * scores).sum(axis=-1), w.sum(axis=-1))
    return (w * (scores - mean[..., None]) ** 2).sum(axis=(-2, -1))


# ------------------------------------------------------------------------------- the current symbol


def add_current(search: Selection) -> None:
    """Put the current symbol into every state that occurs, where it is the state."""
    data = search.data
    current = data.T - 1
    matrices = {}
    if current not in (search.mixture.owners or ()):
        matrices[current] = smoothed_columns(data.by_label.T, data.label_distribution)
    missing = [k for k, s in enumerate(search.support) if data.counts[k] and current not in s]
    search.add([(k, current) for k in missing], matrices)


def remove_current(search: Selection) -> None:
    """Take the current symbol out of states with other lags where the likelihood does not ask for
    it.
    """
    current = search.data.T - 1
    needed: set[Pair] = set()
    while True:
        rows = search.rows()
        fit = search.fit(rows)
        bounds = rows.total(RowTable.removal_ratios, fit.mixture)
        choices = []
        for k in search.users(current):
            if len(search.support[k]) > 1 and (k, current) not in needed:
                slot = search.slot(k, current)
                price = costs(search.data, [k], known=False)[current]
                choices.append(Removal([slot], price, bounds[slot]))
        slots, kept = search.dispensable(rows, fit, choices)
        needed |= kept
        if not slots:
            return
        search.remove(slots)


# ------------------------------------------------------------------------- what the data leave open


def settle_gauge(search: Selection, rows: Rows) -> Flags:
    """Settle what the data leave open; (N, C): the entries of P that are 0 by this convention.

    What is common to all columns of a matrix can stand there or in another matrix that the same
    states use: the likelihood is the same, the weights are not. So it goes to the shortest lag that
    can take it, which leaves each other lag with the least weight that explains the data. A lag can
    take it if it is the current symbol as the state, and all states attend to it that attend to the
    other lag; or if one state attends to the two, and no other to either.
    """
    mixture = replace(search.mixture, P=search.mixture.P.copy(), q=search.mixture.q.copy())
    used = rows.total(RowTable.evaluate, mixture).P.sum(axis=0) > 0
    held = np.zeros(mixture.P.shape, bool)
    for t in sorted(mixture.owners or ()):
        taker = _taker(search, t)
        place = mixture.place(t)
        occurs = used[place]
        if taker is None or not occurs.any():
            continue
        matrix = mixture.P[:, place]
        common = matrix[:, occurs].min(axis=1)
        left = 1 - common.sum()
        if left < 1e-9:  # the columns are all the same
            continue
        _give(search, mixture, t, taker, common)
        smallest = np.where(occurs, matrix, np.inf).argmin(axis=1)
        matrix[:] = (matrix - common[:, None]) / left
        matrix[:, ~occurs] = matrix[:, occurs].mean(axis=1, keepdims=True)
        matrix[np.arange(mixture.N), smallest] = 0.0
        held[np.arange(mixture.N), place.start + smallest] = True
    search.mixture = mixture
    return held


def _give(search: Selection, mixture: Mixture, t: int, taker: int, common: Array) -> None:
    """Move the common part (N,) of the columns of position t, with its weight, to another position;
    the mixture changes.
    """
    given = common.sum()
    for k in search.users(t):
        columns = mixture.place(taker)
        if is_current(search.data, taker):
            columns = slice(columns.start + k, columns.start + k + 1)
        mine = search.slot(k, t)
        other = search.slot(k, taker)
        w = mixture.q[mine]
        a = mixture.q[other]
        moved = a * mixture.P[:, columns] + w * common[:, None]
        mixture.P[:, columns] = moved / (a + w * given)
        mixture.q[mine] = w * (1 - given)
        mixture.q[other] = a + w * given


def _taker(search: Selection, t: int) -> int | None:
    """The shortest lag that can take what is common to the columns of position t."""
    users = search.users(t)
    for other in sorted(search.mixture.owners or (), reverse=True):
        if other <= t:
            break
        if is_current(search.data, other):
            can_take = all(other in search.support[k] for k in users)
        else:
            can_take = len(users) == 1 and search.users(other) == users
        if can_take:
            return other
    return None


MATRIX_PER_LAG = Policy(
    removals=removals,
    candidates=candidates,
    no_signal=lambda data, rows, fit: False,
    near_cost=TUNING.near_cost_per_lag,
    fit=partial(maximise, tolerance=TUNING.close, stall=TUNING.close / 10),
)
