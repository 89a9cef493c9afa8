"""The policy of a search in which each position has a matrix of its own: an additive model, f = Σ_ℓ q_ℓ^(k) P_ℓ[o, x_ℓ].

A position that has no matrix yet is judged by a score test on all entries of the matrix that it would get; one whose matrix is
known from other contexts by a test on its weight alone. What must be reached is the extended BIC, with as many parameters as
the data can tell apart: (N − 1)² for a matrix, since what is common to its columns may as well stand in another, N − 1 for the
current symbol where that is the context (its matrix has one column there), 1 for a weight. A parameter costs the logarithm of
the number of samples that speak of it: for a column, those with its symbol.

Where the current symbol is the context, it stands for what is common: it is in every context from the start, so that another lag
is judged by what its symbol changes, and by nothing else. At the end it goes where the other lags can say the same without it.
"""

from dataclasses import replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.mixture.data import Data, Rows
from scb.mixture.em import Fit, maximise
from scb.mixture.law import rounded, smoothed_columns
from scb.mixture.partition import Partition
from scb.mixture.rows import RowTable
from scb.mixture.select import NO_LIMIT, Pair, Policy, Proposal, Selection, Slot

_CLOSE = 0.1  # nats
_NEAR = 5  # times the limit: up to there a ratio with P fixed is not trusted, and P is fitted again


def weak(search: Selection, rows: Rows, fit: Fit) -> list[Slot]:
    """All slots without weight; if there are none, the one slot or the one lag in all contexts that falls short by most."""
    empty = search.empty_slots()
    if empty:
        return empty
    data = search.data
    at_fit = rows.total(RowTable.loglik_by_context, fit.mixture)
    fixed: dict[Slot, float] = {}  # twice the log-likelihood ratio of each slot with P fixed
    choices = []
    for k, s in enumerate(search.support):
        # The current symbol is not judged beside other lags.
        judged = [(j, t) for j, t in enumerate(s.tolist(), start=1) if len(s) == 1 or not is_context(data, t)]
        if not judged:
            continue
        mine = rows.of(k)
        for j, t in judged:
            fixed[k, j] = search.ratio(mine, (k, j), at_fit[k])
            shared = len(search.users(t)) > 1 and not is_context(data, t)
            limit = cost(data, [k], t, known=shared)
            choices.append((_shortfall(search, [(k, j)], fixed[k, j], limit, rows, fit), [(k, j)]))
    for t in search.mixture.owners or ():
        users = search.users(t)
        if len(users) > 1 and not is_context(data, t):
            slots = [search.slot(k, t) for k in users]
            limit = cost(data, users, t, known=False)
            choices.append((_shortfall(search, slots, sum(fixed[slot] for slot in slots), limit, rows, fit), slots))
    shortfall, slots = max(choices, default=(0.0, []), key=itemgetter(0))
    return slots if shortfall > 0 else []


def candidates(search: Selection, rows: Rows, fit: Fit, barred: list[Pair], least: float = 1.0, most: int = NO_LIMIT) -> Proposal:
    """For each context the position that gains most beyond ``least`` times the limit, and the one that does so for all together."""
    data = search.data
    found: set[Pair] = set()
    tables: dict[int, tuple[Array, Array]] = {}
    for k in np.flatnonzero(data.counts).tolist():
        tables[k] = data.total(Partition.source_tables, k, fit.mixture, rows=rows)
        gain = _gains(search, [k], *tables[k], least)
        taken = search.support[k].tolist()
        gain[taken + [t for i, t in barred if i == k]] = -np.inf
        best = int(gain.argmax())
        if gain[best] >= 0 and len(taken) < most:
            found.add((k, best))
    owners = search.mixture.owners or ()
    if len(tables) > 1 and least > 0:
        scores, information = (np.sum(table, axis=0) for table in zip(*tables.values(), strict=True))
        gain = _gains(search, list(tables), scores, information, 1.0)
        gain[[*owners, *(t for _, t in barred), data.T - 1]] = -np.inf  # the last is the context
        best = int(gain.argmax())
        if gain[best] >= 0:
            found |= {(k, best) for k in tables}
    matrices = {}
    for t in sorted({t for _, t in found} - set(owners)):
        # A first matrix: the law of the labels, by how much more often than expected each came after each symbol.
        scores = np.sum([tables[k][0][t] for k, s in sorted(found) if s == t], axis=0)
        matrices[t] = rounded(smoothed_columns(data.label_law[:, None] * scores.T, data.label_law))
    return sorted(found), matrices


def is_context(data: Data, t: int) -> bool:
    """Whether position t is the symbol that chooses the attention, where windows end with the current symbol."""
    return data.K > 1 and t == data.T - 1


def cost(data: Data, contexts: list[int], t: int, known: bool) -> float:
    """What twice the log-likelihood ratio of position t must reach in these contexts, where its matrix is ``known`` or not."""
    labels = data.N - 1
    n = np.maximum(data.counts[contexts], 2)
    choice = 2 * np.log(data.K * data.T)
    if is_context(data, t):
        return float((labels * np.log(1 + n) + choice).sum())
    matrix = 0.0
    if not known:
        columns = np.sort(np.log(1 + n.sum() * data.mu))[:-1]
        matrix = labels * columns.sum() - np.log(n.sum())
    return float(np.log(n).sum() + matrix + choice)


