"""Which positions matter, by likelihood: grow by score tests, prune by likelihood ratios, until neither changes anything.

Growth. The derivative of the log-likelihood in a weight that is 0 is Σ_i (P[o_i, x_it]/f_i − 1). For iid contexts the tokens of a
position without signal are iid μ whatever the rest is, which gives the exact null law (``tails``). For sequences the sum is a
martingale at the truth, with variance Σ_i (Σ_o P[o, x_it]²/f_io − 1). The best position of each last token is tried if its score is
as unlikely as a Gaussian above √c, with c as follows.

Criterion. A position of last token k stays if twice the log-likelihood ratio reaches c = log n_k + 2 log(N·T): the extended BIC
(Chen and Chen 2008), in which a parameter costs log n_k and its choice among N·T positions 2 log(N·T). Under a weight of 0 the
ratio is above c with the chance that a Gaussian is above √c, so about 1/√(2π n_k c) false positions a fit would pass. (Where P has
entries near 0, the ratio has heavier tails than that; the score's level, which is exact, then holds the rate.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.mixture.data import Samples
from scb.mixture.likelihood import AnyRows, Fit, lifted, maximise, rounded

_ROUNDS = 60
_ALL = 1 << 30
_MOST = 12  # positions of a column at the start
EMPTY = 1e-6  # a slot with so little weight goes, whatever the ratio
_BACKGROUND = 0.05  # weight with which the background starts
Support = list[NDArray[np.intp]]
Pair = tuple[int, int]
"""Last token and position, or last token and slot."""
Progress = Callable[[int, int, float], None]
"""Is told the round, the positions in it over all last tokens, and the log-likelihood."""


@dataclass
class Selection:
    """The positions of each last token, and the fit on them; slot 0 is the background.

    Attributes
    ----------
    support : list of K arrays, in the order of the slots 1, 2, …
    P : (N, N + 1), q : (K, 1 + slots)
    """

    data: Samples
    support: Support
    P: Array
    q: Array

    @classmethod
    def start(cls, data: Samples, support: Support, weights: list[Array], P: Array) -> Self:
        """From an estimate: the background gets a little of each column, and all of it where there is no position.

        At most the ``_MOST`` heaviest positions of a column are taken over; growth may find the others again.
        """
        kept = [np.sort(np.argsort(w, kind="stable")[::-1][:_MOST]) for w in weights]
        support = [s[i] for s, i in zip(support, kept, strict=True)]
        weights = [w[i] / w[i].sum() for w, i in zip(weights, kept, strict=True)]
        q = np.zeros((data.K, 1 + max(len(s) for s in support)))
        for k, w in enumerate(weights):
            q[k, 0] = _BACKGROUND if len(w) else 1.0
            q[k, 1 : 1 + len(w)] = (1 - _BACKGROUND) * w
        return cls(data, [np.array(s) for s in support], np.c_[P, data.label_law], q)

    def penalty(self) -> Array:
        """(K,): what twice the log-likelihood ratio of a position must reach."""
        return np.log(np.maximum(self.data.counts, 2)) + 2 * np.log(self.data.K * self.data.T)

    def rows(self) -> AnyRows:
        """The data at the current positions."""
        positions = np.full(self.q.shape, -1)
        for k, s in enumerate(self.support):
            positions[k, 1 : 1 + len(s)] = s
        return self.data.rows(positions)

    def settle(self, progress: Progress | None = None) -> None:
        """Fit, prune, grow, until a round changes nothing. What was pruned twice is not tried again; late rounds prune only."""
        pruned: Counter[tuple[int, int]] = Counter()
        for turn in range(_ROUNDS):
            rows = self.rows()
            fit = self.fit(rows)
            if progress is not None:
                progress(turn + 1, sum(len(s) for s in self.support), fit.loglik)
            if weak := self.weak(rows, fit):
                pruned.update((k, int(self.support[k][j - 1])) for k, j in weak)
                self.remove(weak)
                continue
            barred = [pair for pair, times in pruned.items() if times > 1]
            new = self.candidates(rows, fit, barred) if turn < _ROUNDS // 2 else []
            if not new:
                return
            self.add(new)

    def fit(self, rows: AnyRows) -> Fit:
        """Maximum likelihood at the current positions; (P, q) move there."""
        fit = maximise(rows, lifted(self.P), self.q)
        self.P, self.q = fit.P, fit.q
        return fit

    def final_fit(self) -> tuple[AnyRows, Fit]:
        """Maximum likelihood to the end, with positions in order, and without background where there are any."""
        order = [np.argsort(s) for s in self.support]
        q = np.zeros_like(self.q)
        for k, s in enumerate(order):
            weights = np.maximum(np.round(self.q[k, 1 + s], 6), EMPTY)
            q[k, 1 : 1 + s.size] = weights / weights.sum() if s.size else weights
            q[k, 0] = float(s.size == 0)
        self.support, self.q = [s[o] for s, o in zip(self.support, order, strict=True)], q
        rows = self.rows()
        P = np.c_[rounded(self.P[:, :-1]), self.P[:, -1]]
        return rows, maximise(rows, lifted(P), q, tolerance=1e-3, steps=5000)

    # ------------------------------------------------------------------------------------------------- pruning

    def empty(self, least: float = EMPTY) -> list[Pair]:
        """The slots without weight."""
        return [(k, j) for k, s in enumerate(self.support) for j in range(1, 1 + len(s)) if self.q[k, j] < least]

    def weak(self, rows: AnyRows, fit: Fit) -> list[Pair]:
        """The slots that go: (k, slot). For each last token, those without weight; if none, the weakest if it falls short.

        The ratio is taken with P fixed first, which overstates it: below the criterion, the slot goes. Up to twice the
        criterion, P is fitted again too.
        """
        if not self.data.independent and self.nothing(fit):
            return [(k, j) for k, s in enumerate(self.support) for j in range(1, 1 + len(s))]
        found, at_fit = self.empty(), rows.loglik_of(fit.P, fit.q)
        for k, limit in enumerate(self.penalty()):
            slots = range(1, 1 + len(self.support[k]))
            if k in {k for k, _ in found} or not slots:
                continue
            mine = rows.of(k)
            ratios = [(self.ratio(mine, k, j, at_fit[k]), j) for j in slots]
            ratio, j = min(ratios)
            if limit <= ratio < 2 * limit:
                ratio = 2 * (fit.loglik - maximise(rows, lifted(self.P), without(self.q, k, j)).loglik)
            if ratio < limit:
                found.append((k, j))
        return found

    def nothing(self, fit: Fit) -> bool:
        """Whether all positions together do not pay for P, whose entries adapt to whatever position there is.

        P costs (N − 1)² parameters, each the logarithm of the samples that speak of it, beside one position. (For iid contexts the
        level of the scores is exact, and positions without signal do not come this far.)
        """
        data, law = self.data, self.data.label_law
        without = data.n * float(law[law > 0] @ np.log(law[law > 0]))
        columns = np.sort(np.log(1 + data.n * data.mu))[:-1]
        return 2 * (fit.loglik - without) < (data.N - 1) * columns.sum() + self.penalty().max()

    def ratio(self, mine: AnyRows, k: int, j: int, at_fit: float) -> float:
        """Twice the log-likelihood ratio of slot j of token k, with P fixed."""
        return 2 * (at_fit - maximise(mine, self.P, without(self.q, k, j), fixed_P=True, tolerance=0.01).loglik)

    def remove(self, pairs: list[Pair]) -> None:
        """Take slots out; their weight goes to the others."""
        for k, j in sorted(pairs, reverse=True):
            self.support[k] = np.delete(self.support[k], j - 1)
            row = np.delete(without(self.q, k, j)[k], j)
            self.q[k] = np.append(row, 0.0)

    # ------------------------------------------------------------------------------------------------- growing

    def add(self, pairs: list[Pair]) -> None:
        """New slots, with a tenth of their column's weight."""
        more = Counter(k for k, _ in pairs)
        width = 1 + max(len(s) + more[k] for k, s in enumerate(self.support))
        self.q = np.pad(self.q, ((0, 0), (0, max(0, width - self.q.shape[1]))))
        for k, t in pairs:
            self.support[k] = np.append(self.support[k], t)
            self.q[k] *= 0.9
            self.q[k, len(self.support[k])] = 0.1

    def candidates(
        self, rows: AnyRows, fit: Fit, barred: list[Pair], least: float = 1.0, most: int = _ALL
    ) -> list[Pair]:
        """For each last token, the new position with the largest score that is not barred, if it is too large to be noise.

        ``least`` says how large, relative to what noise reaches; those with ``most`` positions get no more.
        """
        z = self.independent_scores(rows, fit) if self.data.independent else self.martingale_scores(rows, fit)
        for k, s in enumerate(self.support):
            z[k, s] = -np.inf
        for pair in barred:
            z[pair] = -np.inf
        best = z.argmax(axis=1)
        z[[len(s) >= most for s in self.support]] = -np.inf
        return [
            (k, int(t)) for k, t in enumerate(best) if z[k, t] >= least and z[k, t] > -np.inf and self.data.counts[k]
        ]

    def independent_scores(self, rows: AnyRows, fit: Fit) -> Array:
        """(K, T): scores relative to what noise reaches, for iid contexts."""
        data, P = self.data, self.P[:, :-1]
        U = P - (P @ data.mu)[:, None]
        raw = data.label_scores(U, rows, fit.P, fit.q)
        return raw / rows.score_levels(U, fit.P, fit.q, data.mu, np.sqrt(self.penalty()))[:, None]

    def martingale_scores(self, rows: AnyRows, fit: Fit) -> Array:
        """(K, T): the same for any contexts, by the Gaussian quantile; that P and q are fitted makes the variance smaller."""
        data, P = self.data, self.P[:, :-1]
        raw = data.label_scores(P, rows, fit.P, fit.q) - data.counts[:, None]
        variance = data.law_scores(P**2, rows, fit.P, fit.q) - data.counts[:, None]
        return raw / np.sqrt(np.maximum(variance, 1e-12)) / np.sqrt(self.penalty())[:, None]


def without(q: Array, k: int, j: int) -> Array:
    """q with slot j of token k at 0, its weight spread over the other slots; over the background if they have none."""
    q = q.copy()
    q[k, j] = 0.0
    q[k, 0] = max(q[k, 0], 0.01)
    q[k] /= q[k].sum()
    return q
