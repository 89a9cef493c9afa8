"""Marks with their intervals, and the axes that they are drawn on."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from scb.drawing import look
from scb.jobs.table import Table, by_value, quartiles, where, wilson

Drawing = tuple[Figure, str]
"""A figure, and the text below it that says with which settings it was made."""
DOTTED = {"color": "0.5", "linewidth": 0.8, "linestyle": ":"}
"""The look of a line at a value that others are compared with."""


def small_legend(
    ax: Axes,
    loc: Any = "upper left",
    fontsize: float = 7,
    room: float | None = None,
    ncols: int = 1,
) -> None:
    """Draw a legend in small type; ``room`` for it is a factor of the upper end of the axis."""
    if room is not None:
        ax.set_ylim(top=room * ax.get_ylim()[1])
    ax.legend(loc=loc, fontsize=fontsize, ncols=ncols)


def quartile_bars(ax: Axes, table: Table, x: str, y: str, number: int, label: str) -> None:
    """Draw a mark at the median of column y for each value of column x, and a bar between the
    quartiles.

    Rows in which y is not finite are left out. ``number`` selects the colour and the marker.
    """
    rows = where(table, np.isfinite(table[y]))
    if rows[x].size:
        xs, low, median, high = quartiles(rows, x, y)
        lengths = (median - low, high - median)
        ax.errorbar(xs, median, lengths, capsize=2, label=label, **look(number, marker=True))


def log_ticks(ax: Axes, xs: list[float]) -> None:
    """Logarithmic axes with ticks where something was measured, or at every other such place if
    they are crowded, and with numbers at the other axis."""
    ax.set(xscale="log", yscale="log")
    crowded = sum(len(f"{x:g}") for x in xs) > 25
    shown = sorted(xs)[:: 2 if crowded else 1]
    ax.set_xticks(shown, [f"{x:g}" if x < 1e6 else f"{x / 1e6:g} M" for x in shown], fontsize=7)
    ax.xaxis.set_minor_formatter(NullFormatter())
    low, high = ax.get_ylim()
    if high < 100 * low:  # too few powers of ten to read anything off
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(
            FuncFormatter(lambda y, _: f"{y:,.0f}" if y >= 1 else f"{y:g}")
        )
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.tick_params(axis="y", labelsize=7)


def share_bars(ax: Axes, table: Table, x: str, hits: str, number: int, label: str) -> None:
    """Draw the share of rows that are hits at each x, with Wilson's 95 % interval.

    ``number`` picks colour and marker.
    """
    xs, share = by_value(table, x, hits, np.mean)
    runs = by_value(table, x, hits, len)[1]
    low, high = wilson(share * runs, runs)
    error = np.maximum([share - low, high - share], 0)
    # Beside each other where they would cover each other
    apart = xs * 1.03**number
    ax.errorbar(apart, share, error, capsize=2, label=label, **look(number, marker=True))
