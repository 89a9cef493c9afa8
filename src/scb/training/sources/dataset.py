"""A fixed data set, in mini-batches."""

from dataclasses import dataclass

import numpy as np

from scb.geometry import Array
from scb.model import batch_gradient
from scb.task.sampling import Batch
from scb.training.sources import Gradient


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
        data = self.data
        if batch_size < n:
            data = data[np.random.default_rng(key).choice(n, batch_size, replace=False, shuffle=False)]
        return Gradient(*batch_gradient(V, A, data), len(data))
