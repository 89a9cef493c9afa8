"""Fresh samples, compiled: the same law as ``Reference``, without storing a batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.gradients import Gradient
from scb.norms import Array
from scb.sampling import closed_cumulative, token_dtype
from scb.task import Task


class Plan(NamedTuple):
    """A batch before its tokens are drawn: everything random in it, and who computes what.

    Attributes
    ----------
    parts : where each part begins, and the end; a part is one thread's work
    lasts, keys, uniforms : (B,), (B,), (B, 2): last token (ascending), stream of the tokens, and what decides source and label
    buffers : (B,), the column of the gradient buffer that a sample adds to, one for each part and last token
    columns : the last token of each buffer
    """

    parts: NDArray[np.int64]
    lasts: NDArray[np.int64]
    keys: NDArray[np.uint64]
    uniforms: Array
    buffers: NDArray[np.int64]
    columns: NDArray[np.int64]


def plan_batch(cumulative_mu: Array, T: int, batch_size: int, rng: np.random.Generator) -> Plan:
    """Draw what a batch needs beside its tokens. Two to eight parts, by the size of the batch and nothing else."""
    lasts = np.sort(np.searchsorted(cumulative_mu, rng.random(batch_size), side="right"))
    keys = rng.integers(0, 1 << 64, size=batch_size, dtype=np.uint64)
    uniforms = rng.random((batch_size, 2))
    count = int(np.clip(batch_size * T >> 18, 2, 8))
    parts = np.arange(count + 1) * batch_size // count
    part = np.repeat(np.arange(count), np.diff(parts))
    new = np.ones(batch_size, dtype=bool)
    new[1:] = (lasts[1:] != lasts[:-1]) | (part[1:] != part[:-1])
    return Plan(parts, lasts, keys, uniforms, np.cumsum(new) - 1, lasts[new])


@dataclass(frozen=True)
class Fresh:
    """Draws and differentiates ``batch_size`` fresh samples at each call, on all threads of Numba."""

    task: Task

    @cached_property
    def _law(self) -> tuple[Any, Any, Any, Any]:
        from scb.kernels.tokens import token_law

        laws = closed_cumulative(self.task.weights), closed_cumulative(self.task.P)
        return token_law(self.task.mu), self.task.positions, *laws

    @cached_property
    def _cumulative_mu(self) -> Array:
        return closed_cumulative(self.task.mu)

    def __call__(self, V: Array, A: Array, batch_size: int, rng: np.random.Generator) -> Gradient:
        """Mean gradient over ``batch_size`` fresh samples."""
        from scb.kernels.fresh import fresh_columns

        N, T = self.task.N, self.task.T
        plan = plan_batch(self._cumulative_mu, T, batch_size, rng)
        gV, G = np.zeros((len(plan.parts) - 1, N, N)), np.zeros((T, len(plan.columns)), order="F")
        token = np.empty(0, token_dtype(N))
        V, A = np.ascontiguousarray(V), np.asfortranarray(A)
        losses = fresh_columns(
            plan.parts, plan.lasts, plan.keys, plan.uniforms, *self._law, V, A, plan.buffers, token, G, gV
        )
        gA = np.zeros((T, N), order="F")
        for buffer, k in enumerate(plan.columns):
            gA[:, k] += G[:, buffer]
        gA /= batch_size
        return Gradient(losses.sum() / batch_size, gV.sum(axis=0) / batch_size, gA, batch_size)
