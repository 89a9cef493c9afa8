"""Draw data from a task: independent samples as in the paper, or one long sequence."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.geometry.heads import side_by_side
from scb.inputs import InputError, boolean, integer, unmasked
from scb.kernels.random import (
    ALL_BITS,
    TokenSampler,
    continue_lags,
    draw_tokens,
    fill_words,
    token_sampler,
    token_scratch,
)
from scb.task import Seed, Task, generator

Tokens = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True)
class Batch:
    """A batch of n samples from a task: their contexts, last tokens and labels.

    Indexing with a slice or an array selects samples and returns another batch.

    Attributes
    ----------
    context : (n, T) integer array
        The T tokens x_1 … x_T of each context.
    last : (n,) integer array
        The last tokens x_{T+1}, which select the column of the attention.
    label : (n,) integer array
        The tokens x_o that are to be predicted.

    Examples
    --------
    >>> import numpy as np, scb
    >>> context = np.array([[0, 1, 1], [2, 0, 1]])
    >>> batch = scb.Batch(context, last=np.array([1, 0]), label=np.array([2, 2]))
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
        for name, array in vars(self).items():
            if not isinstance(array, np.ndarray):
                raise InputError(
                    f"{name} is of type {type(array).__name__}: it must be an array of tokens"
                )
            unmasked(name, array)
            if array.dtype.kind not in "iuf":  # whole numbers of any type will do
                raise InputError(f"{name} holds values of dtype {array.dtype}: it must hold tokens")
        n = self.context.shape[0] if self.context.ndim else 0
        if self.context.ndim != 2 or self.last.shape != (n,) or self.label.shape != (n,):
            shapes = self.context.shape, self.last.shape, self.label.shape
            raise InputError(
                f"context, last, label have shapes {shapes}: they must be (n, T), (n,), (n,)"
            )

    @property
    def tokens(self) -> Tokens:
        """The context and the last token of each sample, as an (n, T + 1) array.

        The array is a view if both are slices of one array, as in the batches of ``scb.stream``,
        and a copy otherwise.
        """
        base = self.context.base
        if (
            base is not None
            and base is self.last.base
            and base.shape == (len(self), self.context.shape[1] + 1)
        ):
            return base
        return np.column_stack((self.context, self.last))

    def __len__(self) -> int:
        return len(self.context)

    def __getitem__(self, rows: slice | NDArray[Any]) -> "Batch":
        return Batch(self.context[rows], self.last[rows], self.label[rows])


def token_dtype(N: int) -> np.dtype[Any]:
    """Return the smallest unsigned integer type that holds tokens 0 … N − 1."""
    return np.dtype(np.min_scalar_type(N - 1))