def _shortfall(search: Selection, slots: list[Slot], fixed: float | None, limit: float, rows: Rows, fit: Fit) -> float:
    """By how much twice the log-likelihood ratio of some slots falls short of the limit; ≤ 0 where they stay."""
    # ``fixed``, the ratio with P fixed, overstates it; it is None where that says nothing.
    if fixed is not None and not limit <= fixed < _NEAR * limit:
        return limit - fixed
    without = search.mixture.lifted()
    for slot in slots:
        without = without.without(*slot)
    enough = fit.loglik - limit / 2 + _CLOSE
    other = maximise(rows, without, tolerance=_CLOSE, stall=_CLOSE, steps=300, enough=enough)
    return limit - 2 * (fit.loglik - other.loglik)


def _gains(search: Selection, contexts: list[int], scores: Array, information: Array, least: float) -> Array:
    """(T,): by how much the score statistic of each position in these contexts exceeds ``least`` times its cost.

    Tables (T, N, N) give the statistic of a whole new matrix, χ² with (N − 1)² degrees; where the matrix is known, that of its
    weight, which cannot be negative.
    """
    data = search.data
    n = data.counts[contexts].sum()
    w = np.divide(1.0, information, out=np.zeros_like(information), where=information > 0)
    mass = w.sum(axis=-1)
    mean = np.divide((w * scores).sum(axis=-1), mass, out=np.zeros_like(mass), where=mass > 0)
    gain = (w * (scores - mean[..., None]) ** 2).sum(axis=(-2, -1))
    for t in range(data.T):
        known = t in (search.mixture.owners or ()) and not is_context(data, t)
        if known:
            matrix = search.mixture.matrix(t).T
            score = float((matrix * scores[t]).sum()) - n
            variance = float((matrix**2 * information[t]).sum()) - n
            gain[t] = score**2 / variance if score > 0 and variance > 0 else 0.0
        gain[t] -= least * cost(data, contexts, t, known)
    return gain


# ------------------------------------------------------------------------------------------------- the current symbol


def add_current(search: Selection) -> None:
    """Put the current symbol into every context that occurs, where it is the context."""
    data = search.data
    current = data.T - 1
    matrices = {}
    if current not in (search.mixture.owners or ()):
        matrices[current] = smoothed_columns(data.by_label.T, data.label_law)
    missing = [k for k, s in enumerate(search.support) if data.counts[k] and current not in s]
    search.add([(k, current) for k in missing], matrices)


def remove_current(search: Selection) -> None:
    """Take the current symbol out of contexts with other lags, one at a time, where the likelihood does not ask for it."""
    data = search.data
    current = data.T - 1
    while True:
        rows = search.rows()
        fit = search.fit(rows)
        choices = []
        for k in search.users(current):
            if len(search.support[k]) > 1:
                slot = search.slot(k, current)
                limit = cost(data, [k], current, known=False)
                choices.append((_shortfall(search, [slot], None, limit, rows, fit), [slot]))
        shortfall, slots = max(choices, default=(0.0, []))
        if shortfall <= 0:
            return
        search.remove(slots)


# ------------------------------------------------------------------------------------------------- what the data leave open


def settle_gauge(search: Selection, rows: Rows) -> NDArray[np.bool_]:
    """Settle what the data leave open; (N, C): the entries of P that are 0 by this convention.

    What is common to all columns of a matrix can stand there or in another matrix that the same contexts use: the likelihood is
    the same, the weights are not. So it goes to the shortest lag that can take it, which leaves each other lag with the least
    weight that explains the data. A lag can take it if it is lag 1 where that is the context, and all contexts attend to
    it that attend to the other; or if one context attends to the two, and no other to either.
    """
    N = search.mixture.N
    mixture = replace(search.mixture, columns=search.mixture.columns.copy(), q=search.mixture.q.copy())
    used = rows.total(RowTable.evaluate, mixture).columns[:, :-1].sum(axis=0) > 0
    held = np.zeros(mixture.P.shape, bool)
    for t in sorted(mixture.owners or ()):
        taker = _taker(search, t)
        if taker is None:
            continue
        place = mixture.place(t)
        occurs = used[place]
        mine = mixture.matrix(t)  # a view: the mixture changes with it
        common = mine[:, occurs].min(axis=1)
        left = 1 - common.sum()
        if left < 1e-9:  # the columns are all the same
            continue
        takers = mixture.place(taker)
        for k in search.users(t):
            _, j = search.slot(k, t)
            _, i = search.slot(k, taker)
            w = mixture.q[k, j]
            a = mixture.q[k, i]
            at = slice(takers.start + k, takers.start + k + 1) if is_context(search.data, taker) else takers
            moved = a * mixture.columns[:, at] + w * common[:, None]
            mixture.columns[:, at] = moved / (a + w * (1 - left))
            mixture.q[k, j] = w * left
            mixture.q[k, i] = a + w * (1 - left)
        smallest = np.where(occurs, mine, np.inf).argmin(axis=1)
        mine[:] = (mine - common[:, None]) / left
        mine[:, ~occurs] = mine[:, occurs].mean(axis=1, keepdims=True)
        mine[np.arange(N), smallest] = 0.0
        held[np.arange(N), place.start + smallest] = True
    search.mixture = mixture
    return held


def _taker(search: Selection, t: int) -> int | None:
    """The shortest lag that can take what is common to the columns of position t."""
    users = search.users(t)
    for other in sorted((owner for owner in search.mixture.owners or () if owner > t), reverse=True):
        current = is_context(search.data, other)
        if current and all(other in search.support[k] for k in users):
            return other
        if not current and len(users) == 1 and search.users(other) == users:
            return other
    return None


MATRIX_PER_LAG = Policy(weak=weak, candidates=candidates, fit_options={"tolerance": _CLOSE, "stall": _CLOSE / 10})
