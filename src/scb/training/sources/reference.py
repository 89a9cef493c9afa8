"""Fresh samples, plain NumPy: the definition that faster sources are compared with."""

from dataclasses import dataclass

import numpy as np

from scb.geometry import Array
from scb.model import batch_gradient
from scb.task import Task
from scb.task.sampling import sample
from scb.training.sources import Gradient


@dataclass(frozen=True)
class Reference:
    """Draws a fresh ``Batch`` from the task at each call."""

    task: Task

    def __call__(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """Mean gradient over ``batch_size`` fresh samples."""
        return Gradient(*batch_gradient(V, A, sample(self.task, batch_size, np.random.default_rng(key))), batch_size)
