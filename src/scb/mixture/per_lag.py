"""The policy of a search in which each position has its own matrix: an additive model, f = Σ_ℓ
q_ℓ^(k) P_ℓ[o, x_ℓ].

A position that has no matrix yet is judged by the observed and expected labels for each of its
tokens. A position whose matrix is known from other states is judged by a score test on its weight
alone. The gain must exceed the price of the matrix (``price``), or of one column for the current
symbol if that is the state, plus the extended BIC's penalty for the weights and for the choice of
the position. A weight costs the logarithm of the number of samples of its state.

If the current symbol is the state, it represents what is common to all windows of that state: it is
a slot of every state from the start, so another lag is judged only by what its symbol changes. At
the end, the current symbol is removed from states in which the other lags can explain the same
without it.
"""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from scb.arrays import Array, Flags
from scb.mixture.data import Data, Rows
from scb.mixture.em import Fit, maximise
from scb.mixture.executors import added
from scb.mixture.lag_costs import Prices, matrix_costs, weight_costs
from scb.mixture.model import Mixture, quotient, smoothed_columns
from scb.mixture.new_matrix import (
    Tables,
    difference_of_tokens,
    first_matrix,
    full_prices,
    labels_by_score,
    new_matrix_gains,
)
from scb.mixture.partition import Partition
from scb.mixture.rows import RowTable
from scb.mixture.select import Pair, Policy, Proposal, Removal, Selection, Slot
from scb.mixture.shrink import shrunk
from scb.mixture.tuning import TUNING


def is_current(data: Data, t: int) -> bool:
    """Whether position t is the current symbol, if windows end with it and it is their state."""
    return data.K > 1 and t == data.T - 1


def removals(search: Selection, rows: Rows) -> list[Removal]:
    """Every slot, and every lag that several states attend to, with its cost. The current symbol is
    excluded if there are other lags.
    """
    data = search.data
    prices = _prices(search, rows)
    users = {t: search.users(t) for t in search.mixture.owners or ()}
    costs: dict[Slot, float] = {}
    for k, s in enumerate(search.support):
        for j, t in enumerate(s.tolist(), start=1):
            if is_current(data, t):
                if len(s) == 1:
                    costs[k, j] = prices.current(k)
            elif len(users[t]) > 1:
                costs[k, j] = float(weight_costs(data, [k])[t])
            else:
                costs[k, j] = prices.matrix(t, [k])
    most = np.zeros(data.K)
    for (k, _), cost in costs.items():
        most[k] = max(most[k], TUNING.far_cost * cost)
    ratios = search.ratios(rows, list(costs), most)
    # A column of the current symbol belongs to one state, so without it there is nothing to fit.
    chosen = [
        Removal([(k, j)], cost, ratios[k, j], is_current(data, int(search.support[k][j - 1])))
        for (k, j), cost in costs.items()
    ]
    for t, states in users.items():
        if len(states) > 1 and not is_current(data, t):
            slots = [search.slot(k, t) for k in states]
            ratio = sum(ratios[slot] for slot in slots)
            chosen.append(Removal(slots, prices.matrix(t, states), ratio))
    return chosen


def cost(search: Selection, rows: Rows, pairs: frozenset[Pair], to_prune: bool) -> float:
    """The least that some positions cost together, with the matrices that only they use. If some of
    them may be pruned, that is the price of one of these matrices.
    """
    if not pairs:
        return 0.0
    data = search.data
    prices = _prices(search, rows)
    costs = []
    matrices = []
    for t in sorted({t for _, t in pairs}):
        states = sorted(k for k, other in pairs if other == t)
        if is_current(data, t):
            costs += [prices.current(k) for k in states]
        elif states == search.users(t):
            matrices.append(2 * prices.in_states(t, states))
            costs.append(prices.matrix(t, states))
        else:
            costs += [float(weight_costs(data, [k])[t]) for k in states]
    return min(matrices, default=0.0) if to_prune else sum(costs)


