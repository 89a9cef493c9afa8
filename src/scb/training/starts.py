"""Initial points of a run."""

from dataclasses import dataclass

import numpy as np

from scb.geometry import Array, Projection, population_projection, projection_by_norms, signal_V
from scb.task import Task


@dataclass(frozen=True)
class GivenStart:
    """An initial point with any V (N, N) and A (T, N). For a softmax transformer, A holds the logits."""

    V: Array
    A: Array

    def projection(self, task: Task) -> Projection:
        """Return the signals, constants and errors of (V, A)."""
        return population_projection(task, self.V, self.A)


@dataclass(frozen=True)
class UniformAttention:
    """An initial point with any V (N, N) and uniform attention A = 11ᵀ/T, which takes no memory."""

    V: Array
    T: int

    @property
    def A(self) -> Array:
        """The uniform attention 11ᵀ/T as a read-only (T, N) view of one number."""
        return np.broadcast_to(1 / self.T, (self.T, len(self.V)))

    def projection(self, task: Task) -> Projection:
        """Return the signal and error of V; those of A are 0."""
        alpha, _, delta = signal_V(task, self.V)
        return projection_by_norms(task, alpha, delta, K_A=0.0, K_AQ=0.0)
