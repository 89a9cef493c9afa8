"""The start of a search for positions if no better start is known: EM over all positions."""

from dataclasses import replace

import numpy as np

from scb.arrays import Positions
from scb.mixture.data import Data
from scb.mixture.em import climb_by_em
from scb.mixture.model import Initial, Mixture, rounded, smoothed_columns
from scb.mixture.rows import RowTable, Slots
from scb.mixture.tuning import TUNING


def thinned_for_start(data: Data) -> Data:
    """A subset of the samples that suffices for a start."""
    return data.thinned(max(1, TUNING.start_cells // data.T))


def first_estimate(data: Data, known: Initial | None, per_lag: bool) -> Initial:
    """An estimate by EM over all positions, which is a concave problem if the matrices are known.
    It has no position if each lag will have its own matrix and none is known.

    A known matrix that all positions share is tried at every position; owned matrices are tried at
    their owners.
    """
    if per_lag and (known is None or not known.owners):
        # Columns without an owner, for slots to point to
        nothing = np.repeat(data.label_distribution[:, None], data.N, axis=1)
        return Initial.without_positions(nothing, data.K, owners=())
    few = thinned_for_start(data)
    if known is None:
        return from_scratch(few)
    positions = np.arange(data.T) if known.owners is None else np.array(known.owners)
    matrices = 1 if known.owners is None else len(positions)
    rows = few.rows(Slots.everywhere(positions, data.K, matrices))
    uniform = np.full((data.K, len(positions)), 1 / len(positions))
    start = Mixture(known.P, few.label_distribution, uniform, known.owners).lifted()
    fitted = climb_by_em(
        rows, start, TUNING.start_steps, constrain=lambda at: replace(at, P=start.P)
    )
    return _grown(few, fitted.at, positions)


def from_scratch(data: Data) -> Initial:
    """The positions that grow in EM over all positions, from uniform attention; P is shared and
    unknown.
    """
    positions = np.arange(data.T)
    return _grown(data, em_from_scratch(data, positions), positions)


def em_from_scratch(data: Data, positions: Positions) -> Mixture:
    """EM over some positions, with a slot each, from uniform attention; P is shared and unknown."""
    rows = data.rows(Slots.everywhere(positions, data.K))
    pairs = np.array([rows.total(RowTable.pairs, j, data.N) for j in range(len(positions))])
    total = np.maximum(pairs.sum(axis=(1, 2), keepdims=True), 1.0)
    expected = pairs.sum(axis=1, keepdims=True) * pairs.sum(axis=2, keepdims=True) / total
    # (s,): χ²
    dependence = ((pairs - expected) ** 2 / np.where(expected > 0, expected, 1.0)).sum(axis=(1, 2))
    uniform = np.full((data.K, len(positions)), 1 / len(positions))
    # P starts from the pairs of label and token at all positions together, and then from those at
    # the position where they depend on each other most.
    fits = []
    for table in (pairs.sum(axis=0), pairs[dependence.argmax()]):
        P = smoothed_columns(table, data.label_distribution)
        start = Mixture(P, data.label_distribution, uniform)
        fits.append(climb_by_em(rows, start, TUNING.start_steps, least_gain=TUNING.close))
    return max(fits, key=lambda point: point.loglik).at


def _grown(data: Data, fitted: Mixture, positions: Positions) -> Initial:
    """The positions whose weight has grown, in each state that occurs."""
    support = []
    weights = []
    for w, n in zip(fitted.q, data.counts, strict=True):
        kept = np.flatnonzero((w >= min(TUNING.grown, w.max())) & (n > 0))
        support.append(positions[kept])
        weights.append(rounded(w[kept] / w[kept].sum()))
    P = np.maximum(fitted.P, 1e-3 * data.label_distribution[:, None])
    return Initial(rounded(P / P.sum(axis=0)), support, weights, fitted.owners)