def memorised(search: Selection, rows: Rows, owners: set[int]) -> float:
    """Twice the price of the matrices of some positions, if there are few samples for each entry;
    otherwise 0, since the price then hardly depends on what the others explain.
    """
    if not search.data.few_per_entry:
        return 0.0
    columns = _prices(search, rows).columns
    return 2 * float(sum(columns[search.mixture.place(t)].sum() for t in owners))


def _prices(search: Selection, rows: Rows) -> Prices:
    return search.once("prices", lambda: Prices(search.data, rows, search.mixture))


# ------------------------------------------------------------------------------------------- growth


def candidates(
    search: Selection,
    rows: Rows,
    fit: Fit,
    barred: list[Pair],
    least: float = 1.0,
    most: float = np.inf,
) -> Proposal:
    """For each state, the position that gains most beyond ``least`` times its cost, and the
    position that does so for all states together.
    """
    data = search.data
    owners = search.mixture.owners or ()
    occurring = np.flatnonzero(data.counts).tolist()
    closed = search.closed(barred, most)
    fit = search.once("unlearnt", lambda: _unlearnt(data, rows, fit))
    promise = search.once(("promise", least), lambda: _promise(search, rows, fit, least))
    gains = promise.gains
    tables = promise.tables
    if data.K == 1:
        not_new = np.flatnonzero(closed[0]).tolist()
        new = new_matrix_gains(data, [0], tables, not_new, least, promise.scores)
        gains = np.where(gains == -np.inf, new, gains)
    proposed = set(search.best_pairs(gains, 0.0, closed))
    sources: dict[int, Tables] = {}
    for k, t in sorted(proposed):
        if t not in owners:
            mine = promise.best.get((k, t)) or _labels_after(data, rows, fit, k, t, tables)
            sources[t] = added([*([sources[t]] if t in sources else []), mine])
    if len(occurring) > 1 and least > 0:
        not_new = [*owners, *(t for _, t in barred), data.T - 1]
        gain = new_matrix_gains(data, occurring, tables, not_new, least)
        best = int(gain.argmax())
        if gain[best] >= 0:
            proposed |= {(k, best) for k in occurring}
            sources[best] = tables[0][best], tables[1][best]
    matrices = {t: first_matrix(*sources[t], data.label_distribution) for t in sorted(sources)}
    return sorted(proposed), matrices


def _unlearnt(data: Data, rows: Rows, fit: Fit) -> Fit:
    """The fit with its matrices shrunk where they have memorised many labels: what another position
    explains would seem to be explained already.
    """
    smaller = shrunk(rows, fit.mixture, data.label_distribution, 1.0)
    return fit if smaller is None else fit._replace(mixture=smaller[0].at)


class _Promise(NamedTuple):
    """What positions promise at a fit, whether they are closed or not."""

    # (K, T): by how much they exceed their costs; −∞ for new matrices of a single state
    gains: Array
    tables: Tables  # (T, token, label), over all states
    scores: Tables | None  # (T, token, label), of a single state
    best: dict[Pair, Tables]  # (token, label), for each state's best position if that is new


def _promise(search: Selection, rows: Rows, fit: Fit, least: float) -> _Promise:
    data = search.data
    gains = _weight_gains(search, rows, fit, least)
    labels = partial(data.total, Partition.label_tables, fit.mixture, rows=rows)
    if data.K == 1:
        scores = data.total(Partition.source_tables, 0, fit.mixture, 1 / _floor(data), rows=rows)
        return _Promise(gains, labels(), scores, {})
    best: dict[Pair, Tables] = {}
    pooled: list[Tables] = []
    complete = True
    # No log-likelihood ratio is larger.
    reach = -2 * rows.total(RowTable.logliks, fit.mixture)
    for k in np.flatnonzero(data.counts).tolist():
        limits = least * matrix_costs(data, [k], full_prices(data, k))
        new = np.flatnonzero((gains[k] == -np.inf) & (reach[k] >= limits))
        complete &= new.size > 0
        if new.size == 0:
            continue
        scores = data.total(Partition.source_tables, k, fit.mixture, rows=rows)
        pooled = [added([*pooled, scores])]
        came, expected = labels_by_score(*scores)
        gains[k, new] = (difference_of_tokens(scores, (came, expected)) - limits)[new]
        t = int(gains[k].argmax())
        if t in new and gains[k, t] >= 0:
            best[k, t] = came[t].copy(), expected[t].copy()
    tables = labels_by_score(*pooled[0]) if complete and pooled else labels()
    return _Promise(gains, tables, None, best)


