"""Initial points of a run."""

from dataclasses import dataclass

import numpy as np

from scb.arrays import Array
from scb.geometry import Projection, population_projection
from scb.geometry.lines import projection_by_norms, signal_V
from scb.task import Task


@dataclass(frozen=True)
class GivenStart:
    """An initial point with any V (N, N) and A (T, N).

    For a softmax transformer, A holds the logits.

    Attributes
    ----------
    V : (N, N) array
        The value matrix.
    A : (T, N) array
        The attention; for a softmax transformer, its logits.

    Examples
    --------
    >>> import scb
    >>> from scb.training.starts import GivenStart
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> round(GivenStart(task.P, task.Q).projection(task).alpha_A, 6)
    1.0
    """

    V: Array
    A: Array

    def projection(self, task: Task) -> Projection:
        """Return the signals, constants and errors of (V, A).

        Parameters
        ----------
        task : Task
            The true task.

        Returns
        -------
        Projection
        """
        return population_projection(task, self.V, self.A)


@dataclass(frozen=True)
class UniformAttention:
    """An initial point with any V (N, N) and uniform attention A = 11ᵀ/T, which takes no memory.

    Attributes
    ----------
    V : (N, N) array
        The value matrix.
    T : int
        The number of positions.

    Examples
    --------
    The start of the paper:

    >>> import scb
    >>> from scb.geometry import trivial_V
    >>> from scb.training.starts import UniformAttention
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> start = UniformAttention(trivial_V(task.mu), task.T)
    >>> start.A.shape, float(start.A[0, 0]), start.projection(task).alpha_V
    ((40, 3), 0.025, 0.0)
    """

    V: Array
    T: int

    @property
    def A(self) -> Array:
        """The uniform attention 11ᵀ/T as a read-only (T, N) view of one number."""
        return np.broadcast_to(1 / self.T, (self.T, len(self.V)))

    def projection(self, task: Task) -> Projection:
        """Return the signal and error of V; those of A are 0.

        Parameters
        ----------
        task : Task
            The true task.

        Returns
        -------
        Projection
        """
        alpha, _, delta = signal_V(task, self.V)
        return projection_by_norms(task, alpha, delta, K_A=0.0, K_AQ=0.0)
