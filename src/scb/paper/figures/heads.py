"""F33: several heads."""

import numpy as np
from matplotlib.axes import Axes

from scb.arrays import Array
from scb.drawing import COLOURS, MARKERS, look, panels
from scb.jobs.table import Table, groups, pick, replicates, values
from scb.paper.claims.heads import READABLE
from scb.paper.figures.bars import Drawing

READ = {
    "as trained": ("random", "overlap"),
    "with ℓ₁": ("sparse", "overlap"),
    "rotated": ("random", "rotated"),
    "spare head, rotated": ("spare", "rotated"),
}
"""A label → the start of the runs, and the column with the overlap of the worst head."""


def several_heads(heads: Table, sparse_heads: Table) -> Drawing:
    """F33: measured against predicted steps; the loss of equal heads; overlaps with the true
    heads."""
    figure, (left, middle, right) = panels(3, height=3.6)
    random = pick(heads, start="random")
    for i, (number, rows) in enumerate(groups(random, "number")):
        style = {"color": COLOURS[i], "marker": MARKERS[i], "linestyle": "none", "markersize": 3}
        left.plot(rows["predicted"], rows["measured"], label=f"σ$_{number}$", **style)
    ends = [random["predicted"].min(), random["predicted"].max()]
    left.plot(ends, ends, color="0.5", linewidth=0.8)
    left.set(xscale="log", yscale="log", xlabel="predicted", ylabel="measured")
    left.set_title("steps to half of a singular value")
    for i, start in enumerate(("random", "equal")):
        losses = pick(heads, start=start, number=1)["above_one_head"]
        _shares(middle, losses, i, f"{start} starts")
    middle.set(xlabel="loss above that of the best single head", title="where training ends")
    for i, (label, (start, column)) in enumerate(READ.items()):
        off = 1 - pick(sparse_heads if start == "sparse" else heads, start=start, number=1)[column]
        _shares(right, np.maximum(off, 1e-8), i, label)
    right.axvline(1 - READABLE, color="0.6", linewidth=0.8, linestyle=":")
    right.set(xscale="log", xlabel="1 − overlap of the worst head", title="which heads come out")
    for ax in (left, middle, right):
        ax.legend(fontsize=7)
    sizes = " and ".join(map(str, values(heads, "N")))
    return figure, (
        f"N = {sizes}, T = {heads['T'][0]}, sparsity 2, two and three heads, {replicates(heads)} "
        "random tasks each; training without noise"
    )


def _shares(ax: Axes, found: Array, number: int, label: str) -> None:
    """The share of tasks that have at most each value."""
    shares = (np.arange(found.size) + 1) / found.size
    ax.step(np.sort(found), shares, where="post", label=label, **look(number))
    ax.set_ylabel("share of tasks")
