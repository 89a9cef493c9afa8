"""Mini-batches as arrays, differentiated in plain NumPy: fresh ones of a task, or parts of a data set."""

from dataclasses import dataclass

import numpy as np

from scb.geometry import Array
from scb.model import Gradient, batch_gradient
from scb.task import Task
from scb.task.sampling import Batch, sample


@dataclass(frozen=True)
class Reference:
    """Draws a fresh ``Batch`` from the task at each call: the definition that faster sources are compared with."""

    task: Task

    def __call__(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """Mean gradient over ``batch_size`` fresh samples."""
        return batch_gradient(V, A, sample(self.task, batch_size, np.random.default_rng(key)))


@dataclass(frozen=True)
class Dataset:
    """Draws each mini-batch from ``data`` uniformly, without repetition inside it; the whole of it when it is no larger."""

    data: Batch

    def __post_init__(self) -> None:
        if len(self.data) == 0:
            raise ValueError("data is empty: there must be at least 1 sample")

    def __call__(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """Mean gradient over min(``batch_size``, n) samples of the data set."""
        n = len(self.data)
        if batch_size >= n:
            return batch_gradient(V, A, self.data)
        chosen = np.random.default_rng(key).choice(n, batch_size, replace=False, shuffle=False)
        return batch_gradient(V, A, self.data[chosen])
