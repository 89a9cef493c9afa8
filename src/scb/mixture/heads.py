"""Estimates of P_h and Q_h for several heads from independent samples.

Given the last token k, the covariance of label and token t is Σ_h q_ht^(k) (P_h − μ1ᵀ) diag(μ).
Over all (k, t), these covariances are the rows of a matrix of rank H, few of which are nonzero. If
each position belongs to one head, each row points along one of H lines (``geometry.gauge``). The
steps are:

1. start with the (k, t) whose table of pairs (o, x_t) has a χ² too large to be noise;
2. their covariances span a space of dimension H; score every (k, t) by its projection onto it, keep
   what is too large to be noise, and span the space again;
3. find the H lines, which assign a head to each position;
4. fit P_h and the weights by maximum likelihood, and move a position to another head where that
   raises the likelihood.

The number of heads is the one with the least BIC.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from scb.arrays import Array, Flags, Positions
from scb.geometry.gauge import lines_through
from scb.inputs import InputError, integer
from scb.mixture.data import Data
from scb.mixture.em import last_gap, maximise
from scb.mixture.model import Mixture, weight_table
from scb.mixture.partition import Partition
from scb.mixture.recovered import Recovery, StandardErrors
from scb.mixture.rows import Slots
from scb.task.sampling import Batch
from scb.theory.gaussian import noise_quantile

# Rounds of spanning and scoring
_ROUNDS = 6


@dataclass(frozen=True)
class _Fit:
    """Heads that were fitted: positions (r, 2) as (k, t), their heads and weights (r,), and P."""

    pairs: Positions
    owners: Positions
    weights: Array
    P: Array  # (H, N, N)
    path: list[float]
    gap: float = np.nan

    def parameters(self) -> int:
        """How many parameters are free."""
        H, N, _ = self.P.shape
        return H * (N - 1) ** 2 + len(self.pairs) - len(np.unique(self.pairs[:, 0]))


def recover_heads(batch: Batch, data: Data, heads: int | Literal["auto"]) -> Recovery:
    """Estimate as many heads as requested or, if no number is given, as the BIC selects."""
    if heads != "auto":
        return _recovery(batch, data, _fitted(batch, data, integer("heads", heads, low=1)))
    best, least = None, np.inf
    for H in range(1, (data.N - 1) ** 2 + 1):
        fit = _fitted(batch, data, H)
        bic = -2 * fit.path[-1] + fit.parameters() * np.log(data.n)
        if bic >= least:
            break
        best, least = fit, bic
    if best is None:
        raise InputError(
            f"no position stands out in {data.n_samples} samples: more samples are needed"
        )
    return _recovery(batch, data, best)


def _fitted(batch: Batch, data: Data, H: int) -> _Fit:
    """The fit with H heads."""
    if (data.N - 1) ** 2 < H:
        raise InputError(f"heads = {H}: with N = {data.N} there can be at most {(data.N - 1) ** 2}")
    scale = np.sqrt(np.outer(data.label_distribution, data.mu))
    pairs = _first_pairs(data, H)
    basis = np.zeros((0, H))
    for _ in range(_ROUNDS):
        Z = _whitened(data, pairs, scale)
        basis = np.linalg.svd(Z, full_matrices=False)[2][:H].T  # (N², H)
        squares = np.zeros((data.N, data.T))
        for w in basis.T:
            sums = data.total(Partition.scores, w.reshape(data.N, data.N) / scale)
            squares += (sums - sums.mean(axis=1, keepdims=True)) ** 2 / data.counts[:, None]
        x = np.log(data.N * data.T / 0.05)
        kept = np.argwhere(squares > H + 2 * np.sqrt(H * x) + 2 * x)
        if len(kept) < H or np.array_equal(kept, pairs):
            break
        pairs = kept
    Z = _whitened(data, pairs, scale) / np.sqrt(data.counts[pairs[:, 0]])[:, None]
    rows = Z @ basis  # (r, H)
    D = lines_through(rows)
    parts = np.linalg.solve(D, rows.T).T  # (r, H)
    owners = np.abs(parts).argmax(axis=1)
    size = np.abs(parts[np.arange(len(pairs)), owners])
    weights = size / np.bincount(pairs[:, 0], size, minlength=data.N)[pairs[:, 0]]
    P = np.stack([_start(Z, weights, owners == h, data, scale) for h in range(H)])
    fit = _climbed(data, _Fit(pairs, owners, weights, P, []))
    better = _climbed(data, _reassigned(batch, fit))
    return better if better.path[-1] > fit.path[-1] else fit


def _first_pairs(data: Data, H: int) -> Positions:
    """The (k, t) whose χ² stands out; the strongest ones if these are too few."""
    freedom = data.degrees_of_freedom()[:, None]
    excess = (data.chi_squares() - freedom) / np.sqrt(2 * freedom)
    order = np.argsort(excess, axis=None)[::-1]
    level = 1.5 * noise_quantile(data.N * data.T, 0.05)
    count = max(int((excess > level).sum()), 2 * H)
    return np.stack(np.unravel_index(order[:count], excess.shape), axis=1)


def _whitened(data: Data, pairs: Positions, scale: Array) -> Array:
    """(r, N²): the covariances at (k, t), in units of their noise."""
    expected = data.by_label[pairs[:, 0], :, None] * data.mu
    D = data.total(Partition.pair_tables, pairs) - expected
    return (D / scale).reshape(len(pairs), -1) / np.sqrt(data.counts[pairs[:, 0]])[:, None]


def _start(Z: Array, weights: Array, mine: Flags, data: Data, scale: Array) -> Array:
    """A first P for the positions of one head, by least squares."""
    base = data.label_distribution[:, None]
    if not mine.any():
        return np.repeat(base, data.N, axis=1)
    G = weights[mine] @ Z[mine] / (weights[mine] @ weights[mine])
    P = np.maximum(base + G.reshape(data.N, data.N) * scale / data.mu, 1e-3 * base)
    return P / P.sum(axis=0)


def _climbed(data: Data, fit: _Fit) -> _Fit:
    """The fit at the nearest maximum of the likelihood."""
    order = np.lexsort(fit.pairs.T[::-1])
    pairs, owners = fit.pairs[order], fit.owners[order]
    mine = [pairs[:, 0] == k for k in range(data.N)]
    slots = Slots.from_support([pairs[one, 1] for one in mine])
    matrix = slots.matrix.copy()
    matrix[slots.positions >= 0] = owners
    q = weight_table([fit.weights[order][one] for one in mine], np.zeros(data.N))
    H = len(fit.P)
    start = Mixture(np.hstack(list(fit.P)), data.label_distribution, q).lifted()
    found = maximise(
        data.rows(replace(slots, matrix=matrix, matrices=H)), start, tolerance=last_gap(start.P)
    )
    P = np.stack(np.split(found.mixture.P, H, axis=1))
    weights = found.mixture.q[slots.positions >= 0]
    return _Fit(pairs, owners, weights, P, [*fit.path, *found.path], found.gap)


def _reassigned(batch: Batch, fit: _Fit) -> _Fit:
    """The fit with each position in the head that the likelihood prefers, all others fixed."""
    owners = fit.owners.copy()
    for mine, tokens, labels in _samples(batch, fit.pairs):
        for j, pair in enumerate(mine):
            gains = []
            for h in range(len(fit.P)):
                tried = fit.owners[mine]
                tried[j] = h
                parts = fit.weights[mine] * fit.P[tried, labels, tokens]
                gains.append(np.log(np.maximum(parts.sum(axis=1), 1e-300)).sum())
            owners[pair] = int(np.argmax(gains))
    return replace(fit, owners=owners, path=[])


def _samples(batch: Batch, pairs: Positions) -> Iterator[tuple[Positions, Positions, Positions]]:
    """For each last token, the pairs (s,) that are its own, the tokens (n_k, s) at their positions,
    and the labels (n_k, 1).
    """
    for k in np.unique(pairs[:, 0]):
        samples = np.flatnonzero(batch.last == k)[:, None]
        mine = np.flatnonzero(pairs[:, 0] == k)
        tokens = batch.context[samples, pairs[mine, 1]].astype(np.intp)
        yield mine, tokens, batch.label[samples].astype(np.intp)


def _standard_errors(batch: Batch, fit: _Fit) -> tuple[Array, Array]:
    """Standard errors of P (H, N, N) and of the weights (r,), from the outer products of the
    samples' scores; NaN where the data leave a direction open, as they may leave a head's size.
    """
    N = fit.P.shape[1]
    size = fit.P.size
    J = np.zeros((size + len(fit.pairs), size + len(fit.pairs)))
    for mine, tokens, labels in _samples(batch, fit.pairs):
        own = fit.owners[mine]
        chances = fit.P[own, labels, tokens]  # (n_k, s)
        whole = (chances @ fit.weights[mine])[:, None]
        scores = np.zeros((len(whole), len(J)))
        samples = np.arange(len(whole))[:, None]
        cells = (own * N + labels) * N + tokens
        np.add.at(scores, (samples, cells), fit.weights[mine] / whole)
        scores[:, size + mine] = chances / whole
        J += scores.T @ scores
    Z = _free_directions(fit)
    values, axes = np.linalg.eigh(Z.T @ J @ Z)
    if not len(values) or values[0] < 1e-9 * values[-1]:
        return np.full_like(fit.P, np.nan), np.full(len(fit.pairs), np.nan)
    errors = np.sqrt((np.square(Z @ axes) / values).sum(axis=1))
    return errors[:size].reshape(fit.P.shape), errors[size:]


def _free_directions(fit: _Fit) -> Array:
    """Orthonormal columns along which parameters may move: the sums of P's columns and of the
    weights of each last token stay, and so do entries at 0.
    """
    index = np.arange(fit.P.size).reshape(fit.P.shape)
    groups = [index[h, :, m][fit.P[h, :, m] > 1e-6] for h, m in np.ndindex(fit.P.shape[::2])]
    last = fit.pairs[:, 0]
    groups += [fit.P.size + np.flatnonzero(last == k) for k in np.unique(last)]
    columns = []
    for group in groups:
        # A basis of the vectors that sum to 0
        basis = np.linalg.svd(np.ones((1, len(group))))[2][1:].T
        block = np.zeros((fit.P.size + len(last), basis.shape[1]))
        block[group] = basis
        columns.append(block)
    return np.hstack(columns)


def _recovery(batch: Batch, data: Data, fit: _Fit) -> Recovery:
    """The fit as dense arrays."""
    H, N, _ = fit.P.shape
    A = np.zeros((H, data.T, N))
    at = fit.owners, fit.pairs[:, 1], fit.pairs[:, 0]
    A[at] = fit.weights
    P_errors, weight_errors = _standard_errors(batch, fit)
    A_errors = np.zeros_like(A)
    A_errors[at] = weight_errors
    mine = [fit.pairs[:, 0] == k for k in range(N)]
    without = np.array([not one.any() for one in mine])
    A[:, :, without] = 1 / (H * data.T)
    unknown = np.full(N, np.nan)
    return Recovery(
        V=fit.P if H > 1 else fit.P[0],
        A=A if H > 1 else np.asfortranarray(A[0]),
        support=[np.sort(fit.pairs[one, 1]) for one in mine],
        stderr=StandardErrors(*(x if H > 1 else x[0] for x in (P_errors, A_errors))),
        n_samples=data.n_samples,
        loglik=fit.path[-1],
        gap=fit.gap,
        path=fit.path,
        unexplained=unknown,
        unexplained_ratio=unknown,
        mu=data.mu,
        method="likelihood",
        n_parameters=fit.parameters(),
    )
