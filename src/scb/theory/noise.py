"""How large the noise of a mini-batch gradient is: a Gaussian model with two numbers, one for each layer.

The residual r = VXa − e_o has E‖r‖² = 2·E l and 1ᵀr = 0, so its variance a dimension is about ρ = E‖r‖²/(N − 1). Then, for
B samples, the entries of the preconditioned noise have variances close to

    h_A[t, k]:  K_V ρ / (B μ_k)          h_V[n, m]:  ‖A‖_μ² ρ / (B μ_m)

so that in ⟨·, ·⟩_μ both are isotropic.
"""

from __future__ import annotations


def residual_square(mu_square: float, K_VP: float, K_V: float, QA: float, AA: float) -> float:
    """E‖r‖² = 1 − ‖μ‖² − 2⟨A, Q⟩_μ K_VP + ‖A‖_μ² K_V, for 1ᵀV = 1ᵀ, Vμ = μ and 1ᵀA = 1ᵀ; twice the population loss."""
    return 1 - mu_square - 2 * QA * K_VP + AA * K_V


def residual_variance(square: float, N: int) -> float:
    """ρ = E‖r‖²/(N − 1)."""
    return square / (N - 1)
