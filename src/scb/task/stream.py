"""Endless mini-batches of fresh samples of a task, for a training loop of your own."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from scb.inputs import InputError, InputTypeError, integer
from scb.task import Task
from scb.task.sampling import Batch, Labels, compiled_tokens, step_keys, token_dtype


class Stream:
    """An endless iterator over mini-batches of fresh samples, made by ``scb.stream``.

    Parameters
    ----------
    task : Task
        The task to sample from.
    batch_size : int
        The number of samples in a mini-batch.
    seed : int
        The seed of the samples; the same seed gives the same batches.
    dtype : numpy.dtype
        The integer type of the tokens.
    start : int
        The number of the batch that is returned first.

    Attributes
    ----------
    step : int
        The number of the next mini-batch. Batch i depends only on the task, ``batch_size``,
        ``seed`` and i, so a stream that starts at the ``step`` of an earlier stream continues that
        stream.

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

    def __init__(
        self, task: Task, batch_size: int, seed: int, dtype: np.dtype[Any], start: int
    ) -> None:
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
        """Return the mini-batch with a given number, without advancing the stream.

        Parameters
        ----------
        step : int
            The number of the batch, counted from 0.

        Returns
        -------
        Batch
            The batch that iteration returns at this step.
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


def stream(
    task: Task,
    batch_size: int = 64,
    seed: int = 0,
    *,
    dtype: DTypeLike | None = None,
    start: int = 0,
) -> Stream:
    """Return an endless iterator over mini-batches of fresh samples.

    The iterator is meant for use in your own training loop.

    The samples are drawn by compiled code.

    Parameters
    ----------
    task : Task
        The task to sample from.
    batch_size : int, default 64
        The number of samples in a mini-batch.
    seed : int, default 0
        The seed of the samples; the same seed gives the same batches.
    dtype : integer dtype, optional
        The type of the tokens. The default is the smallest unsigned integer type that holds them;
        embedding layers usually need ``np.int64``.
    start : int, default 0
        The number of the first batch. To continue an earlier stream, pass its ``step``.

    Returns
    -------
    Stream
        An iterator whose items are of type ``Batch``. The T + 1 tokens of each sample are
        contiguous in memory, and ``batch.tokens`` is a (batch_size, T + 1) view of them.

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
        raise InputError(
            f"dtype = {chosen}: it must be an integer type that holds tokens up to {task.N - 1}"
        )
    return Stream(
        task,
        batch_size=integer("batch_size", batch_size, low=1),
        seed=integer("seed", seed, low=0),
        dtype=chosen,
        start=integer("start", start, low=0),
    )
