"""Gradient sources: each answers "at (V, A), what is the mini-batch gradient, and the loss?"."""

from typing import Protocol

import numpy as np

from scb.geometry import Array
from scb.model import Gradient


class GradientSource(Protocol):
    """One question, one answer; a source does not know who asks and keeps no state between calls."""

    def __call__(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """The gradient of the loss at V (N, N) and attention A (T, N), from ``batch_size`` samples.

        ``key``, a random 64-bit number, decides all that is random; ``np.random.default_rng(key)`` makes a generator of it.
        """
        ...
