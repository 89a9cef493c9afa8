"""F20: transfer with a value matrix that was trained on another task."""

import numpy as np
from matplotlib.axes import Axes

from scb.drawing import COLOURS, panels
from scb.jobs.table import Table, groups, pick, replicates, values
from scb.paper.figures.bars import Drawing, share_bars, small_legend


def pretrained(table: Table, overlaps: Table) -> Drawing:
    """F20: the share of runs that learn both layers, against the overlap (for each N and θ), and by
    size, sparsity and family."""
    sizes = values(overlaps, "N")
    figure, axes = panels(len(sizes) + 1, width=3.9, height=3.4)
    axes[0].set_ylabel("share of runs that learn")
    for ax, N in zip(axes, sizes, strict=False):
        _by_overlap(ax, pick(overlaps, N=N))
        ax.set_title(f"N = {N}, T = {overlaps['T'][0]}")
    small_legend(axes[0], "center right")
    _by_case(axes[-1], table)
    return figure, (
        f"learned: both layers within 0.05. First panels: {replicates(overlaps)} random tasks per "
        f"point, 95 % intervals. Last: overlap 0.6, θ = 0.5, {replicates(table)} random tasks "
        "each, medians and quartiles"
    )


def _by_overlap(ax: Axes, table: Table) -> None:
    """The share that learns against the overlap, for each θ; and the overlap that the paper asks
    for."""
    for number, (theta, rows) in enumerate(groups(table, "theta")):
        share_bars(ax, rows, "overlap", "learned", number, f"θ = {theta:g}")
    bound = float(np.median(table["bound"]))
    ax.axvline(bound, color="0.5", linewidth=0.8)
    grey = {"fontsize": 7, "color": "0.35"}
    ax.annotate("‖μ‖²/K$_P$", (bound, 0.02), ha="right", va="bottom", rotation=90, **grey)
    ax.set(xscale="log", xlabel="overlap of P̂ with P", ylim=(-0.03, 1.05))


def _by_case(ax: Axes, table: Table) -> None:
    """A row for each size, sparsity and family: the samples of the runs, and how many learn."""
    labels = []
    cases = groups(table, "N", "T", "sparsity", "family")
    for row, (N, T, sparsity, family, mine) in enumerate(cases):
        low, median, high = np.quantile(mine["samples"], (0.25, 0.5, 0.75))
        ax.errorbar(median, row, xerr=[[median - low], [high - median]], color=COLOURS[0], fmt="o")
        words = {"strong": "", "zipf": ", Zipf μ", "flat": ", flat P"}[family]
        learned = f"{mine['learned'].sum()}/{len(mine['learned'])}"
        labels.append(f"N = {N}, T = {T:,}, Q = {sparsity}{words}: {learned}")
    ax.set_yticks(range(len(labels)), labels, fontsize=6.5)
    ax.invert_yaxis()
    ax.set(xscale="log", xlabel="samples", title="other cases: how many learn, samples")
