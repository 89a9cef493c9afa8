"""The policy of a search in which each position has a matrix of its own: an additive model, f = Σ_ℓ
q_ℓ^(k) P_ℓ[o, x_ℓ].

A position that has no matrix yet is judged by a score test on all entries of the matrix that it
would get; one whose matrix is known from other contexts by a test on its weight alone. What must be
reached is the extended BIC, with as many parameters as the data can tell apart: (N − 1)² for a
matrix, since what is common to its columns may as well stand in another, N − 1 for the current
symbol where that is the context (its matrix has one column there), 1 for a weight. A parameter
costs the logarithm of the number of samples that speak of it: for a column, those with its symbol.

Where the current symbol is the context, it stands for what is common: it is in every context from
the start, so that another lag is judged by what its symbol changes, and by nothing else. At the end
it goes where the other lags can say the same without it.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.mixture.data import Data, Rows
from scb.mixture.em import Fit
from scb.mixture.model import Mixture, rounded, smoothed_columns
from scb.mixture.partition import Partition
from scb.mixture.rows import RowTable
from scb.mixture.select import NO_LIMIT, Pair, Policy, Proposal, Removal, Selection, Slot
from scb.mixture.tuning import TUNING


def weak(search: Selection, rows: Rows, fit: Fit) -> list[Slot]:
    """All slots without weight. If there are none, of what is worth less than it costs with P
    fixed: one lag in all its contexts, and in each other context one slot.
    """
    empty = search.empty_slots()
    if empty:
        return empty
    removals = sorted(_removals(search, rows), key=lambda one: one.ratio - one.cost)
    found: list[Slot] = []
    lags = 0
    for one in removals:
        touched = {k for k, _ in found}
        free = all(k not in touched for k, _ in one.slots) and (len(one.slots) == 1 or lags == 0)
        if one.ratio < one.cost and free:
            found += one.slots
            lags += len(one.slots) > 1
    return found


def doubtful(search: Selection, rows: Rows, fit: Fit) -> list[Removal]:
    """The slots and the lags in all contexts that are worth little more than they cost with P
    fixed; at most two of a context.
    """
    near = sorted(
        (one for one in _removals(search, rows) if one.ratio < TUNING.near_cost_per_lag * one.cost),
        key=lambda one: one.ratio / one.cost,
    )
    seen: Counter[int] = Counter()
    found = []
    for one in near:
        k = one.slots[0][0] if len(one.slots) == 1 else -1
        seen[k] += 1
        if k == -1 or seen[k] <= 2:
            found.append(one)
    return found


def _removals(search: Selection, rows: Rows) -> list[Removal]:
    """Every slot, and every lag that several contexts attend to, with its cost; except the current
    symbol beside other lags.
    """
    data = search.data
    judged = []
    costs: dict[Slot, float] = {}
    for k, s in enumerate(search.support):
        for j, t in enumerate(s.tolist(), start=1):
            if len(s) == 1 or not is_context(data, t):
                shared = len(search.users(t)) > 1 and not is_context(data, t)
                judged.append((k, j))
                costs[k, j] = cost(data, [k], t, known=shared)
    most = np.zeros(data.K)
    for (k, _), price in costs.items():
        most[k] = max(most[k], TUNING.far_cost * price)
    ratios = search.ratios(rows, judged, most)
    found = [Removal([slot], costs[slot], ratios[slot]) for slot in judged]
    for t in search.mixture.owners or ():
        users = search.users(t)
        if len(users) > 1 and not is_context(data, t):
            slots = [search.slot(k, t) for k in users]
            found.append(
                Removal(
                    slots, cost(data, users, t, known=False), sum(ratios[slot] for slot in slots)
                )
            )
    return found


def candidates(
    search: Selection,
    rows: Rows,
    fit: Fit,
    barred: list[Pair],
    least: float = 1.0,
    most: int = NO_LIMIT,
) -> Proposal:
    """For each context the position that gains most beyond ``least`` times its cost, and the one
    that does so for all together.
    """
    data = search.data
    occurring = np.flatnonzero(data.counts).tolist()
    # No log-likelihood ratio is larger
    reach = -2 * rows.total(RowTable.loglik_by_context, fit.mixture)
    gains, first, pooled = _gains_of_each_context(search, rows, fit, reach, least)
    for k, s in enumerate(search.support):
        gains[k, s if len(s) < most else slice(None)] = -np.inf
    for pair in barred:
        gains[pair] = -np.inf
    proposed = {(k, int(gains[k].argmax())) for k in occurring if gains[k].max() >= 0}
    scores = {
        t: np.sum([first[k, t] for k, s in sorted(proposed) if s == t and (k, t) in first], axis=0)
        for _, t in proposed
    }
    if (
        len(occurring) > 1
        and least > 0
        and reach.sum() >= min(cost(data, occurring, t, known=False) for t in range(data.T))
    ):
        tables = pooled or data.total(Partition.source_tables, None, fit.mixture, rows=rows)
        best = _best_for_all(search, occurring, tables, barred)
        if best is not None:
            proposed |= {(k, best) for k in occurring}
            scores[best] = tables[0][best]
    # A first matrix: the distribution of the labels, by how much more often than expected each came
    # after each symbol.
    matrices = {
        t: rounded(
            smoothed_columns(
                data.label_distribution[:, None] * scores[t].T, data.label_distribution
            )
        )
        for t in sorted(scores.keys() - set(search.mixture.owners or ()))
    }
    return sorted(proposed), matrices


def _gains_of_each_context(
    search: Selection, rows: Rows, fit: Fit, reach: Array, least: float
) -> tuple[Array, dict[Pair, Array], list[Array]]:
    """The gains (K, T) of all positions, the scores (token, label) that new matrices may start
    from, and all contexts' tables.

    The tables are empty if one context did not need its own.
    """
    data = search.data
    gains = _weight_gains(search, rows, fit, least)
    first: dict[Pair, Array] = {}
    pooled: list[Array] = []
    summed = 0
    occurring = np.flatnonzero(data.counts).tolist()
    for k in occurring:
        new = [
            t
            for t in range(data.T)
            if gains[k, t] == -np.inf and reach[k] >= least * cost(data, [k], t, known=False)
        ]
        if new:
            tables = data.total(Partition.source_tables, k, fit.mixture, rows=rows)
            gains[k, new] = _matrix_gains(search, [k], tables, least)[new]
            # Not the best position alone, which may be barred.
            first |= {(k, t): tables[0][t] for t in new if gains[k, t] >= 0}
            pooled = (
                [a + b for a, b in zip(pooled, tables, strict=True)] if pooled else list(tables)
            )
            summed += 1
    return gains, first, pooled if summed == len(occurring) else []


def _best_for_all(
    search: Selection, contexts: list[int], tables: Any, barred: list[Pair]
) -> int | None:
    """The position without a matrix that gains most in all contexts together, if that is more than
    it costs.
    """
    gain = _matrix_gains(search, contexts, tables, 1.0)
    current = search.data.T - 1  # it is the context
    gain[[*(search.mixture.owners or ()), *(t for _, t in barred), current]] = -np.inf
    best = int(gain.argmax())
    return best if gain[best] >= 0 else None


def is_context(data: Data, t: int) -> bool:
    """Whether position t is the symbol that chooses the attention, where windows end with the
    current symbol.
    """
    return data.K > 1 and t == data.T - 1


def cost(data: Data, contexts: list[int], t: int, known: bool) -> float:
    """What twice the log-likelihood ratio of position t must reach in these contexts, where its
    matrix is ``known`` or not.
    """
    labels = data.N - 1
    n = np.maximum(data.present[contexts, t], 2)
    choice = 2 * np.log(data.K * data.T)
    if is_context(data, t):
        return float((labels * np.log(1 + n) + choice).sum())
    matrix = 0.0
    if not known:
        columns = np.sort(np.log(1 + n.sum() * data.mu))[:-1]
        matrix = labels * columns.sum() - np.log(n.sum())
    return float(np.log(n).sum() + matrix + choice)


def _weight_gains(search: Selection, rows: Rows, fit: Fit, least: float) -> Array:
    """(K, T): by how much the score statistic of a weight exceeds ``least`` times its cost, where
    the matrix is known; else −∞.
    """
    data = search.data
    gains = np.full((data.K, data.T), -np.inf)
    known = np.array([t for t in search.mixture.owners or () if not is_context(data, t)], np.int64)
    if known.size == 0:
        return gains
    matrices = np.array([np.ascontiguousarray(search.mixture.matrix(t).T) for t in known])
    floor = TUNING.least_probability * np.maximum(data.label_distribution, 1 / data.n)
    scores, information = data.total(
        Partition.weight_scores, known, matrices, fit.mixture, floor, rows=rows
    )
    scores = scores - data.present[:, known]
    variance = information - data.present[:, known]
    positive = (scores > 0) & (variance > 0)  # a weight cannot be negative
    statistic = np.where(positive, scores**2 / np.where(positive, variance, 1.0), 0.0)
    costs = np.array(
        [[cost(data, [k], t, known=True) for t in known.tolist()] for k in range(data.K)]
    )
    gains[:, known] = statistic - least * costs
    return gains


def _matrix_gains(
    search: Selection, contexts: list[int], tables: tuple[Array, Array], least: float
) -> Array:
    """(T,): by how much the score statistic of a whole new matrix, χ² with (N − 1)² degrees,
    exceeds ``least`` times its cost.

    Tables (T, N, N) hold scores and information of its entries (token, label) in these contexts.
    """
    scores, information = tables
    w = np.divide(1.0, information, out=np.zeros_like(information), where=information > 0)
    mass = w.sum(axis=-1)
    mean = np.divide((w * scores).sum(axis=-1), mass, out=np.zeros_like(mass), where=mass > 0)
    gain = (w * (scores - mean[..., None]) ** 2).sum(axis=(-2, -1))
    return gain - least * np.array(
        [cost(search.data, contexts, t, known=False) for t in range(search.data.T)]
    )


# ------------------------------------------------------------------------------- the current symbol


def add_current(search: Selection) -> None:
    """Put the current symbol into every context that occurs, where it is the context."""
    data = search.data
    current = data.T - 1
    matrices = {}
    if current not in (search.mixture.owners or ()):
        matrices[current] = smoothed_columns(data.by_label.T, data.label_distribution)
    missing = [k for k, s in enumerate(search.support) if data.counts[k] and current not in s]
    search.add([(k, current) for k in missing], matrices)


def remove_current(search: Selection) -> None:
    """Take the current symbol out of contexts with other lags where the likelihood does not ask for
    it.
    """
    data = search.data
    current = data.T - 1
    needed: set[Pair] = set()
    while True:
        rows = search.rows()
        fit = search.fit(rows)
        bounds = rows.total(RowTable.removal_ratios, fit.mixture)
        choices = []
        for k in search.users(current):
            if len(search.support[k]) > 1 and (k, current) not in needed:
                slot = search.slot(k, current)
                choices.append(
                    Removal([slot], cost(data, [k], current, known=False), float(bounds[slot]))
                )
        slots, kept = search.dispensable(rows, fit, choices)
        needed |= kept
        if not slots:
            return
        search.remove(slots)


# ------------------------------------------------------------------------- what the data leave open


def settle_gauge(search: Selection, rows: Rows) -> NDArray[np.bool_]:
    """Settle what the data leave open; (N, C): the entries of P that are 0 by this convention.

    What is common to all columns of a matrix can stand there or in another matrix that the same
    contexts use: the likelihood is the same, the weights are not. So it goes to the shortest lag
    that can take it, which leaves each other lag with the least weight that explains the data. A
    lag can take it if it is lag 1 where that is the context, and all contexts attend to it that
    attend to the other; or if one context attends to the two, and no other to either.
    """
    mixture = replace(
        search.mixture, columns=search.mixture.columns.copy(), q=search.mixture.q.copy()
    )
    used = rows.total(RowTable.evaluate, mixture).columns[:, :-1].sum(axis=0) > 0
    held = np.zeros(mixture.P.shape, bool)
    for t in sorted(mixture.owners or ()):
        taker = _taker(search, t)
        occurs = used[mixture.place(t)]
        if taker is None or not occurs.any():
            continue
        common = mixture.matrix(t)[:, occurs].min(axis=1)
        left = 1 - common.sum()
        if left < 1e-9:  # the columns are all the same
            continue
        _give(search, mixture, t, taker, common)
        held[
            np.arange(mixture.N),
            mixture.place(t).start + _keep_the_rest(mixture.matrix(t), occurs, common),
        ] = True
    search.mixture = mixture
    return held


def _give(search: Selection, mixture: Mixture, t: int, taker: int, common: Array) -> None:
    """Move the common part (N,) of the columns of position t, with its weight, to another position;
    the mixture changes.
    """
    left = 1 - common.sum()
    takers = mixture.place(taker)
    for k in search.users(t):
        mine = search.slot(k, t)
        other = search.slot(k, taker)
        w = mixture.q[mine]
        a = mixture.q[other]
        at = (
            slice(takers.start + k, takers.start + k + 1)
            if is_context(search.data, taker)
            else takers
        )
        moved = a * mixture.columns[:, at] + w * common[:, None]
        mixture.columns[:, at] = moved / (a + w * (1 - left))
        mixture.q[mine] = w * left
        mixture.q[other] = a + w * (1 - left)


def _keep_the_rest(matrix: Array, occurs: NDArray[np.bool_], common: Array) -> NDArray[np.intp]:
    """Take the common part (N,) out of the columns of a matrix, in place; (N,): the column in which
    each row is 0 now.
    """
    smallest = np.where(occurs, matrix, np.inf).argmin(axis=1)
    matrix[:] = (matrix - common[:, None]) / (1 - common.sum())
    matrix[:, ~occurs] = matrix[:, occurs].mean(axis=1, keepdims=True)
    matrix[np.arange(len(matrix)), smallest] = 0.0
    return smallest


def _taker(search: Selection, t: int) -> int | None:
    """The shortest lag that can take what is common to the columns of position t."""
    users = search.users(t)
    for other in sorted(
        (owner for owner in search.mixture.owners or () if owner > t), reverse=True
    ):
        current = is_context(search.data, other)
        if current and all(other in search.support[k] for k in users):
            return other
        if not current and len(users) == 1 and search.users(other) == users:
            return other
    return None


MATRIX_PER_LAG = Policy(
    weak=weak,
    doubtful=doubtful,
    candidates=candidates,
    fit_options={"tolerance": TUNING.close, "stall": TUNING.close / 10},
)
