"""Exponents: the slope of log y in log x with its interval, and the exponents that are printed in
the paper's lemmas."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.jobs.table import Table, groups, where
from scb.paper.experiments.rates import BASE
from scb.paper.numbers import Number, minus

LAW_FROM = 800
"""The T from which on the sign decides how many samples Stage 1 needs; below it, the positions have
to be seen."""
LOGS = 0.25
"""What the powers of logarithms that Õ and poly(log T) hide may add to a measured exponent."""


def line_slope(u: NDArray[Any], v: NDArray[Any]) -> Number:
    """The slope of v in u by least squares; rows are assumed to be independent.

    The interval is Student's, so curvature widens it in the same way as noise.
    """
    from scipy.special import stdtrit

    if len(np.unique(u)) < 2:
        return Number(np.nan)
    u = u - u.mean()
    slope = float(u @ v / (u @ u))
    freedom = len(u) - 2
    if freedom < 1:
        return Number(slope, -np.inf, np.inf, len(u))
    residual = v - v.mean() - slope * u
    half = float(stdtrit(freedom, 0.975) * np.sqrt(residual @ residual / freedom / (u @ u)))
    return Number(slope, slope - half, slope + half, len(u))


def log_log_slope(x: NDArray[Any], y: NDArray[Any]) -> Number:
    """The exponent of y in x, which is the slope of log y in log x; NaN is left out.

    An infinite y, such as that of a search that found nothing, lies above all values that were
    tried. Since it is not known how far above, the interval is unbounded on the side to which this
    y pulls the slope.
    """
    x, y = (np.asarray(column, dtype=float) for column in (x, y))
    found = np.isfinite(y) & (y > 0)
    u = np.log(x)
    slope = line_slope(u[found], np.log(y[found]))
    if np.isnan(slope.estimate):
        return slope
    pulls = u[np.isposinf(y)] - u[found].mean()
    low = -np.inf if (pulls < 0).any() else slope.low
    high = np.inf if (pulls > 0).any() else slope.high
    return slope._replace(low=low, high=high)


def varied(table: Table, axis: str, base: Mapping[str, float] = BASE) -> Table:
    """The rows of the rates in which only this size may differ from the fixed sizes."""
    fixed = [table[name] == value for name, value in base.items() if name != axis]
    return where(table, np.logical_and.reduce(fixed))


def law_rows(rows: Table, axis: str, stage: int) -> Table:
    """The rows in which a power law holds; in T, Stage 1 follows one only from ``LAW_FROM`` on."""
    return where(rows, rows["T"] >= LAW_FROM) if (axis, stage) == ("T", 1) else rows


def stage_samples(rows: Table, stage: int) -> NDArray[Any]:
    """The samples of a stage; infinite if a search found no batch that is large enough, and NaN if
    the search for an earlier stage found none."""
    none = np.isinf(rows[f"batch_{stage}"]) if f"batch_{stage}" in rows else False
    return np.where(none, np.inf, rows[f"samples_{stage}"])


def printed_samples(
    N: float, T: float, sparsity: float, epsilon: float, K_P: float, K_Q: float
) -> tuple[float, float, float]:
    """The number of samples printed in the paper for each stage, batch times steps, without
    constants, logarithms, η and δ.

    Stage 1, its main lemma: B = T²Q⁴N⁵/min{K_P, K_Q}³ for log(T·K_Q)/η steps. Stage 2, the lemmas
    on denoising and on the bias of the proximal gradient: B = max{N⁸Q⁴/(ε₂²α²K_P²)·log(2NT),
    N⁶Q³/ε₂²} for Õ(1/η) steps, with the α = 1/(QN) that Stage 1 leaves and the accuracy of a step
    ε₂ = δ_*·K_P√K_Q·QN², where δ_*² = ε/(Q√N); this logarithm is kept, because it is the only
    printed dependence on T. Stage 3: ‖h_V‖_μ ≤ cε√K_P·K_Q, where E‖∇̂_V l‖_μ² = O(N³), requires B =
    N³/(ε²K_P·K_Q²) for log(1/ε)/η steps.
    """
    Q = sparsity
    alpha = min(0.5, 1 / (Q * N))
    first = T**2 * Q**4 * N**5 / min(K_P, K_Q, 1.0) ** 3
    # ε₂²
    square = epsilon / (Q * N**0.5) * K_P**2 * K_Q * Q**2 * N**4
    second = max(
        N**8 * Q**4 / (square * alpha**2 * K_P**2) * np.log(2 * N * T), N**6 * Q**3 / square
    )
    third = N**3 / (epsilon**2 * K_P * K_Q**2)
    return first, second, third


def printed_exponent(
    table: Table, axis: str, stage: int, base: Mapping[str, float] = BASE
) -> float:
    """The exponent of the printed number of samples of a stage, over the sizes of a table of
    rates."""
    asked = {}
    for x, rows in groups(varied(table, axis, base), axis):
        sizes = {name: float(rows[name][0]) for name in BASE}
        asked[x] = printed_samples(**sizes, K_Q=float(np.nanmean(rows["K_Q"])))[stage - 1]
    return log_log_slope(np.array([*asked]), np.array([*asked.values()])).estimate


def harder(exponent: Number, axis: str) -> Number:
    """The exponent in the direction in which a task gets harder, which is its negative for ε and
    K_P."""
    if axis not in ("epsilon", "K_P"):
        return exponent
    return exponent._replace(estimate=-exponent.estimate, low=-exponent.high, high=-exponent.low)


def compared(measured: Number, printed: float, axis: str = "T") -> str:
    """Whether a printed exponent, an upper bound, is met, beaten, or missed; ε and K_P make a task
    harder as they fall.
    """
    excess = minus(harder(measured, axis), harder(Number.exact(printed), axis))
    if excess.low > 1e-9:
        return "missed"
    return "beaten" if excess.high < -1e-9 else "met"
