"""Heat maps of the lags found, with a row for each current symbol and a column for each lag."""

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from scb.extras import wanted_for
from scb.sequences.lag_model import LagModel
from scb.sequences.symbols import readable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With more current symbols, those without a lag get no row, and not every row is named
_ROWS = 40
# Up to so many cells have numbers in them
_CELLS = 400


def plot_attention(model: LagModel, ax: "Axes | None" = None) -> "Axes":
    """Plot the weights; lags without weight are white."""
    return _heat_map(model, model.attention, "weight", ax, highest=1.0)


def plot_influence(model: LagModel, ax: "Axes | None" = None) -> "Axes":
    """Plot the influence and, below it, what the lag is worth in nats. A given lag 1 is grey."""
    influence = model.influence()
    ax = _heat_map(model, influence, "influence", ax)
    rows = {k: row for row, k in enumerate(_rows(model))}
    lags = (influence.indices + 1).tolist()
    cells = [(rows[k], lag) for k, lag in zip(model.rows.tolist(), lags, strict=True)]
    if len(rows) * model.shape.T <= _CELLS and "nats" in model.evidence:
        top = float(influence.max())
        nats = model.evidence["nats"]
        marks = np.where(model.evidence.get("nats_bound", np.zeros(nats.size)), "≤", "")
        worths = [f"{mark}{worth:,.0f}" for mark, worth in zip(marks, nats, strict=True)]
        for (row, lag), value, worth in zip(cells, influence.data, worths, strict=True):
            if value > 0:
                _write(ax, lag, row + 0.3, worth, 4.5, value / top)
    current = [cell for cell, value in zip(cells, influence.data, strict=True) if value == 0]
    for row, lag in current:
        ax.bar(lag, height=1.0, width=1.0, bottom=row - 0.5, color="0.8")
    if current:
        ax.set_xlabel(f"{ax.get_xlabel()}\ngrey: the current symbol itself")
    return ax


def _rows(model: LagModel) -> list[int]:
    """The rows of ``attention`` that are drawn: all or, if there are many, those with a lag, those
    with the same lags next to each other.
    """
    K = len(model.background_weight)
    lags = np.split(model.attention.indices, model.attention.indptr[1:-1])
    with_lags = sorted((k for k in range(K) if lags[k].size), key=lambda k: lags[k].tolist())
    return with_lags if K > _ROWS and with_lags else list(range(K))


def _heat_map(
    model: LagModel, values: csr_array, label: str, ax: "Axes | None", highest: float | None = None
) -> "Axes":
    """Values (K, max_lag), white where they are 0; with numbers in the cells if these are few."""
    with wanted_for("a picture"):
        from matplotlib import colormaps
        from matplotlib.colors import ListedColormap
        from matplotlib.figure import Figure

    table = values.toarray()[_rows(model)]
    rows, lags = table.shape
    if ax is None:
        size = min(12.0, 1.8 + 0.32 * max(lags, 10)), min(10.0, 1.3 + 0.3 * rows)
        ax = Figure(figsize=size, layout="constrained").subplots()
    top = highest or float(table.max()) or 1.0
    image = ax.imshow(
        np.where(table > 0, table, np.nan),
        cmap=ListedColormap(colormaps["Blues"](np.linspace(0.15, 1, 256))),
        vmin=0,
        vmax=top,
        aspect="auto",
        interpolation="nearest",
        extent=(0.5, lags + 0.5, rows - 0.5, -0.5),
    )
    _label_axes(ax, model, lags)
    if values.nnz == 0:
        _write(ax, (lags + 1) / 2, (rows - 1) / 2, "no lag is found", 10, 0.0, "0.3")
    if rows * lags <= _CELLS:
        for row, j in np.argwhere(table > 0):
            text = f"{table[row, j]:.2f}".lstrip("0")
            _write(ax, j + 1, row, text, 6.5, table[row, j] / top)
    ax.figure.colorbar(image, ax=ax, label=label, shrink=0.9)
    return ax


def _label_axes(ax: "Axes", model: LagModel, lags: int) -> None:
    """Name the axes, the current symbols and the lags."""
    drawn = _rows(model)
    left_out = len(model.background_weight) - len(drawn)
    ax.set_xlabel("lag: symbols before the one that is predicted")
    ax.set_ylabel("current symbol" if model.context else "")
    if left_out:
        ax.set_ylabel(f"current symbol ({left_out} without a lag are left out)")
    names = [readable(x) for x in model.contexts[drawn].tolist()] if model.context else ["all"]
    every = -(-len(drawn) // _ROWS)
    # A symbol may contain a $
    ax.set_yticks(range(0, len(drawn), every), names[::every], parse_math=False)
    longest = model.max_lag
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, lags) if step >= min(lags, lags / 15))
    at = sorted({1, *range(step, longest + 1, step), *range(longest + 1, lags + 1)})
    named = [str(x) if x <= longest else model.source_name(x) for x in at]
    ax.set_xticks(at, named, parse_math=False)


def _write(
    ax: "Axes", x: float, y: float, text: str, size: float, depth: float, color: str = ""
) -> None:
    """Write a text, in white on cells whose value is above 0.55 of the highest, unless a colour is
    given.
    """
    color = color or ("white" if depth > 0.55 else "black")
    ax.text(x, y, text, color=color, fontsize=size, ha="center", va="center")
