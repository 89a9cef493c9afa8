"""The knowledge that a recipe has of its task: μ, K_P and K_Q, which are exact or estimated from
samples.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scb.arrays import Array
from scb.geometry import centred_square, mu_inner
from scb.inputs import InputError
from scb.task import Seed, Task
from scb.training.stages import Stage

if TYPE_CHECKING:
    from scb.task.sampling import Batch

Rate = float | Callable[[int], float]
"""A step size or a λ: a number, or a function of the step of a stage."""


@dataclass(frozen=True)
class Knowledge:
    """The stationary distribution μ and the constants K_P and K_Q of a task.

    These quantities determine the preconditioner and the step sizes.

    Attributes
    ----------
    mu : (N,) array
        The stationary distribution of the tokens.
    K_P, K_Q : float
        The constants K_P = ‖P − μ1ᵀ‖_μ² and K_Q = ‖Q − 11ᵀ/T‖_μ².
    samples : int, default 0
        The number of samples from which these quantities were estimated; 0 if they are exact.
    singular_values : tuple of float, default ()
        The singular values of the task, one for each head, if they are known. With several heads,
        K_P and K_Q are those of the first singular value: their product is σ_1², and their ratio is
        that of ‖P − μ1ᵀ‖_μ² to ‖Q‖_μ² over all heads.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
    >>> truth = scb.recipes.Knowledge.from_task(task)
    >>> guess = scb.recipes.Knowledge.from_task(task, known=False, seed=0)
    >>> round(truth.K_P, 2), round(guess.K_P, 2), guess.samples
    (0.48, 0.49, 4000)
    >>> round(truth.stage("1", steps=400, eta=0.01).eta_V, 4)
    0.0208
    """

    mu: Array
    K_P: float
    K_Q: float
    samples: int = 0
    singular_values: tuple[float, ...] = ()

    @classmethod
    def from_task(cls, task: Task, known: bool = True, seed: Seed = 0) -> "Knowledge":
        """Take the constants from a task, or estimate them from 4,000 fresh samples of the task.

        Parameters
        ----------
        task : Task
            The task to learn.
        known : bool, default True
            Whether to use the true values. If not, the values are estimated from samples alone.
        seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
            The source of randomness of the samples.

        Returns
        -------
        Knowledge
        """
        if task.heads > 1:
            if not known:
                raise InputError("known = False: norms are estimated for tasks with one head only")
            first = float(task.singular_values[0])
            ratio = math.sqrt(task.K_P / mu_inner(task.weights, task.weights, task.mu))
            return cls(task.mu, first * ratio, first / ratio, 0, tuple(task.singular_values))
        if known:
            return cls(task.mu, task.K_P, task.K_Q, 0, tuple(task.singular_values))
        from scb.task.sampling import sample

        return estimate(sample(task, 4000, seed), task.N)

    def stage(self, name: str, steps: int, eta: Rate, **rest: Any) -> Stage:
        """Make a stage with the step sizes of the paper, η_V = η/K_Q and η_A = η/K_P.

        Parameters
        ----------
        name, steps : str and int
            The name of the stage, and its number of steps.
        eta : float or callable
            The step size η, or a function that returns it for each step of the stage.
        **rest : any
            Further arguments of ``Stage``; ``eta_V`` and ``eta_A`` among them replace the step
            sizes.

        Returns
        -------
        Stage
        """
        rates: dict[str, Any] = {"eta_V": _divided(eta, self.K_Q), "eta_A": _divided(eta, self.K_P)}
        return Stage(name, steps, **(rates | rest))


def _divided(eta: Rate, constant: float) -> Rate:
    if callable(eta):
        return lambda step: eta(step) / constant
    return eta / constant


def estimate(data: "Batch", N: int) -> Knowledge:
    """Estimate μ, K_P and K_Q from samples, by the norms of the spectral estimates of P and Q.

    Tokens without an estimated position say nothing about K_Q and are left out of the mean.
    """
    from scb.mixture.samples_in import as_data
    from scb.mixture.spectral import spectral

    n, T = data.context.shape
    if n == 0:
        raise InputError("the batch is empty: there must be at least 1 sample to estimate from")
    mu = np.bincount(data.context.ravel(), minlength=N) + np.bincount(
        data.last, minlength=N
    ).astype(float)
    if (mu == 0).any():
        raise InputError(
            f"token {int(np.argmin(mu))} never occurs in {n} samples: more samples are needed"
        )
    mu /= mu.sum()
    # Few false positions: one distorts K_Q more than a weak position that is missed.
    moments = spectral(as_data(data, N), 1e-3)
    # (N,): ‖q^(k)‖², 0 without positions
    squares = np.array([weights @ weights for weights in moments.weights])
    seen = squares > 0
    if not seen.any():
        # The least K_P that assumption (c) allows, and sparsity 1.
        return Knowledge(mu, K_P=float(mu @ mu), K_Q=1.0, samples=n)
    K_P = max(centred_square(moments.P, mu), float(mu @ mu) / 2)
    K_Q = mu[seen] @ squares[seen] / mu[seen].sum() - 1 / T
    return Knowledge(mu, K_P=K_P, K_Q=float(np.clip(K_Q, 1 / T, 1.0)), samples=n)
