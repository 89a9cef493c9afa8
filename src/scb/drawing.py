"""One plain style for every figure: line styles and Okabe-Ito colours that all readers can tell."""

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


def panels(
    count: int, title: str = "", width: float = 3.6, height: float = 3.0
) -> tuple[Figure, list[Axes]]:
    """Make a figure of panels side by side under one title.

    Parameters
    ----------
    count : int
        The number of panels.
    title : str, optional
        The title.
    width, height : float
        The size of a panel in inches.

    Returns
    -------
    tuple
        The figure, and a list of its panels.

    Examples
    --------
    >>> from scb.drawing import panels
    >>> figure, (left, right) = panels(2, "Two panels")
    >>> figure.get_suptitle()
    'Two panels'
    """
    figure, axes = grid(1, count, title, width, height)
    return figure, list(axes[0])


def grid(
    rows: int,
    columns: int,
    title: str = "",
    width: float = 3.4,
    height: float = 2.5,
    beside: int = 1,
    **options: Any,
) -> tuple[Figure, np.ndarray]:
    """Make a figure with panels in rows and columns under one title.

    Inside ``narrow``, the panels are placed one below another, in reading order.

    Parameters
    ----------
    rows, columns : int
        The numbers of rows and columns.
    title : str, optional
        The title.
    width, height : float
        The size of a panel in inches.
    beside : int, default 1
        The number of panels side by side inside ``narrow``.
    **options : Any
        Further options of ``Figure.subplots``.

    Returns
    -------
    tuple
        The figure, and a (rows, columns) array of its panels.

    Examples
    --------
    >>> from scb.drawing import grid
    >>> figure, axes = grid(2, 3, "Six panels")
    >>> axes.shape
    (2, 3)
    """
    shape = (rows, columns)
    size = (width * columns, height * rows)
    if _narrow.get():
        lines = -(-rows * columns // beside)
        shape = (lines, beside)
        size = (3.4, height * lines)  # inches, for a telephone
        options = {}
    figure = Drawn(figsize=(size[0], size[1] + 0.5), layout="constrained")
    figure.suptitle(_wrapped(title, size[0], 10), fontsize=10)
    axes = figure.subplots(*shape, squeeze=False, **options).ravel()
    for spare in axes[rows * columns :]:
        spare.set_visible(False)
    return figure, axes[: rows * columns].reshape(rows, columns)


_narrow: ContextVar[bool] = ContextVar("narrow", default=False)


@contextmanager
def narrow() -> Iterator[None]:
    """Adapt figures drawn inside this context to narrow screens.

    Returns
    -------
    context manager

    Examples
    --------
    >>> from scb.drawing import narrow, panels
    >>> with narrow():
    ...     figure, axes = panels(2, "Two panels")
    >>> bool(figure.get_figwidth() < figure.get_figheight())
    True
    """
    before = _narrow.set(True)
    try:
        yield
    finally:
        _narrow.reset(before)


def label_outer(ax: Axes) -> None:
    """Remove a panel's labels unless they are at the left or lower edge of the grid.

    Inside ``narrow``, where there is no grid, all labels are kept.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.

    Examples
    --------
    >>> from scb.drawing import label_outer, panels
    >>> figure, (left, right) = panels(2, "Two panels")
    >>> _ = right.set_ylabel("error")
    >>> label_outer(right)
    >>> right.get_ylabel()
    ''
    """
    if not _narrow.get():
        ax.label_outer()


def _wrapped(text: str, width: float, size: float) -> str:
    """Break a text into lines that fit into a width in inches, at a font size."""
    characters = int(125 * width / size)
    lines = (wrap(line, characters, break_on_hyphens=False) for line in text.split("\n"))
    return "\n".join("\n".join(line) for line in lines)


def look(number: int, marker: bool = False) -> dict[str, Any]:
    """Return the colour and line style of a curve, and its marker if it has one.

    Parameters
    ----------
    number : int
        The number of the curve, which picks its colour and line.
    marker : bool, default False
        Whether the curve has markers.

    Returns
    -------
    dict
        Options of ``Axes.plot``.

    Examples
    --------
    >>> from scb.drawing import look
    >>> look(0)
    {'color': '#0072B2', 'linestyle': '-'}
    """
    style: dict[str, Any] = {"color": COLOURS[number], "linestyle": LINES[number]}
    return style | {"marker": MARKERS[number], "markersize": 4} if marker else style


def star_marker(ax: Axes, x: float, y: float, number: int) -> None:
    """Draw a star in the colour of a curve.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    x, y : float
        The coordinates of the star.
    number : int
        The number of the curve, which picks its colour and line.

    Examples
    --------
    >>> from scb.drawing import panels, star_marker
    >>> figure, (left, right) = panels(2, "Two panels")
    >>> star_marker(left, 1.0, 2.0, number=0)
    >>> len(left.lines)
    1
    """
    ax.plot(x, y, "*", color=COLOURS[number], mec="black", mew=0.5, markersize=10)


def band(ax: Axes, quartiles: tuple[np.ndarray, ...], number: int, label: str) -> None:
    """Draw a line through the medians and a band between the quartiles.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    quartiles : tuple of (points,) arrays, with one axis
        x, and the three quartiles at each value of x, as ``scb.jobs.table.quartiles`` returns them.
    number : int
        The number of the curve, which picks its colour and line.
    label : str
        The label of the line.

    Examples
    --------
    >>> from scb.drawing import band, panels
    >>> import numpy as np
    >>> figure, (left, right) = panels(2, "Two panels")
    >>> x = np.arange(3.0)
    >>> band(left, (x, x, x + 1, x + 2), number=0, label="error")
    >>> left.lines[0].get_label()
    'error'
    """
    xs, low, middle, high = quartiles
    ax.plot(xs, middle, label=label, **look(number))
    ax.fill_between(xs, low, high, color=COLOURS[number], alpha=0.15, linewidth=0)


def mark(ax: Axes, x: float, text: str) -> None:
    """Draw a thin grey line where something begins or ends.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    x : float
        The place of the line.
    text : str
        The text next to the line.

    Examples
    --------
    >>> from scb.drawing import mark, panels
    >>> figure, (left, right) = panels(2, "Two panels")
    >>> mark(left, 400, "Stage 2")
    >>> left.texts[0].get_text()
    'Stage 2'
    """
    ax.axvline(x, color="0.5", linewidth=0.8)
    place: Any = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    words = {"fontsize": 7, "color": "0.35", "rotation": 90, "ha": "right", "va": "bottom"}
    ax.annotate(text, (x, 0.02), (-1, 0), **words, **place)


def caption(figure: Figure, text: str, title: str = "") -> None:
    """Write a description of the setting below the panels, and perhaps a title above them.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    text, title : str
        The description of the setting, and the title; long lines are broken.

    Examples
    --------
    >>> from scb.drawing import caption, panels
    >>> figure, (left, right) = panels(2, "Two panels")
    >>> caption(figure, "N = 3, T = 5,000")
    >>> figure.get_supxlabel()
    'N = 3, T = 5,000'
    """
    if title:
        figure.suptitle(_wrapped(title, figure.get_figwidth(), 10), fontsize=10)
    figure.supxlabel(_wrapped(text, figure.get_figwidth(), 7.5), fontsize=7.5, color="0.35")


@quiet
def save(figure: Figure, path: Path, formats: tuple[str, ...] = ("png", "pdf")) -> list[Path]:
    """Write a figure to files, one for each format; the same figure always produces the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    path : Path
        The path of the files, without their endings.
    formats : tuple of str
        The endings.

    Returns
    -------
    list of Path

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.drawing import panels, save
    >>> [path.name for path in save(panels(1, "One panel")[0], Path("F1"), ("png",))]
    ['F1.png']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path.with_suffix(f".{name}") for name in formats]
    if len(written) > 1:  # the layout is found once, not for every format
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    for file in written:
        drawn = io.BytesIO()
        dated = "Software" if file.suffix == ".png" else "CreationDate"
        figure.savefig(drawn, format=file.suffix[1:], metadata={dated: None})
        write_atomically(file, drawn.getvalue())
    return written
