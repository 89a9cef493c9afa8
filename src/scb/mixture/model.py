"""The mixture itself: the distribution of a label given its context, f(o) = Σ_j q_j^(k) ·
column_j[o].

A column is P[:, x_j], chosen by the token x_j at the position of slot j, or the *background*, a
given distribution that stands for positions that are not known or not there: for iid contexts,
leaving a position out turns its term into q_t·(Pμ)_o exactly. It is the distribution of all labels,
or a distribution of its own for each sample. There may be one matrix P for all positions, or
several side by side, each *owned* by one position.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.mixture.tuning import TUNING


class Background(NamedTuple):
    """A distribution of its own for each sample, where the background is more than the distribution
    of all labels.
    """

    # (S, N), distributions in rows, positive
    distributions: Array
    # (n,), sample i has the distribution ``distributions[state[i]]``
    state: NDArray[np.int64]

    def some(self, at: slice | NDArray[np.int64]) -> "Background":
        """The distributions of a part of the samples; no distribution is copied."""
        return Background(self.distributions, self.state[at])


@dataclass(frozen=True)
class Mixture:
    """Parameters of the distribution of the label."""

    # (N, C + 1), distributions: the matrices side by side, then the background. C is a multiple of
    # N
    columns: Array
    # (K, s), row k holds the weights of the slots of context k
    q: Array
    # The positions that the matrices belong to; None where one serves all positions
    owners: tuple[int, ...] | None = None

    @classmethod
    def of(
        cls, P: Array, background: Array, q: Array, owners: tuple[int, ...] | None = None
    ) -> "Mixture":
        """From matrices (N, C) side by side, a background (N,), and weights (K, s)."""
        return cls(np.c_[P, background], q, owners)

    @property
    def N(self) -> int:
        """Number of tokens."""
        return len(self.columns)

    @property
    def P(self) -> Array:
        """(N, C): the matrices side by side, a view."""
        return self.columns[:, :-1]

    @property
    def background(self) -> Array:
        """(N,): the distribution of all labels, a view; it stands for unknown positions unless
        samples have a ``Background``.
        """
        return self.columns[:, -1]

    def moved(self, P: Array, q: Array) -> "Mixture":
        """Other matrices (N, C) and weights (K, s), with the same background and owners."""
        columns = np.empty_like(self.columns)
        columns[:, :-1] = P
        columns[:, -1] = self.background
        return Mixture(columns, q, self.owners)

    def place(self, t: int) -> slice:
        """Which columns the matrix of position t has."""
        number = 0 if self.owners is None else self.owners.index(t)
        return slice(number * self.N, (number + 1) * self.N)

    def matrix(self, t: int) -> Array:
        """(N, N): the matrix of position t, a view."""
        return self.columns[:, self.place(t)]

    def with_matrix(self, t: int, matrix: Array) -> "Mixture":
        """Position t gets a matrix of its own."""
        owners = self.owners or ()
        # Where nobody owns a matrix, the columns that stand there are a stopgap.
        before = self.P if owners else self.P[:, :0]
        return replace(self, columns=np.c_[before, matrix, self.background], owners=(*owners, t))

    def without_matrix(self, t: int) -> "Mixture":
        """Position t loses its matrix; the last one stays where it is as a stopgap, so that there
        are columns to point to.
        """
        assert self.owners is not None
        columns = self.columns
        if len(self.owners) > 1:
            columns = np.delete(columns, self.place(t), axis=1)
        return replace(
            self, columns=columns, owners=tuple(owner for owner in self.owners if owner != t)
        )

    def lifted(self) -> "Mixture":
        """With a little of the background in every column: no label is impossible, so EM can start
        anywhere.
        """
        return replace(
            self, columns=(1 - TUNING.lift) * self.columns + TUNING.lift * self.columns[:, -1:]
        )

    def without(self, k: int, j: int) -> "Mixture":
        """Slot j of context k at weight 0; its weight goes to the other slots, some of it to slot
        0, the background.
        """
        q = self.q.copy()
        q[k, j] = 0.0
        q[k, 0] = max(q[k, 0], 0.01)
        q[k] /= q[k].sum()
        return replace(self, q=q)


@dataclass(frozen=True)
class Initial:
    """Where a search starts: matrices, and for each context the positions that seem to matter."""

    # (N, C), matrices side by side
    P: Array
    positions: list[NDArray[np.intp]]  # list of K arrays
    # List of K arrays, the attention on these positions; each sums to 1 where there are any
    weights: list[Array]
    # The positions that the matrices belong to; None where there is one for all
    owners: tuple[int, ...] | None = None


def rounded(P: Array) -> Array:
    """Columns of P to six digits: a start in which the order in which sums were taken leaves no
    trace.
    """
    # Where the likelihood is nearly flat, a fit does not forget where it came from.
    return normalised(np.round(P, 6), 0, P)


def normalised(counts: Array, axis: int, otherwise: Array) -> Array:
    """Counts divided by their sums along an axis; ``otherwise`` where a sum is 0."""
    mass = counts.sum(axis=axis, keepdims=True)
    return np.where(mass > 0, counts / np.where(mass > 0, mass, 1.0), otherwise)


def smoothed_columns(pairs: Array, distribution: Array) -> Array:
    """(N, N): the distribution of the label given the token, from a table of pairs (label, token)
    and half a label with the distribution of all.
    """
    smooth = pairs + 0.5 * distribution[:, None]
    return smooth / smooth.sum(axis=0)
