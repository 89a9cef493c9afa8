"""F20: transfer with a value matrix that was trained on another task."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scb.drawing import COLOURS, caption, panels
from scb.jobs.table import Table, by_value, pick, replicates, values
from scb.paper.figures.bars import share_bars
from scb.paper.numbers import share

CASE = ("N", "T", "sparsity", "family")


def pretrained(table: Table, overlaps: Table) -> Figure:
    """F20: share of runs that learn both layers, against the overlap (for each N and θ), and by
    size, sparsity and family."""
    sizes = values(overlaps, "N")
    title = "F20  Transfer from a trained value matrix: both layers within 0.05"
    figure, axes = panels(len(sizes) + 1, title, height=3.4)
    for ax, N in zip(axes, sizes, strict=False):
        _by_overlap(ax, pick(overlaps, N=N))
        ax.set_title(f"N = {N}, T = {overlaps['T'][0]}")
    axes[0].legend(loc="center right", fontsize=7)
    _by_case(axes[-1], table)
    caption(
        figure,
        f"{replicates(overlaps)} (first panels) and {replicates(table)} (last) random tasks per "
        "point, 95 % intervals",
    )
    return figure


def _by_overlap(ax: Axes, table: Table) -> None:
    """The share that learns against the overlap, for each θ; and the overlap that the paper asks
    for."""
    for number, theta in enumerate(values(table, "theta")):
        rows = pick(table, theta=theta)
        share_bars(ax, rows, "overlap", "learned", number, f"θ = {theta:g}")
    says = by_value(table, "overlap", "says", np.mean)
    ax.plot(*says, "x", color="black", markersize=5, label="runs that say so")
    bound = float(np.median(table["bound"]))
    ax.axvline(bound, color="0.5", linewidth=0.8)
    grey = {"fontsize": 7, "color": "0.35"}
    ax.annotate("‖μ‖²/K$_P$", (bound, 0.02), ha="right", va="bottom", rotation=90, **grey)
    ax.set(xscale="log", xlabel="overlap of P̂ with P", ylim=(-0.03, 1.05))


def _by_case(ax: Axes, table: Table) -> None:
    """A row for each size, sparsity and family: the share that learns, and the samples."""
    cases = dict.fromkeys(zip(*(table[name].tolist() for name in CASE), strict=True))
    for row, case in enumerate(cases):
        mine = pick(table, **dict(zip(CASE, case, strict=True)))
        learned, low, high, _ = share(mine["learned"])
        error = [[max(learned - low, 0.0)], [max(high - learned, 0.0)]]
        ax.errorbar(learned, -row, xerr=error, fmt="o", markersize=4, color=COLOURS[0])
        N, T, sparsity, family = case
        words = {"strong": "", "zipf": ", Zipf μ", "flat": ", flat P"}[family]
        label = f"N {N}, T {T:,}, Q {sparsity}{words}: {np.median(mine['samples']):,.0f}"
        ax.text(0.02, -row, label, fontsize=6.5, va="center")
    ax.set_yticks([])
    ax.axvline(0.9, color="0.5", linewidth=0.8, linestyle=":")
    ax.set(xlim=(0, 1.03), title="overlap 0.6, θ = 0.5; median samples")
