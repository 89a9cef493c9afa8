"""The sparse contextual bigram: a transition matrix P, its stationary distribution μ, and a sparse
attention Q; with several heads, there is one P and one Q for each head.
"""

from os import PathLike
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scb.arrays import Array
from scb.inputs import file_path, number, one_of
from scb.model import LinearTransformer
from scb.task import chains
from scb.task.assumptions import Assumptions, check_assumptions
from scb.task.drawing import checked_sizes, random_parts
from scb.task.npz import reading_npz, write_npz
from scb.task.quantities import TaskQuantities
from scb.task.seeds import Seed, generator
from scb.task.sparse_columns import (
    attention_entries,
    distributions,
    pack,
    sparse_entries,
    transition_matrix,
)

_STORED = ("P", "positions", "weights", "T", "owners")
Ensemble = Literal["strong", "dirichlet", "uniform", "softmax"]
ENSEMBLES: tuple[Ensemble, ...] = get_args(Ensemble)
"""The distributions of a random P that ``Task.random`` knows."""


class Task(TaskQuantities):
    """A sparse contextual bigram: a transition matrix P and a sparse attention Q.

    A sample is a context x of T tokens, followed by a last token k; all T + 1 tokens are drawn
    independently from μ, the stationary distribution of P. The next token, which is to be
    predicted, then has the distribution Σ_t Q[t, k]·P[:, x_t]. An invalid P or Q raises an
    ``InputError`` that says what is wrong.

    With H heads, there are matrices P_h with a common stationary distribution, and attentions Q_h
    that together sum to 1 in every column. The last token chooses a head and a position, and the
    next token has the distribution Σ_h Σ_t Q_h[t, k]·P_h[:, x_t].

    Parameters
    ----------
    P : (N, N) array, or (H, N, N) with several heads
        The transition matrix; column m is the distribution of the next token if the position
        attended to holds token m. P must be irreducible, so that its stationary distribution μ is
        unique and positive.
    Q : (T, N) array or scipy sparse array, or (H, T, N) array with several heads
        The attention; column k is a distribution over the T positions, used when the last token is
        k. With several heads, column k is a distribution over all heads and positions.

    Attributes
    ----------
    P, mu : (N, N) and (N,) arrays
        The transition matrix, and its stationary distribution, which satisfies Pμ = μ. With several
        heads, P has shape (H, N, N).
    T : int
        The number of positions in the context.
    positions, weights : (Q, N) arrays
        The sparse form of the attention: column k holds the positions with non-zero attention after
        last token k, in ascending order, and their weights. Columns with fewer positions than the
        longest column are padded with weight 0 at position 0. With several heads, the positions of
        the first head come first.
    owners : (Q, N) array
        The head that each of these positions belongs to; 0 if there is one head.

    Examples
    --------
    In a task with two tokens, the first position decides after token 0, and the last two positions
    decide after token 1:

    >>> import scb
    >>> task = scb.Task([[0.9, 0.2], [0.1, 0.8]], [[1.0, 0.0], [0.0, 0.25], [0.0, 0.75]])
    >>> task.N, task.T, task.sparsity
    (2, 3, 2)
    >>> task.mu.round(3)
    array([0.667, 0.333])
    >>> task.support
    [array([0]), array([1, 2])]
    >>> [round(x, 4) for x in (task.K_P, task.K_Q, task.inner_Q(task.Q), task.weight_threshold)]
    [0.2178, 0.5417, 0.875, 0.0833]
    >>> task.model().predict(scb.sample(task, 1, seed=0))
    array([[0.9, 0.1]])
    >>> task.save("task.npz")
    >>> scb.Task.load("task.npz") == task
    True

    In a task with two heads, the heads share the two positions that every token attends to:

    >>> task = scb.Task.random(3, 40, sparsity=2, heads=2)
    >>> task.heads, task.P.shape, task.Q.shape, task.singular_values.round(2)
    (2, (2, 3, 3), (2, 40, 3), array([0.36, 0.33]))
    """

    def __init__(self, P: ArrayLike, Q: Any) -> None:
        matrix = transition_matrix(P)
        self._set(matrix, *attention_entries(Q, matrix))

    @classmethod
    def sparse(
        cls,
        P: ArrayLike,
        positions: ArrayLike,
        weights: ArrayLike,
        T: int,
        owners: ArrayLike | None = None,
    ) -> "Task":
        """Make a task from the positions and weights of a sparse attention matrix.

        Parameters
        ----------
        P : (N, N) array, or (H, N, N) with several heads
            The transition matrix; every column is a distribution.
        positions : (Q, N) integer array
            Column k holds the positions, in 0 … T − 1, attended to after last token k. Within a
            column, positions whose weights are not 0 must be distinct.
        weights : (Q, N) array
            The attention weights at these positions; every column sums to 1.
        T : int
            The number of positions in the context.
        owners : (Q, N) integer array, optional
            With several heads, the head of each position, in 0 … H − 1.

        Returns
        -------
        Task

        Examples
        --------
        >>> import scb
        >>> positions, weights = [[0, 5], [7, 6]], [[0.5, 1.0], [0.5, 0.0]]
        >>> scb.Task.sparse([[0.9, 0.2], [0.1, 0.8]], positions, weights, T=1_000_000)
        Task(N=2, T=1000000, sparsity=2, K_P=0.218, K_Q=0.667)
        """
        matrix = transition_matrix(P)
        task = cls.__new__(cls)
        task._set(matrix, *sparse_entries(positions, weights, owners, matrix, T), T)
        return task

    def _set(
        self, P: Array, rows: NDArray[Any], columns: NDArray[Any], values: Array, T: int
    ) -> None:
        rows, weights = pack(rows, columns, values, P.shape[-1])
        self.owners, self.positions = rows // T, rows % T
        self.weights = distributions("Q" if P.ndim == 2 else "Q, over all heads,", weights)
        self.P = P
        self.mu = chains.stationary(P) if P.ndim == 2 else chains.common_stationary(P)
        self.T = int(T)
        for array in (self.P, self.mu, self.positions, self.weights, self.owners):
            array.setflags(write=False)

    @classmethod
    def random(
        cls,
        N: int,
        T: int,
        sparsity: int,
        seed: Seed = 0,
        *,
        ensemble: Ensemble = "strong",
        K_P: float | None = None,
        heads: int = 1,
    ) -> "Task":
        """Draw a random P from one of four ensembles, and a random sparse Q.

        In every column of Q, exactly ``sparsity`` positions are non-zero. These positions are drawn
        uniformly without replacement, and each weight lies between 0.5/``sparsity`` and
        2/``sparsity``.

        Parameters
        ----------
        N, T, sparsity : int
            The numbers of tokens, of positions, and of positions that each token attends to.
        seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
            The source of randomness; ``None`` draws a fresh seed from the operating system.
        ensemble : {"strong", "dirichlet", "uniform", "softmax"}, default "strong"
            The distribution of P.

            - "strong" meets the paper's assumptions (a), (b) and (c): first μ is drawn with N·μ in
              [1/2, 2], then a P with this stationary distribution and K_P ≥ 1.4 ‖μ‖²;
            - "dirichlet" has independent columns, uniform on the simplex;
            - "uniform" has independent uniform entries, with each column divided by its sum;
            - "softmax" has columns that are the softmax of independent standard normal numbers.

            The last three ensembles have a smaller K_P, so for small N they hardly ever meet (c),
            and N·μ may leave [1/2, 2]; see ``Task.check``.
        K_P : float, optional
            The target value of K_P = ‖P − μ1ᵀ‖_μ², between 0 and 1 − ‖μ‖². To lower K_P, P is moved
            towards μ1ᵀ; to raise K_P, P is moved towards the identity. In both cases, μ stays the
            same. By default, P stays as drawn.
        heads : int, default 1
            The number of heads H. The P_h of further heads are drawn with the same μ, and the
            N·sparsity positions are dealt to the heads at random, as evenly as possible.

        Returns
        -------
        Task
            The random task. For N = 2, assumption (c) allows only one P, the swap of the two
            tokens, so "strong" always returns this P.

        Examples
        --------
        >>> import scb
        >>> scb.Task.random(N=3, T=40, sparsity=2, seed=0)
        Task(N=3, T=40, sparsity=2, K_P=0.483, K_Q=0.48)
        """
        one_of("ensemble", ensemble, ENSEMBLES)
        sizes = checked_sizes(N, T, sparsity, heads)
        return cls.sparse(*random_parts(sizes, generator(seed), ensemble, K_P))

    def related(self, overlap: float, seed: Seed = 0) -> "Task":
        """Draw a task with the same μ and Q, and a P̂ that mixes P with an independent matrix.

        In the paper's transfer learning, training starts from such a P̂.

        Parameters
        ----------
        overlap : float
            The correlation of the two matrices: the centred μ-cosine ⟨P̂ − μ1ᵀ, P − μ1ᵀ⟩_μ / √(K_P̂
            K_P), between 0 and 1. The overlap is met up to rounding. With N = 2, only an overlap of
            1 is possible.
        seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
            The source of randomness of the independent matrix.

        Returns
        -------
        Task

        Examples
        --------
        >>> import numpy as np, scb
        >>> task = scb.Task.random(3, 40, 2, seed=0)
        >>> other = task.related(overlap=0.3, seed=1)
        >>> U, W = other.P - task.mu[:, None], task.P - task.mu[:, None]
        >>> round(float(np.sum(U * W * task.mu)) / (other.K_P * task.K_P) ** 0.5, 12)
        0.3
        """
        overlap = number("overlap", overlap)
        rng = generator(seed)
        matrices = self.P.reshape(self.heads, self.N, self.N)
        P_hat = [chains.related_transition(P, self.mu, overlap, rng) for P in matrices]
        return Task.sparse(np.stack(P_hat), self.positions, self.weights, self.T, self.owners)

    def model(self) -> LinearTransformer:
        """Make the linear transformer with V = P and A = Q, whose predictions are exact.

        Returns
        -------
        LinearTransformer
        """
        return LinearTransformer(self.P, self.Q)

    def check(self, C: float = 2.0) -> Assumptions:
        """Check the paper's assumptions (a) to (d) on this task.

        Parameters
        ----------
        C : float, default 2
            The constant of assumption (b): the non-zero weights of Q times ``sparsity``, and N·μ,
            must lie in [1/C, C].

        Returns
        -------
        Assumptions
            For each assumption, its statement, the measured value and whether it holds.

        Examples
        --------
        >>> import scb
        >>> report = scb.Task.random(3, 40, 2, seed=0).check()
        >>> [name for name, assumption in report.items() if assumption.holds]
        ['a', 'b', 'c']
        """
        C = number("C", C, low=0)
        return check_assumptions(self.weights, self.T, self.mu, self.K_P, C, self.singular_values)

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Save the task as a NumPy .npz file without pickles, with a digest that detects damage.

        Parameters
        ----------
        path : str or path
            The file to write, usually ``task.npz``. An existing task is replaced atomically.
        overwrite : bool, default False
            Whether to replace even a file that is not a task.
        """
        names = _STORED if self.heads > 1 else _STORED[:-1]
        arrays = {name: np.asarray(getattr(self, name)) for name in names}
        write_npz(file_path("path", path), arrays, overwrite)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Task":
        """Read a task that ``save`` wrote; raise a ``DamagedFileError`` if it was changed.

        Parameters
        ----------
        path : str or path
            The file to read.

        Returns
        -------
        Task
        """
        with reading_npz(file_path("path", path)) as arrays:
            P, positions, weights, T = (arrays[name] for name in _STORED[:-1])
            return cls.sparse(P, positions, weights, T.item(), arrays.get("owners"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in _STORED
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        sizes = f"N={self.N}, T={self.T}, sparsity={self.sparsity}"
        if self.heads > 1:
            values = ", ".join(f"{value:.3g}" for value in self.singular_values)
            return f"Task({sizes}, heads={self.heads}, singular_values=[{values}])"
        return f"Task({sizes}, K_P={self.K_P:.3g}, K_Q={self.K_Q:.3g})"
