"""The inequality lemmas of appendices B.4, D, E, F and H, measured: for each, left side over right side at many tasks and points.

``measure()`` gives the constant that each bound of ``scb.theory.bounds`` needs. Steps are taken with the exact recursions of
``theory.dynamics``, with the noise that the lemma allows turned against it. To see the table:
``PYTHONPATH=tests python -m truth.inequalities``.
"""

from rich.console import Console
from rich.table import Table

from scb.theory.bounds import BOUNDS
from truth.bounds_stage1 import chebyshev, gradient_sizes, stage_1, stage_1_points
from truth.bounds_stage2 import (
    boundary,
    proximal_bias,
    rounding,
    separation,
    stage_2_length,
    stage_2_steps,
    support_signal,
    threshold_needed,
)
from truth.bounds_stage3 import rounding_A, stage_3, transfer

TABLES = (
    gradient_sizes,
    stage_1,
    stage_1_points,
    rounding,
    stage_2_steps,
    rounding_A,
    stage_3,
    transfer,
)  # each measures several bounds at once
SINGLE = {
    "chebyshev": chebyshev,
    "separation": separation,
    "support_signal": support_signal,
    "stage2_lambda": threshold_needed,
    "bias": proximal_bias,
    "boundary": boundary,
    "stage2_steps": stage_2_length,
}


def measure() -> dict[str, float]:
    """For each bound, the c that was needed at all tasks and points: the largest ratio, or the smallest for "≥ c"."""
    ratios: dict[str, list[float]] = {}
    for table in TABLES:
        ratios |= table()
    for name, single in SINGLE.items():
        ratios[name] = list(single())
    return {name: (min if bound.largest else max)(ratios[name]) for name, bound in BOUNDS.items()}


def show(measured: dict[str, float]) -> Table:
    """The measured constants beside those of ``BOUNDS`` and of the paper."""
    table = Table("bound", "place", "statement", "measured", "in use", "printed")
    for name, bound in BOUNDS.items():
        printed = "" if bound.printed is None else f"{bound.printed:g}"
        table.add_row(name, bound.place, bound.statement, f"{measured[name]:.3g}", f"{bound.constant:g}", printed)
    return table


if __name__ == "__main__":
    Console(highlight=False).print(show(measure()))
