"""Gradient sources: each answers "at (V, A), what is the mini-batch gradient, and the loss?"."""

from typing import Protocol

import numpy as np

from scb.geometry import Array
from scb.model import Gradient


class GradientSource(Protocol):
    """What a source of gradients is: a function that keeps no state between calls, and does not know who asks.

    Parameters
    ----------
    V : (N, N) array
        The value matrix.
    A : (T, N) array
        The attention.
    batch_size : int
        How many samples to take.
    key : np.uint64
        Decides all that is random; ``np.random.default_rng(key)`` makes a generator of it.

    Returns
    -------
    Gradient

    Examples
    --------
    The gradient of fresh samples, a hundredth larger than it is:

    >>> import numpy as np, scb
    >>> from scb.model import batch_gradient
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> def larger(V, A, batch_size, key):
    ...     g = batch_gradient(V, A, scb.sample(task, batch_size, np.random.default_rng(key)))
    ...     return g._replace(V=1.01 * g.V, A=1.01 * g.A)
    >>> recipe = scb.recipes.paper(task, steps=(20, 0, 0))
    >>> scb.train(task, recipe, source=larger, judge=False).finished
    True
    """

    def __call__(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """The gradient of the loss at (V, A), from ``batch_size`` samples."""
        ...
