"""Fresh samples of a task without end, mini-batch by mini-batch: what one feeds to a training loop of one's own."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from scb.inputs import InputError, InputTypeError, integer
from scb.task import Task
from scb.task.sampling import Batch, Labels, compiled_tokens, step_keys, token_dtype


class Stream:
    """An iterator without end over mini-batches of fresh samples; ``scb.stream`` makes one.

    Parameters
    ----------
    task : Task
        Whose samples they are.
    batch_size : int
        Samples of a mini-batch.
    seed : int
        The same seed gives the same batches.
    dtype : numpy.dtype
        Of the tokens.
    start : int
        Number of the first batch.

    Attributes
    ----------
    step : int
        Number of the mini-batch that comes next. Batch i depends on (task, batch_size, seed, i) alone: to go on where another
        stream stopped, begin at its ``step``.

    Examples
    --------
    >>> import scb
    >>> batches = scb.stream(scb.Task.random(3, 8, 2, seed=0), batch_size=5, seed=1)
    >>> first = next(batches)
    >>> batches
    Stream(N=3, T=8, batch_size=5, seed=1, dtype=uint8, step=1)
    >>> bool((batches.at(0).label == first.label).all())
    True
    """

    def __init__(self, task: Task, batch_size: int, seed: int, dtype: np.dtype[Any], start: int) -> None:
        self.task = task
        self.batch_size = batch_size
        self.seed = seed
        self.dtype = dtype
        self.step = start
        self._labels = Labels(task)

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> Batch:
        batch = self.at(self.step)
        self.step += 1
        return batch

    def at(self, step: int) -> Batch:
        """Mini-batch number ``step``; the stream itself does not move.

        Parameters
        ----------
        step : int
            Number of the batch, from 0 on.

        Returns
        -------
        Batch
        """
        B = self.batch_size
        key = step_keys(self.seed, range(step, step + 1))[0]
        drawn = compiled_tokens(self.task, key, (B, self.task.T + 1))
        u_source, u_label = np.random.default_rng(key).random((2, B))
        label = self._labels(drawn, drawn[:, -1], u_source, u_label).astype(self.dtype)
        tokens = drawn.astype(self.dtype, copy=False)
        return Batch(tokens[:, :-1], tokens[:, -1], label)

    def __repr__(self) -> str:
        sizes = f"N={self.task.N}, T={self.task.T}, batch_size={self.batch_size}"
        return f"Stream({sizes}, seed={self.seed}, dtype={self.dtype}, step={self.step})"


def stream(task: Task, batch_size: int = 64, seed: int = 0, *, dtype: DTypeLike | None = None, start: int = 0) -> Stream:
    """Mini-batches of fresh samples without end, drawn by compiled code.

    Parameters
    ----------
    task : Task
        Whose samples they are.
    batch_size : int, default 64
        Samples of a mini-batch.
    seed : int, default 0
        The same seed gives the same batches.
    dtype : integer dtype, optional
        Of the tokens; the smallest unsigned type that holds them unless given. ``np.int64`` is what embeddings want.
    start : int, default 0
        Number of the first batch: a stream that begins at the ``step`` of another goes on where that one is.

    Returns
    -------
    Stream
        An iterator whose items are a ``Batch`` each. The T + 1 tokens of a sample lie side by side: ``batch.tokens`` has them as
        (B, T + 1).

    Examples
    --------
    >>> import scb
    >>> batches = scb.stream(scb.Task.random(3, 40, 2), batch_size=32, seed=1, dtype="int64")
    >>> next(batches).tokens.shape, batches.step
    ((32, 41), 1)
    """
    try:
        chosen: np.dtype[Any] = token_dtype(task.N) if dtype is None else np.dtype(dtype)
    except (TypeError, ValueError):
        raise InputTypeError(f"dtype = {dtype!r}: it must be an integer type") from None
    if chosen.kind not in "iu" or np.iinfo(chosen).max < task.N - 1:
        raise InputError(f"dtype = {chosen}: it must be an integer type that holds tokens up to {task.N - 1}")
    return Stream(
        task,
        batch_size=integer("batch_size", batch_size, low=1),
        seed=integer("seed", seed, low=0),
        dtype=chosen,
        start=integer("start", start, low=0),
    )
