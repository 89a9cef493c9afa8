"""Heat maps of what was found: contexts down, lags across."""

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from scb.extras import wanted_for
from scb.sequences.lag_model import LagModel
from scb.sequences.symbols import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Where there are more contexts, those without a lag are left out, and not all of the others are
# named
_ROWS = 40
_CELLS = 400  # few enough to write numbers into them
_DARK = 0.55  # part of the highest value from which on a number is white
_ITSELF = "0.8"  # the grey of the current symbol


def plot_attention(model: LagModel, ax: "Axes | None" = None) -> "Axes":
    """The weights; white where a lag has none."""
    return _heat_map(model, model.attention, "weight", ax, highest=1.0)


def plot_influence(model: LagModel, ax: "Axes | None" = None) -> "Axes":
    """The influence; in each cell its value, and below what the lag is worth in nats. Lag 1 is grey
    where it is the context.
    """
    influence = model.influence()
    ax = _heat_map(model, influence, "influence", ax)
    rows = {k: row for row, k in enumerate(_rows(model))}
    contexts = np.repeat(np.arange(len(model.rest)), np.diff(influence.indptr))
    cells = [
        (rows[k], j) for k, j in zip(contexts.tolist(), influence.indices.tolist(), strict=True)
    ]
    top = float(influence.max())
    if len(rows) * model.max_lag <= _CELLS and "nats" in model.evidence:
        for (row, j), value, nats in zip(
            cells, influence.data, model.evidence["nats"].tolist(), strict=True
        ):
            if value > 0:
                colour = "white" if value > _DARK * top else "black"
                ax.text(
                    j + 1,
                    row + 0.3,
                    f"{nats:,.0f}",
                    color=colour,
                    fontsize=4.5,
                    ha="center",
                    va="center",
                )
    itself = [cell for cell, value in zip(cells, influence.data, strict=True) if value == 0]
    for row, j in itself:
        ax.bar(j + 1, height=1.0, width=1.0, bottom=row - 0.5, color=_ITSELF)
    if itself:
        ax.set_xlabel(f"{ax.get_xlabel()}\ngrey: the current symbol itself")
    return ax


def _rows(model: LagModel) -> list[int]:
    """The contexts that get a row: all, or if there are many those with a lag."""
    contexts = len(model.rest)
    found = np.flatnonzero(np.diff(model.attention.indptr)).tolist()
    return found if contexts > _ROWS and found else list(range(contexts))


def _heat_map(
    model: LagModel, values: csr_array, label: str, ax: "Axes | None", highest: float | None = None
) -> "Axes":
    """Values (contexts, max_lag), with numbers in the cells where these are few; white where they
    are 0.
    """
    with wanted_for("a picture"):
        from matplotlib import colormaps
        from matplotlib.colors import ListedColormap
        from matplotlib.figure import Figure

    contexts = _rows(model)
    table = values.toarray()[contexts]
    rows, lags = table.shape
    left_out = len(model.rest) - rows
    if ax is None:
        size = min(12.0, 1.8 + 0.32 * max(lags, 10)), min(10.0, 1.3 + 0.3 * rows)
        ax = Figure(figsize=size, layout="constrained").subplots()
    blues = ListedColormap(colormaps["Blues"](np.linspace(0.15, 1, 256)))
    top = highest or float(table.max()) or 1.0
    extent = (0.5, lags + 0.5, rows - 0.5, -0.5)
    image = ax.imshow(
        np.where(table > 0, table, np.nan),
        cmap=blues,
        vmin=0,
        vmax=top,
        aspect="auto",
        extent=extent,
    )
    ax.set(
        xlabel="lag: symbols before the one that is predicted",
        ylabel="current symbol" if model.context else "",
    )
    if left_out:
        ax.set_ylabel(f"current symbol ({left_out} without a lag are left out)")
    names = [shown(model.classes[k].item()) for k in contexts] if model.context else ["all"]
    every = -(-rows // _ROWS)
    # a symbol may hold a $
    ax.set_yticks(range(0, rows, every), names[::every], parse_math=False)
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, lags) if step >= min(lags, lags / 15))
    ax.set_xticks(sorted({1, *range(step, lags + 1, step)}))
    if values.nnz == 0:
        ax.text(
            (lags + 1) / 2,
            (rows - 1) / 2,
            "no lag is found",
            color="0.3",
            fontsize=10,
            ha="center",
            va="center",
        )
    if rows * lags <= _CELLS:
        for row, j in np.argwhere(table > 0):
            colour = "white" if table[row, j] > _DARK * top else "black"
            ax.text(
                j + 1,
                row,
                f"{table[row, j]:.2f}".lstrip("0"),
                color=colour,
                fontsize=6.5,
                ha="center",
                va="center",
            )
    ax.figure.colorbar(image, ax=ax, label=label, shrink=0.9)
    return ax
