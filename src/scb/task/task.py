"""The sparse contextual bigram: a transition matrix P, its stationary law μ, and a sparse attention Q.

Given a context x (T tokens) and a last token k, both drawn iid from μ, the next token o has the law

    Pr(o = n | k, x) = Σ_t Q[t, k] · P[n, x_t].
"""

import io
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scb.files import SLOT, read_sealed, seal, warn_unless, write_atomically
from scb.geometry import Array, centred_square, mu_inner
from scb.inputs import DamagedFileError, InputError, file_path, integer, number, one_of
from scb.model import LinearTransformer
from scb.task import chains
from scb.task.columns import attention_entries, distributions, pack, sparse_entries, transition_matrix

Seed = int | np.random.Generator | np.random.SeedSequence | None
Ensemble = Literal["strong", "dirichlet", "uniform", "softmax"]
ENSEMBLES: tuple[Ensemble, ...] = get_args(Ensemble)
"""The laws of a random P that ``Task.random`` knows."""

CONTRAST = 1.4  # Task.random keeps K_P at least this many times ‖μ‖²: assumption (c) asks for 1
CONDITION = 2.0  # Task.random keeps every Q·q and every N·μ inside [1/2, 2]: the C of assumption (b)


def generator(seed: Seed) -> np.random.Generator:
    """NumPy's generator of a seed; an InputError for what is none."""
    if isinstance(seed, np.random.Generator | np.random.SeedSequence | None):
        return np.random.default_rng(seed)
    return np.random.default_rng(integer("seed", seed, low=0))


@dataclass(frozen=True)
class Assumption:
    """One assumption of the paper, with the value that a task has and whether it holds."""

    name: str
    statement: str
    measured: float
    holds: bool

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "does not hold"
        return f"({self.name}) {self.statement:<48} measured {self.measured:<10.4g} {verdict}"


