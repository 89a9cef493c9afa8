"""F2: softmax and linear attention side by side."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from scb.jobs.table import Table, pick
from scb.paper.figures.style import band, caption, quiet, replicates

AXES = (("attention", "last token", "position"), ("value matrix", "from", "to"))  # what is shown, across, down


@quiet
def softmax(patterns: Table, table: Table) -> Figure:
    """Learned attention and value matrices beside the truth, and both loss curves."""
    figure = Figure(figsize=(10.2, 4.6), layout="constrained")
    figure.suptitle("F2  Softmax and linear attention learn the same", fontsize=10)
    axes = figure.subplots(2, 4, width_ratios=(1, 1, 1, 1.5))
    sources = {"softmax": ("softmax", "A", "V"), "linear": ("linear", "A", "V"), "truth": ("linear", "Q", "P")}
    for column, (name, (model, *matrices)) in enumerate(sources.items()):
        for row, matrix in enumerate(matrices):
            ax = axes[row, column]
            image = ax.imshow(_matrix(pick(patterns, model=model, matrix=matrix)), **_look(row))
            ax.grid(visible=False)
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            what, xlabel, ylabel = AXES[row]
            ax.set(title=f"{name}: {what}", xlabel=xlabel, ylabel=ylabel)
            if column == 2:
                figure.colorbar(image, ax=ax, shrink=0.8)
    for row, (y, title) in enumerate((("loss", "population loss"), ("sim_A", "similarity of A with Q"))):
        for number, model in enumerate(("softmax", "linear")):
            _by_samples(axes[row, 3], pick(table, model=model), y, number, model)
        axes[row, 3].set(title=title, xlabel="samples")
        axes[row, 3].xaxis.set_major_formatter(EngFormatter(sep=""))
    axes[0, 3].legend()
    caption(
        figure,
        f"N = {table['N'][0]}, T = {table['T'][0]}, sparsity 2; "
        f"heat maps: the first of {replicates(table)} random tasks; curves: median and quartiles over all",
    )
    return figure


def _matrix(rows: Table) -> np.ndarray:
    matrix = np.empty((rows["row"].max() + 1, rows["column"].max() + 1))
    matrix[rows["row"], rows["column"]] = rows["value"]
    return matrix


def _look(row: int) -> dict:
    return {"cmap": "Greys", "vmin": 0, "vmax": 0.8 if row == 0 else 0.5, "aspect": "auto", "interpolation": "nearest"}


def _by_samples(ax, table: Table, y: str, number: int, label: str) -> None:
    """Runs use different numbers of samples: their curves are read off at common ones, and end where the shortest does."""
    runs = [pick(table, replicate=i) for i in np.unique(table["replicate"])]
    ends = min(run["samples"][-1] for run in runs)
    xs = np.linspace(0, ends, 80)
    curves = {"samples": np.tile(xs, len(runs)), y: np.concatenate([np.interp(xs, run["samples"], run[y]) for run in runs])}
    band(ax, curves, "samples", y, number, label)
