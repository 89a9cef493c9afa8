"""The cost of a position if each position has its own matrix: the value that twice its
log-likelihood ratio must reach.
"""

import numpy as np

from scb.arrays import Array
from scb.mixture.data import Data, Rows
from scb.mixture.model import Mixture
from scb.mixture.price import MatrixPrice
from scb.mixture.rows import RowTable


def weight_costs(data: Data, states: list[int]) -> Array:
    """(T,): what twice the log-likelihood ratio of each position must reach in these states if its
    matrix is known. The cost covers a weight for each state and the choice of the position.
    """
    return np.log(np.maximum(data.present[states], 2)).sum(axis=0) + _choice(data)


def matrix_costs(data: Data, states: list[int], prices: Array) -> Array:
    """(T,): the same if the matrix is not known and costs ``prices`` (T,) in nats. One
    weight is not counted, since it can be part of the matrix.
    """
    one_weight = np.log(np.maximum(data.present[states], 2).sum(axis=0))
    return weight_costs(data, states) - one_weight + 2 * prices


def _choice(data: Data) -> float:
    """What the choice of a position after one of the states that occur costs. With one state, it
    costs as much as if the current symbol were the state. Otherwise, with many symbols, a new
    matrix would too often be worth its price by chance.
    """
    return 2 * np.log(max(np.count_nonzero(data.counts), data.labels) * data.T)


def charge(data: Data, entries: float, prices: Array) -> float:
    """What the BIC charges for entries of matrices: log n each, or twice the ``prices`` of their
    columns if that is less and there are few samples for each entry of a matrix.
    """
    by_number = float(np.log(data.n) * entries)
    return min(by_number, 2 * float(prices.sum())) if data.few_per_entry else by_number


def bic_of(
    data: Data, rows: Rows, at: Mixture, loglik: float, *, entries: float, others: float
) -> float:
    """The BIC of a mixture at its maximum, from the numbers of its parameters: entries of matrices,
    which may be charged their price, and others.
    """
    # Prices do not matter with many samples for each entry
    prices = Prices(data, rows, at).columns if data.few_per_entry else np.zeros(0)
    return float(np.log(data.n) * others + charge(data, entries, prices) - 2 * loglik)


class Prices:
    """The costs of the matrices of a mixture at their expected labels, in nats."""

    def __init__(self, data: Data, rows: Rows, at: Mixture) -> None:
        self.data = data
        self.at = at
        self.counts = at.P * rows.total(RowTable.evaluate, at).P
        places = [slice(None)] if at.owners is None else map(at.place, at.owners)
        self.matrices = [MatrixPrice.of(self.counts[:, place], at.background) for place in places]
        self.columns = np.concatenate([np.zeros(0), *(one.columns for one in self.matrices)])

    def current(self, k: int) -> float:
        """Twice the cost of the current symbol in state k: a column, and the choice of the
        position.
        """
        return 2 * float(self.columns[self.at.place(self.data.T - 1)][k]) + _choice(self.data)

    def matrix(self, t: int, states: list[int]) -> float:
        """Twice the cost of position t, with its matrix, in all states that attend to it."""
        return float(matrix_costs(self.data, states, np.array(self.in_states(t, states)))[t])

    def in_states(self, t: int, states: list[int]) -> float:
        """The cost in nats of the matrix at position t, or of the shared one, if these states alone
        use it. If these are all the states that occur, what its columns have in common costs
        nothing, because it is what all labels have in common.
        """
        price = self.matrices[0 if self.at.owners is None else self.at.owners.index(t)]
        if len(states) == np.count_nonzero(self.data.counts):
            return price.differences
        return float(price.columns.sum())
