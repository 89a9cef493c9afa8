"""Distance to the truth against steps, median and quartiles over seeds."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scb.figures.style import COLOURS, LINES, caption, panels, quiet

PANELS = (("dist_V", "dist_V_star", "‖V − P‖$_μ$"), ("dist_A", "dist_A_star", "‖A − Q‖$_μ$"))


@quiet
def convergence(table: dict[str, np.ndarray], setting: str, switch: int = 400) -> Figure:
    """Both distances for each method; the star is the median at the end after normalisation, of the first method."""
    methods = list(dict.fromkeys(table["method"].tolist()))
    figure, axes = panels(2, "Distance to the truth: the proximal method against SGD")
    for ax, (column, star, label) in zip(axes, PANELS, strict=True):
        for i, method in enumerate(methods):
            steps, low, middle, high = quartiles(table, method, column)
            ax.plot(steps, middle, color=COLOURS[i], linestyle=LINES[i], label=method)
            ax.fill_between(steps, low, high, color=COLOURS[i], alpha=0.15, linewidth=0)
        steps, _, middle, _ = quartiles(table, methods[0], star)
        ax.plot(steps[-1:], middle[-1:], "*", color="black", markersize=11, clip_on=False, label="star: normalised")
        _finish(ax, label, switch)
    axes[0].legend(loc="lower left")
    caption(figure, f"{setting}; median and quartiles over {len(np.unique(table['seed']))} random tasks")
    return figure


def quartiles(table: dict[str, np.ndarray], method: str, column: str) -> tuple[np.ndarray, ...]:
    """Steps, and the three quartiles over seeds of a column at each."""
    mine = table["method"] == method
    steps = np.unique(table["step"][mine])
    values = [table[column][mine & (table["step"] == step)] for step in steps]
    return steps, *np.array([np.percentile(v, (25, 50, 75)) for v in values]).T


def _finish(ax: Axes, label: str, switch: int) -> None:
    ax.set(title=label, xlabel="step", ylim=(0, None))
    ax.axvline(switch, color="0.5", linewidth=0.8)
    where = {"xycoords": ("data", "axes fraction"), "xytext": (3, -9), "textcoords": "offset points"}
    ax.annotate("Stage 2", (switch, 1.0), fontsize=7, color="0.35", **where)
