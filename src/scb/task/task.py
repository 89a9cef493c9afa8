"""The sparse contextual bigram: a transition matrix P, its stationary law μ, and a sparse attention Q.

Given a context x (T tokens) and a last token k, both drawn iid from μ, the next token o has the law

    Pr(o = n | k, x) = Σ_t Q[t, k] · P[n, x_t].
"""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scb.geometry import Array, mu_inner
from scb.model import LinearTransformer
from scb.task import chains
from scb.task.assumptions import CONDITION, Assumptions, check_assumptions

Seed = int | np.random.Generator | np.random.SeedSequence | None

CONTRAST = 1.4  # Task.random keeps K_P at least this many times ‖μ‖²: assumption (c) asks for 1


class Task:
    """A sparse contextual bigram (P, Q), with Q kept sparse.

    Parameters
    ----------
    P : (N, N) array
        Transition matrix; column m is the law of the next token when the source token is m.
        It must be irreducible, so that its stationary law μ is unique and positive.
    Q : (T, N) array or scipy sparse array
        Column k is the attention over the T positions when the last token is k.

    Attributes
    ----------
    P, mu : the transition matrix and its stationary law, Pμ = μ
    positions, weights : (Q, N) arrays
        Column k holds the positions on which ``q^(k)`` is not zero, ascending, and its values there.
        Shorter columns are filled up with weight 0 at position 0.
    """

    P: Array
    mu: Array
    positions: NDArray[np.intp]
    weights: Array

    def __init__(self, P: ArrayLike, Q: Any) -> None:
        P = _distributions("P", P)
        if hasattr(Q, "tocoo"):  # any scipy sparse array
            shape, (rows, columns), values = Q.shape, *_coordinates(Q)
        else:
            Q = _matrix("Q", Q)
            shape, (rows, columns) = Q.shape, np.nonzero(Q)
            values = Q[rows, columns]
        if shape[1] != P.shape[0]:
            raise ValueError(
                f"Q has shape {shape}, but P has N = {P.shape[0]} tokens: Q must have {P.shape[0]} columns"
            )
        positions, weights = _pack(rows, columns, values, shape[1])
        self._set(P, positions, weights, T=shape[0])

    @classmethod
    def sparse(cls, P: ArrayLike, positions: ArrayLike, weights: ArrayLike, T: int) -> Task:
        """The task whose column k attends to ``positions[:, k]`` with ``weights[:, k]`` among T positions.

        Parameters
        ----------
        P : (N, N) array
        positions, weights : (Q, N) arrays
            Distinct positions in each column where the weight is not 0.
        T : number of positions
        """
        P = _distributions("P", P)
        positions, weights = np.asarray(positions), np.asarray(weights, dtype=float)
        if positions.shape != weights.shape or positions.ndim != 2 or positions.shape[1] != P.shape[0]:
            raise ValueError(
                f"positions has shape {positions.shape} and weights {weights.shape}: both must be (Q, N) with N = {P.shape[0]}"
            )
        if not np.issubdtype(positions.dtype, np.integer):
            raise ValueError(f"positions has dtype {positions.dtype}: it must hold integers")
        rows, columns = np.nonzero(weights)
        used = positions[rows, columns]
        if used.size and (used.min() < 0 or used.max() >= T):
            raise ValueError(
                f"positions holds {used[(used < 0) | (used >= T)][0]}: it must lie in [0, T - 1] = [0, {T - 1}]"
            )
        if len(set(zip(used.tolist(), columns.tolist(), strict=True))) < used.size:
            raise ValueError("positions repeats a position within a column: each may occur once")
        task = cls.__new__(cls)
        task._set(P, *_pack(used, columns, weights[rows, columns], P.shape[0]), T=T)
        return task

    def _set(self, P: Array, positions: NDArray[np.intp], weights: Array, T: int) -> None:
        _check_distributions("Q", weights)
        self.P, self.mu = P, chains.stationary(P)
        self.positions, self.weights = positions, _normalise(weights)
        self._T = int(T)
        for array in (self.P, self.mu, self.positions, self.weights):
            array.setflags(write=False)

    # ---------------------------------------------------------------------------------------------- construction

    @classmethod
    def random(cls, N: int, T: int, sparsity: int, seed: Seed = 0) -> Task:
        """A random task that meets the paper's assumptions (a), (b) and (c).

        - (a) every column of Q has exactly ``sparsity`` positions, drawn uniformly without repetition;
        - (b) with C = 2: N·μ and Q·q lie in [1/2, 2];
        - (c) K_P ≥ 1.4 ‖μ‖² for N ≥ 3.

        For N = 2, assumption (c) leaves no choice: K_P ≤ 1 − ‖μ‖² ≤ 1/2 ≤ ‖μ‖², with equality for the uniform μ and
        a permutation only, and the identity is reducible. So P is then the swap of the two tokens; only Q is random.
        """
        _check_sizes(N, T, sparsity)
        rng = np.random.default_rng(seed)
        mu = _near_uniform(rng, (N, 1))[:, 0]
        P = chains.random_transition(mu, CONTRAST, rng) if N > 2 else np.array([[0.0, 1.0], [1.0, 0.0]])
        positions = np.stack([rng.choice(T, size=sparsity, replace=False) for _ in range(N)], axis=1)
        return cls.sparse(P, positions, _near_uniform(rng, (sparsity, N)), T)

    def related(self, overlap: float, seed: Seed = 0) -> Task:
        """A task with the same μ and Q, and a transition matrix P̂ that is correlated with P.

        ``overlap`` is the μ-cosine of the two, centred: ⟨P̂ − μ1ᵀ, P − μ1ᵀ⟩_μ / √(K_P̂ K_P). It is met to rounding,
        by mixing P with an independent random transition matrix of the same μ.
        """
        if not 0 <= overlap <= 1:
            raise ValueError(f"overlap = {overlap}: it must lie in [0, 1]")
        if self.N == 2 and overlap < 1:
            raise ValueError(
                f"overlap = {overlap} with N = 2: two tokens leave one direction for P − μ1ᵀ, so only overlap = 1 is possible"
            )
        P_hat = chains.related_transition(self.P, self.mu, overlap, np.random.default_rng(seed))
        return Task.sparse(P_hat, self.positions, self.weights, self.T)

    # ---------------------------------------------------------------------------------------------- attributes

    @property
    def N(self) -> int:
        """Number of tokens."""
        return self.P.shape[0]

    @property
    def T(self) -> int:
        """Number of positions."""
        return self._T

    @property
    def sparsity(self) -> int:
        """The paper's Q: the largest number of positions that one column uses."""
        return self.weights.shape[0]

    @cached_property
    def K_P(self) -> float:
        """K_P = ‖P‖_μ² − ‖μ‖² = ‖P − μ1ᵀ‖_μ²."""
        centred = self.P - self.mu[:, None]
        return mu_inner(centred, centred, self.mu)

    @cached_property
    def K_Q(self) -> float:
        """K_Q = ‖Q‖_μ² − 1/T."""
        return mu_inner(self.weights, self.weights, self.mu) - 1 / self.T

    @property
    def support(self) -> list[NDArray[np.intp]]:
        """The positions that each token attends to, ascending."""
        return [self.positions[self.weights[:, k] > 0, k] for k in range(self.N)]

    @property
    def Q(self) -> Array:
        """The attention as a dense, column-contiguous (T, N) array: 8·T·N bytes, made anew on each call."""
        Q = np.zeros((self.T, self.N), order="F")
        np.add.at(Q, (self.positions, np.arange(self.N)), self.weights)
        return Q

    def inner_Q(self, A: Array) -> float:
        """⟨A, Q⟩_μ for a (T, N) array A, in O(N·sparsity)."""
        return mu_inner(A[self.positions, np.arange(self.N)], self.weights, self.mu)

    def model(self) -> LinearTransformer:
        """The transformer with V = P and A = Q: its prediction is the true law of the next token."""
        return LinearTransformer(self.P, self.Q)

    def check(self, C: float = CONDITION) -> Assumptions:
        """The paper's assumptions (a)-(d), each with the value measured on this task."""
        return check_assumptions(self, C)

    # ---------------------------------------------------------------------------------------------- on disk

    def save(self, path: str | PathLike[str]) -> None:
        """Write the task to ``path`` as a NumPy .npz file without pickles."""
        with open(path, "wb") as file:
            np.savez(file, P=self.P, positions=self.positions, weights=self.weights, T=np.array(self.T))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Task:
        """Read a task that ``save`` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                return cls.sparse(file["P"], file["positions"], file["weights"], int(file["T"]))
        except KeyError as error:
            raise ValueError(f"{path} is not a task: it lacks {error}") from None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Task)
            and self.T == other.T
            and all(
                np.array_equal(a, b)
                for a, b in ((self.P, other.P), (self.positions, other.positions), (self.weights, other.weights))
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Task(N={self.N}, T={self.T}, sparsity={self.sparsity}, K_P={self.K_P:.3g}, K_Q={self.K_Q:.3g})"


# -------------------------------------------------------------------------------------------------- input checks


def _matrix(name: str, value: ArrayLike) -> Array:
    array = np.array(value, dtype=float)
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}: it must be a matrix")
    return array


def _distributions(name: str, value: ArrayLike) -> Array:
    """A square matrix of at least two columns, each a distribution; columns are normalised to the last bit."""
    array = _matrix(name, value)
    if array.shape[0] != array.shape[1]:
        raise ValueError(f"{name} has shape {array.shape}: it must be square, (N, N)")
    if array.shape[0] < 2:
        raise ValueError(f"{name} has N = {array.shape[0]} tokens: there must be at least 2")
    _check_distributions(name, array)
    return np.asfortranarray(_normalise(array))


def _normalise(array: Array) -> Array:
    """Divide columns by their sums where these are off by more than rounding, so that a saved task loads unchanged."""
    sums = array.sum(axis=0)
    return array / np.where(np.abs(sums - 1) > 1e-14, sums, 1.0)


def _check_distributions(name: str, array: Array) -> None:
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds {array[~np.isfinite(array)][0]}: every entry must be finite")
    if (array < 0).any():
        raise ValueError(f"{name} holds the negative entry {array.min():g}: probabilities must be at least 0")
    sums = array.sum(axis=0)
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > 1e-9:
        raise ValueError(f"column {worst} of {name} sums to {sums[worst]:.12g}: every column must sum to 1")


def _check_sizes(N: int, T: int, sparsity: int) -> None:
    if N < 2:
        raise ValueError(f"N = {N}: there must be at least 2 tokens")
    if T < 1:
        raise ValueError(f"T = {T}: there must be at least 1 position")
    if not 1 <= sparsity <= T:
        raise ValueError(f"sparsity = {sparsity}: it must lie between 1 and T = {T}")


def _coordinates(Q: Any) -> tuple[tuple[NDArray[np.intp], NDArray[np.intp]], Array]:
    Q = Q.tocoo(copy=True)
    Q.sum_duplicates()
    return (Q.row, Q.col), np.asarray(Q.data, dtype=float)


def _pack(rows: NDArray[Any], columns: NDArray[Any], values: Array, N: int) -> tuple[NDArray[np.intp], Array]:
    """Coordinates to padded (Q, N) arrays of ascending positions and their weights."""
    kept = values != 0
    rows, columns, values = rows[kept], columns[kept], values[kept]
    order = np.lexsort((rows, columns))
    rows, columns, values = rows[order], columns[order], values[order]
    counts = np.bincount(columns, minlength=N)
    slot = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
    positions = np.zeros((int(counts.max(initial=1)), N), dtype=np.intp, order="F")
    weights = np.zeros(positions.shape, order="F")
    positions[slot, columns], weights[slot, columns] = rows, values
    return positions, weights


def _near_uniform(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Columns that sum to 1, with entries proportional to uniforms on [2/3, 4/3]: within a factor 2 of equal ones."""
    w = rng.uniform(2 / 3, 4 / 3, shape)
    return w / w.sum(axis=0)
