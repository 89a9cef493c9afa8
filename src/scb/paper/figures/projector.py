"""F14: the paper's projector and the μ-projector."""

import numpy as np
from matplotlib.axes import Axes

from scb.drawing import COLOURS, LINES, MARKERS, look, panels
from scb.jobs.table import Table, by_value, groups, pick, replicates
from scb.paper.experiments.projector import GOAL
from scb.paper.figures.bars import Drawing, share_bars, small_legend
from scb.paper.stage_one import least_batches, stage_one_slopes

NAMES = {"euclidean": "I − μμᵀ/‖μ‖² (the paper's)", "mu": "H − (Hμ)1ᵀ"}
POINTS = {"linestyle": "none", "markersize": 4, "markerfacecolor": "white"}


def projectors(noise: Table, signs: Table, stage_one: Table) -> Drawing:
    """F14: noise at the start, wrong signs, and samples of Stage 1, against T with both
    projectors."""
    figure, axes = panels(3, height=3.4)
    left, middle, right = axes
    wrong = signs | {"wrong": ~signs["right"].astype(bool)}
    for number, (projector, name) in enumerate(NAMES.items()):
        _noise(left, pick(noise, projector=projector), number, name)
        share_bars(middle, pick(wrong, projector=projector), "T", "wrong", number, name)
        _stage_one(right, pick(stage_one, projector=projector), number)
    for ax in axes:
        ax.set(xscale="log", xlabel="sequence length T")
    left.set(yscale="log", title="E‖h$_V$‖$_μ^2$ at the start, B = 64")
    small_legend(left, "lower left")
    middle.axhline(0.5, color="0.6", linewidth=0.8, linestyle=":")
    middle.set(ylim=(0, 0.55), title=f"wrong signs, B = {signs['batch_size'][0]}")
    small_legend(middle)
    right.set(yscale="log", title=f"samples of Stage 1 for {GOAL:.0%} right signs")
    right.legend(loc="upper left")
    runs = f"{replicates(signs)} and {replicates(stage_one)} runs per point on random tasks (N = 3)"
    return figure, (
        f"first: exact (lines) and real gradients (marks); {runs}, sparsity 2, no sign resolution; "
        "dotted: T and T²"
    )


def _noise(ax: Axes, table: Table, number: int, name: str) -> None:
    """The noise at the start, exact (lines) and measured (marks); paler for the larger N."""
    for size, (N, mine) in enumerate(groups(table, "N")):
        T, exact = by_value(mine, "T", "exact", np.mean)
        shade = {"alpha": 1.0 if size == 0 else 0.45, "color": COLOURS[number]}
        line = {"linestyle": LINES[number], "label": name if size == 0 else None}
        ax.plot(T, exact, **line, **shade)
        measured = by_value(mine, "T", "square", np.mean)
        ax.plot(*measured, marker=MARKERS[number], **POINTS, **shade)
        ax.annotate(f" N = {N}", (T[-1], exact[-1]), fontsize=6.5, va="center")


def _stage_one(ax: Axes, table: Table, number: int) -> None:
    """The least number of samples of Stage 1, and the power of T beside it."""
    T, least = least_batches(table)
    steps = by_value(table | {"steps": table["samples"] / table["batch_size"]}, "T", "steps")[1]
    (slope, low, high), *_ = stage_one_slopes(table).values()
    text = f"T$^{{{slope:.2f}}}$ [{low:.2f}, {high:.2f}]"
    ax.plot(T, least * steps, label=text, **look(number, marker=True))
    power = 2 - number
    beside = least[0] * steps[0] * (T / T[0]) ** power
    ax.plot(T, beside, color="0.6", linewidth=0.8, linestyle=":")
    ax.annotate("T" if power == 1 else f"T$^{power}$", (T[-1], beside[-1]))
