"""Plain NumPy twins of the compiled kernels, by their names: short enough to be read as their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.geometry.heads import per_head


def continue_sequence(
    tokens: NDArray[Any], start: int, cumulative_q: Array, positions: NDArray[Any], cumulative_p: Array, u: Array
) -> None:
    """Fill ``tokens[start:]``, each from a source among the T tokens before the last one."""
    T = start - 1
    for i in range(start, len(tokens)):
        last = tokens[i - 1]
        context = tokens[i - 1 - T : i - 1]
        slot = np.searchsorted(cumulative_q[:, last], u[i - start, 0], side="right")
        source = context[positions[slot, last]]
        tokens[i] = np.searchsorted(cumulative_p[:, source], u[i - start, 1], side="right")


def words(key: np.uint64, start: int, n: int) -> NDArray[np.uint64]:
    """Words start, …, start + n − 1 of a stream, by splitmix64 (the kernel is ``fill_words``)."""
    with np.errstate(over="ignore"):
        z = key + np.arange(start, start + n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def draw_tokens(key: np.uint64, distribution: Any, T: int) -> NDArray[np.intp]:
    """T tokens from a stream: how many thresholds m_j + f_j lie at or below w + u."""
    w = (words(key, 0, -(-T // 4)) & distribution.mask).view(np.uint16)[:T, None].astype(np.int64)
    u = units(key, 1 << 40, T)[:, None]
    return ((w > distribution.whole) | ((w == distribution.whole) & (u >= distribution.fraction))).sum(axis=1)


def units(key: np.uint64, start: int, n: int) -> Array:
    """Uniforms on [0, 1) from words start, start + 1, … of a stream."""
    return (words(key, start, n) >> np.uint64(11)) / 2.0**53


def draw_mini_batch(key: np.uint64, cumulative_mu: Array, B: int) -> tuple[NDArray[np.intp], NDArray[np.uint64], Array]:
    """Last tokens (ascending), streams of the samples' tokens, and uniforms (2, B) that decide source and label."""
    lasts = np.sort(np.searchsorted(cumulative_mu, units(key, 0, B), side="right"))
    return lasts, words(key, 3 * B, B), units(key, B, 2 * B).reshape(2, B)


def mini_batch_gradient(key: np.uint64, distribution: Any, B: int, V: Array, A: Array) -> tuple[float, Array, Array]:
    """The summed loss of a mini-batch and its summed gradients in V and A, one sample after the other; V and A may have heads."""
    T, N = A.shape[-2:]
    loss = 0.0
    gV = np.zeros(V.shape)
    gA = np.zeros(A.shape)
    heads = list(zip(per_head(V), per_head(A), per_head(gV), per_head(gA), strict=True))
    lasts, keys, uniforms = draw_mini_batch(key, distribution.labels.mu, B)
    for k, stream, u_source, u_label in zip(lasts, keys, *uniforms, strict=True):
        tokens = draw_tokens(stream, distribution.tokens, T)
        X = np.eye(N)[:, tokens]  # (N, T)
        slot = np.searchsorted(distribution.labels.q[:, k], u_source, side="right")
        source = tokens[distribution.labels.positions[slot, k]] + distribution.labels.first[slot, k]
        label = np.searchsorted(distribution.labels.P[:, source], u_label, side="right")
        r = sum(v @ X @ a[:, k] for v, a, _, _ in heads) - np.eye(N)[label]
        loss += 0.5 * float(r @ r)
        for v, a, g_V, g_A in heads:
            g_V += np.outer(r, X @ a[:, k])
            g_A[:, k] += (v @ X).T @ r
    return loss, gV, gA


def prox_steps(a: Array, lams: Array) -> Array:
    """A column after a soft threshold at each λ, each followed by the projection onto 1ᵀa = 1."""
    for lam in lams:
        a = np.sign(a) * np.maximum(np.abs(a) - lam, 0.0)
        a = a + (1 - a.sum()) / a.size
    return a


def column_moments(A: Array, threshold: float) -> Array:
    """(4, N): for b = a − 1/T, Σb and Σb²; and over the entries that reach ``threshold``, Σa and Σa²."""
    b = A - 1 / len(A)
    kept = np.where(threshold <= A, A, 0.0)
    return np.array([b.sum(axis=0), (b**2).sum(axis=0), kept.sum(axis=0), (kept**2).sum(axis=0)])


def mass_beyond(A: Array, centre: Array, threshold: Array) -> Array:
    """(N,): of each column, Σ(a − c) over the entries with |a − c| above its threshold."""
    b = A - centre
    return np.where(np.abs(b) > threshold, b, 0.0).sum(axis=0)


def frozen_mass(draws: Any, i: int, distribution: Any, frozen: Any) -> tuple[Array, int]:
    """Of sample i of a step with A frozen: the mass on each token, and the token of the label's source."""
    k = draws.lasts[i]
    tokens = np.searchsorted(distribution.mu, draws.u_tokens[i], side="right")
    active = tokens[: frozen.counts[k]]
    mass = frozen.common[k] * draws.rest[i] + np.bincount(active, frozen.value[: len(active), k], minlength=len(distribution.mu))
    inside = frozen.source[np.searchsorted(distribution.q[:, k], draws.u_source[i], side="right"), k]
    if inside >= 0:
        return mass, int(active[inside])
    mass[tokens[-1]] += frozen.common[k]
    return mass, int(tokens[-1])


