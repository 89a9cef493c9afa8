"""The mixture itself: the distribution of a label, f(o) = Σ_j q_j^(k) · distribution_j[o].

The *state* k chooses the weights; it is the last token, or 0 if all samples share their weights.
The distribution of slot j is P[:, x_j], chosen by the token x_j at the position of the slot, or the
*background*, a given distribution that replaces positions that are unknown or missing. (For iid
contexts this is exact: leaving a position out turns its term into q_t·(Pμ)_o.) The background is
the distribution of all labels, or a separate distribution for each sample. There may be one matrix
P for all positions, or several matrices side by side, each *owned* by one position.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from scb.arrays import Array, Ints, Positions
from scb.mixture.tuning import TUNING


class Background(NamedTuple):
    """A distribution for each sample, used if the background is more than the distribution of all
    labels.
    """

    # (S, N), distributions in rows, positive
    distributions: Array
    # (n,), sample i has the distribution ``distributions[which[i]]``
    which: Ints

    def some(self, at: slice | Ints) -> "Background":
        """The distributions of some of the samples; no distribution is copied."""
        return Background(self.distributions, self.which[at])


@dataclass(frozen=True)
class Mixture:
    """Parameters of the distribution of the label."""

    # (N, C), the matrices side by side, with distributions in columns; C is a multiple of N
    P: Array
    # (N,), the distribution of all labels; unused where samples have a ``Background``
    background: Array
    # (K, s), row k holds the weights of the slots of state k
    q: Array
    # The positions that the matrices belong to; None where one serves all positions
    owners: tuple[int, ...] | None = None

    @property
    def N(self) -> int:
        """Number of tokens."""
        return len(self.P)

    def place(self, t: int) -> slice:
        """The columns that belong to the matrix of position t."""
        number = 0 if self.owners is None else self.owners.index(t)
        return slice(number * self.N, (number + 1) * self.N)

    def matrix(self, t: int) -> Array:
        """(N, N): a view of the matrix of position t."""
        return self.P[:, self.place(t)]

    def with_matrix(self, t: int, matrix: Array) -> "Mixture":
        """Give position t its own matrix."""
        owners = self.owners or ()
        # Columns without an owner only give slots something to point to.
        owned = self.P if owners else self.P[:, :0]
        return replace(self, P=np.c_[owned, matrix], owners=(*owners, t))

    def without_matrix(self, t: int) -> "Mixture":
        """Remove the matrix of position t. The last matrix stays without an owner, so slots have
        columns to point to.
        """
        owners = tuple(owner for owner in self.owners or () if owner != t)
        P = np.delete(self.P, self.place(t), axis=1) if owners else self.P
        return replace(self, P=P, owners=owners)

    def lifted(self) -> "Mixture":
        """The mixture with a little of the background in every column: no label is impossible, so
        EM can start anywhere.
        """
        P = (1 - TUNING.lift) * self.P + TUNING.lift * self.background[:, None]
        return replace(self, P=P)

    def without(self, k: int, j: int) -> "Mixture":
        """The mixture with weight 0 for slot j of state k. The weight of the slot goes to the other
        slots, some of it to slot 0, the background.
        """
        q = self.q.copy()
        q[k, j] = 0.0
        q[k, 0] = max(q[k, 0], TUNING.background_left)
        q[k] /= q[k].sum()
        return replace(self, q=q)


@dataclass(frozen=True)
class Initial:
    """The start of a search: matrices and, for each state, the positions that seem to matter."""

    # (N, C), matrices side by side
    P: Array
    positions: list[Positions]  # list of K arrays
    # List of K arrays, the attention on these positions; each sums to 1 where there are any
    weights: list[Array]
    # The positions that the matrices belong to; None where there is one for all
    owners: tuple[int, ...] | None = None

    @classmethod
    def without_positions(
        cls, P: Array, states: int, owners: tuple[int, ...] | None = None
    ) -> "Initial":
        """The start with the matrices alone."""
        return cls(P, [np.zeros(0, np.intp)] * states, [np.zeros(0)] * states, owners)


def weight_table(weights: list[Array], background: Array, width: int | None = None) -> Array:
    """(K, width): the weight of the background (K,) in slot 0, or 1 if there is no position. The
    remaining weight is divided among the slots 1, 2, … in proportion to ``weights``.
    """
    q = np.zeros((len(weights), width or 1 + max(len(w) for w in weights)))
    for k, w in enumerate(weights):
        q[k, 0] = background[k] if len(w) else 1.0
        q[k, 1 : 1 + len(w)] = (1 - q[k, 0]) * (w / w.sum())
    return q


def rounded(P: Array) -> Array:
    """Columns of P rounded to six digits, so a start does not depend on the order of summation."""
    # Where the likelihood is nearly flat, a fit does not forget where it came from.
    return normalised(np.round(P, 6), 0, P)


def quotient(a: Array | float, b: Array) -> Array:
    """a/b, or 0 where b is not positive."""
    return np.divide(a, b, out=np.zeros_like(b), where=b > 0)


def normalised(counts: Array, axis: int, otherwise: Array) -> Array:
    """Counts divided by their sums along an axis, or ``otherwise`` where a sum is 0."""
    mass = counts.sum(axis=axis, keepdims=True)
    if (mass > 0).all():
        return counts / mass
    return np.where(mass > 0, counts / np.where(mass > 0, mass, 1.0), otherwise)


def smoothed_columns(pairs: Array, distribution: Array) -> Array:
    """(N, N): the distribution of the label given the token, from a table of pairs (label, token)
    and half a label distributed as all labels.
    """
    smooth = pairs + 0.5 * distribution[:, None]
    return smooth / smooth.sum(axis=0)
