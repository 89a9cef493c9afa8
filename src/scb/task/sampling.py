"""Draw data from a task: independent samples as in the paper, or one long sequence."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.inputs import InputError, boolean, integer, unmasked
from scb.kernels.random import ALL_BITS, TokenLaw, continue_lags, draw_tokens, fill_words, token_law, token_scratch
from scb.task import Seed, Task, generator

Tokens = NDArray[np.unsignedinteger[Any]]

_CHUNK = 1 << 20  # uniforms drawn at a time; the result does not depend on it


@dataclass(frozen=True)
class Batch:
    """Samples of a task: contexts, last tokens, labels; a slice of a batch is a batch.

    Attributes
    ----------
    context : (n, T) integer array
        Tokens x_1 … x_T.
    last : (n,) integer array
        Tokens x_{T+1}, which choose the attention.
    label : (n,) integer array
        Tokens x_o, to be predicted.

    Examples
    --------
    >>> import numpy as np, scb
    >>> batch = scb.Batch(np.array([[0, 1, 1], [2, 0, 1]]), last=np.array([1, 0]), label=np.array([2, 2]))
    >>> len(batch), batch[:1].label
    (2, array([2]))
    >>> batch.tokens
    array([[0, 1, 1, 1],
           [2, 0, 1, 0]])
    """

    context: Tokens
    last: Tokens
    label: Tokens

    def __post_init__(self) -> None:
        for name in ("context", "last", "label"):
            if not isinstance(getattr(self, name), np.ndarray):
                raise InputError(f"{name} is of type {type(getattr(self, name)).__name__}: it must be an array of tokens")
            unmasked(name, getattr(self, name))
            if getattr(self, name).dtype.kind not in "iuf":  # whole numbers of any type will do
                raise InputError(f"{name} holds values of dtype {getattr(self, name).dtype}: it must hold tokens")
        n = self.context.shape[0] if self.context.ndim else 0
        if self.context.ndim != 2 or self.last.shape != (n,) or self.label.shape != (n,):
            shapes = self.context.shape, self.last.shape, self.label.shape
            raise InputError(f"context, last, label have shapes {shapes}: they must be (n, T), (n,), (n,)")

    @property
    def tokens(self) -> Tokens:
        """(n, T + 1): the context and the last token of each sample; a view where they lie side by side, as a stream has them."""
        base = self.context.base
        if base is not None and base is self.last.base and base.shape == (len(self), self.context.shape[1] + 1):
            return base
        return np.column_stack((self.context, self.last))

    def __len__(self) -> int:
        return len(self.context)

    def __getitem__(self, rows: slice | NDArray[Any]) -> "Batch":
        return Batch(self.context[rows], self.last[rows], self.label[rows])


def token_dtype(N: int) -> np.dtype[Any]:
    """The smallest unsigned integer type that holds tokens 0 … N − 1."""
    return np.dtype(np.min_scalar_type(N - 1))


def sample(task: Task, n: int, seed: Seed = 0, *, compiled: bool = False) -> Batch:
    """Draw n independent samples: T + 1 tokens iid from μ, a position s ~ q^(k), a label o ~ P[:, x_s].

    Parameters
    ----------
    task : Task
        Whose samples they are.
    n : int
        How many.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        Of all that is random.
    compiled : bool, default False
        Take the contexts from the engine's generator: the same law, other random numbers, ten times as fast.

    Returns
    -------
    Batch
        ``context`` (n, T), ``last`` (n,) and ``label`` (n,), of the smallest unsigned type that holds the tokens.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=8, sparsity=2, seed=0)
    >>> batch = scb.sample(task, 4, seed=0)
    >>> batch.context
    array([[2, 2, 1, 1, 1, 2, 2, 0],
           [2, 0, 1, 0, 2, 1, 0, 1],
           [0, 0, 1, 1, 1, 0, 2, 2],
           [1, 1, 1, 0, 0, 1, 1, 0]], dtype=uint8)
    >>> batch.last, batch.label
    (array([1, 0, 0, 0], dtype=uint8), array([0, 2, 0, 0], dtype=uint8))
    """
    n = integer("n", n, low=0)
    compiled = boolean("compiled", compiled)
    rng = generator(seed)
    last = _draw(task.mu, n, rng)
    if compiled:
        context = compiled_tokens(task, rng.integers(1 << 64, dtype=np.uint64), (n, task.T))
    else:
        context = _draw(task.mu, n * task.T, rng).reshape(n, task.T)
    label = Labels(task)(context, last, rng.random(n), rng.random(n))
    return Batch(context, last, label.astype(token_dtype(task.N)))


class Labels:
    """Draws the label of each sample, given its tokens: a position s ~ q^(k) for the last token k, then a label o ~ P[:, x_s]."""

    def __init__(self, task: Task) -> None:
        self._positions = task.positions
        self._q = closed_cumulative(task.weights)[:-1]  # (Q − 1, N): as many of these as a uniform number exceeds, so far is it
        self._P = closed_cumulative(task.P)[:-1]  # (N − 1, N)

    def __call__(self, context: Tokens, last: Tokens, u_source: Array, u_label: Array) -> NDArray[np.intp]:
        """(n,): labels of samples with these contexts (n, ≥ T) and last tokens (n,), by two uniform numbers (n,) for each."""
        slot = (u_source >= self._q[:, last]).sum(axis=0)
        source = context[np.arange(len(last)), self._positions[slot, last]]
        return (u_label >= self._P[:, source]).sum(axis=0)


def compiled_tokens(task: Task, key: np.uint64, shape: tuple[int, int]) -> Tokens:
    """Tokens iid from μ, of the stream ``key``, by compiled code."""
    tokens = np.empty(shape, token_dtype(task.N))
    draw_tokens(np.uint64(key), _token_law(task.mu.tobytes()), token_scratch(), tokens.reshape(-1))
    return tokens


@lru_cache(maxsize=8)
def _token_law(mu: bytes) -> TokenLaw:
    """The tables for drawing from μ, which take longer to make than a batch takes to draw."""
    return token_law(np.frombuffer(mu))


def step_keys(seed: int, steps: range) -> NDArray[np.uint64]:
    """The key of each step, a word of the stream that the seed chooses: what is random in step i depends on (seed, i) alone."""
    stream = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    keys = np.empty(len(steps), np.uint64)
    fill_words(stream, steps.start, ALL_BITS, keys)
    return keys


def generate(task: Task, length: int, seed: Seed = 0, *, n: int | None = None) -> Tokens:
    """Draw one long sequence, or many: the first T + 1 tokens iid from μ, each further one from the T + 1 before it.

    The token before the new one chooses the attention; the T tokens before that one are the context.

    Parameters
    ----------
    task : Task
        Which generates it.
    length : int
        How many tokens.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        Of all that is random.
    n : int, optional
        So many independent sequences instead of one; the first of them do not depend on how many there are.

    Returns
    -------
    (length,) or (n, length) integer array

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=8, sparsity=2, seed=0)
    >>> scb.generate(task, 20, seed=0)
    array([1, 0, 0, 0, 2, 2, 1, 1, 1, 1, 1, 2, 1, 0, 1, 0, 2, 1, 0, 0],
          dtype=uint8)
    >>> scb.generate(task, 10, seed=0, n=2)
    array([[2, 0, 1, 0, 1, 1, 0, 2, 0, 0],
           [1, 0, 1, 1, 2, 2, 1, 1, 1, 0]], dtype=uint8)
    """
    length = integer("length", length, low=0)
    rng = generator(seed)
    if n is None:
        return _sequence(task, length, rng)
    n = integer("n", n, low=0)
    found = np.empty((n, length), token_dtype(task.N))
    for i, stream in enumerate(rng.spawn(n)):
        found[i] = _sequence(task, length, stream)
    return found


def _sequence(task: Task, length: int, rng: np.random.Generator) -> Tokens:
    tokens = np.empty(length, dtype=token_dtype(task.N))
    start = min(length, task.T + 1)
    tokens[:start] = _draw(task.mu, start, rng)
    if length > start:
        q = closed_cumulative(task.weights)
        lags = task.T + 1 - task.positions
        continue_lags(tokens, start, q, lags, closed_cumulative(task.P), np.zeros_like(lags), rng.random((length - start, 2)))
    return tokens


def _draw(p: Array, n: int, rng: np.random.Generator) -> Tokens:
    """n independent tokens with law p."""
    edges = closed_cumulative(p)[:-1]
    tokens = np.empty(n, dtype=token_dtype(len(p)))
    for start in range(0, n, _CHUNK):
        stop = min(n, start + _CHUNK)
        tokens[start:stop] = np.searchsorted(edges, rng.random(stop - start), side="right")
    return tokens


def closed_cumulative(p: Array) -> Array:
    """Cumulative sums of distributions in columns, with rounding taken out: from the last positive mass on, exactly 1."""
    cumulative = np.asfortranarray(np.cumsum(p, axis=0))
    cumulative[cumulative >= cumulative[-1] * (1 - 1e-14)] = 1.0
    return cumulative