def continue_lags(
    tokens: NDArray[Any],
    start: int,
    cumulative_q: Array,
    lags: NDArray[Any],
    cumulative_p: Array,
    first: NDArray[Any],
    u: Array,
) -> None:
    """Fill ``tokens[start:]``, each from a lag that the token before it chooses, or from the background (lag 0)."""
    for i in range(start, len(tokens)):
        k = tokens[i - 1] if cumulative_q.shape[1] > 1 else 0
        slot = int((u[i - start, 0] >= cumulative_q[:, k]).sum())
        source = tokens[i - lags[slot, k]] if lags[slot, k] else 0
        tokens[i] = (u[i - start, 1] >= cumulative_p[:, first[slot, k] + source]).sum()


def likelihood_gradient(
    tokens: NDArray[Any], last: NDArray[Any], label: NDArray[Any], weight: Array, g: Array, q: Array, P: Array
) -> tuple[float, Array, Array]:
    """The log-likelihood, and its derivatives in q and P; slots with weight 0 have none. g is the background of each sample."""
    gq = np.zeros_like(q)
    gP = np.zeros_like(P)
    total = 0.0
    for x, k, o, w, b in zip(tokens, last, label, weight, g, strict=True):
        p = np.append(P[o], b)[x]
        f = q[k] @ p
        used = q[k] > 0
        gq[k, used] += w * p[used] / f
        in_P = used & (x < P.shape[1])
        np.add.at(gP[o], x[in_P], w * q[k, in_P] / f)
        total += w * np.log(f)
    return float(total), gq, gP


def em_update(P: Array, q: Array, gP: Array, gq: Array) -> tuple[Array, Array]:
    """Expected counts P·gP and q·gq, the columns of P and the rows of q divided by their sums; unchanged where a sum is 0."""
    return _normalised(P * gP, 0, P), _normalised(q * gq, 1, q)


def squared_jump(points: list[tuple[Array, Array]], least_kept: float) -> tuple[Array, Array]:
    """The squared extrapolation of three points (P, q), which keeps a part of the last one."""
    paths = list(zip(*points, strict=True))
    length = sum(((x1 - x0) ** 2).sum() for x0, x1, _ in paths)
    turn = sum(((x2 - 2 * x1 + x0) ** 2).sum() for x0, x1, x2 in paths)
    alpha = max(1.0, np.sqrt(length / turn)) if turn > 0 else 1.0
    P, q = (np.maximum(x0 + 2 * alpha * (x1 - x0) + alpha**2 * (x2 - 2 * x1 + x0), least_kept * x2) for x0, x1, x2 in paths)
    return _normalised(P, 0, points[2][0]), _normalised(q, 1, points[2][1])


def _normalised(counts: Array, axis: int, otherwise: Array) -> Array:
    mass = counts.sum(axis=axis, keepdims=True)
    return np.where(mass > 0, counts / np.where(mass > 0, mass, 1.0), otherwise)


def gathered(tokens: NDArray[Any], starts: NDArray[Any], last: NDArray[Any], positions: NDArray[Any], nothing: int) -> NDArray[Any]:
    """(n, s): the tokens of each sample at the positions of its last token; ``nothing`` where a position is negative."""
    chosen = positions[last]
    return np.where(chosen >= 0, tokens[starts[:, None] + np.maximum(chosen, 0)], nothing)


def row_codes(last: NDArray[Any], label: NDArray[Any], tokens: NDArray[Any], N: int) -> NDArray[np.int64]:
    """(n,): the numbers with the digits last token, label (base N) and tokens (n, s) (base N + 1)."""
    code = last * N + label
    for column in tokens.T:
        code = code * (N + 1) + column
    return code


def distributions(tokens: NDArray[Any], last: NDArray[Any], q: Array, P: Array, background: Array) -> Array:
    """(n, N): the distribution Σ_j q_j P[:, x_j] of each row, where token C takes the background (n, N)."""
    return np.array([q[k] @ np.c_[P, b].T[x] for x, k, b in zip(tokens, last, background, strict=True)])


def likelihood_information(
    tokens: NDArray[Any], last: NDArray[Any], weight: Array, q: Array, P: Array, background: Array | None = None
) -> Array:
    """The Fisher information as a whole matrix, with P in its first coordinates and q in the others; token C is the background."""
    N, C = P.shape
    J = np.zeros((P.size + q.size, P.size + q.size))
    given = np.zeros((len(tokens), N)) if background is None else background
    for x, k, w, b in zip(tokens, last, weight, given, strict=True):
        for o in range(N):
            p = np.append(P[o], b[o])[x]
            f = q[k] @ p
            d_P = np.zeros_like(P)
            d_q = np.zeros_like(q)
            np.add.at(d_P[o], x[x < C], q[k][x < C])
            d_q[k] = np.where(q[k] > 0, p, 0.0)
            d = np.concatenate([d_P.ravel(), d_q.ravel()])
            if f > 0:
                J += w * np.outer(d, d) / f
    return J


