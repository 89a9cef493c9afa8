"""Exponents: the slope of log y in log x with its interval, and the exponents that the paper's
lemmas print."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.jobs.table import Table, values, where
from scb.paper.experiments.rates import BASE
from scb.paper.numbers import Number


def log_log_slope(x: NDArray[Any], y: NDArray[Any]) -> Number:
    """The exponent of y in x by least squares on logarithms; rows are taken as independent, what is
    not finite is left out.

    The interval is Student's, so that curvature widens it as noise does.
    """
    from scipy.special import stdtrit

    good = np.isfinite(y) & (y > 0)
    u = np.log(np.asarray(x, dtype=float)[good])
    v = np.log(np.asarray(y, dtype=float)[good])
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


def varied(table: Table, axis: str, base: Mapping[str, float] = BASE) -> Table:
    """The rows of the rates in which only this size may differ from those that are kept fixed."""
    fixed = [table[name] == value for name, value in base.items() if name != axis]
    return where(table, np.logical_and.reduce(fixed))


def printed_samples(
    N: float, T: float, sparsity: float, epsilon: float, K_P: float, K_Q: float
) -> tuple[float, float, float]:
    """What the paper prints for each stage, batch times steps, without constants, logarithms, η and
    δ.

    Stage 1, its main lemma: B = T²Q⁴N⁵/min{K_P, K_Q}³ for log(T·K_Q)/η steps. Stage 2, the lemmas
    on denoising and on the bias of the proximal gradient: B = max{N⁸Q⁴/(ε²α²K_P²)·log(2NT),
    N⁶Q³/ε²} for 1/(ηα) steps, with the α = 1/(QN) that Stage 1 leaves; this logarithm is kept,
    being all that is printed in T. Stage 3: ‖h_V‖_μ ≤ cε√K_P·K_Q, where E‖∇̂_V l‖_μ² = O(N³), asks
    for B = N³/(ε²K_P·K_Q²) for log(1/ε)/η steps.
    """
    Q = sparsity
    alpha = min(0.5, 1 / (Q * N))
    first = T**2 * Q**4 * N**5 / min(K_P, K_Q, 1.0) ** 3
    second = (
        max(
            N**8 * Q**4 / (epsilon**2 * alpha**2 * K_P**2) * np.log(2 * N * T),
            N**6 * Q**3 / epsilon**2,
        )
        / alpha
    )
    third = N**3 / (epsilon**2 * K_P * K_Q**2)
    return first, second, third


def printed_exponent(
    table: Table, axis: str, stage: int, base: Mapping[str, float] = BASE
) -> float:
    """The exponent of what the paper prints for a stage, over the sizes of a table of rates."""
    rows = varied(table, axis, base)
    xs = values(rows, axis)
    asked = []
    for x in xs:
        here = where(rows, rows[axis] == x)
        sizes = {name: float(here[name][0]) for name in BASE}
        asked.append(printed_samples(**sizes, K_Q=float(np.nanmean(here["K_Q"])))[stage - 1])
    return log_log_slope(np.array(xs), np.array(asked)).estimate


def compared(measured: Number, printed: float, axis: str = "T") -> str:
    """Whether a printed exponent, an upper bound, is met, beaten, or missed; ε and K_P make a task
    harder where they fall."""
    if axis in ("epsilon", "K_P"):
        measured = Number(-measured.estimate, -measured.high, -measured.low)
        printed = -printed
    if measured.low > printed + 1e-9:
        return "missed"
    return "beaten" if measured.high < printed - 1e-9 else "met"
