"""The inequality lemmas of the appendices, each with a measured value of the constant that the
paper hides in Θ(1).

The paper states its lemmas up to constants. For each lemma, ``BOUNDS`` has the statement with a
constant ``c``, and a value of c for which the statement held for every task and point tried. These
were random tasks that meet assumptions (a) to (c) with C = 2 (``Task.random``), N from 3 to 20,
sparsity from 1 to 4, and the worst gradient noise that the lemma allows.
``tests/truth/test_inequalities.py`` measures the constants again, and requires that each constant
is large enough and that half of it is not. The planner uses these constants.
"""

from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True)
class Bound:
    """An inequality from the paper with a measured constant, as listed in ``BOUNDS``.

    Attributes
    ----------
    place : str
        The appendix, and the name or subject of the lemma.
    statement : str
        The inequality, with c for the constant. Where the paper has a misprint, the statement is
        the form that holds (see docs/paper/errata.md).
    constant : float
        The measured value of c, rounded in the safe direction.
    printed : float, optional
        The value of c in the paper, if the paper states one.
    largest : bool, default False
        Whether the statement gets weaker as c gets smaller. If so, ``constant`` is the largest c
        for which the statement holds; by default, it is the smallest.

    Examples
    --------
    >>> from scb.theory.bounds import BOUNDS
    >>> BOUNDS["stage1_steps"].statement, BOUNDS["stage1_steps"].constant
    ('𝒯₁ ≤ c·log(T·K_Q)/η', 1.2)
    """

    place: str
    statement: str
    constant: float
    printed: float | None = None
    largest: bool = False


_largest = partial(Bound, largest=True)
BOUNDS = {
    # Concentration
    "chebyshev": Bound(
        "B.4 basic inequality", "Pr(‖y⁽ᴮ⁾ − Ey‖ ≥ ε) ≤ c·G/(B·ε²), G = E‖y‖²", 0.6, 1.0
    ),
    "entry_A": Bound("B.4 gradient infinity norm", "‖∇̂_a l‖_∞ ≤ c·N", 1.5),
    "entry_V": Bound("B.4 gradient infinity norm", "‖∇̂_V l‖_∞ ≤ c·N", 1.5),
    "square_A": Bound("B.4 second moments", "E‖∇̂_A l‖_μ² ≤ c·T·N²", 0.04),
    "square_V": Bound("B.4 second moments", "E‖∇̂_V l‖_μ² ≤ c·N³", 0.015),
    "along_P": Bound("B.4 first-order terms", "|⟨∇̂_V l, P⟩_μ| ≤ c·N³", 0.05),
    "along_Q": Bound("B.4 first-order terms", "|⟨∇̂_A l, Q⟩_μ| ≤ c·Q·N²", 0.15),
    # Stage 1
    "growth": _largest(
        "D part I", "α_V + α_A grows by ≥ (η/2)(α_V + α_A) + c·η/(4·T·K_Q)", 2.0, 1.0
    ),
    "stage1_steps": Bound("D main result (a)", "𝒯₁ ≤ c·log(T·K_Q)/η", 1.2),
    "stage1_gap": Bound("D main result (c)", "|α_V − α_A| ≤ c/(T·K_Q) at 𝒯₁", 1.1),
    "stage1_noise": _largest(
        "D main result (b)", "‖h‖_μ ≤ c·√(Δ/T)·min(K_P, K_Q)/log(T·K_Q) keeps ‖Δ‖_μ² ≤ Δ/T", 1.0
    ),
    "largest_V": Bound("D main result (d)", "‖V‖_∞ ≤ c", 0.7),
    "largest_A": Bound("D main result (d)", "‖A‖_∞ ≤ c/Q", 0.4),
    # Stage 2
    "separation": Bound(
        "E separation", "α_A ≥ c·(Q/T + Q√N‖Δ_A‖_μ) separates the positions of Q twofold", 4.0
    ),
    "rounding_signal": Bound("E effect of rounding", "α_A moves by ≤ c/(T·K_Q)", 1.0),
    "rounding_error": Bound("E effect of rounding", "‖Δ_A‖_μ² grows by ≤ c/T", 0.006),
    "support_signal": _largest(
        "E gradient denoising",
        "−E∂l ≥ c·(1 − α_V)·α_V·K_P/(N·Q) on the support, for α_A ≤ 1",
        0.15,
    ),
    "coordinate": Bound("E gradient denoising", "|∂l| ≤ c·N", 0.4, 1.0),
    "square_on_support": Bound("E bias of ĥ", "E‖[∇̂_A l]_q‖_μ² ≤ c·Q·N²", 0.05),
    "stage2_lambda": Bound(
        "E bias of ĥ", "λ = c·η_A·ε·K_P/(Q²N²) removes what is off the support", 2.0
    ),
    "bias": Bound("E bias of ĥ", "‖ĥ_A‖_μ ≤ c·ε/(Q·N²)", 2.0),
    "errors": Bound(
        "E dynamics of the errors",
        "δ² ≤ e^(−2ηα²)δ² + c·η(δ + η‖h‖)‖h‖, ‖h‖ in its units",
        2.0,
        3.0,
    ),
    "gap": Bound(
        "E dynamics of α_A − α_V",
        "(α_V − α_A)² ≤ e^(−2η(1 − α_V α_A))(α_V − α_A)² + c·η·E",
        2.0,
        8.0,
    ),
    "sum": Bound("E dynamics of α_A + α_V", "noise terms of 1 − (α_V + α_A)/2, times c", 1.0, 1.0),
    "local": Bound("E the same near (1, 1)", "noise terms of (ε_A + ε_V)², times c", 0.6, 1.0),
    "boundary": Bound(
        "E boundary decrease", "X ≤ c·B/A from the time that the lemma names", 3.0, 3.0
    ),
    "stage2_steps": Bound("E main lemma", "steps ≤ c·(1/(ηα) + log(1/δ_*)/η)", 1.0),
    # Stage 3
    "rounding_A": Bound("F rounding A", "‖A_* − Q‖_μ² ≤ c·(Q²/T² + ‖Δ_A‖_μ²·N·Q)", 0.25),
    "rounding_A_sharp": Bound("F rounding A, sharper", "‖A_* − Q‖_μ² ≤ c·(Q/T² + ‖Δ_A‖_μ²)", 1.5),
    "stage3_attention": _largest(
        "F last lemma", "‖A − Q‖_μ ≤ c·ε/√Q keeps ‖V − P‖_μ² ≤ ε", 2.0, 0.01
    ),
    "stage3_noise": _largest(
        "F last lemma", "‖h_V‖_μ ≤ c·ε·√K_P·K_Q beside it keeps ‖V − P‖_μ² ≤ ε", 1.0
    ),
    "stage3_steps": Bound("F last lemma", "steps ≤ c·log(1/ε)/η", 0.5),
    # Transfer
    "start_low": _largest("H initialisation", "α_V ≥ c·θ/(N·K_P)", 1.0),
    "start_high": Bound("H initialisation", "α_V ≤ c·θ", 1.0),
    "start_error": Bound("H initialisation", "‖Δ_V‖_μ² ≤ c·θ²·K_P", 0.5),
    "step_signal": Bound("H first gradient step", "|α_A/α_V − 1| ≤ c·ε_Tmp", 1.1),
    "step_error": Bound("H first gradient step", "‖Δ_A‖_μ² ≤ c·(ε_Tmp²·α_V²/Q + 1/T)", 1.0),
}
