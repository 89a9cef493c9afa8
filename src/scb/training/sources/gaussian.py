"""The population gradient plus Gaussian noise, in place of real samples."""

from dataclasses import dataclass

import numpy as np

from scb.geometry import Array, population_projection
from scb.task import Task
from scb.theory.expectations import expected_gradients, population_loss
from scb.theory.noise import noise_scales
from scb.training.sources import Gradient


@dataclass(frozen=True)
class Gaussian:
    """E∇l plus noise whose preconditioned form is isotropic in ⟨·, ·⟩_μ, with the variances of ``theory.noise``.

    V and A must satisfy the constraints 1ᵀV = 1ᵀ, Vμ = μ and 1ᵀA = 1ᵀ. ``simulation.simulate`` gives the same law of the signals
    and errors without any (T, N) array.
    """

    task: Task

    def __call__(self, V: Array, A: Array, batch_size: int, key: np.uint64) -> Gradient:
        """A gradient with the noise of ``batch_size`` samples."""
        task = self.task
        rng = np.random.default_rng(key)
        root = np.sqrt(task.mu)
        p = population_projection(task, V, A)
        scale_V, scale_A = noise_scales(task, p, batch_size)
        gV, gA = expected_gradients(task, V, A)
        h_V = rng.normal(size=gV.shape)
        h_V -= h_V.mean(axis=0)
        h_V -= np.outer(h_V @ root, root)  # h_V diag(1/√μ) now satisfies the constraints
        gV += scale_V * h_V * root
        gA += scale_A * root * rng.normal(size=gA.shape)
        return Gradient(population_loss(task, V, A), gV, gA, batch_size)
