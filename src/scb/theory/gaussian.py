"""The Gaussian model of the noise of a mini-batch gradient, which is quick to draw; ``noise`` has the exact covariance."""

from math import sqrt
from statistics import NormalDist

import numpy as np

from scb.geometry import Array, Projection
from scb.task import Task


def residual_square(task: Task, p: Projection) -> float:
    """E‖r‖² = 1 − ‖μ‖² − 2⟨A, Q⟩_μ K_VP + ‖A‖_μ² K_V for 1ᵀV = 1ᵀ, Vμ = μ and 1ᵀA = 1ᵀ: twice the population loss.

    Parameters
    ----------
    task : Task
        Whose population it is.
    p : Projection
        Where (V, A) stands: see ``geometry.population_projection``.

    Returns
    -------
    float

    Examples
    --------
    >>> import scb
    >>> from scb.geometry import population_projection
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> p = population_projection(task, task.P, task.Q)
    >>> loss = scb.theory.expectations.population_loss(task, task.P, task.Q)
    >>> bool(abs(scb.theory.gaussian.residual_square(task, p) - 2 * loss) < 1e-12)
    True
    """
    return 1 - float(task.mu @ task.mu) - 2 * (p.K_AQ + 1 / task.T) * p.K_VP + (p.K_A + 1 / task.T) * p.K_V


def residual_variance(square: float, N: int) -> float:
    """ρ = E‖r‖²/(N − 1), the variance of the residual a dimension.

    Parameters
    ----------
    square : float
        E‖r‖².
    N : int
        Tokens.

    Returns
    -------
    float

    Examples
    --------
    >>> from scb.theory.gaussian import residual_variance
    >>> residual_variance(0.5, N=3)
    0.25
    """
    return square / (N - 1)


def noise_scales(task: Task, p: Projection, batch_size: int) -> tuple[float, float]:
    """Standard deviations of the isotropic parts of h_V and of h_A along a unit direction of ⟨·, ·⟩_μ: see ``common_noise``.

    With ρ = E‖r‖²/(N − 1), the variance of the residual a dimension, they are √(‖A‖_μ² ρ/B) and √(K_V ρ/B).

    Parameters
    ----------
    task : Task
        Whose samples they are.
    p : Projection
        Where (V, A) stands: see ``geometry.population_projection``.
    batch_size : int
        B.

    Returns
    -------
    scale_V, scale_A : float

    Examples
    --------
    >>> import scb
    >>> from scb.geometry import population_projection
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> p = population_projection(task, task.P, task.Q)
    >>> [round(scale, 4) for scale in scb.theory.gaussian.noise_scales(task, p, batch_size=64)]
    [0.0403, 0.0394]
    """
    rho = residual_variance(residual_square(task, p), task.N)
    return sqrt((p.K_A + 1 / task.T) * rho / batch_size), sqrt(p.K_V * rho / batch_size)


def common_noise(task: Task, p: Projection, batch_size: int, rng: np.random.Generator) -> Array:
    """A draw of the noise g that all columns of ∇_V diag(1/μ) have in common: the mean residual of a mini-batch.

    The mass of a sample is m = μ + (m − μ), so ∇_V diag(1/μ) = r·1ᵀ + r(m/μ − 1)ᵀ, and the Gaussian model of the noise is

        h_V = g(1 − w)ᵀ + isotropic noise, and h_A = isotropic noise,

    w the row of the projector. Of g the Euclidean one leaves g(1 − μ/‖μ‖²)ᵀ and the other nothing. The covariance of g is that of
    e_o, diag(μ) − μμᵀ, scaled to E‖r‖²/B.

    The model is exact to O(1/T) in the part of g at the start, and has the right E‖h‖_μ² there. It leaves out that r and m depend
    on each other, that r is not isotropic in the other part, and the correlations between entries of h_A, which are O(1/T); the
    tests say by how much (``GradientNoise`` has the truth).

    Parameters
    ----------
    task : Task
        Whose samples they are.
    p : Projection
        Where (V, A) stands: see ``geometry.population_projection``.
    batch_size : int
        B.
    rng : numpy.random.Generator
        Of the draw.

    Returns
    -------
    (N,) array

    Examples
    --------
    >>> import numpy as np, scb
    >>> from scb.geometry import population_projection
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> p = population_projection(task, task.P, task.Q)
    >>> scb.theory.gaussian.common_noise(task, p, batch_size=64, rng=np.random.default_rng(0)).round(3)
    array([-0.006, -0.018,  0.024])
    """
    mu = task.mu
    square = residual_square(task, p) / (1 - float(mu @ mu))
    normal = rng.normal(size=task.N)
    root = np.sqrt(mu)
    return sqrt(square / batch_size) * (root * normal - mu * (root @ normal))


def noise_quantile(entries: int, false_positions: float = 0.01) -> float:
    """How many standard deviations ``false_positions`` of so many Gaussians exceed on average.

    Parameters
    ----------
    entries : int
        How many Gaussians.
    false_positions : float, default 0.01
        How many may exceed it.

    Returns
    -------
    float

    Examples
    --------
    >>> from scb.theory.gaussian import noise_quantile
    >>> round(noise_quantile(3 * 5000), 2)
    4.83
    """
    return -NormalDist().inv_cdf(false_positions / entries)
