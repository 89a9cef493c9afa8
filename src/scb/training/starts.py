"""Initial points of a run."""

from dataclasses import dataclass

import numpy as np

from scb.geometry import Array, Projection, population_projection
from scb.geometry.lines import projection_by_norms, signal_V
from scb.task import Task


@dataclass(frozen=True)
class GivenStart:
    """An initial point with any V (N, N) and A (T, N); A are the logits of a softmax transformer."""

    V: Array
    A: Array

    def projection(self, task: Task) -> Projection:
        """α, K and ‖Δ‖ of (V, A)."""
        return population_projection(task, self.V, self.A)


@dataclass(frozen=True)
class UniformAttention:
    """An initial point with any V (N, N) and A = 11ᵀ/T, which is never written out."""

    V: Array
    T: int

    @property
    def A(self) -> Array:
        """11ᵀ/T: one number seen as a read-only (T, N) array."""
        return np.broadcast_to(1 / self.T, (self.T, len(self.V)))

    def projection(self, task: Task) -> Projection:
        """α_V and ‖Δ_V‖ of V; those of A are 0."""
        alpha, _, delta = signal_V(task, self.V)
        return projection_by_norms(task, alpha, delta, K_A=0.0, K_AQ=0.0)
