"""Gradient sources: functions that return the gradient and the loss of a mini-batch at a given (V, A)."""

from typing import Protocol

import numpy as np

from scb.geometry import Array
from scb.model import Gradient


class GradientSource(Protocol):
    """The interface of a gradient source: a callable without state between calls."""

    def __call__(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """Return the gradient of the loss at the value matrix V (N, N) and attention A (T, N), from ``batch_size`` samples.

        All randomness is determined by ``key``, a 64-bit number; ``np.random.default_rng(key)`` makes a generator from it.
        """
        ...
