"""How large the noise of a mini-batch gradient is: a Gaussian model with two numbers, one for each layer.

The residual r = VXa − e_o has E‖r‖² = 2·E l and 1ᵀr = 0, so its variance a dimension is about ρ = E‖r‖²/(N − 1). Then, for
B samples, the entries of the preconditioned noise have variances close to

    h_A[t, k]:  K_V ρ / (B μ_k)          h_V[n, m]:  ‖A‖_μ² ρ / (B μ_m)

so that in ⟨·, ·⟩_μ both are isotropic.
"""

from math import sqrt
from statistics import NormalDist

from scb.geometry import Projection
from scb.task import Task


def residual_square(task: Task, p: Projection) -> float:
    """E‖r‖² = 1 − ‖μ‖² − 2⟨A, Q⟩_μ K_VP + ‖A‖_μ² K_V for 1ᵀV = 1ᵀ, Vμ = μ and 1ᵀA = 1ᵀ: twice the population loss."""
    return 1 - float(task.mu @ task.mu) - 2 * (p.K_AQ + 1 / task.T) * p.K_VP + (p.K_A + 1 / task.T) * p.K_V


def residual_variance(square: float, N: int) -> float:
    """ρ = E‖r‖²/(N − 1)."""
    return square / (N - 1)


def noise_scales(task: Task, p: Projection, batch_size: int) -> tuple[float, float]:
    """Standard deviations of h_V and h_A along any unit direction of ⟨·, ·⟩_μ that the constraints allow."""
    rho = residual_variance(residual_square(task, p), task.N)
    return sqrt((p.K_A + 1 / task.T) * rho / batch_size), sqrt(p.K_V * rho / batch_size)


def noise_quantile(entries: int, false_positions: float = 0.01) -> float:
    """How many standard deviations ``false_positions`` of so many Gaussians exceed on average."""
    return -NormalDist().inv_cdf(false_positions / entries)
