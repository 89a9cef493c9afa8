"""What the data leave open where each lag has a matrix of its own, and the convention that settles it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from scb.mixture.data import Rows
from scb.mixture.rows import RowTable
from scb.mixture.select import Selection, is_context


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
        mine -= common[:, None]
        mine /= left
        mine[:, ~occurs] = mine[:, occurs].mean(axis=1, keepdims=True)
        mine[np.arange(N), smallest] = 0.0
        held[np.arange(N), place.start + smallest] = True
    search.mixture = mixture
    return held


def _taker(search: Selection, t: int) -> int | None:
    """The shortest lag that can take what is common to the columns of position t."""
    users = search.users(t)
    for other in sorted(search.mixture.owners or (), reverse=True):
        if other <= t:
            return None
        current = is_context(search.data, other)
        if current and all(other in search.support[k] for k in users):
            return other
        if not current and len(users) == 1 and search.users(other) == users:
            return other
    return None