def likelihood_curvature(
    tokens: NDArray[Any], last: NDArray[Any], label: NDArray[Any], weight: Array, g: Array, q: Array, P: Array
) -> Array:
    """Minus the Hessian of the log-likelihood as a whole matrix, P (N, C) in its first coordinates; token C is the background."""
    C = P.shape[1]
    P = np.c_[P, np.zeros(len(P))]  # a column for the background, to be left out at the end
    size = P.size + q.size
    H = np.zeros((size, size))
    for x, k, o, w, b in zip(tokens, last, label, weight, g, strict=True):
        p = np.append(P[o, :-1], b)[x]
        d_P = np.zeros_like(P)
        d_q = np.zeros_like(q)
        cross = np.zeros((size, size))
        np.add.at(d_P[o], x, q[k])
        d_q[k] = p
        for j, m in enumerate(x):
            cross[o * (C + 1) + m, P.size + k * q.shape[1] + j] += 1
        d = np.concatenate([d_P.ravel(), d_q.ravel()])
        f = q[k] @ p
        H += w * (np.outer(d, d) / f**2 - (cross + cross.T) / f)
    kept = np.ones_like(P, dtype=bool)
    kept[:, C] = False
    at = np.concatenate([kept.ravel(), np.ones(q.size, dtype=bool)])
    return H[np.ix_(at, at)]


def add_pair_scores(
    tokens: NDArray[Any],
    starts: NDArray[Any],
    column: NDArray[Any],
    row: NDArray[Any],
    weight: Array,
    table: Array,
    scores: Array,
) -> None:
    """Add weight_i · table[row_i, x_it] to scores[column_i, t], for every sample i and position t."""
    for start, k, r, w in zip(starts, column, row, weight, strict=True):
        scores[k] += w * table[r, tokens[start : start + scores.shape[1]]]


def pair_chi_squares(
    tokens: NDArray[Any], starts: NDArray[Any], last: NDArray[Any], label: NDArray[Any], mu: Array, T: int
) -> Array:
    """(N, T): χ² of label against token at every position t, over the samples with last token k."""
    N = len(mu)
    chi = np.zeros((N, T))
    for k in np.unique(last):
        rows = last == k
        expected = np.outer(np.bincount(label[rows], minlength=N), mu)
        for t in range(T):
            C = np.zeros((N, N))
            np.add.at(C, (label[rows], tokens[starts[rows] + t]), 1)
            chi[k, t] = ((C - expected) ** 2 / np.where(expected > 0, expected, 1)).sum()
    return chi


def source_tables(
    tokens: NDArray[Any], starts: NDArray[Any], label: NDArray[Any], row: NDArray[Any], distributions: Array, weight: Array, T: int
) -> tuple[Array, Array]:
    """w/f of the label that came, and w/f of every label, summed by position and token there: two tables (T, N, N)."""
    N = distributions.shape[1]
    scores = np.zeros((T, N, N))
    information = np.zeros((T, N, N))
    for start, o, r, w in zip(starts, label, row, weight, strict=True):
        for t, x in enumerate(tokens[start : start + T]):
            if x < N:  # something is there
                scores[t, x, o] += w / distributions[r, o]
                information[t, x] += w / distributions[r]
    return scores, information


def label_tables(
    tokens: NDArray[Any], starts: NDArray[Any], label: NDArray[Any], row: NDArray[Any], distributions: Array, weight: Array, T: int
) -> tuple[Array, Array]:
    """How often each label came, and was to be expected, by position and token there: two tables (T, N, N)."""
    N = distributions.shape[1]
    came = np.zeros((T, N, N))
    expected = np.zeros((T, N, N))
    for start, o, r, w in zip(starts, label, row, weight, strict=True):
        for t, x in enumerate(tokens[start : start + T]):
            if x < N:  # something is there
                came[t, x, o] += w
                expected[t, x] += w * distributions[r]
    return came, expected


def weight_scores(
    tokens: NDArray[Any],
    starts: NDArray[Any],
    last: NDArray[Any],
    label: NDArray[Any],
    distributions: Array,
    weight: Array,
    positions: Any,
    matrices: Array,
) -> tuple[Array, Array]:
    """(N, r): Σ w P_t[o, x_t]/f_o and Σ w Σ_o P_t[o, x_t]²/f_o by last token; matrices (r, token, label)."""
    N = distributions.shape[1]
    scores = np.zeros((N, len(positions)))
    information = np.zeros((N, len(positions)))
    for start, k, o, f, w in zip(starts, last, label, distributions, weight, strict=True):
        for j, t in enumerate(positions):
            if (x := tokens[start + t]) < N:
                scores[k, j] += w * matrices[j, x, o] / f[o]
                information[k, j] += w * (matrices[j, x] ** 2 / f).sum()
    return scores, information
