"""Fresh samples, compiled: the same law as ``Reference``, without storing a batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from scb.geometry import Array
from scb.kernels import threads
from scb.task import Task
from scb.task.sampling import closed_cumulative, token_dtype
from scb.training.sources import Gradient


@dataclass(frozen=True)
class Fresh:
    """Draws and differentiates ``batch_size`` fresh samples at each call, on all threads of Numba."""

    task: Task

    @cached_property
    def law(self) -> Any:
        """The task as the kernels want it."""
        from scb.kernels.fresh import TaskLaw
        from scb.kernels.tokens import token_law

        laws = (closed_cumulative(p) for p in (self.task.weights, self.task.P))
        return TaskLaw(*token_law(self.task.mu), closed_cumulative(self.task.mu), self.task.positions, *laws)

    @cached_property
    def token(self) -> np.ndarray:
        """An empty array of the type of tokens."""
        return np.empty(0, token_dtype(self.task.N))

    def __call__(self, V: Array, A: Array, batch_size: int, rng: np.random.Generator) -> Gradient:
        """Mean gradient over ``batch_size`` fresh samples."""
        return self.keyed(V, A, batch_size, rng.integers(0, 1 << 64, dtype=np.uint64))

    def keyed(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """The same, with all that is random drawn from the stream ``key``."""
        from scb.kernels.fresh import GROUP, draw_batch, fresh_columns

        N, T = self.task.N, self.task.T
        batch = draw_batch(key, self.law, batch_size, T, False)
        gV, G = np.zeros((len(batch.parts) - 1, N, N)), np.empty((T, len(batch.buffers)), order="F")
        V, A = np.ascontiguousarray(V), np.asfortranarray(A)
        tokens = np.empty((len(gV), GROUP, T), token_dtype(N))
        loss = fresh_columns(threads(), batch, self.law, V, A, np.zeros(N), tokens, G, gV)
        gA = np.zeros((T, N), order="F")
        for buffer, k in enumerate(batch.lasts[batch.runs[:-1]]):
            gA[:, k] += G[:, buffer]
        gA /= batch_size
        return Gradient(loss / batch_size, gV.sum(axis=0) / batch_size, gA, batch_size)
