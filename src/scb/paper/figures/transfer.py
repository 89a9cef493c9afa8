"""F7: samples against T."""

from matplotlib.figure import Figure

from scb.jobs.table import Table, pick, quartiles, values
from scb.paper.figures.style import caption, look, panels, quiet, replicates


@quiet
def transfer(table: Table, drift: Table) -> Figure:
    """Samples until both distances are ε, and what the sign of the drift would ask for."""
    figure, (ax,) = panels(1, "F7  Samples needed against sequence length", width=6.0, height=3.4)
    for number, overlap in enumerate(values(table, "overlap")):
        mine = pick(table, overlap=overlap)
        xs, low, middle, high = quartiles(mine, "T", "reached")
        label = f"transferred, overlap {overlap:g}" if overlap else "from scratch, sign settled by skewness"
        shifted = xs * (1 + 0.04 * (number - 1))
        ax.errorbar(shifted, middle, (middle - low, high - middle), capsize=2, label=label, **look(number, marker=True))
    xs, _, middle, _ = quartiles(pick(drift, right=True), "T", "reached")
    ax.plot(xs, middle, "k:", marker="x", markersize=4, label="Stage 1 by the drift alone, as printed (simulated)")
    ax.set(xscale="log", yscale="log", xlabel="sequence length T", ylabel="samples", ylim=(1e3, None))
    ax.legend(loc="upper left")
    epsilon = table["epsilon"][0]
    caption(
        figure,
        f"N = 3, sparsity 2; until ‖V − P‖$_μ$ and ‖A − Q‖$_μ$ ≤ {epsilon:g}; "
        f"median and quartiles over {replicates(table)} random tasks",
    )
    return figure
