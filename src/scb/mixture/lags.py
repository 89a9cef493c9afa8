"""Which lags matter in sequences: the selection of ``selection`` where each lag may have a matrix of its own.

With one matrix per lag the law of the label is f = Σ_ℓ q_ℓ^(k) P_ℓ[o, x_ℓ], an additive model. A lag that has no matrix yet is
judged by a score test on all entries of the matrix that it would get; one whose matrix is known from other contexts by the test
of ``selection``, on its weight alone. What must be reached is again the extended BIC, with as many parameters as the data can
tell apart: (N − 1)² for a matrix, since what is common to its columns may as well stand in another, N − 1 for lag 1 where the
current symbol is the context (it has one column then), 1 for a weight. A parameter costs the logarithm of the number of samples
that speak of it: for a column, those with its symbol.

Where the current symbol is the context, lag 1 stands for what is common: it is in every context from the start, so that another lag
is judged by what its symbol changes, and by nothing else. At the end it goes where the other lags can say the same without it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.mixture.likelihood import AnyRows, Fit, lifted, maximise, rounded
from scb.mixture.selection import Pair, Progress, Selection, without

_CLOSE = 0.1  # nats
_NEAR = 5  # times the limit: up to there a ratio with P fixed is not trusted, and P is fitted again


@dataclass
class LagSelection(Selection):
    """As ``Selection``, with P (N, M·N + 1): the matrices of the positions in ``matrices``, side by side, and the background."""

    matrices: list[int] = field(default_factory=list)

    def rows(self) -> AnyRows:
        """The data at the current positions."""
        positions, matrix = np.full(self.q.shape, -1), np.zeros(self.q.shape, np.intp)
        for k, s in enumerate(self.support):
            positions[k, 1 : 1 + len(s)] = s
            matrix[k, 1 : 1 + len(s)] = [self.matrices.index(t) for t in s]
        return self.data.rows(positions, matrix)

    def fit(self, rows: AnyRows) -> Fit:
        """Maximum likelihood at the current positions, close enough to decide on them; (P, q) move there."""
        fit = maximise(rows, lifted(self.P), self.q, tolerance=_CLOSE, stall=_CLOSE / 10)
        self.P, self.q = fit.P, fit.q
        return fit

    def settle(self, progress: Progress | None = None) -> None:
        """As in ``Selection``, with lag 1 in every context meanwhile."""
        self.with_lag_1()
        super().settle(progress)
        self.without_lag_1()

    def with_lag_1(self) -> None:
        """Put lag 1 into every context that occurs, if it is the context."""
        data, t = self.data, self.data.T - 1
        if data.K == 1:
            return
        if t not in self.matrices:
            law = data.label_law[:, None]
            counts = data.by_label.T + 0.5 * law
            self.append_matrix(t, counts / counts.sum(axis=0))
        self.add([(k, t) for k, s in enumerate(self.support) if data.counts[k] and t not in s])

    def without_lag_1(self) -> None:
        """Take lag 1 out of contexts with other lags, one at a time, where the likelihood does not ask for it."""
        t = self.data.T - 1
        while self.data.K > 1:
            rows = self.rows()
            fit = self.fit(rows)
            slots = [(k, 1 + s.tolist().index(t)) for k, s in enumerate(self.support) if t in s and len(s) > 1]
            choices = [(self.shortfall([p], None, self.limit([p[0]], t, False), rows, fit), p) for p in slots]
            short, slot = max(choices, default=(0.0, (0, 0)))
            if short <= 0:
                return
            self.remove([slot])

    def users(self, t: int) -> list[int]:
        """The contexts that attend to position t."""
        return [k for k, s in enumerate(self.support) if t in s]

    def limit(self, contexts: list[int], t: int, known: bool) -> float:
        """What twice the log-likelihood ratio of position t must reach in these contexts, where its matrix is known or not."""
        labels, n = self.data.N - 1, np.maximum(self.data.counts[contexts], 2)
        choice = 2 * np.log(self.data.K * self.data.T)
        if self.is_context(t):
            return float((labels * np.log(1 + n) + choice).sum())
        columns = np.sort(np.log(1 + n.sum() * self.data.mu))[:-1]
        matrix = 0.0 if known else labels * columns.sum() - np.log(n.sum())
        return float(np.log(n).sum() + matrix + choice)

    def is_context(self, t: int) -> bool:
        """Whether position t is the symbol that chooses the attention."""
        return self.data.K > 1 and t == self.data.T - 1

    # ------------------------------------------------------------------------------------------------- pruning

    def weak(self, rows: AnyRows, fit: Fit) -> list[Pair]:
        """The slots that go: all without weight; if none, the one slot or the one lag that falls short by most."""
        if empty := self.empty():
            return empty
        at_fit = rows.loglik_of(fit.P, fit.q)
        fixed: dict[Pair, float] = {}
        choices: list[tuple[float, list[Pair]]] = []
        for k, s in enumerate(self.support):
            mine = rows.of(k) if len(s) else rows
            for j, t in enumerate(s, start=1):
                if self.is_context(t) and len(s) > 1:
                    continue
                fixed[k, j] = self.ratio(mine, k, j, at_fit[k])
                alone = self.is_context(t) or len(self.users(t)) == 1
                limit = self.limit([k], t, known=not alone)
                choices.append((self.shortfall([(k, j)], fixed[k, j], limit, rows, fit), [(k, j)]))
        for t in self.matrices:
            if len(users := self.users(t)) > 1 and not self.is_context(t):
                slots = [(k, 1 + self.support[k].tolist().index(t)) for k in users]
                limit = self.limit(users, t, known=False)
                choices.append((self.shortfall(slots, sum(fixed[p] for p in slots), limit, rows, fit), slots))
        short, slots = max(choices, default=(0.0, []), key=lambda choice: choice[0])
        return slots if short > 0 else []

    def shortfall(self, slots: list[Pair], fixed: float | None, limit: float, rows: AnyRows, fit: Fit) -> float:
        """By how much twice the log-likelihood ratio of some slots falls short of the limit; ≤ 0 where they stay.

        ``fixed`` is the ratio with P fixed, which overstates it; None where that says nothing.
        """
        if fixed is None or limit <= fixed < _NEAR * limit:
            q = self.q
            for k, j in slots:
                q = without(q, k, j)
            enough = fit.loglik - limit / 2 + _CLOSE
            other = maximise(rows, lifted(self.P), q, tolerance=_CLOSE, stall=_CLOSE, steps=300, enough=enough)
            fixed = 2 * (fit.loglik - other.loglik)
        return limit - fixed

    def remove(self, pairs: list[Pair]) -> None:
        """Take slots out, and the matrices that nobody uses any more."""
        super().remove(pairs)
        self.drop_unused()

    def drop_unused(self) -> None:
        """Matrices of positions that no context attends to."""
        for t in [t for t in self.matrices if not self.users(t)]:
            b, N = self.matrices.index(t), self.data.N
            if len(self.matrices) > 1:
                self.P = np.delete(self.P, slice(b * N, (b + 1) * N), axis=1)
            self.matrices.remove(t)

    # ------------------------------------------------------------------------------------------------- growing

    def candidates(
        self, rows: AnyRows, fit: Fit, barred: list[Pair], least: float = 1.0, most: int = 1 << 30
    ) -> list[Pair]:
        """For each context the position that gains most beyond the limit, and for all the one that does so in common.

        ``least`` is a part of the limit; contexts with ``most`` positions get no more. New matrices are made here, from the
        pairs of label and symbol.
        """
        data = self.data
        found: set[Pair] = set()
        tables: dict[int, tuple[Array, Array]] = {}
        for k in np.flatnonzero(data.counts):
            tables[int(k)] = scores, information = data.source_tables(int(k), rows, fit.P, fit.q)
            gain = _of_matrices(scores, information)
            for t in range(data.T):
                known = t in self.matrices and not self.is_context(t)
                if known:
                    gain[t] = _of_weight(scores[t], information[t], self.matrix(t).T, data.counts[k])
                gain[t] -= least * self.limit([int(k)], t, known)
            for t in self.support[k].tolist() + [t for i, t in barred if i == k]:
                gain[t] = -np.inf
            best = int(gain.argmax())
            if gain[best] >= 0 and len(self.support[k]) < most:
                found.add((int(k), best))
        if len(tables) > 1 and least > 0:
            pooled = _of_matrices(*(np.sum(parts, axis=0) for parts in zip(*tables.values(), strict=True)))
            for t in range(data.T):
                new = t not in self.matrices and not self.is_context(t) and not any(t == p for _, p in barred)
                pooled[t] = pooled[t] - self.limit(list(tables), t, known=False) if new else -np.inf
            if pooled[best := int(pooled.argmax())] >= 0:
                found |= {(k, best) for k in tables}
        for t in {t for _, t in found} - set(self.matrices):
            self.new_matrix(t, np.sum([tables[k][0][t] for k, s in found if s == t], axis=0))
        return sorted(found)

    def matrix(self, t: int) -> Array:
        """(N, N): the matrix of position t."""
        b, N = self.matrices.index(t), self.data.N
        return self.P[:, b * N : (b + 1) * N]

    def new_matrix(self, t: int, scores: Array) -> None:
        """Give position t a matrix: the law of the labels, by how much more often than expected each came after each symbol."""
        law = self.data.label_law[:, None]
        counts = law * scores.T + 0.5 * law
        self.append_matrix(t, rounded(counts / counts.sum(axis=0)))

    def append_matrix(self, t: int, matrix: Array) -> None:
        """Position t gets this matrix."""
        kept = self.P[:, :-1] if self.matrices else self.P[:, :0]
        self.P = np.c_[kept, matrix, self.P[:, -1]]
        self.matrices.append(t)

    # ------------------------------------------------------------------------------------------------- the gauge

    def settle_gauge(self, rows: AnyRows) -> NDArray[np.bool_]:
        """Settle what the data leave open; (N, C): the entries of P that are 0 by this convention.

        What is common to all columns of a matrix can stand there or in another matrix that the same contexts use: the likelihood is
        the same, the weights are not. So it goes to the shortest lag that can take it, which leaves each other lag with the least
        weight that explains the data. A lag can take it if it is lag 1 where that is the context, and all contexts attend to
        it that attend to the other; or if one context attends to the two, and no other to either.
        """
        N, seen = self.data.N, rows.evaluate(self.P, self.q).gP[:, :-1].sum(axis=0) > 0
        held = np.zeros(self.P[:, :-1].shape, bool)
        for t in sorted(self.matrices):
            taker, b = self.taker(t), self.matrices.index(t)
            if taker is None:
                continue
            mine = self.matrix(t)
            occurs = seen[b * N : (b + 1) * N]
            common = mine[:, occurs].min(axis=1)
            left = 1 - common.sum()
            if left < 1e-9:  # the columns are all the same
                continue
            first = self.matrices.index(taker) * N
            for k in self.users(t):
                j, i = (1 + self.support[k].tolist().index(p) for p in (t, taker))
                w, a = self.q[k, j], self.q[k, i]
                at = slice(first + k, first + k + 1) if self.is_context(taker) else slice(first, first + N)
                self.P[:, at] = (a * self.P[:, at] + w * common[:, None]) / (a + w * (1 - left))
                self.q[k, [j, i]] = w * left, a + w * (1 - left)
            argmin = np.where(occurs, mine, np.inf).argmin(axis=1)
            mine -= common[:, None]
            mine /= left
            mine[:, ~occurs] = mine[:, occurs].mean(axis=1, keepdims=True)
            mine[np.arange(N), argmin] = 0.0
            held[np.arange(N), b * N + argmin] = True
        return held

    def taker(self, t: int) -> int | None:
        """The shortest lag that can take what is common to the columns of position t."""
        users = self.users(t)
        for other in sorted(self.matrices, reverse=True):
            if other <= t:
                return None
            if self.is_context(other) and all(other in self.support[k] for k in users):
                return other
            if not self.is_context(other) and len(users) == 1 and self.users(other) == users:
                return other
        return None


def _of_matrices(scores: Array, information: Array) -> Array:
    """(T,): the score statistic of a whole new matrix at each position, from tables (T, N, N); χ² with (N − 1)² degrees."""
    w = np.divide(1.0, information, out=np.zeros_like(information), where=information > 0)
    mass = w.sum(axis=-1)
    mean = np.divide((w * scores).sum(axis=-1), mass, out=np.zeros_like(mass), where=mass > 0)
    return (w * (scores - mean[..., None]) ** 2).sum(axis=(-2, -1))


def _of_weight(scores: Array, information: Array, matrix: Array, n: float) -> float:
    """The score statistic of a weight on a known matrix (symbol, label), from tables (N, N); 0 if the weight would be negative."""
    score = float((matrix * scores).sum()) - n
    variance = float((matrix**2 * information).sum()) - n
    return score**2 / variance if score > 0 and variance > 0 else 0.0
