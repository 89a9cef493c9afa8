"""Exact expected gradients: an infinite batch."""

from dataclasses import dataclass

import numpy as np

from scb.geometry import Array
from scb.task import Task
from scb.theory.expectations import expected_gradients, population_loss
from scb.training.sources import Gradient


@dataclass(frozen=True)
class Population:
    """E∇l and E l in closed form, for any V and A; takes no samples and ignores ``batch_size`` and ``key``."""

    task: Task

    def __call__(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """The expected gradient and loss."""
        gV, gA = expected_gradients(self.task, V, A)
        return Gradient(population_loss(self.task, V, A), gV, gA, 0)