def sample(task: Task, n: int, seed: Seed = 0, *, compiled: bool = False) -> Batch:
    """Draw n independent samples from a task.

    For each sample, a context of T tokens and a last token k are drawn independently from μ. Then a
    position s is drawn from Q[:, k], and finally the label is drawn from P[:, x_s]. With several
    heads, a head h and a position s are drawn together from Q[:, :, k], and the label is drawn from
    P_h[:, x_s].

    Parameters
    ----------
    task : Task
        The task to sample from.
    n : int
        The number of samples.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        The source of randomness; ``None`` draws a fresh seed from the operating system.
    compiled : bool, default False
        Whether to draw the contexts with the compiled generator of the training engine, which is
        much faster. The distribution is the same, but the same seed gives different samples.

    Returns
    -------
    Batch
        The samples: ``context`` (n, T), ``last`` (n,) and ``label`` (n,). The dtype is the smallest
        unsigned integer type that holds the tokens.

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
    last = independent_tokens(task.mu, n, rng)
    if compiled:
        context = compiled_tokens(task, rng.integers(1 << 64, dtype=np.uint64), (n, task.T))
    else:
        context = independent_tokens(task.mu, n * task.T, rng).reshape(n, task.T)
    label = Labels(task)(context, last, rng.random(n), rng.random(n))
    return Batch(context, last, label.astype(token_dtype(task.N)))


class Labels:
    """A function that draws the label of each sample, given its tokens: first a position s ~ q^(k)
    for the last token k, then a label o ~ P[:, x_s], where P is that of the position's head.
    """

    def __init__(self, task: Task) -> None:
        self._positions = task.positions
        self._first = task.owners * task.N
        # (Q − 1, N): as many of these as a uniform number exceeds, so far is it
        self._q = closed_cumulative(task.weights)[:-1]
        self._P = closed_cumulative(side_by_side(task.P))[:-1]  # (N − 1, H·N)

    def __call__(
        self, context: Tokens, last: Tokens, u_source: Array, u_label: Array
    ) -> NDArray[np.intp]:
        """Return the labels (n,) of samples with these contexts (n, ≥ T) and last tokens (n,),
        given two uniform numbers for each sample.
        """
        slot = (u_source >= self._q[:, last]).sum(axis=0)
        source = context[np.arange(len(last)), self._positions[slot, last]]
        return (u_label >= self._P[:, self._first[slot, last] + source]).sum(axis=0)


def compiled_tokens(task: Task, key: np.uint64, shape: tuple[int, int]) -> Tokens:
    """Draw independent tokens from μ, using the stream ``key``, by compiled code."""
    tokens = np.empty(shape, token_dtype(task.N))
    draw_tokens(
        np.uint64(key), _token_sampler(task.mu.tobytes()), token_scratch(), tokens.reshape(-1)
    )
    return tokens


@lru_cache(maxsize=8)
def _token_sampler(mu: bytes) -> TokenSampler:
    """The tables for drawing from μ, which take longer to make than a batch takes to draw."""
    return token_sampler(np.frombuffer(mu))


def step_keys(seed: int, steps: range) -> NDArray[np.uint64]:
    """Return the random key of each step, taken from the stream that the seed selects.

    The key of a step depends only on the seed and the number of the step.

    Parameters
    ----------
    seed : int
        The seed.
    steps : range
        The numbers of the steps.

    Returns
    -------
    (steps,) array of uint64

    Examples
    --------
    >>> from scb.task.sampling import step_keys
    >>> bool(step_keys(1, range(5))[3] == step_keys(1, range(3, 4))[0])
    True
    """
    keys = np.empty(len(steps), np.uint64)
    fill_words(_stream_of(seed), steps.start, ALL_BITS, keys)
    return keys


@lru_cache
def _stream_of(seed: int) -> np.uint64:
    """The key of the stream that a seed selects."""
    return np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]


def generate(task: Task, length: int, seed: Seed = 0, *, n: int | None = None) -> Tokens:
    """Generate one long sequence of tokens, or several independent sequences.

    The first T + 1 tokens are drawn independently from μ. Each further token is the label of the T
    + 1 tokens before it: the token just before it selects the column of the attention, and the T
    tokens before that token are the context.

    Parameters
    ----------
    task : Task
        The task that generates the tokens.
    length : int
        The number of tokens of a sequence.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        The source of randomness; ``None`` draws a fresh seed from the operating system.
    n : int, optional
        The number of independent sequences. Sequence i does not depend on n. By default, one
        sequence is returned as a one-dimensional array.

    Returns
    -------
    (length,) or (n, length) integer array
        The tokens, in the smallest unsigned integer type that holds them.

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
    sequences = np.empty((n, length), token_dtype(task.N))
    for i, stream in enumerate(rng.spawn(n)):
        sequences[i] = _sequence(task, length, stream)
    return sequences


def _sequence(task: Task, length: int, rng: np.random.Generator) -> Tokens:
    tokens = np.empty(length, dtype=token_dtype(task.N))
    start = min(length, task.T + 1)
    tokens[:start] = independent_tokens(task.mu, start, rng)
    if length > start:
        q, P = closed_cumulative(task.weights), closed_cumulative(side_by_side(task.P))
        lags = task.T + 1 - task.positions
        u = rng.random((length - start, 2))
        continue_lags(tokens, start, q, lags, P, task.owners * task.N, u)
    return tokens


def independent_tokens(p: Array, n: int, rng: np.random.Generator, chunk: int = 1 << 20) -> Tokens:
    """Draw n independent tokens with distribution p; ``chunk`` uniforms are held at a time."""
    edges = closed_cumulative(p)[:-1]
    tokens = np.empty(n, dtype=token_dtype(len(p)))
    for start in range(0, n, chunk):
        stop = min(n, start + chunk)
        tokens[start:stop] = np.searchsorted(edges, rng.random(stop - start), side="right")
    return tokens


def closed_cumulative(p: Array) -> Array:
    """Return the cumulative sums of distributions in columns, without rounding errors at the end:
    the sums are exactly 1 from the last positive mass on.
    """
    cumulative = np.asfortranarray(np.cumsum(p, axis=0))
    cumulative[cumulative >= cumulative[-1] * (1 - 1e-14)] = 1.0
    return cumulative
