"""F10, F11, F12: beyond the paper."""

import numpy as np
from matplotlib.figure import Figure

from scb.jobs.table import Table, pick, quartiles, values
from scb.paper.figures.style import COLOURS, MARKERS, caption, look, panels, quiet, replicates


@quiet
def support(found: Table, trained: Table, drift: Table) -> Figure:
    """F10: samples until the whole support is known, against T; and how many tasks are there, against n."""
    figure, (ax, success) = panels(2, "F10  Samples until the whole support is known", width=4.8, height=3.6)
    lines = [
        ("Algorithm 1, sign settled", pick(trained, overlap=0.0), "found"),
        *((f"transfer, overlap {o:g}", pick(trained, overlap=o), "found") for o in values(trained, "overlap") if o),
        ("moments alone", found, "moments"),
        ("likelihood, started from moments", found, "likelihood"),
    ]
    for number, (label, table, column) in enumerate(lines):
        xs, low, middle, high = quartiles(table, "T", column)
        error = np.array([middle - low, np.where(np.isfinite(high), high - middle, 0)])
        shifted = xs * (1 + 0.03 * (number - 2))
        ax.errorbar(shifted, middle, error, capsize=2, label=label, **look(number, marker=True))
    xs, _, middle, _ = quartiles(pick(drift, right=True), "T", "reached")
    ax.plot(xs, middle, "k:", marker="x", markersize=4, label="Stage 1 by the drift alone (simulated)")
    ax.set(xscale="log", yscale="log", xlabel="sequence length T", ylabel="samples", ylim=(80, None))
    ax.legend(loc="upper left", fontsize=6.5)
    for number, T in enumerate(values(found, "T")):
        least = np.sort(found["likelihood"][found["T"] == T])
        share = np.arange(1, len(least) + 1) / len(least)
        success.step(least, share, where="post", label=f"T = {T:,}", **look(number))
    success.set(title="share of tasks, by likelihood", xlabel="samples", ylim=(0, 1.05))
    success.legend(loc="lower right")
    ax.set_title("median and quartiles")
    caption(figure, f"N = 3, sparsity 2; median and quartiles over {replicates(found)} random tasks")
    return figure


@quiet
def bound(table: Table) -> Figure:
    """F11: squared errors beside the Cramér–Rao line."""
    figure, axes = panels(2, "F11  Error against the Cramér–Rao bound", height=3.0)
    for ax, name in zip(axes, "PQ", strict=True):
        for number, N in enumerate(values(table, "N")):
            mine = pick(table, N=N)
            n = np.unique(mine["n"])
            mean = {kind: [mine[f"{kind}_{name}"][mine["n"] == x].mean() for x in n] for kind in ("square", "bound")}
            ax.plot(n, mean["bound"], label=f"bound, N = {N}", **look(number))
            ax.plot(n, mean["square"], MARKERS[number], color=COLOURS[number], markersize=5, label=f"measured, N = {N}")
        ax.set(xscale="log", yscale="log", xlabel="samples n", title=f"mean ‖{'V − P' if name == 'P' else 'A − Q'}‖²")
    axes[1].legend(loc="upper right", fontsize=7)
    caption(figure, f"T = {table['T'][0]}, sparsity 2; maximum likelihood, means over {replicates(table)} random tasks")
    return figure


@quiet
def sequences(table: Table) -> Figure:
    """F12: how often the support is exactly right, from one long sequence."""
    figure, (ax,) = panels(1, "F12  One long sequence instead of independent samples", width=5.0, height=2.8)
    lengths = np.unique(table["length"])
    for number, (name, label) in enumerate((("likelihood", "likelihood"), ("moments", "moments alone"))):
        share = [table[name][table["length"] == x].mean() for x in lengths]
        ax.plot(lengths, share, marker=MARKERS[number], label=label, **look(number))
    ax.set(xscale="log", xlabel="tokens", ylabel="exactly right", ylim=(-0.05, 1.05))
    ax.legend(loc="center right")
    caption(figure, f"N = {table['N'][0]}, sparsity 2, T = {table['T'][0]}; {replicates(table)} random tasks a length")
    return figure
