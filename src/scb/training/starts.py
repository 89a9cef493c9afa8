"""Initial points of a run."""

import math
from dataclasses import dataclass

import numpy as np

from scb.arrays import Array
from scb.geometry import Projection, keep_mu, mu_norm, population_projection, trivial_V
from scb.geometry.lines import projection_by_norms, signal_V
from scb.task import Seed, Task, generator


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
    """An initial point with any V (N, N) and uniform attention A = 11ᵀ/T, which needs no memory.

    Attributes
    ----------
    V : (N, N) array, or (H, N, N) with several heads
        The value matrix.
    T : int
        The number of positions.

    Examples
    --------
    This is the start of the paper:

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
        """The uniform attention 11ᵀ/T as a read-only (T, N) view of one number.

        With H heads, the attention is 1/(H·T) everywhere and has shape (H, T, N).
        """
        *heads, N, _ = self.V.shape
        places = math.prod(heads) * self.T
        return np.broadcast_to(1 / places, (*heads, self.T, N))

    def projection(self, task: Task) -> Projection:
        """Return the signal and error of V; the signal and error of A are 0.

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


def random_start(
    mu: Array, T: int, heads: int, seed: Seed = 0, size: float = 0.01
) -> UniformAttention:
    """Make an initial point with uniform attention and a different small random V in each head.

    Parameters
    ----------
    mu : (N,) array
        The stationary distribution.
    T : int
        The number of positions.
    heads : int
        The number of heads H.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        The source of randomness.
    size : float, default 0.01
        The norm ‖V_h − μ1ᵀ‖_μ of each head; 0 gives equal heads.

    Returns
    -------
    UniformAttention
        The start, with V_h μ = μ and 1ᵀV_h = 1ᵀ.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.training.starts import random_start
    >>> start = random_start(np.array([0.5, 0.3, 0.2]), T=40, heads=2)
    >>> start.V.shape, start.A.shape, float(start.A[0, 0, 0])
    ((2, 3, 3), (2, 40, 3), 0.0125)
    """
    G = generator(seed).normal(size=(heads, len(mu), len(mu)))
    G = keep_mu(G - G.mean(axis=1, keepdims=True), mu, "mu")
    norms = np.array([mu_norm(one, mu) for one in G])
    return UniformAttention(trivial_V(mu) + size * G / norms[:, None, None], T)
