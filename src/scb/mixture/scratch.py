"""Where a search by likelihood starts if nothing is known of the contexts: EM over all positions at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.mixture.data import Samples
from scb.mixture.likelihood import Fit, lifted, maximise, rounded
from scb.mixture.selection import Support

_STEPS = 45  # enough to see which positions grow
_LEAST = 0.01  # positions with at least this weight are kept


class Start(NamedTuple):
    """A first P (N, C), and for each context the positions that grew, with their weights."""

    P: Array
    positions: Support
    weights: list[Array]


def from_scratch(data: Samples, positions: NDArray[np.intp] | None = None) -> Start:
    """EM over all positions, or some, from uniform attention; P is shared and unknown.

    P starts as the pairs of label and token have it, at any position, and then at the position where they depend on each other
    most; the likelihood says which of the two went further.
    """
    positions = np.arange(data.T) if positions is None else positions
    rows = data.rows(np.tile(positions, (data.K, 1)))
    pairs = np.array([rows.pairs(j, data.N) for j in range(len(positions))])
    starts = [columns(table, data.label_law) for table in (pairs.sum(axis=0), pairs[_dependence(pairs).argmax()])]
    q = np.full((data.K, len(positions)), 1 / len(positions))
    fit = max((maximise(rows, P, q, steps=_STEPS, newton=False) for P in starts), key=lambda fit: fit.loglik)
    return _grown(data, fit, positions)


def with_known(data: Samples, P: Array, positions: NDArray[np.intp], matrix: NDArray[np.intp] | None = None) -> Start:
    """EM over some positions with P (N, C) known, which is a concave problem: nothing has to be found first.

    Position ``positions[j]`` takes its columns from matrix number ``matrix[j]``; all from one unless given.
    """
    contexts = (data.K, 1)
    rows = data.rows(np.tile(positions, contexts), None if matrix is None else np.tile(matrix, contexts))
    q = np.full((data.K, len(positions)), 1 / len(positions))
    return _grown(data, maximise(rows, lifted(np.c_[P, data.label_law]), q, steps=_STEPS, fixed_P=True), positions)


def columns(pairs: Array, law: Array) -> Array:
    """The law of the label given the token, and the background."""
    smooth = pairs + 0.5 * law[:, None]
    return np.c_[smooth / smooth.sum(axis=0), law]


def _dependence(pairs: Array) -> Array:
    """(T,): χ² of tables (T, N, N)."""
    expected = (
        pairs.sum(axis=1, keepdims=True) * pairs.sum(axis=2, keepdims=True) / pairs.sum(axis=(1, 2), keepdims=True)
    )
    return ((pairs - expected) ** 2 / np.where(expected > 0, expected, 1.0)).sum(axis=(1, 2))


def _grown(data: Samples, fit: Fit, positions: NDArray[np.intp]) -> Start:
    """What grew, in each context that occurs."""
    found, weights = [], []
    for w, n in zip(fit.q, data.counts, strict=True):
        kept = np.flatnonzero(w >= min(_LEAST, w.max())) if n else np.zeros(0, np.intp)
        found.append(positions[kept])
        weights.append(rounded(w[kept] / w[kept].sum()) if n else np.zeros(0))
    P = np.maximum(fit.P[:, :-1], 1e-3 * data.label_law[:, None])
    return Start(rounded(P / P.sum(axis=0)), found, weights)
