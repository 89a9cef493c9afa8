"""Gradients without samples: the exact expectation (an infinite batch), alone or with Gaussian
noise like that of a batch.
"""

from dataclasses import dataclass

import numpy as np

from scb.arrays import Array
from scb.geometry import population_projection
from scb.model import Gradient
from scb.task import Task
from scb.theory.expectations import expected_gradients, population_loss
from scb.theory.gaussian import common_noise, noise_scales


@dataclass(frozen=True)
class Population:
    """The expected gradient and loss in closed form, for any V and A; ``batch_size`` and ``key``
    are ignored.
    """

    task: Task

    def __call__(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """Return the expected gradient and loss."""
        gV, gA = expected_gradients(self.task, V, A)
        return Gradient(population_loss(self.task, V, A), gV, gA, samples=0)


@dataclass(frozen=True)
class Gaussian:
    """The expected gradient plus Gaussian noise, by the model of ``theory.gaussian.common_noise``.

    The noise of V has a part that all columns share and an isotropic part. The projector of the
    rule determines how much of this noise remains in a step, as it does for samples. V and A must
    satisfy the constraints 1ᵀV = 1ᵀ, Vμ = μ and 1ᵀA = 1ᵀ. ``training.simulation.simulate`` gives
    signals and errors with the same distribution without any (T, N) array.
    """

    task: Task

    def __call__(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """Return a gradient with the noise of ``batch_size`` samples."""
        rng = np.random.default_rng(key)
        root = np.sqrt(self.task.mu)
        p = population_projection(self.task, V, A)
        scale_V, scale_A = noise_scales(self.task, p, batch_size)
        gV, gA = expected_gradients(self.task, V, A)
        h_V = rng.normal(size=gV.shape)
        h_V -= h_V.mean(axis=0)
        # h_V diag(1/√μ) now satisfies the constraints
        h_V -= np.outer(h_V @ root, root)
        gV += scale_V * h_V * root + np.outer(
            common_noise(self.task, p, batch_size, rng), self.task.mu
        )
        gA += scale_A * root * rng.normal(size=gA.shape)
        return Gradient(population_loss(self.task, V, A), gV, gA, batch_size)
