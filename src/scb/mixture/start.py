"""Where a search by likelihood starts if nothing is known of the contexts: EM over all positions at once."""

import numpy as np
from numpy.typing import NDArray

from scb.mixture.data import Data
from scb.mixture.em import Fit, maximise
from scb.mixture.law import Initial, Mixture, rounded, smoothed_columns
from scb.mixture.rows import RowTable, Slots

_STEPS = 45  # enough to see which positions grow
_LEAST = 0.01  # positions with at least this weight are kept
_CELLS = 8_000_000  # samples times positions that are looked at, at most


def thinned_for_start(data: Data) -> Data:
    """Enough samples to begin with."""
    return data.thinned(max(1, _CELLS // data.T))


def nothing_found(data: Data) -> Initial:
    """No position in any context, and no matrix; its columns are a stopgap."""
    nowhere = [np.zeros(0, np.intp) for _ in range(data.K)]
    stopgap = np.repeat(data.label_law[:, None], data.N, axis=1)
    return Initial(stopgap, nowhere, [np.zeros(0) for _ in nowhere], owners=())


def from_scratch(data: Data, positions: NDArray[np.intp] | None = None) -> Initial:
    """EM over all positions, or some, from uniform attention; P is shared and unknown.

    P starts as the pairs of label and token have it, at any position, and then at the position where they depend on each other
    most; the likelihood says which of the two went further.
    """
    positions = np.arange(data.T) if positions is None else positions
    rows = data.rows(Slots.everywhere(positions, data.K))
    pairs = np.array([rows.total(RowTable.pairs, j, data.N) for j in range(len(positions))])
    expected = pairs.sum(axis=1, keepdims=True) * pairs.sum(axis=2, keepdims=True) / pairs.sum(axis=(1, 2), keepdims=True)
    dependence = ((pairs - expected) ** 2 / np.where(expected > 0, expected, 1.0)).sum(axis=(1, 2))  # (s,): χ²
    uniform = np.full((data.K, len(positions)), 1 / len(positions))
    fits = []
    for table in (pairs.sum(axis=0), pairs[dependence.argmax()]):
        start = Mixture.of(smoothed_columns(table, data.label_law), data.label_law, uniform)
        fits.append(maximise(rows, start, steps=_STEPS, newton=False))
    return _grown(data, max(fits, key=lambda fit: fit.loglik), positions)


def with_known(data: Data, known: Initial) -> Initial:
    """EM with known matrices, which is a concave problem: nothing has to be found first.

    One matrix for all is tried at every position; matrices that are owned, at their owners.
    """
    positions = np.arange(data.T) if known.owners is None else np.array(known.owners)
    matrices = 1 if known.owners is None else len(known.owners)
    rows = data.rows(Slots.everywhere(positions, data.K, matrices))
    uniform = np.full((data.K, len(positions)), 1 / len(positions))
    start = Mixture.of(known.P, data.label_law, uniform, known.owners)
    return _grown(data, maximise(rows, start.lifted(), steps=_STEPS, fixed_P=True), positions)


def _grown(data: Data, fit: Fit, positions: NDArray[np.intp]) -> Initial:
    """What grew, in each context that occurs."""
    found = []
    weights = []
    for w, n in zip(fit.mixture.q, data.counts, strict=True):
        if not n:
            found.append(np.zeros(0, np.intp))
            weights.append(np.zeros(0))
            continue
        kept = np.flatnonzero(w >= min(_LEAST, w.max()))
        found.append(positions[kept])
        weights.append(rounded(w[kept] / w[kept].sum()))
    P = np.maximum(fit.mixture.P, 1e-3 * data.label_law[:, None])
    return Initial(rounded(P / P.sum(axis=0)), found, weights, fit.mixture.owners)
