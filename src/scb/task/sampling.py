"""Draw data from a task: independent samples as in the paper, or one long sequence."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.inputs import InputError, integer, unmasked
from scb.kernels.random import continue_lags, draw_tokens, token_law, token_scratch
from scb.task import Seed, Task, generator

Tokens = NDArray[np.unsignedinteger[Any]]

_CHUNK = 1 << 20  # uniforms drawn at a time; the result does not depend on it


@dataclass(frozen=True)
class Batch:
    """n independent samples.

    Attributes
    ----------
    context : (n, T) tokens x_1 … x_T
    last : (n,) tokens x_{T+1}, which choose the attention
    label : (n,) tokens x_o, to be predicted
    """

    context: Tokens
    last: Tokens
    label: Tokens

    def __post_init__(self) -> None:
        for name in ("context", "last", "label"):
            if not isinstance(getattr(self, name), np.ndarray):
                raise InputError(f"{name} is of type {type(getattr(self, name)).__name__}: it must be an array of tokens")
            unmasked(name, getattr(self, name))
        n = len(self.context)
        if self.context.ndim != 2 or self.last.shape != (n,) or self.label.shape != (n,):
            shapes = self.context.shape, self.last.shape, self.label.shape
            raise InputError(f"context, last, label have shapes {shapes}: they must be (n, T), (n,), (n,)")

    def __len__(self) -> int:
        return len(self.context)

    def __getitem__(self, rows: slice | NDArray[Any]) -> "Batch":
        return Batch(self.context[rows], self.last[rows], self.label[rows])


def token_dtype(N: int) -> np.dtype[Any]:
    """The smallest unsigned integer type that holds tokens 0 … N − 1."""
    return np.dtype(np.min_scalar_type(N - 1))


def sample(task: Task, n: int, seed: Seed = 0, *, compiled: bool = False) -> Batch:
    """Draw n independent samples: T + 1 tokens iid from μ, a position s ~ q^(k), a label o ~ P[:, x_s].

    ``compiled`` takes the contexts from the engine's generator: the same law, other random numbers, ten times as fast.
    """
    n = integer("n", n, low=0)
    rng = generator(seed)
    last = _draw(task.mu, n, rng)
    if compiled:
        context = np.empty(n * task.T, token_dtype(task.N))
        draw_tokens(rng.integers(1 << 64, dtype=np.uint64), token_law(task.mu), token_scratch(), context)
    else:
        context = _draw(task.mu, n * task.T, rng)
    context = context.reshape(n, task.T)
    slot = _choose(task.weights, last, rng.random(n))
    source = context[np.arange(n), task.positions[slot, last]]
    label = _choose(task.P, source, rng.random(n))
    return Batch(context, last, label.astype(token_dtype(task.N)))


def generate(task: Task, length: int, seed: Seed = 0) -> Tokens:
    """Draw one sequence of ``length`` tokens: the first T + 1 iid from μ, each further one from the T + 1 before it.

    The token before the new one chooses the attention; the T tokens before that one are the context.
    """
    length = integer("length", length, low=0)
    rng = generator(seed)
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


def _choose(p: Array, column: Tokens, u: Array) -> NDArray[np.intp]:
    """For each i a row with law ``p[:, column[i]]``, by the uniform u[i]."""
    return (u >= closed_cumulative(p)[:-1, column]).sum(axis=0)


def closed_cumulative(p: Array) -> Array:
    """Cumulative sums of distributions in columns, with rounding taken out: from the last positive mass on, exactly 1."""
    cumulative = np.asfortranarray(np.cumsum(p, axis=0))
    cumulative[cumulative >= cumulative[-1] * (1 - 1e-14)] = 1.0
    return cumulative
