"""Endless data for a PyTorch loop: fresh samples of a task, and sequences that it generates."""

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from scb.inputs import integer
from scb.task import Task
from scb.task.sampling import closed_cumulative, generate, step_keys
from scb.task.stream import stream

Pair = tuple[torch.Tensor, torch.Tensor]


class _Endless(IterableDataset[Pair]):
    """Endless, numbered mini-batches. Each of the W workers of a DataLoader makes every W-th one,
    so that they arrive in order.
    """

    def __init__(self, task: Task, batch_size: int, seed: int, start: int) -> None:
        self.task = task
        self.batch_size = integer("batch_size", batch_size, low=1)
        self.seed = integer("seed", seed, low=0)
        self.step = integer("start", start, low=0)

    def at(self, step: int) -> Pair:
        """Return the mini-batch with a given number, without advancing the stream.

        Parameters
        ----------
        step : int
            The number of the batch, counted from 0.

        Returns
        -------
        tuple of two tensors
        """
        raise NotImplementedError

    def __iter__(self) -> Iterator[Pair]:
        worker = get_worker_info()
        if worker is None:
            return self
        return map(self.at, count(self.step + worker.id, worker.num_workers))

    def __next__(self) -> Pair:
        pair = self.at(self.step)
        self.step += 1
        return pair

    def state_dict(self) -> dict[str, int]:
        """Return the position of the stream, for ``load_state_dict``.

        Returns
        -------
        dict of int
            The number of the batch that comes next, under the key "step".
        """
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue from the position of another stream.

        Parameters
        ----------
        state : dict of int
            The result of ``state_dict`` of that stream.
        """
        self.step = integer("step", state["step"], low=0)


class SampleStream(_Endless):
    """An endless stream of mini-batches of fresh samples from a task.

    The mini-batches are pairs ``(tokens, label)`` of shapes (B, T + 1) and (B,).

    ``tokens[:, -1]`` is the last token, which selects the column of the attention. The object is an
    iterator and also an ``IterableDataset``: ``DataLoader(stream, batch_size=None, num_workers=…)``
    yields the same batches in the same order.

    Parameters
    ----------
    task : Task
        The task to sample from.
    batch_size : int, default 64
        The number B of samples in a mini-batch.
    seed : int, default 0
        The seed of the samples; the same seed gives the same batches on the same kind of device.
    device : torch.device or str, default "cpu"
        The device on which samples are drawn. On the CPU, the compiled sampler of ``scb.stream``
        draws the samples; on other devices, PyTorch draws them. The two samplers give different
        samples with the same distribution. A ``DataLoader`` with workers requires the CPU.
    start : int, default 0
        The number of the first batch. Batch i depends only on the task, ``batch_size``, ``seed``
        and i.

    Attributes
    ----------
    step : int
        The number of the next batch.

    Examples
    --------
    >>> import scb, scb.torch
    >>> batches = scb.torch.SampleStream(scb.Task.random(3, 40, 2), batch_size=32, seed=1)
    >>> tokens, label = next(batches)
    >>> tokens.shape, label.shape, batches.step
    (torch.Size([32, 41]), torch.Size([32]), 1)
    >>> again = scb.torch.SampleStream(scb.Task.random(3, 40, 2), batch_size=32, seed=1)
    >>> again.load_state_dict(batches.state_dict())
    >>> bool((next(again)[0] == batches.at(1)[0]).all())
    True
    """

    def __init__(
        self,
        task: Task,
        batch_size: int = 64,
        seed: int = 0,
        device: torch.device | str = "cpu",
        *,
        start: int = 0,
    ) -> None:
        super().__init__(task, batch_size, seed, start)
        self.device = torch.device(device)
        if self.device.type == "cpu":
            self._compiled = stream(task, self.batch_size, self.seed, dtype=np.int64)
        else:
            self._draws = Draws([task], self.seed, self.device)

    def at(self, step: int) -> Pair:
        """Return the mini-batch with a given number, without advancing the stream.

        Parameters
        ----------
        step : int
            The number of the batch, counted from 0.

        Returns
        -------
        tokens : (B, T + 1) tensor
            The contexts and, in the last column, the last tokens.
        label : (B,) tensor
            The tokens to be predicted.
        """
        if self.device.type == "cpu":
            batch = self._compiled.at(step)
            return torch.from_numpy(batch.tokens), torch.from_numpy(batch.label)
        tokens, label = self._draws(step, self.batch_size)
        return tokens[0], label[0]


class SequenceStream(_Endless):
    """An endless stream of mini-batches of generated sequences for next-token training.

    The mini-batches are pairs ``(inputs, targets)`` of shape (B, length).

    ``targets[:, i]`` is the token after ``inputs[:, i]``. The first T + 1 tokens of a sequence are
    drawn independently from μ, and each further token depends on the T + 1 tokens before it, as in
    ``scb.generate``.

    Parameters
    ----------
    task : Task
        The task that generates the sequences.
    length : int
        The number of tokens in an input.
    batch_size : int, default 64
        The number B of sequences in a mini-batch.
    seed : int, default 0
        The seed of the sequences; the same seed gives the same batches.
    start : int, default 0
        The number of the first batch. Batch i depends only on the task, ``length``, ``batch_size``,
        ``seed`` and i.

    Examples
    --------
    >>> import scb, scb.torch
    >>> task = scb.Task.random(3, 8, 2)
    >>> batches = scb.torch.SequenceStream(task, length=20, batch_size=4, seed=1)
    >>> inputs, targets = next(batches)
    >>> inputs.shape, bool((inputs[:, 1:] == targets[:, :-1]).all())
    (torch.Size([4, 20]), True)
    >>> batches.load_state_dict({"step": 0})
    >>> bool((batches.at(0)[0] == inputs).all()), batches.state_dict()
    (True, {'step': 0})
    """

    def __init__(
        self, task: Task, length: int, batch_size: int = 64, seed: int = 0, *, start: int = 0
    ) -> None:
        super().__init__(task, batch_size, seed, start)
        self.length = integer("length", length, low=1)

    def at(self, step: int) -> Pair:
        """Return the mini-batch with a given number, without advancing the stream.

        Parameters
        ----------
        step : int
            The number of the batch, counted from 0.

        Returns
        -------
        inputs, targets : (B, length) tensors
            The tokens, and the tokens that follow them.
        """
        rng = np.random.default_rng(step_keys(self.seed, range(step, step + 1))[0])
        tokens = torch.from_numpy(
            generate(self.task, self.length + 1, rng, n=self.batch_size).astype(np.int64)
        )
        return tokens[:, :-1], tokens[:, 1:]


class Draws:
    """Fresh samples of several tasks of one size at once, drawn on a device: tokens (G, B, T + 1)
    and labels (G, B).
    """

    def __init__(self, tasks: Sequence[Task], seed: int, device: torch.device | str) -> None:
        def put(arrays: list[np.ndarray]) -> torch.Tensor:
            return torch.tensor(np.stack([np.ascontiguousarray(x) for x in arrays]), device=device)

        self.T = tasks[0].T
        self.device = torch.device(device)
        self.seed = seed
        self.mu = put([closed_cumulative(task.mu)[:-1] for task in tasks])  # (G, N − 1)
        self.positions = put([task.positions.T.astype(np.int64) for task in tasks])  # (G, N, Q)
        self.q = put([closed_cumulative(task.weights)[:-1].T for task in tasks])  # (G, N, Q − 1)
        self.P = put([closed_cumulative(task.P)[:-1].T for task in tasks])  # (G, N, N − 1)
        self.weights = put([task.weights.T for task in tasks])  # (G, N, Q)
        # (G, N, N): row j is the distribution of what follows token j
        self.distributions = put([task.P.T for task in tasks])
        self._each = torch.arange(len(tasks), device=device)[:, None]

    def __call__(self, step: int, B: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return mini-batch number ``step`` of every task."""
        key = int(step_keys(self.seed, range(step, step + 1))[0])
        generator = torch.Generator(self.device).manual_seed(key % (1 << 63))
        G = len(self.mu)
        u = torch.rand(
            (G, B * (self.T + 1)), dtype=torch.float64, device=self.device, generator=generator
        )
        tokens = torch.searchsorted(self.mu, u, right=True).view(G, B, self.T + 1)
        of_slot, of_label = torch.rand(
            (2, G, B, 1), dtype=torch.float64, device=self.device, generator=generator
        )
        last = tokens[..., -1]
        slot = (of_slot >= self.q[self._each, last]).sum(dim=2)
        position = self.positions[self._each, last].gather(2, slot[..., None])
        source = tokens.gather(2, position)[..., 0]
        label = (of_label >= self.P[self._each, source]).sum(dim=2)
        return tokens, label

    def truth(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the true distribution of each label, (G, n, N)."""
        last = tokens[..., -1]
        sources = tokens.gather(2, self.positions[self._each, last])  # (G, n, Q)
        distributions = self.distributions[self._each[..., None], sources]  # (G, n, Q, N)
        return (self.weights[self._each, last][..., None] * distributions).sum(dim=2)
