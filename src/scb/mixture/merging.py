"""Lags that share matrices: the matrices of a fit with one per lag are merged one after another.

The data determine only the direction of a lag's matrix, which is P_ℓ without the part common to its
columns: its size can be a weight, and the common part can be in another matrix (``per_lag``). Two
matrices along one line are therefore equivalent to one. At each step, the two matrices that are
nearest to a common line are merged, and everything is fitted again at the same positions. The
evidence for each position is still taken from the fit with a matrix for each lag.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np

from scb.arrays import Array, Ints
from scb.mixture.data import Data, Rows
from scb.mixture.em import Fit, last_gap, maximise
from scb.mixture.errors import Errors, label_counts, standard_errors
from scb.mixture.fit import Estimate, fit_mixture
from scb.mixture.lag_costs import bic_of
from scb.mixture.model import Mixture, weight_table
from scb.mixture.rows import Slots
from scb.mixture.shrink import shrunk

Matrices = Literal["auto", "shared", "per_lag"] | int
"""How many matrices lags have: one for all, one for each, or a number; with "auto" two or more, as
many as have the least BIC."""


def fit_matrices(
    data: Data,
    matrices: Matrices,
    shrink: float | None = None,
    errors: Errors = standard_errors,
    **options: Any,
) -> Estimate:
    """Fit like ``fit_mixture``, with the same options and any number of matrices."""
    fit = partial(fit_mixture, data, shrink=shrink, errors=errors, **options)
    if matrices in ("shared", 1):
        return fit(matrices="shared")
    full = fit(matrices="per_lag")
    if matrices == "per_lag":
        return full
    groups = _merged(data, full, 2 if matrices == "auto" else matrices)
    bic = full.bic
    if matrices != "auto":
        # Each fit starts from the matrices of all lags, so only the last one counts
        groups = deque(groups, maxlen=1)
        bic = np.inf
    best = None
    for group in groups:
        fewer = _tied(data, full, group, bic)
        if fewer is None:
            break
        best = fewer
        bic = fewer.bic
    return full if best is None else _estimate(data, full, best, shrink, errors)


def matrices_of(estimate: Estimate) -> Matrices:
    """The number of matrices of the lags of an estimate."""
    if estimate.owners is None:
        return "shared"
    number = len({matrix.tobytes() for matrix in _matrices(estimate)})
    # Merging leaves at least two; all are the same where there is one symbol
    return "per_lag" if number in (1, len(estimate.owners)) else number


def _merged(data: Data, estimate: Estimate, fewest: int) -> Iterator[Ints]:
    """Groups (L,) of positions, each time one group fewer, until ``fewest`` are left."""
    group = np.arange(len(estimate.owners or ()))
    lines = _lines(data, estimate)
    while group.max(initial=0) >= fewest:
        pairs = combinations(range(group.max() + 1), 2)
        one, two = min(pairs, key=partial(_apart, lines, group))
        group = np.where(group == two, one, group - (group > two))
        yield group


def _matrices(estimate: Estimate) -> Array:
    """(L, N, N): the matrices of all positions."""
    N = len(estimate.P)
    return estimate.P[:, : N * len(estimate.owners or ())].reshape(N, -1, N).transpose(1, 0, 2)


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
    return (np.sqrt(labels)[:, None, None] * centred / noise).reshape(len(P), data.N**2)


def _apart(lines: Array, group: Ints, pair: tuple[int, int]) -> float:
    """How far the positions of two groups are from one line, beyond what each is by itself."""
    off = [_off(lines[np.isin(group, part)]) for part in (pair, pair[:1], pair[1:])]
    return off[0] - off[1] - off[2]


def _off(lines: Array) -> float:
    """The sum of squares that are left of rows (r, N²) beside the best line."""
    squares = np.linalg.eigvalsh(lines @ lines.T)
    return float(squares[:-1].sum())


class Tied(NamedTuple):
    """A fit with a matrix for each group of positions."""

    group: Ints  # (L,)
    rows: Rows
    fit: Fit
    parameters: int
    bic: float


def _tied(data: Data, estimate: Estimate, group: Ints, most: float) -> Tied | None:
    """The fit with a matrix for each group (L,) of positions; None if its BIC is at least
    ``most``.
    """
    P = _matrices(estimate)
    means = [P[group == g].mean(axis=0) for g in range(group.max() + 1)]
    slots = Slots.from_support(estimate.support, estimate.owners)
    rows = data.rows(replace(slots, matrix=group[slots.matrix], matrices=len(means)))
    q = weight_table(estimate.weights, estimate.background)
    start = Mixture(np.column_stack(means), data.label_distribution, q).lifted()
    fit = maximise(rows, start, tolerance=last_gap(start.P), steps=5000)
    at = fit.mixture
    no_positions = any(len(positions) == 0 for positions in estimate.support)
    others = ((at.q > 0).sum(axis=1) - 1).sum() + (data.N - 1) * no_positions
    entries = (data.N - 1) * (label_counts(rows, at) > 0).sum()
    bic = bic_of(data, rows, at, fit.loglik, entries=entries, others=others)
    return Tied(group, rows, fit, int(entries + others), bic) if bic < most else None


def _estimate(
    data: Data, estimate: Estimate, tied: Tied, shrink: float | None, errors: Errors
) -> Estimate:
    """The estimate of a matrix for each position, with the matrices that groups of them share."""
    group, rows, fit, parameters, bic = tied
    at = fit.mixture
    P_errors, q_errors = errors(rows, at)
    smaller = None if shrink is None else shrunk(rows, at, data.label_distribution, shrink)
    at = at if smaller is None else smaller[0].at
    sizes = [len(positions) for positions in estimate.support]
    columns = (data.N * group[:, None] + np.arange(data.N)).ravel()
    return replace(
        estimate,
        P=at.P[:, columns],
        P_errors=P_errors[:, columns],
        weights=[row[1 : 1 + size] for row, size in zip(at.q, sizes, strict=True)],
        weight_errors=[row[1 : 1 + size] for row, size in zip(q_errors, sizes, strict=True)],
        background=at.q[:, 0].copy(),
        counts=label_counts(rows, at)[columns],
        loglik=fit.loglik,
        gap=fit.gap,
        path=fit.path,
        parameters=parameters,
        bic=bic,
    )
