"""Lags that share matrices: those of a fit with a matrix for each lag, merged one after another.

What the data tell of the matrix of a lag is its direction, P_ℓ without what is common to its
columns: sizes are weights, and what is common can stand in another matrix (``per_lag``). Two
matrices along one line are one. So at each step the two that are nearest to a common line become
one, and everything is fitted again with the positions as they are.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from scb.arrays import Array
from scb.mixture.arrays import Ints
from scb.mixture.data import Data
from scb.mixture.em import maximise
from scb.mixture.errors import label_counts, standard_errors
from scb.mixture.fit import Estimate
from scb.mixture.model import Mixture, weight_table
from scb.mixture.rows import Slots


def merged(data: Data, estimate: Estimate, fewest: int) -> Iterator[Estimate]:
    """Estimates with one matrix less each, until ``fewest`` are left.

    Parameters
    ----------
    data : the samples of the fit
    estimate : a fit with a matrix for each position
    fewest : the number of matrices of the last one
    """
    owners = list(estimate.owners or ())
    group = np.arange(len(owners))
    lines = _lines(data, estimate)  # (L, N²), one row for each position
    while group.max(initial=0) + 1 > fewest:
        one, two = min(combinations(range(group.max() + 1), 2), key=lambda pair: _apart(lines, group, pair))
        group = np.where(group == two, one, group - (group > two))
        yield _fitted(data, estimate, group, lines)


def _matrices(estimate: Estimate) -> Array:
    """(L, N, N): the matrices of all positions."""
    return np.array(np.split(estimate.P, len(estimate.owners or ()), axis=1))


def _lines(data: Data, estimate: Estimate) -> Array:
    """(L, N²): the matrix of each position without what is common to its columns, in units in which
    squares say how much the likelihood depends on it.
    """
    P = _matrices(estimate)
    centred = (P - (P @ data.mu)[:, :, None]) * np.sqrt(data.mu)
    noise = np.sqrt(np.maximum(data.label_distribution, 1 / data.n))[:, None]
    labels = np.zeros(len(P))
    for n, positions, weights in zip(data.counts, estimate.support, estimate.weights, strict=True):
        for t, weight in zip(positions.tolist(), weights, strict=True):
            labels[(estimate.owners or ()).index(t)] += n * weight**2
    return (np.sqrt(labels)[:, None, None] * centred / noise).reshape(len(P), -1)


def _apart(lines: Array, group: Ints, pair: tuple[int, int]) -> float:
    """How far the positions of two groups are from one line, beyond what each is by itself."""
    off = [_off(lines[np.isin(group, part)]) for part in (pair, pair[:1], pair[1:])]
    return off[0] - off[1] - off[2]


def _off(lines: Array) -> float:
    """The sum of squares that are left of rows (r, N²) beside the best line."""
    squares = np.linalg.eigvalsh(lines @ lines.T)
    return float(squares[:-1].sum())


def _fitted(data: Data, estimate: Estimate, group: Ints, lines: Array) -> Estimate:
    """The fit with a matrix for each group (L,) of positions."""
    owners = estimate.owners or ()
    P = _matrices(estimate)
    number = int(group.max()) + 1
    size = np.linalg.norm(lines, axis=1)
    tied = [
        np.average(P[group == g], axis=0, weights=size[group == g] + 1e-12) for g in range(number)
    ]
    slots = Slots.from_support(estimate.support, owners)
    rows = data.rows(replace(slots, matrix=group[slots.matrix], matrices=number))
    q = weight_table(estimate.weights, estimate.background)
    start = Mixture(np.column_stack(tied), data.label_distribution, q).lifted()
    fit = maximise(rows, start, tolerance=1e-3, steps=5000)
    at = fit.mixture
    counts = label_counts(rows, at)
    P_errors, q_errors = standard_errors(rows, at)
    sizes = [len(positions) for positions in estimate.support]
    columns = (data.N * group[:, None] + np.arange(data.N)).ravel()
    distributions = (counts > 0).sum() + (0 in sizes)
    return replace(
        estimate,
        P=at.P[:, columns],
        P_errors=P_errors[:, columns],
        weights=[row[1 : 1 + size] for row, size in zip(at.q, sizes, strict=True)],
        weight_errors=[row[1 : 1 + size] for row, size in zip(q_errors, sizes, strict=True)],
        background=at.q[:, 0].copy(),
        counts=counts[columns],
        loglik=fit.loglik,
        gap=fit.gap,
        path=fit.path,
        parameters=int((data.N - 1) * distributions + ((at.q > 0).sum(axis=1) - 1).sum()),
    )
