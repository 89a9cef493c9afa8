"""Gradient sources: functions that return the gradient and the loss of a mini-batch at a given (V,
A).
"""

from typing import Protocol

import numpy as np

from scb.arrays import Array
from scb.model import Gradient


class GradientSource(Protocol):
    """The interface of a gradient source: a callable that keeps no state between calls.

    Parameters
    ----------
    V : (N, N) array
        The value matrix.
    A : (T, N) array
        The attention.
    batch_size : int
        The number of samples.
    key : np.uint64
        The key that determines all randomness; ``np.random.default_rng(key)`` makes a generator
        from it.

    Returns
    -------
    Gradient

    Examples
    --------
    The gradients of this source are too large by one per cent:

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
        """Return the gradient of the loss at (V, A), from ``batch_size`` samples."""
        ...
