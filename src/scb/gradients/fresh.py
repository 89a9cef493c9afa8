"""Fresh samples, compiled: the same law as ``Reference``, without storing a batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from scb.gradients import Gradient
from scb.norms import Array
from scb.sampling import closed_cumulative, token_dtype
from scb.task import Task


@dataclass(frozen=True)
class Fresh:
    """Draws and differentiates ``batch_size`` fresh samples at each call."""

    task: Task

    @cached_property
    def _law(self) -> tuple[Any, Any, Any, Any, Any]:
        from scb.kernels.fresh import guide_table

        mu = closed_cumulative(self.task.mu)
        laws = closed_cumulative(self.task.weights), closed_cumulative(self.task.P)
        return mu, guide_table(mu), self.task.positions, *laws

    def __call__(self, V: Array, A: Array, batch_size: int, rng: np.random.Generator) -> Gradient:
        """Mean gradient over ``batch_size`` fresh samples."""
        from scb.kernels.fresh import fresh_gradient

        N, T = self.task.N, self.task.T
        lasts = np.sort(np.searchsorted(self._law[0], rng.random(batch_size), side="right"))
        state = rng.integers(0, 1 << 64, size=4, dtype=np.uint64)
        gV, gA, tokens = np.zeros((N, N)), np.zeros((T, N), order="F"), np.empty(T, dtype=token_dtype(N))
        V, A = np.ascontiguousarray(V), np.asfortranarray(A)
        loss = fresh_gradient(state, lasts, *self._law, V, A, tokens, gV, gA)
        return Gradient(loss / batch_size, gV / batch_size, gA / batch_size, batch_size)
