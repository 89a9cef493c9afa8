"""One quiet style for every figure: readable in grey (line styles differ too) and for the colour-blind (Okabe-Ito)."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from textwrap import wrap
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scb.files import write_atomically

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

QUIET = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.framealpha": 0.85,
    "legend.edgecolor": "none",
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "figure.dpi": 100,
    "savefig.dpi": 160,
}

quiet = mpl.rc_context(QUIET)  # pyright: ignore[reportArgumentType]
"""Decorator for functions that draw."""


class Drawn(Figure):
    """A figure that a notebook shows, whether or not pyplot is loaded there."""

    def _repr_png_(self) -> bytes:
        drawn = io.BytesIO()
        self.savefig(drawn, format="png", dpi=100)
        return drawn.getvalue()


def panels(count: int, title: str, width: float = 3.6, height: float = 3.0) -> tuple[Drawn, list[Axes]]:
    """A figure of ``count`` panels side by side under one title."""
    figure, axes = grid(1, count, title, width, height)
    return figure, list(axes[0])


def grid(
    rows: int, columns: int, title: str, width: float = 3.4, height: float = 2.5, beside: int = 1, **options: Any
) -> tuple[Drawn, np.ndarray]:
    """A figure of ``rows`` × ``columns`` panels under one title; further options are those of ``Figure.subplots``.

    Inside ``narrow`` the panels stand below each other, or ``beside`` to a line, in the order in which one reads them.
    """
    shape = (rows, columns)
    size = (width * columns, height * rows)
    if _narrow.get():
        lines = -(-rows * columns // beside)
        shape = (lines, beside)
        size = (NARROW, height * lines)
        options = {}
    figure = Drawn(figsize=(size[0], size[1] + 0.5), layout="constrained")
    figure.suptitle(_wrapped(title, size[0], 10), fontsize=10)
    axes = figure.subplots(*shape, squeeze=False, **options).ravel()
    for spare in axes[rows * columns :]:
        spare.set_visible(False)
    return figure, axes[: rows * columns].reshape(rows, columns)


NARROW = 3.4
"""Inches across a figure for a telephone, where its texts are as large as those around it."""
_narrow: ContextVar[bool] = ContextVar("narrow", default=False)


@contextmanager
def narrow() -> Iterator[None]:
    """Figures that are drawn inside are for narrow screens."""
    before = _narrow.set(True)
    try:
        yield
    finally:
        _narrow.reset(before)


def label_outer(ax: Axes) -> None:
    """Keep the labels of a panel only at the left and lower edge of its grid; all of them where there is no grid, in ``narrow``."""
    if not _narrow.get():
        ax.label_outer()


def _wrapped(text: str, width: float, size: float) -> str:
    """Break a text into lines that fit into a width in inches, at a font size."""
    fits = int(125 * width / size)  # characters
    return "\n".join(part for line in text.split("\n") for part in wrap(line, fits, break_on_hyphens=False) or [""])


def look(number: int, marker: bool = False) -> dict[str, Any]:
    """Colour and line of the curve with this number, and its marker if it has one."""
    style: dict[str, Any] = {"color": COLOURS[number], "linestyle": LINES[number]}
    return style | {"marker": MARKERS[number], "markersize": 4} if marker else style


def star(ax: Axes, x: float, y: float, number: int) -> None:
    """A star in the colour of the curve with this number."""
    ax.plot(x, y, "*", color=COLOURS[number], markeredgecolor="black", markeredgewidth=0.5, markersize=10)


def band(ax: Axes, quartiles: tuple[np.ndarray, ...], number: int, label: str) -> None:
    """A line through the medians, and a band from quartile to quartile; ``number`` picks colour and line.

    ``quartiles`` are x and the three quartiles at each x, as ``scb.jobs.table.quartiles`` gives them.
    """
    xs, low, middle, high = quartiles
    ax.plot(xs, middle, label=label, **look(number))
    ax.fill_between(xs, low, high, color=COLOURS[number], alpha=0.15, linewidth=0)


def mark(ax: Axes, x: float, text: str) -> None:
    """A thin grey line where something begins or ends."""
    ax.axvline(x, color="0.5", linewidth=0.8)
    where = {"xycoords": ("data", "axes fraction"), "xytext": (3, -9), "textcoords": "offset points"}
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5}
    ax.annotate(text, (x, 1.0), fontsize=7, color="0.35", bbox=box, **where)


def caption(figure: Figure, text: str) -> None:
    """Lines under the panels that say the setting."""
    figure.supxlabel(_wrapped(text, figure.get_figwidth(), 7.5), fontsize=7.5, color="0.35")


@quiet
def save(figure: Figure, path: Path, formats: tuple[str, ...] = ("png", "pdf")) -> list[Path]:
    """Write one file a format beside each other; the same figure gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path.with_suffix(f".{name}") for name in formats]
    if len(written) > 1:  # the layout is found once, not for every format
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    for file in written:
        drawn = io.BytesIO()
        metadata = {"Software": None} if file.suffix == ".png" else {"CreationDate": None}
        figure.savefig(drawn, format=file.suffix[1:], metadata=metadata)
        write_atomically(file, drawn.getvalue())
    return written
