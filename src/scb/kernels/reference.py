"""Plain NumPy twins of the compiled kernels: short enough to be read as their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.norms import Array


def continue_sequence(
    tokens: NDArray[Any], start: int, cumulative_q: Array, positions: NDArray[Any], cumulative_p: Array, u: Array
) -> None:
    """Twin of ``sequence.continue_sequence``."""
    T = start - 1
    for i in range(start, len(tokens)):
        last, context = tokens[i - 1], tokens[i - 1 - T : i - 1]
        slot = np.searchsorted(cumulative_q[:, last], u[i - start, 0], side="right")
        source = context[positions[slot, last]]
        tokens[i] = np.searchsorted(cumulative_p[:, source], u[i - start, 1], side="right")


def words(key: np.uint64, start: int, n: int) -> NDArray[np.uint64]:
    """Twin of ``words.fill_words``: splitmix64."""
    with np.errstate(over="ignore"):
        z = key + np.arange(start, start + n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def draw_tokens(key: np.uint64, law: Any, T: int) -> NDArray[np.intp]:
    """Twin of ``tokens.draw_tokens``: how many thresholds m_j + f_j lie at or below w + u."""
    w = (words(key, 0, -(-T // 4)) & law.mask).view(np.uint16)[:T, None].astype(np.int64)
    u = (words(key, 1 << 40, T) >> np.uint64(11))[:, None] / 2.0**53
    return ((w > law.whole) | ((w == law.whole) & (u >= law.fraction))).sum(axis=1)


def fresh_gradient(
    lasts: NDArray[Any],
    keys: NDArray[np.uint64],
    uniforms: Array,
    law: Any,
    positions: NDArray[Any],
    cumulative_q: Array,
    cumulative_p: Array,
    V: Array,
    A: Array,
) -> tuple[float, Array, Array]:
    """Twin of ``fresh.fresh_columns``: the summed loss and gradients of a batch, one sample after the other."""
    T, N = A.shape
    loss, gV, gA = 0.0, np.zeros((N, N)), np.zeros((T, N))
    for k, key, (u_source, u_label) in zip(lasts, keys, uniforms, strict=True):
        tokens = draw_tokens(key, law, T)
        X = np.eye(N)[:, tokens]  # (N, T)
        slot = np.searchsorted(cumulative_q[:, k], u_source, side="right")
        label = np.searchsorted(cumulative_p[:, tokens[positions[slot, k]]], u_label, side="right")
        r = V @ X @ A[:, k] - np.eye(N)[label]
        loss += 0.5 * float(r @ r)
        gV += np.outer(r, X @ A[:, k])
        gA[:, k] += (V @ X).T @ r
    return loss, gV, gA
