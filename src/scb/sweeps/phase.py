"""Phase diagrams show how often runs succeed over two axes of a sweep, with intervals."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from scb.drawing import caption, panels, quiet
from scb.jobs.table import Table, pick, values, wilson
from scb.sweeps.grid import Sweep, in_words

NAMES = {
    "N": "tokens N",
    "T": "positions T",
    "sparsity": "positions a token attends to",
    "lam": "λ",
    "batch_size": "batch size B",
    "eta": "η",
    "overlap": "overlap of P̂ with P",
    "K_P": "K$_P$",
}
COLOURS = "cividis"  # made for the colour-blind, and even in grey
LINE = "#D55E00"


class Phase(NamedTuple):
    """The success rates of runs over two axes of a sweep.

    Attributes
    ----------
    xs, ys : list
        The values of the two axes.
    successes, trials : (ys, xs) array of int
        The number of successful runs and the number of all runs, respectively.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.sweeps.phase import phases
    >>> table = {"T": np.array([10, 10, 20]), "n": np.array([5, 5, 5]), "success": np.arange(3) > 0}
    >>> ((_, part),) = phases(table, "T", "n")
    >>> part.rate
    array([[0.5, 1. ]])
    >>> part.cells()
    [['10', '20'], ['5', '50', '100']]
    """

    xs: list[Any]
    ys: list[Any]
    successes: NDArray[np.int64]
    trials: NDArray[np.int64]

    @property
    def rate(self) -> NDArray[np.float64]:
        """The share of successes, (ys, xs); NaN where there were no runs."""
        return np.where(self.trials > 0, self.successes / np.maximum(self.trials, 1), np.nan)

    def cells(self) -> list[list[str]]:
        """Return the rates as text, in percent.

        Returns
        -------
        list of list of str
            The values of the first axis; then, for each value of the second axis, this value and
            its rates.
        """
        rows = [["-" if rate != rate else f"{100 * rate:.0f}" for rate in row] for row in self.rate]
        lines = zip(self.ys, rows, strict=True)
        return [[text(x) for x in self.xs], *([text(y), *row] for y, row in lines)]


def phases(table: Table, x: str, y: str, panel: str | None = None) -> list[tuple[str, Phase]]:
    """Count the successes over two axes of a sweep, for each value of a third axis.

    Parameters
    ----------
    table : dict of (rows,) arrays
        The rows of the sweep, with a column ``success``.
    x, y : str
        The two axes. Numbers are in ascending order along an axis, and words keep their order.
    panel : str, optional
        The third axis.

    Returns
    -------
    list of tuple of str and Phase
        The title of each diagram, which is empty without a third axis, and its counts.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.sweeps.phase import phases
    >>> table = {"T": np.array([10, 20]), "n": np.array([5, 5]), "success": np.array([True, False])}
    >>> [(title, part.successes.tolist()) for title, part in phases(table, "n", "n", panel="T")]
    [('T = 10', [[1]]), ('T = 20', [[0]])]
    """
    if panel is None:
        return [("", _counted(table, x, y))]
    return [
        (f"{panel} = {text(value)}", _counted(pick(table, **{panel: value}), x, y))
        for value in _in_order(values(table, panel))
    ]


def _counted(table: Table, x: str, y: str) -> Phase:
    xs, ys = (_in_order(values(table, name)) for name in (x, y))
    masks = [[(table[x] == a) & (table[y] == b) for a in xs] for b in ys]
    successes = np.array([[int(table["success"][mask].sum()) for mask in row] for row in masks])
    trials = np.array([[int(mask.sum()) for mask in row] for row in masks])
    return Phase(xs, ys, successes, trials)


def _in_order(found: list[Any]) -> list[Any]:
    return found if any(isinstance(value, str) for value in found) else sorted(found)


def diagram(sweep: Sweep, table: Table) -> Figure:
    """Draw the diagram that the file of a sweep describes."""
    fixed = ", ".join(f"{name} = {value}" for name, value in sweep.fixed.items())
    success = f"success: {in_words(sweep.success)}" if sweep.success else ""
    figure = dict(sweep.figure or {})
    if "title" in figure:
        figure["title"] = figure["title"].replace("$", r"\$")  # a price is no formula
    setting = "; ".join(filter(None, (fixed, success)))
    return phase(table, **figure, setting=setting)  # pyright: ignore[reportArgumentType]


@quiet
def phase(
    table: Table, x: str, y: str, panel: str | None = None, title: str = "", setting: str = ""
) -> Figure:
    """Plot the success rate of runs over two axes of a sweep.

    The colour shows the success rate. A solid line shows where the rate is one half. Two dashed
    lines show where the lower and upper ends of the 95 % Wilson interval for the rate are one half.
    Between the dashed lines, the runs do not show whether the probability is above or below one
    half.

    Parameters
    ----------
    table : dict of (rows,) arrays
        The rows of the sweep, with a column ``success``.
    x, y : str
        The two axes.
    panel : str, optional
        A third axis, with a diagram for each of its values.
    title, setting : str, optional
        The text above and below the diagrams.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import numpy as np
    >>> from scb.sweeps.phase import phase
    >>> table = {"T": np.array([10, 20]), "n": np.array([5, 5]), "success": np.array([True, False])}
    >>> len(phase(table, "T", "n").axes)
    2
    """
    parts = phases(table, x, y, panel)
    across = max(len(part.xs) for _, part in parts)
    down = max(len(part.ys) for _, part in parts)
    size = {
        "width": min(max(4.6, 0.42 * across + 1.2), 9),
        "height": min(max(3.0, 0.34 * down + 1.2), 7),
    }
    counts = np.concatenate([part.trials.ravel() for _, part in parts])
    seeds = (
        f"{counts.max()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"
    )
    figure, axes = panels(
        len(parts), f"{title or 'How often runs succeed'} ({seeds} seeds per cell)", **size
    )
    crossed = [_draw(ax, part) for ax, (_, part) in zip(axes, parts, strict=True)]
    for ax, (name, _) in zip(axes, parts, strict=True):
        ax.set(xlabel=NAMES.get(x, x), ylabel=NAMES.get(y, y), title=name)
    bar = figure.colorbar(
        axes[0].collections[0], ax=axes, label="success rate", pad=0.02, aspect=30
    )
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    meaning = (
        "solid line: rate 1/2; dashed: where an end of its 95 % interval is 1/2"
        if any(crossed)
        else ""
    )
    caption(figure, "\n".join(filter(None, (setting, meaning))))
    return figure


def _draw(ax: Axes, part: Phase) -> bool:
    """One diagram; whether there are lines in it."""
    u = _places(part.xs)
    v = _places(part.ys)
    ax.pcolormesh(_edges(u), _edges(v), part.rate, cmap=COLOURS, vmin=0, vmax=1)
    ax.set_facecolor("0.85")  # cells without runs
    ax.grid(visible=False)
    slanted = max(len(text(value)) for value in part.xs) * len(part.xs) > 50
    ax.set_xticks(
        u, [text(value) for value in part.xs], rotation=45 if slanted else 0, fontsize=7.5
    )
    ax.set_yticks(v, [text(value) for value in part.ys], fontsize=7.5)
    if min(part.rate.shape) == 1 or not part.trials.all():
        return False
    low, high = wilson(part.successes, part.trials)
    lines = (part.rate, "-", 1.6), (low, "--", 1.0), (high, "--", 1.0)
    crossed = [line for line in lines if line[0].min() < 0.5 < line[0].max()]
    for level, style, width in crossed:
        ax.contour(u, v, level, [0.5], colors=LINE, linestyles=style, linewidths=width)
    return bool(crossed)


def _places(found: Sequence[Any]) -> NDArray[np.float64]:
    """Where the values stand: by their logarithms if these, or by themselves if they, are about
    evenly spread; else by number."""
    if len(found) > 1 and all(isinstance(value, int | float) for value in found):
        numbers = np.array(found, dtype=float)
        for scale in (np.log, np.asarray) if numbers.min() > 0 else (np.asarray,):
            gaps = np.diff(scale(numbers))
            if gaps.max() <= 2.5 * gaps.min():
                return scale(numbers)
    return np.arange(len(found), dtype=float)


def _edges(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """The borders of cells around the places, half-way between them."""
    if len(places) == 1:
        return places[0] + np.array([-0.5, 0.5])
    middles = (places[1:] + places[:-1]) / 2
    return np.r_[2 * places[0] - middles[0], middles, 2 * places[-1] - middles[-1]]


def text(value: Any) -> str:
    """Return a value as it is written at an axis."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
