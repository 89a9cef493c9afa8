"""F1, F3, F4, F6, F8: what training with the paper's methods looks like."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from scb.drawing import COLOURS, band, grid, mark, panels, star_marker
from scb.jobs.table import (
    Table,
    at,
    concatenate,
    groups,
    pick,
    quartiles,
    replicates,
    values,
    where,
)
from scb.paper.figures.bars import Drawing

NAMES = {
    "proximal": "proximal, λ = 1e-5",
    "proximal, larger λ": "proximal, λ = 1e-4",
    "SGD": "SGD, η₂ = 0.005",
    "SGD, small η₂'": "SGD, η₂' = 0.001",
}
NUMBER = {name: i for i, name in enumerate(NAMES)}  # a method looks the same in every figure


def with_right_sign(table: Table) -> Table:
    """The rows of tasks on which the paper's literal method ends with α_A > 0; the other tasks end
    near the mirror image (F8).

    If there is no such task, which happens if there are few tasks, all rows are returned.
    """
    end = at(pick(table, method="proximal"))
    right = end["replicate"][end["alpha_A"] > 0]
    return where(table, np.isin(table["replicate"], right)) if right.size else table


def convergence(table: Table) -> Drawing:
    """F1: both distances to the true matrices; stars show the proximal method after
    normalisation."""
    table = with_right_sign(table)
    figure, axes = panels(2)
    for ax, layer, label in zip(axes, "VA", ("‖V − P‖$_μ$", "‖A − Q‖$_μ$"), strict=True):
        _methods(ax, table, f"dist_{layer}")
        for number, method in enumerate(("proximal", "proximal, larger λ")):
            star_marker(
                ax, 1000, np.median(at(pick(table, method=method))[f"dist_{layer}_star"]), number
            )
        _stages(ax)
        ax.set(title=label, ylim=(-0.02, None))
    axes[1].legend(loc="lower left")
    return figure, f"{_setting(table)}. Stars: after normalisation"


def signals(table: Table) -> Drawing:
    """F3: the signals, and the distances to the population's lines."""
    titles = {
        "alpha_V": "signal α$_V$",
        "alpha_A": "signal α$_A$",
        "delta_V": "‖Δ$_V$‖$_μ$",
        "delta_A": "‖Δ$_A$‖$_μ$",
    }
    table = with_right_sign(table)
    figure, axes = _columns(2, table, titles)
    axes[0, 0].legend(loc="upper left")
    return figure, _setting(table)


def similarity(table: Table) -> Drawing:
    """F4: μ-cosines of V, of A, and of A after normalisation with the true matrices."""
    columns = {"sim_V": "V with P", "sim_A": "A with Q", "sim_A_star": "A with Q, normalised"}
    table = with_right_sign(table)
    figure, axes = _columns(1, table, columns)
    for ax in axes.flat:
        ax.set(ylim=(-0.02, 1.05))
    axes[0, 0].set_ylabel("μ-cosine")
    axes[0, 0].legend(loc="lower right")
    return figure, _setting(table)


def sizes(smallest: Table, others: Table) -> Drawing:
    """F6: distances and loss for each N, over the paper's 1,000 steps."""
    compared = where(smallest, np.isin(smallest["method"], ("proximal", "SGD")))
    table = concatenate(
        [with_right_sign(rows) for part in (compared, others) for _, rows in groups(part, "N")]
    )
    Ns = values(table, "N")
    figure, axes = grid(len(Ns), 3, height=2.1)
    for row, N in zip(axes, Ns, strict=True):
        mine = pick(table, N=N)
        for ax, column in zip(row, ("dist_V", "dist_A", "loss"), strict=True):
            _methods(ax, mine, column)
            _stages(ax)
        for ax, layer in zip(row, "VA", strict=False):
            star_marker(
                ax,
                mine["step"].max(),
                np.median(at(pick(mine, method="proximal"))[f"dist_{layer}_star"]),
                0,
            )
            ax.set_ylim(-0.02, None)
        for ax, name in zip(row, ("‖V − P‖$_μ$", "‖A − Q‖$_μ$", "population loss"), strict=True):
            ax.set_title(f"N = {N}: {name}")
    axes[0, 1].legend(loc="lower left")
    return figure, f"{_setting(table, one_N=False)}. Stars: proximal, after normalisation"


def signs(table: Table) -> Drawing:
    """F8: the signal at the end for each seed, exactly as in the paper and with the sign
    resolved."""
    figure, axes = panels(2, height=2.6)
    methods = {"proximal": "as printed", "proximal, sign settled": "sign resolved by skewness"}
    for ax, (method, name) in zip(axes, methods.items(), strict=True):
        end = np.sort(at(pick(table, method=method))["alpha_A"])
        ax.axhline(0, color="0.4", linewidth=0.8)
        ax.scatter(
            np.arange(1, len(end) + 1), end, c=np.where(end < 0, COLOURS[1], COLOURS[0]), s=14
        )
        ax.set(
            title=f"{name}: {(end < 0).sum()} of {len(end)} negative",
            xlabel="task, in order of α$_A$",
            ylim=(-1.05, 1.05),
        )
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[0].set_ylabel("α$_A$ at the end")
    return figure, _setting(table).partition("\n")[0] + "; 1,000 steps, λ = 1e-5"


def _setting(table: Table, one_N: bool = True) -> str:
    """Two lines under a figure: the settings, and over which tasks; else N varies."""
    size = f"N = {values(table, 'N')[0]}, " if one_N else ""
    tasks = (
        replicates(table)
        if one_N
        else f"{min(replicates(rows) for _, rows in groups(table, 'N'))} or more"
    )
    shown = (
        f"median and quartiles over the {tasks} random tasks on which noise chose the right sign"
    )
    ensemble = f"ensemble {values(table, 'ensemble')[0]}"
    return f"{size}T = {table['T'][0]:,}, sparsity 2, B = 64, {ensemble}\n{shown}"


def _columns(rows: int, table: Table, columns: dict[str, str]) -> tuple[Figure, np.ndarray]:
    """A figure with a panel for each of some columns of a table, by all methods."""
    figure, axes = grid(rows, len(columns) // rows)
    for ax, (column, name) in zip(axes.flat, columns.items(), strict=True):
        _methods(ax, table, column)
        _stages(ax)
        ax.set(title=name)
    return figure, axes


def _methods(ax: Axes, table: Table, column: str) -> None:
    for method, rows in groups(table, "method"):
        band(ax, quartiles(rows, "step", column), NUMBER[method], NAMES[method])


def _stages(ax: Axes) -> None:
    mark(ax, 400, "Stage 2")
    ax.set_xlabel("step")
