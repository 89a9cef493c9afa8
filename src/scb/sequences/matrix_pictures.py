"""Pictures of the matrices of a model, and of what its lags explain along a sequence."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage

from scb.arrays import Array, Ints
from scb.extras import wanted_for
from scb.sequences.lag_model import SHARED, LagModel
from scb.sequences.symbols import readable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# With more symbols than this, not every one is named
_NAMES = 40
# Of more matrices than this, the strongest are drawn
_MATRICES = 6
# The timeline has at most so many bars
_BARS = 200


def plot_matrices(model: LagModel) -> "Figure":
    """A heat map for each matrix, or for the strongest matrices if there are many. It shows by how
    many percentage points the symbol at the lag makes each next symbol more or less likely than on
    average. Symbols are ordered by similarity.
    """
    with wanted_for("a picture"):
        from matplotlib.figure import Figure

    shifts = {lag: 100 * (P - _mean(model, lag)[:, None]) for lag, P in model.matrices.items()}
    left_out = len(shifts) - _MATRICES
    if left_out > 0:
        weight = model.attention.sum(axis=0)
        strength = {lag: weight[lag - 1] * np.abs(shift).mean() for lag, shift in shifts.items()}
        strongest = sorted(shifts, key=lambda lag: -strength[lag])[:_MATRICES]
        shifts = {lag: shifts[lag] for lag in sorted(strongest)}
    own = [shift for shift in shifts.values() if shift.shape[1] == len(model.classes)]
    order = likeness_order(own, model.frequencies)
    names = [readable(x) for x in model.classes[order].tolist()]
    number = max(len(shifts), 1)
    rows = -(-number // 3)
    across = min(number, 3)
    side = min(6.5, 2.2 + 0.22 * len(names)) if across < 3 else 4.2
    figure = Figure(figsize=(0.8 + side * across, 0.6 + side * rows), layout="constrained")
    axes = figure.subplots(rows, across, squeeze=False).ravel()
    sizes = np.abs(np.concatenate([shift.ravel() for shift in shifts.values()] or [np.zeros(1)]))
    # Of very many cells, a few that are much larger must not make all others pale
    most = float(np.quantile(sizes, 0.999)) or 1.0
    for ax, (lag, shift) in zip(axes, shifts.items(), strict=False):
        of_symbols = shift.shape[1] == len(model.classes) and lag <= model.max_lag
        image = ax.imshow(
            shift[np.ix_(order, order)] if of_symbols else shift[order],
            cmap="RdBu_r",
            vmin=-most,
            vmax=most,
            aspect="auto",
            interpolation="nearest",
        )
        _name_symbols(ax, names, names if of_symbols else value_names(model, lag))
        if lag > model.max_lag:
            ax.set_xlabel(model.source_name(lag))
        ax.set_title("all lags" if lag == SHARED else model.source_name(lag))
        figure.colorbar(image, ax=ax, shrink=0.8, label="percentage points")
    if left_out > 0:
        figure.suptitle(f"the {_MATRICES} strongest matrices; {left_out} more are left out")
    for ax in axes[len(shifts) :]:
        ax.set_axis_off()
    if not shifts:
        axes[0].text(0.5, 0.5, "no lag is found", ha="center", transform=axes[0].transAxes)
    return figure


def _mean(model: LagModel, lag: int) -> Array:
    """(N,): the distribution of the next symbol, on average over the symbols at a lag."""
    P = model.matrix(lag)
    occurs = model.frequencies_at(lag)
    return P @ occurs if len(occurs) == P.shape[1] else model.prior


def value_names(model: LagModel, lag: int) -> list[str]:
    """The columns of the matrix of a lag or covariate, for a reader."""
    if lag > model.max_lag:
        return model.covariates[lag - model.max_lag - 1].names
    values = model.contexts if model.matrix(lag).shape[1] > len(model.classes) else model.classes
    return [readable(x) for x in values.tolist()]


def likeness_order(shifts: list[Array], frequencies: Array) -> Ints:
    """(N,): the symbols, ordered so that symbols with similar rows and columns are neighbours."""
    N = len(frequencies)
    if N < 3 or not shifts:
        return np.arange(N)
    features = np.column_stack([part for shift in shifts for part in (shift, shift.T)])
    tree = linkage(features, method="average", optimal_ordering=N <= 100)
    return leaves_list(tree).astype(np.int64)


def _name_symbols(ax: "Axes", names: list[str], columns: list[str]) -> None:
    """Name rows and columns; of many symbols, every second, third, … one."""
    turned = 90 if max(map(len, columns)) > 2 else 0
    every = _name_axis(ax.set_yticks, names)
    every = max(every, _name_axis(ax.set_xticks, columns, rotation=turned))
    left_out = f" (one name in {every})" if every > 1 else ""
    ax.set_xlabel(f"symbol at the lag{left_out}")
    ax.set_ylabel("next symbol")


def _name_axis(set_ticks: Any, names: list[str], **style: Any) -> int:
    """Name the rows or columns, one in so many as is returned."""
    every = -(-len(names) // _NAMES)
    size = 9 if len(names) <= 15 else 6
    # A symbol may contain a $
    at = range(0, len(names), every)
    set_ticks(at, names[::every], fontsize=size, parse_math=False, **style)
    return every


def plot_timeline(
    bits: Array, by_source: dict[str, Array], colours: list[str], ax: "Axes | None"
) -> "Axes":
    """A plot of the bits that the model explains (symbols,), and of those of each source by name,
    along a sequence. If there are many symbols, means over neighbours are shown. NaN is left out.
    """
    with wanted_for("a picture"):
        from matplotlib.figure import Figure

    if ax is None:
        ax = Figure(figsize=(9.0, 3.2), layout="constrained").subplots()
    width = -(-bits.size // _BARS)
    x = np.arange(0, bits.size, width)

    def means(values: Array) -> Any:
        """The mean of each group of neighbours; 0 where none of them is predicted."""
        there = ~np.isnan(values)
        sums = np.add.reduceat(np.where(there, values, 0.0), x)
        return sums / np.maximum(np.add.reduceat(there.astype(float), x), 1)

    for (name, values), colour in zip(by_source.items(), colours, strict=True):
        ax.step(x, means(values), where="post", color=colour, label=name, lw=1.2)
    ax.fill_between(x, means(bits), step="post", color="0.85", label="all lags", zorder=0)
    ax.axhline(0, color="0.5", lw=0.8)
    ax.set_xlim(0, max(bits.size - 1, 1))
    ax.set_xlabel("symbol" if width == 1 else f"symbol (means of {width} neighbours)")
    ax.set_ylabel("bits explained")
    ax.legend(fontsize=8, ncols=7, frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    return ax
