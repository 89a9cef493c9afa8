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


def fresh_gradient(
    uniforms: Array,
    lasts: NDArray[Any],
    cumulative_mu: Array,
    positions: NDArray[Any],
    cumulative_q: Array,
    cumulative_p: Array,
    V: Array,
    A: Array,
) -> tuple[float, Array, Array]:
    """Twin of ``fresh.fresh_gradient``: summed loss and gradients; row i of ``uniforms`` feeds sample i, T + 2 of them."""
    T, N = A.shape
    loss, gV, gA = 0.0, np.zeros((N, N)), np.zeros((T, N))
    for k, row in zip(lasts, uniforms, strict=True):
        tokens = np.searchsorted(cumulative_mu, row[:T], side="right")
        X = np.eye(N)[:, tokens]  # (N, T)
        slot = np.searchsorted(cumulative_q[:, k], row[T], side="right")
        label = np.searchsorted(cumulative_p[:, tokens[positions[slot, k]]], row[T + 1], side="right")
        r = V @ X @ A[:, k] - np.eye(N)[label]
        loss += 0.5 * float(r @ r)
        gV += np.outer(r, X @ A[:, k])
        gA[:, k] += (V @ X).T @ r
    return loss, gV, gA
