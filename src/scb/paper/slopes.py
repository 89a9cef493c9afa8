"""Exponents: the slope of log y in log x with its interval, and the exponents that the paper's lemmas print."""

from typing import NamedTuple

import numpy as np

from scb.geometry import Array
from scb.jobs.table import Table, values, where
from scb.paper.experiments.rates import BASE
from scb.theory.planner import plan


class Slope(NamedTuple):
    """An exponent with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"


def log_log_slope(x: Array, y: Array) -> Slope:
    """The exponent of y in x by least squares on logarithms; rows are taken as independent, what is not finite is left out.

    The interval is Student's, so that curvature widens it as noise does.
    """
    from scipy.special import stdtrit

    good = np.isfinite(y) & (y > 0)
    u = np.log(np.asarray(x, dtype=float)[good])
    v = np.log(np.asarray(y, dtype=float)[good])
    if len(np.unique(u)) < 2:
        return Slope(np.nan, np.nan, np.nan)
    u = u - u.mean()
    slope = float(u @ v / (u @ u))
    freedom = len(u) - 2
    if freedom < 1:
        return Slope(slope, -np.inf, np.inf)
    residual = v - v.mean() - slope * u
    half = float(stdtrit(freedom, 0.975) * np.sqrt(residual @ residual / freedom / (u @ u)))
    return Slope(slope, slope - half, slope + half)


def varied(table: Table, axis: str) -> Table:
    """The rows of the rates in which only this size may differ from those that are kept fixed."""
    fixed = [table[name] == value for name, value in BASE.items() if name != axis]
    return where(table, np.logical_and.reduce(fixed))


def printed_exponent(table: Table, axis: str, stage: int) -> float:
    """The exponent of the samples that the paper's lemmas ask for, at the same sizes; ``stage`` 0 stands for all three."""
    rows = varied(table, axis)
    xs = []
    asked = []
    for x in values(rows, axis):
        here = where(rows, rows[axis] == x)
        sizes = {name: here[name][0].item() for name in BASE}
        K_Q = float(np.nanmean(here["K_Q"]))
        stages = plan(
            sizes["N"], sizes["T"], sizes["sparsity"], sizes["epsilon"], K_P=sizes["K_P"], K_Q=K_Q, eta=float(here["eta"][0])
        ).stages
        chosen = stages if stage == 0 else stages[stage - 1 : stage]
        xs.append(x)
        asked.append(sum(one.samples for one in chosen))
    return log_log_slope(np.array(xs), np.array(asked)).value


def compared(measured: Slope, printed: float) -> str:
    """Whether a printed exponent, an upper bound, is met, beaten, or missed."""
    if measured.low > printed:
        return "missed"
    return "beaten" if measured.high < printed else "met"