class Assumptions(dict[str, Assumption]):
    """The report of ``Task.check``, by letter: ``task.check()["c"].measured``."""

    def __str__(self) -> str:
        return "\n".join(str(assumption) for assumption in self.values())


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
    T : the number of positions
    positions, weights : (Q, N) arrays
        Column k holds the positions on which ``q^(k)`` is not zero, ascending, and its values there.
        Shorter columns are filled up with weight 0 at position 0.
    """

    P: Array
    mu: Array
    T: int
    positions: NDArray[np.intp]
    weights: Array

    def __init__(self, P: ArrayLike, Q: Any) -> None:
        matrix = transition_matrix(P)
        self._set(matrix, *attention_entries(Q, len(matrix)))

    @classmethod
    def sparse(cls, P: ArrayLike, positions: ArrayLike, weights: ArrayLike, T: int) -> "Task":
        """The task whose column k attends to ``positions[:, k]`` with ``weights[:, k]``, both (Q, N), among T positions.

        Where weights are not 0, the positions in a column are distinct.
        """
        matrix = transition_matrix(P)
        task = cls.__new__(cls)
        task._set(matrix, *sparse_entries(positions, weights, len(matrix), T), T)
        return task

    def _set(self, P: Array, rows: NDArray[Any], columns: NDArray[Any], values: Array, T: int) -> None:
        self.positions, weights = pack(rows, columns, values, len(P))
        self.weights = distributions("Q", weights)
        self.P = P
        self.mu = chains.stationary(P)
        self.T = int(T)
        for array in (self.P, self.mu, self.positions, self.weights):
            array.setflags(write=False)

    @classmethod
    def random(
        cls, N: int, T: int, sparsity: int, seed: Seed = 0, *, ensemble: Ensemble = "strong", K_P: float | None = None
    ) -> "Task":
        """A random task: P by an ensemble, μ its stationary law, and a random sparse Q.

        Every column of Q has exactly ``sparsity`` positions, drawn uniformly without repetition, and Q·q lies in [1/2, 2].

        Parameters
        ----------
        N, T, sparsity : numbers of tokens, of positions, and of positions that each token attends to
        seed : of all that is random
        ensemble : the law of P.

            - "strong" meets the paper's assumptions (a), (b) and (c): N·μ in [1/2, 2] is drawn first, then a P with this
              stationary law and K_P ≥ 1.4 ‖μ‖²;
            - "dirichlet": independent columns, uniform on the simplex;
            - "uniform": independent uniform entries, columns divided by their sums;
            - "softmax": columns are the softmax of standard normal numbers.

            The last three are what one may call a random transition matrix. Their K_P is smaller, so that for small N they
            hardly ever meet (c), and N·μ may leave [1/2, 2]: ``check`` tells
        K_P : move P to this K_P = ‖P − μ1ᵀ‖_μ², and keep μ: straight towards μ1ᵀ where that is less than P has, and towards the
            identity where it is more. It must lie between 0 and 1 − ‖μ‖²

        Returns
        -------
        Task
            For N = 2, assumption (c) leaves no choice: K_P ≤ 1 − ‖μ‖² ≤ 1/2 ≤ ‖μ‖², with equality for the uniform μ and a
            permutation only, and the identity is reducible. So a "strong" P is then the swap of the two tokens.
        """
        N = integer("N", N)
        T = integer("T", T)
        sparsity = integer("sparsity", sparsity)
        if not 2 <= N <= 1 << 16:
            raise InputError(f"N = {N}: there must be at least 2 tokens, and at most 65,536")
        if T < 1:
            raise InputError(f"T = {T}: there must be at least 1 position")
        if not 1 <= sparsity <= T:
            raise InputError(f"sparsity = {sparsity}: it must lie between 1 and T = {T}")
        one_of("ensemble", ensemble, ENSEMBLES)
        rng = generator(seed)
        P = _strong_transition(N, rng) if ensemble == "strong" else _ORDINARY[ensemble](N, rng)
        if K_P is not None:
            P = chains.with_contrast(P, chains.stationary(P), number("K_P", K_P))
        positions = np.stack([rng.choice(T, size=sparsity, replace=False) for _ in range(N)], axis=1)
        return cls.sparse(P, positions, _near_uniform(rng, (sparsity, N)), T)

    def related(self, overlap: float, seed: Seed = 0) -> "Task":
        """A task with the same μ and Q, and a transition matrix P̂ that is correlated with P.

        ``overlap`` is the μ-cosine of the two, centred: ⟨P̂ − μ1ᵀ, P − μ1ᵀ⟩_μ / √(K_P̂ K_P). It is met to rounding,
        by mixing P with an independent random transition matrix of the same μ.
        """
        overlap = number("overlap", overlap)
        if not 0 <= overlap <= 1:
            raise InputError(f"overlap = {overlap}: it must lie in [0, 1]")
        if self.N == 2 and overlap < 1:
            raise InputError(
                f"overlap = {overlap} with N = 2: two tokens leave one direction for P − μ1ᵀ, so only overlap = 1 is possible"
            )
        P_hat = chains.related_transition(self.P, self.mu, overlap, generator(seed))
        return Task.sparse(P_hat, self.positions, self.weights, self.T)

    @property
    def N(self) -> int:
        """Number of tokens."""
        return self.P.shape[0]

    @property
    def sparsity(self) -> int:
        """The paper's Q: the largest number of positions that one column uses."""
        return self.weights.shape[0]

    @property
    def weight_threshold(self) -> float:
        """1/(6Q), a third of the smallest weight of ``Task.random``: the Ω(1/Q) at which Algorithm 1 thresholds and normalises."""
        return 1 / (6 * self.sparsity)

    @cached_property
    def K_P(self) -> float:
        """K_P = ‖P‖_μ² − ‖μ‖² = ‖P − μ1ᵀ‖_μ²."""
        return centred_square(self.P, self.mu)

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
        """The paper's assumptions (a)-(d), each with the value measured on this task; ``C`` is the constant of (b)."""
        C = number("C", C, low=0)
        Q, N, T, mu = self.sparsity, self.N, self.T, self.mu
        q = self.weights[self.weights > 0]
        length = T / float(N * Q) ** 10
        condition = max(Q * q.max(), 1 / (Q * q.min()), N * mu.max(), 1 / (N * mu.min()))
        contrast = self.K_P / float(mu @ mu)
        report = (
            Assumption("a", "Q-sparse: Q / T ≤ 1/2", measured=Q / T, holds=Q / T <= 0.5),
            Assumption("b", f"well-conditioned: C ≤ {C:g}", measured=condition, holds=condition <= C * (1 + 1e-9)),
            Assumption("c", "nontrivial: K_P / ‖μ‖² ≥ 1", measured=contrast, holds=contrast >= 1 - 1e-9),
            Assumption("d", f"long: T / (N·Q)^10 ≥ 1, that is T ≥ {T / length:.3g}", measured=length, holds=length >= 1),
        )
        return Assumptions({assumption.name: assumption for assumption in report})

    def save(self, path: str | PathLike[str]) -> None:
        """Write the task to ``path`` as a NumPy .npz file without pickles, with a digest; a kill leaves the old file or the new."""
        buffer = io.BytesIO()
        np.savez(buffer, P=self.P, positions=self.positions, weights=self.weights, T=np.array(self.T))
        with ZipFile(buffer, "a") as archive:
            archive.comment = SLOT.encode()
        write_atomically(file_path("path", path), seal(buffer.getvalue()))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Task":
        """Read a task that ``save`` wrote; a DamagedFileError if it is not as it was written."""
        content, sealed = read_sealed(file_path("path", path))
        try:
            arrays = _stored_arrays(content)
            task = cls.sparse(arrays["P"], arrays["positions"], arrays["weights"], arrays["T"].item())
        except KeyError as error:
            raise DamagedFileError(f"{path} is not a task: it lacks {error}") from None
        except (BadZipFile, ValueError, TypeError, EOFError, OverflowError, MemoryError, NotImplementedError) as error:
            raise DamagedFileError(f"{path} is damaged, or not a task ({error})") from None
        warn_unless(sealed, Path(path))
        return task

    def __eq__(self, other: object) -> bool:
        names = ("T", "P", "positions", "weights")
        return isinstance(other, Task) and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Task(N={self.N}, T={self.T}, sparsity={self.sparsity}, K_P={self.K_P:.3g}, K_Q={self.K_Q:.3g})"


def _stored_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file as ``np.savez`` writes it. A compressed one is refused: few bytes of it can become any number."""
    arrays = {}
    with ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            if member.compress_type != ZIP_STORED or member.file_size > len(content):
                raise InputError(f"{member.filename} is compressed, which Task.save does not do")
            data = archive.read(member)
            arrays[member.filename.removesuffix(".npy")] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return arrays


_ORDINARY = {
    "dirichlet": chains.dirichlet_transition,
    "uniform": chains.uniform_transition,
    "softmax": chains.softmax_transition,
}


def _strong_transition(N: int, rng: np.random.Generator) -> Array:
    """P of the ensemble "strong", with a stationary law μ that is drawn before it."""
    mu = _near_uniform(rng, (N, 1))[:, 0]
    if N == 2:
        return np.array([[0.0, 1.0], [1.0, 0.0]])
    return chains.random_transition(mu, CONTRAST, rng)


def _near_uniform(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Columns that sum to 1, with entries proportional to uniforms on [2/3, 4/3]: within a factor 2 of equal ones."""
    w = rng.uniform(2 / 3, 4 / 3, shape)
    return w / w.sum(axis=0)
