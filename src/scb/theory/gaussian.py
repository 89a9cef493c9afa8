"""The Gaussian model of the noise of a mini-batch gradient, from which noise can be drawn quickly;
``noise`` has the exact covariance.
"""

from math import sqrt
from statistics import NormalDist

import numpy as np

from scb.arrays import Array
from scb.geometry import Projection
from scb.task import Task


def residual_square(task: Task, p: Projection) -> float:
    """Compute the mean squared residual E‖r‖², which is twice the expected loss.

    Here, r is the prediction minus e_o.

    For 1ᵀV = 1ᵀ, Vμ = μ and 1ᵀA = 1ᵀ, the result is 1 − ‖μ‖² − 2⟨A, Q⟩_μ K_VP + ‖A‖_μ² K_V.

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    p : Projection
        The signals and errors of the current (V, A), from ``geometry.population_projection``.

    Returns
    -------
    float
        E‖r‖².

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
    return (
        1
        - float(task.mu @ task.mu)
        - 2 * (p.K_AQ + 1 / task.T) * p.K_VP
        + (p.K_A + 1 / task.T) * p.K_V
    )


def residual_variance(square: float, N: int) -> float:
    """Compute the variance of the residual per dimension, ρ = E‖r‖²/(N − 1).

    Parameters
    ----------
    square : float
        The mean squared residual E‖r‖²; see ``residual_square``.
    N : int
        The number of tokens.

    Returns
    -------
    float
        ρ.

    Examples
    --------
    >>> from scb.theory.gaussian import residual_variance
    >>> residual_variance(0.5, N=3)
    0.25
    """
    return square / (N - 1)


def noise_scales(task: Task, p: Projection, batch_size: int) -> tuple[float, float]:
    """Compute the standard deviations of the isotropic parts of the noise h_V and h_A.

    ``common_noise`` draws the other part.

    The standard deviations are those along any direction of unit length in the norm ‖·‖_μ. With ρ =
    E‖r‖²/(N − 1), the variance of the residual per dimension, and batch size B, the two standard
    deviations are √(‖A‖_μ² ρ/B) and √(K_V ρ/B).

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    p : Projection
        The signals and errors of the current (V, A), from ``geometry.population_projection``.
    batch_size : int
        The number B of samples in a mini-batch.

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
    """Draw the part g of the noise that all columns of ∇_V diag(1/μ) have in common.

    This part is the mean residual of a batch.

    Let m = Xa^(k) be the attention that a sample gives to each token, and let r be the residual of
    the sample. Since m = μ + (m − μ), we have ∇_V diag(1/μ) = r·1ᵀ + r(m/μ − 1)ᵀ. The Gaussian
    model of the noise is

        h_V = g(1 − w)ᵀ + isotropic noise, and h_A = isotropic noise,

    where w is the row of the projector (``geometry.projector_row``). The paper's projector leaves
    g(1 − μ/‖μ‖²)ᵀ of the common part; the μ-projector removes this part completely. The covariance
    of g is proportional to that of e_o, diag(μ) − μμᵀ, and has trace E‖r‖²/B.

    At the start of training, the model is exact up to O(1/T) in the part due to g, and it has the
    correct E‖h‖_μ². The model neglects the dependence between r and m, the anisotropy of r in the
    other part, and correlations of order 1/T between entries of h_A. ``theory.noise.GradientNoise``
    has the exact covariance.

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    p : Projection
        The signals and errors of the current (V, A), from ``geometry.population_projection``.
    batch_size : int
        The number B of samples in a mini-batch.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    (N,) array
        The common part g.

    Examples
    --------
    >>> import numpy as np, scb
    >>> from scb.geometry import population_projection
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> p = population_projection(task, task.P, task.Q)
    >>> rng = np.random.default_rng(0)
    >>> scb.theory.gaussian.common_noise(task, p, batch_size=64, rng=rng).round(3)
    array([-0.006, -0.018,  0.024])
    """
    mu = task.mu
    square = residual_square(task, p) / (1 - float(mu @ mu))
    normal = rng.normal(size=task.N)
    root = np.sqrt(mu)
    return sqrt(square / batch_size) * (root * normal - mu * (root @ normal))


def noise_quantile(entries: int, false_positions: float = 0.01) -> float:
    """Compute the threshold that only a few of many standard normal variables exceed.

    On average, ``false_positions`` out of ``entries`` variables exceed this threshold.

    Parameters
    ----------
    entries : int
        The number of standard normal variables.
    false_positions : float, default 0.01
        The expected number of variables above the threshold.

    Returns
    -------
    float
        The threshold, in standard deviations.

    Examples
    --------
    >>> from scb.theory.gaussian import noise_quantile
    >>> round(noise_quantile(3 * 5000), 2)
    4.83
    """
    return -NormalDist().inv_cdf(false_positions / entries)
