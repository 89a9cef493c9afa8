"""Gradients from samples: fresh samples of a task, drawn in NumPy or by compiled code that stores
no batch, or samples of a data set.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scb.arrays import Array
from scb.geometry.heads import apart, per_head, side_by_side
from scb.inputs import InputError
from scb.kernels.random import token_sampler
from scb.kernels.step.batch import LabelSampler, TaskSampler
from scb.kernels.step.fused import mini_batch_gradient
from scb.model import Gradient, batch_gradient
from scb.task import Task
from scb.task.sampling import Batch, closed_cumulative, sample


@dataclass(frozen=True)
class Reference:
    """Draw a fresh ``Batch`` from the task at each call, using NumPy.

    Faster sources are tested against this source.

    Attributes
    ----------
    task : Task
        The task to draw samples from.

    Examples
    --------
    >>> import numpy as np, scb
    >>> from scb.training.sources.sampled import Reference
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> g = Reference(task)(task.P, task.Q, 64, np.uint64(7))
    >>> g.V.shape, g.A.shape, g.samples
    ((3, 3), (40, 3), 64)
    """

    task: Task

    def __call__(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """Return the mean gradient over ``batch_size`` fresh samples."""
        return batch_gradient(V, A, sample(self.task, batch_size, np.random.default_rng(key)))


@dataclass(frozen=True)
class Fresh:
    """At each call, draw fresh samples and compute their gradients in compiled code.

    The code uses all threads of Numba. The samples have the same distribution as those of
    ``Reference``. With the same key, the samples are those that a step of ``kernels.step.fused``
    draws, because both use the random stream that the key selects.

    Attributes
    ----------
    task : Task
        The task to draw from.

    Examples
    --------
    >>> import scb
    >>> from scb.task.sampling import step_keys
    >>> from scb.training.sources.sampled import Fresh
    >>> task = scb.Task.random(N=3, T=100, sparsity=2, seed=0)
    >>> key = step_keys(1, range(1))[0]
    >>> drawn = Fresh(task)(task.P, task.Q, 64, key)
    >>> drawn.V.shape, drawn.A.shape, drawn.samples
    ((3, 3), (100, 3), 64)

    The property ``sampler`` is the task in the form that the kernels use:

    >>> Fresh(task).sampler.labels.positions.shape
    (2, 3)
    """

    task: Task

    @cached_property
    def sampler(self) -> TaskSampler:
        """The task in the form that the kernels use."""
        task = self.task
        labels = LabelSampler(
            mu=closed_cumulative(task.mu),
            # Writeable in any process: one type for Numba
            positions=np.array(task.positions, order="F"),
            q=closed_cumulative(task.weights),
            P=closed_cumulative(side_by_side(task.P)),
            first=np.array(task.owners * task.N, order="F"),
        )
        return TaskSampler(token_sampler(task.mu), labels)

    def __call__(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """Return the mean gradient over ``batch_size`` fresh samples."""
        # Read-only arrays are another type to Numba, for which it would compile everything again.
        stacked_V = np.require(side_by_side(V), np.float64, ["C", "W"])
        stacked_A = np.require(A.reshape(-1, self.task.N), np.float64, ["F", "W"])
        gA = np.zeros(stacked_A.shape, order="F")
        offset = np.zeros(self.task.N)
        loss, gV = mini_batch_gradient(
            key, self.sampler, batch_size, stacked_V, stacked_A, offset, gA
        )
        gA /= batch_size
        gV = apart(gV / batch_size, len(per_head(V)))
        return Gradient(loss / batch_size, gV, gA.reshape(A.shape), batch_size)


@dataclass(frozen=True)
class Dataset:
    """Draw each mini-batch from a data set, uniformly without replacement.

    If the data set is not larger than a mini-batch, the mini-batch is the whole data set.

    Attributes
    ----------
    data : Batch
        The samples.

    Examples
    --------
    >>> import scb
    >>> from scb.training.sources.sampled import Dataset
    >>> task = scb.Task.random(N=3, T=100, sparsity=2, seed=0)
    >>> data = Dataset(scb.sample(task, 500, seed=1))
    >>> run = scb.train(task, scb.recipes.tuned(task), source=data, judge=False)
    >>> run.step > 0
    True
    """

    data: Batch

    def __post_init__(self) -> None:
        if len(self.data) == 0:
            raise InputError("data is empty: there must be at least 1 sample")

    def __call__(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """Return the mean gradient over min(``batch_size``, n) samples of the data set."""
        n = len(self.data)
        if batch_size >= n:
            return batch_gradient(V, A, self.data)
        chosen = np.random.default_rng(key).choice(n, batch_size, replace=False, shuffle=False)
        return batch_gradient(V, A, self.data[chosen])
