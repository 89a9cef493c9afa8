"""Sums over the tokens of contexts, from which transformers and their gradients are computed."""

from typing import TYPE_CHECKING

import numpy as np

from scb.arrays import Array
from scb.geometry.heads import per_head
from scb.inputs import InputError

if TYPE_CHECKING:
    from scb.task.sampling import Batch

# How many (sample, position) pairs are held at a time
_CHUNK = 1 << 22


def token_mass(A: Array, batch: "Batch", chunk: int = _CHUNK) -> Array:
    """Return the attention X·a^(k) that falls on each token, with one row per sample, (n, N)."""
    n, T = batch.context.shape
    positions, N = A.shape
    if positions != T:
        raise InputError(
            f"the batch has T = {T} positions, the attention {positions}: they must agree"
        )
    mass = np.empty((n, N))
    for rows in _chunks(n, T, chunk):
        part = batch[rows]
        flat = (np.arange(len(part))[:, None] * N + part.context).ravel()
        mass[rows] = np.bincount(flat, A.T[part.last].ravel(), minlength=len(part) * N).reshape(
            -1, N
        )
    return mass


def head_masses(A: Array, batch: "Batch") -> Array:
    """Return the ``token_mass`` of all heads side by side, (n, H·N)."""
    return np.hstack([token_mass(one, batch) for one in per_head(A)])


def scatter_scores(U: Array, batch: "Batch", T: int, chunk: int = _CHUNK) -> Array:
    """Return the (T, N) array whose column k is the sum of U[i, x_t] over the samples i with last
    token k; for U = rV, this sum is (VX)ᵀr.
    """
    G = np.zeros((T, U.shape[1]), order="F")
    for rows in _chunks(len(batch), T, chunk):
        part = batch[rows]
        for k in np.unique(part.last):
            mine = part.last == k
            G[:, k] += np.take_along_axis(
                U[rows][mine], part.context[mine].astype(np.intp), axis=1
            ).sum(axis=0)
    return G


def _chunks(n: int, T: int, chunk: int) -> list[slice]:
    """Slices of n samples, each with at most ``chunk`` (sample, position) pairs."""
    size = max(1, chunk // max(T, 1))
    return [slice(i, min(n, i + size)) for i in range(0, n, size)]