def _labels_after(data: Data, rows: Rows, fit: Fit, k: int, t: int, all_states: Tables) -> Tables:
    """What the new matrix of a state's position may start from, (token, label)."""
    tables = all_states
    if data.K > 1:
        scores = data.total(Partition.source_tables, k, fit.mixture, rows=rows)
        tables = labels_by_score(*scores)
    return tables[0][t], tables[1][t]


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
    scores, information = data.total(
        Partition.weight_scores, known, matrices, fit.mixture, _floor(data), rows=rows
    )
    scores = scores - data.present[:, known]
    variance = information - data.present[:, known]
    # A weight cannot be negative.
    statistic = quotient(np.maximum(scores, 0.0) ** 2, variance)
    limits = np.array([weight_costs(data, [k])[known] for k in range(data.K)])
    gains[:, known] = statistic - least * limits
    return gains


def _floor(data: Data) -> Array:
    """(N,): the probability that a label has at least in scores."""
    return TUNING.least_probability * np.maximum(data.label_distribution, 1 / data.n)


# ------------------------------------------------------------------------------- the current symbol


def add_current(search: Selection) -> None:
    """Add the current symbol to every state that occurs, if it is the state."""
    data = search.data
    current = data.T - 1
    matrices = {}
    if current not in (search.mixture.owners or ()):
        matrices[current] = smoothed_columns(data.by_label.T, data.label_distribution)
    missing = [k for k, s in enumerate(search.support) if data.counts[k] and current not in s]
    search.add([(k, current) for k in missing], matrices)


def remove_current(search: Selection) -> None:
    """Take the current symbol out of states with other lags if the likelihood does not need it."""
    current = search.data.T - 1
    needed: set[Pair] = set()
    while True:
        rows = search.rows()
        fit = search.fit(rows)
        bounds = rows.total(RowTable.removal_ratios, fit.mixture)
        prices = Prices(search.data, rows, fit.mixture)
        choices = []
        for k in search.users(current):
            if len(search.support[k]) > 1 and (k, current) not in needed:
                slot = search.slot(k, current)
                choices.append(Removal([slot], prices.current(k), bounds[slot]))
        slots, kept = search.dispensable(rows, fit, choices)
        needed |= kept
        if not slots:
            return
        search.remove(slots)


# ------------------------------------------------------------------------- what the data leave open


def settle_gauge(search: Selection, rows: Rows) -> Flags:
    """Fix by convention what the data leave open, and return (N, C): the entries of P that are 0 by
    this convention.

    The part that is common to all columns of a matrix can be moved to another matrix that the same
    states use: the likelihood stays the same, but the weights change. By convention, the common
    part goes to the shortest lag that can take it, which leaves every other lag with the least
    weight that explains the data. A lag can take it in two cases: if the lag is the current symbol
    as the state, and every state that attends to the other lag attends to it; or if one state
    attends to both lags, and no other state attends to either.
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
    no_signal=lambda data, rows, fit, pruned: False,
    cost=cost,
    memorised=memorised,
    near_cost=TUNING.near_cost_per_lag,
    tries_of_many=1,  # a matrix of many symbols takes long to fit
    fit=partial(maximise, tolerance=TUNING.close, stall=TUNING.close / 10),
)
