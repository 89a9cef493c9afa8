"""Quantities that follow from P, μ and the sparse attention of a task: sizes, K_P, K_Q, singular
values, and the attention as a dense array.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.geometry import centred_square, mu_inner
from scb.geometry.heads import product_singular_values, right_factor


class TaskQuantities:
    """The arrays of a task, and the quantities that follow from them; see ``Task``."""

    P: Array
    mu: Array
    T: int
    positions: NDArray[np.intp]
    weights: Array
    owners: NDArray[np.intp]

    @property
    def N(self) -> int:
        """The number of tokens in the vocabulary."""
        return self.P.shape[-1]

    @property
    def heads(self) -> int:
        """The number of heads, H."""
        return 1 if self.P.ndim == 2 else len(self.P)

    @property
    def sparsity(self) -> int:
        """The largest number of positions that a token attends to in all heads (the paper's Q)."""
        return self.weights.shape[0]

    @property
    def weight_threshold(self) -> float:
        """The threshold 1/(6·sparsity) below which weights are set to 0 before Stage 3."""
        return 1 / (6 * self.sparsity)

    @cached_property
    def K_P(self) -> float:
        """The dependence of the next token on its source: K_P = ‖P‖_μ² − ‖μ‖² = ‖P − μ1ᵀ‖_μ².

        With several heads, K_P is summed over the heads.
        """
        return centred_square(self.P, self.mu)

    @cached_property
    def K_Q(self) -> float:
        """The squared distance of the attention from uniform: K_Q = ‖Q‖_μ² − 1/T = ‖Q − 11ᵀ/T‖_μ².

        With H heads, T is replaced by H·T, the number of entries in a column.
        """
        return mu_inner(self.weights, self.weights, self.mu) - 1 / (self.heads * self.T)

    @cached_property
    def singular_values(self) -> Array:
        """The singular values (H,), descending, of M = Σ_h vec(Q_h)·vec(P_h − μ1ᵀ)ᵀ in ⟨·, ·⟩_μ.

        With one head, there is one singular value, ‖Q‖_μ √K_P. With several heads, the singular
        values take the place of K_P and K_Q: training learns them one after another, in times
        proportional to 1/σ_i.
        """
        rows = self.positions + self.T * np.arange(self.N)
        places, at = np.unique(rows, return_inverse=True)
        left = np.zeros((places.size, self.heads))
        scaled = self.weights * np.sqrt(self.mu)
        np.add.at(left, (at.reshape(rows.shape), self.owners), scaled)
        return product_singular_values(left, right_factor(self.P, self.mu))

    @property
    def support(self) -> list[NDArray[np.intp]]:
        """The positions that each token attends to, as N ascending arrays (size,)."""
        return [np.unique(self.positions[self.weights[:, k] > 0, k]) for k in range(self.N)]

    @property
    def Q(self) -> Array:
        """The attention as a dense, column-contiguous (T, N) array, built at each access.

        With several heads, its shape is (H, T, N).
        """
        Q = np.zeros((self.heads * self.T, self.N), order="F")
        np.add.at(Q, (self.owners * self.T + self.positions, np.arange(self.N)), self.weights)
        return Q if self.heads == 1 else Q.reshape(self.heads, self.T, self.N)

    def on_support(self, A: Array) -> Array:
        """Return the entries of an array A at the positions of Q, in an array of shape (Q, N).

        Parameters
        ----------
        A : (T, N) array, or (H, T, N) with several heads
            Any array with the shape of Q.

        Returns
        -------
        (Q, N) array

        Examples
        --------
        >>> import scb
        >>> task = scb.Task.random(3, 40, 2, seed=0, heads=2)
        >>> bool((task.on_support(task.Q) == task.weights).all())
        True
        """
        columns = np.arange(self.N)
        if A.ndim == 2:
            return A[self.positions, columns]
        return A[self.owners, self.positions, columns]

    def inner_Q(self, A: Array) -> float:
        """Compute ⟨A, Q⟩_μ = Σ_k μ_k Σ_t A[t, k]·Q[t, k] in O(N·sparsity) operations.

        Parameters
        ----------
        A : (T, N) array, or (H, T, N) with several heads
            Any array with the shape of Q.

        Returns
        -------
        float
        """
        return mu_inner(self.on_support(A), self.weights, self.mu)
