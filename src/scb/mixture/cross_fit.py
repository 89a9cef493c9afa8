"""Cross-fitting: positions are judged with a matrix that was estimated without their labels.

With few samples for each entry of P, the fitted P absorbs the labels that a missed position would
explain, and a test with this P does not detect the missed position. So the states are divided into
folds. The positions of a state, and whether it lacks one, are tested with a P that was fitted to
the states of the other folds alone, with a prior. In these tests P is fixed, so states do not
affect each other.

Such a P has estimation errors, so a mixture of it with the background fits every state better. The
weight of the background that the median state needs is therefore mixed into P. Any further weight
that a state needs is specific to that state.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scb.arrays import Array, Flags, Ints
from scb.mixture.data import Data, Rows
from scb.mixture.em import Fit, climb_by_em
from scb.mixture.errors import Limit
from scb.mixture.model import Mixture
from scb.mixture.rows import RowTable, Support
from scb.mixture.select import Pair, Removal, Selection
from scb.mixture.settle import settle
from scb.mixture.shared import SHARED_MATRIX, criterion
from scb.mixture.tuning import TUNING
from scb.mixture.weights import WeightFit, fit_weights


def are_few(data: Data) -> bool:
    """Whether there are so few samples that P absorbs what a missed position would explain, and
    enough states to divide into folds.
    """
    return data.few_per_entry and data.independent and TUNING.folds <= data.K


def has_few_samples(search: Selection) -> bool:
    """Whether a search should be cross-fitted; never without a position from which to learn P."""
    found = any(s.size for s in search.support)
    return found and search.mixture.owners is None and are_few(search.data)


def _fit_with_P_fixed(rows: Rows, start: Mixture, **options: Any) -> Fit:
    # The weights alone are fitted to the end, whatever the options.
    found = fit_weights(rows, start)
    return Fit(replace(start, q=found.q), np.nan, [float(found.logliks.sum())])


CROSS_FITTED = SHARED_MATRIX._replace(near_cost=0.0, fit=_fit_with_P_fixed)


@dataclass(frozen=True)
class CrossFit:
    """A mixture in which the P of each state was fitted to the states of other folds."""

    search: Selection  # the matrices of all folds are side by side

    @classmethod
    def from_search(cls, search: Selection) -> "CrossFit":
        """Cross-fit at the positions of a search, which is not changed."""
        folds = _folds(search.data.counts)
        rows = search.rows()
        at = replace(search.mixture, q=_with_a_background(search.mixture.q))
        P = np.hstack([_P_of_others(rows, at, folds != fold) for fold in range(folds.max() + 1)])
        support = list(search.support)
        crossed = Selection(search.data, CROSS_FITTED, support, replace(at, P=P), folds)
        asked = crossed.fit(crossed.rows()).mixture.q[_has_positions(support), 0]
        crossed.mixture = _blended(replace(at, P=P), float(np.median(asked)) if asked.size else 0.0)
        return cls(crossed)

    def value(self) -> float:
        """How much the log-likelihood gains over the background, minus the costs of the positions.
        Positions that a search found in noise gain nothing with the P of other folds.
        """
        data = self.search.data
        costs = criterion(data) @ [s.size for s in self.search.support]
        labels = data.by_label.sum(axis=0)
        nothing = labels[labels > 0] @ np.log(labels[labels > 0] / data.n)
        fit = self.search.policy.fit(self.search.rows(), self.search.mixture)
        return float(fit.loglik - nothing - costs / 2)

    def revised(self) -> tuple[list[Pair], list[Pair]]:
        """The positions that a search from here adds, and those that it removes."""
        search = replace(self.search, support=list(self.search.support), _kept=None)
        before = search.pairs(search.all_slots())
        settle(search)
        after = search.pairs(search.all_slots())
        return sorted(after - before), sorted(before - after)

    def ratios(self) -> Array:
        """(K,): twice the log-likelihood ratio for adding the background to the positions of each
        state, divided by its inflation; NaN for states without positions.
        """
        rows = self.search.rows()
        there = _has_positions(self.search.support)
        beside = rows.total(RowTable.logliks, self.search.fit(rows).mixture)
        without = _fit_positions(rows, self.search.mixture, there).logliks
        ratios = np.maximum(2 * (beside - without), 0.0) / self.inflation
        return np.where(there, ratios, np.nan)

    @property
    def inflation(self) -> float:
        """The factor by which a ratio varies more than if P were known: 1 + parameters of P /
        samples, as for the predictions of a regression.
        """
        return 1 + self.search.data.N**2 / self.search.data.n

    def background_limit(self, final: Mixture, k: int, drop: float, everywhere: bool) -> Limit:
        """The largest weight of the background in state k at which twice the log-likelihood is
        ``drop`` below its maximum, and the weights of the ``final`` fit at that point.

        Whether other states lack a position does not matter, since the median state is taken to be
        complete.
        """
        asked = np.arange(len(final.q)) == k
        rows = self.search.rows().mapped(RowTable.of_states, asked)
        none = _fit_positions(rows, self.search.mixture, asked)
        top = max(none.logliks[k], self.search.policy.fit(rows, self.search.mixture).loglik)
        least, most = 0.0, 1.0
        fit = none
        for _ in range(TUNING.profile_tries):
            weight = (least + most) / 2
            fit = _fit_positions(rows, _blended(self.search.mixture, weight), asked)
            if 2 * (top - fit.logliks[k]) < drop * self.inflation:
                least = weight
            else:
                most = weight
        moved = (1 - least) * fit.q[k, 1:] - none.q[k, 1:]
        size = final.q.shape[1] - 1
        return Limit(least, final.q[k, 1:] + moved[:size])


def revise(search: Selection, crossed: CrossFit) -> None:
    """Add the positions that were missed, and remove those that neither the P of others nor the
    fitted P confirms.

    The fitted P adapts to a position, so its likelihood ratio is inflated as much as with the P of
    others, whose error is as large.
    """
    missed, unconfirmed = crossed.revised()
    search.add(missed, {})
    costs = crossed.inflation * criterion(search.data)
    for k, t in unconfirmed:
        rows = search.rows()
        one = Removal([search.slot(k, t)], float(costs[k]), 0.0)
        search.remove(search.dispensable(rows, search.fit(rows), [one])[0])


def _has_positions(support: Support) -> Flags:
    return np.array([s.size > 0 for s in support])


def _with_a_background(q: Array) -> Array:
    """(K, s): weights in which the background can grow."""
    lifted = np.maximum(q, TUNING.background * np.eye(1, q.shape[1]))
    return lifted / lifted.sum(axis=1, keepdims=True)


def _blended(at: Mixture, share: float) -> Mixture:
    """With a share of the background in every column."""
    return replace(at, P=(1 - share) * at.P + share * at.background[:, None])


def _fit_positions(rows: Rows, at: Mixture, states: Flags) -> WeightFit:
    """The weights of positions in some states (K,), which have no background."""
    q = at.q.copy()
    q[states, 0] = 0.0
    q[states] /= q[states].sum(axis=1, keepdims=True)
    return fit_weights(rows, replace(at, q=q), tolerance=TUNING.close / 10, asked=states)


def _folds(counts: Array) -> Ints:
    """(K,): the fold of each state; all folds have about as many samples."""
    folds = np.zeros(len(counts), np.intp)
    order = np.argsort(-counts, kind="stable")
    folds[order] = np.arange(len(counts)) % TUNING.folds
    return folds


def _P_of_others(rows: Rows, at: Mixture, states: Flags) -> Array:
    """P fitted to some states (K,), with ``prior`` labels added to each column."""
    some = rows.mapped(_with_prior, states, at, TUNING.prior / max(len(rows.held), 1))
    q = np.pad(at.q, ((0, 1), (0, max(0, 2 - at.q.shape[1]))))
    q[-1, 1] = 1.0
    start = replace(at, q=q).lifted()
    return climb_by_em(some, start, TUNING.cross_steps, least_gain=TUNING.close).at.P


def _with_prior(rows: RowTable, states: Flags, at: Mixture, prior: float) -> RowTable:
    """The rows of some states, and in a state of their own ``prior`` labels of each column, which
    are distributed as all labels.
    """
    N, C = at.P.shape
    chosen = rows.of_states(states)
    n, width = chosen.columns.shape
    column, label = (x.ravel() for x in np.indices((C, N)))
    columns = np.full((n + column.size, max(width, 2)), C, dtype=chosen.columns.dtype)
    columns[:n, :width] = chosen.columns
    columns[n:, 1] = column
    return RowTable(
        columns,
        np.r_[chosen.last, np.full(column.size, len(at.q))],
        np.r_[chosen.label, label],
        np.r_[chosen.weight, prior * at.background[label]],
    )
