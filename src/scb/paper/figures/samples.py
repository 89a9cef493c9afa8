"""F7, F10, F11, F12: the number of samples that the paper's algorithms and other methods need."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from scb.drawing import look, panels
from scb.jobs.table import Table, by_value, groups, pick, quartiles, replicates, values
from scb.paper.figures.bars import Drawing, share_bars, small_legend
from scb.paper.numbers import average


def transfer(table: Table, drift: Table) -> Drawing:
    """F7: the samples until both distances are ε, and the samples that the drift would need to
    decide the sign."""
    figure, (ax,) = panels(1, width=6.0, height=3.4)
    lines = {"from scratch, sign resolved by skewness": (pick(table, overlap=0.0), "reached")}
    lines |= {
        f"transferred, overlap {overlap:g}": (rows, "reached")
        for overlap, rows in groups(table, "overlap")
        if overlap
    }
    _against_T(
        ax, lines, apart=0.04, drift=drift, by_drift="Stage 1 by the drift alone (simulated)"
    )
    ax.set_ylim(1e3, None)
    small_legend(ax)
    until = f"until ‖V − P‖$_μ$ and ‖A − Q‖$_μ$ ≤ {table['epsilon'][0]:g}"
    return figure, f"N = 3, sparsity 2; {until}; quartiles over {replicates(table)} random tasks"


def support(found: Table, trained: Table, drift: Table) -> Drawing:
    """F10: the samples until the whole support is known, against T; and the number of tasks for
    which it is known, against n.
    """
    figure, (ax, success) = panels(2, width=4.8, height=3.6)
    lines = {"Algorithm 1, sign resolved": (pick(trained, overlap=0.0), "found")}
    lines |= {
        "moments alone": (found, "moments"),
        "likelihood, started from moments": (found, "likelihood"),
    }
    _against_T(
        ax, lines, apart=0.03, drift=drift, by_drift="Stage 1 by the drift alone (simulated)"
    )
    ax.set(title="median and quartiles", ylim=(80, None))
    small_legend(ax, fontsize=6.5)
    for number, T in enumerate(values(found, "T")):
        least = np.sort(found["likelihood"][found["T"] == T])
        share = np.arange(1, len(least) + 1) / len(least)
        success.step(least, share, where="post", label=f"T = {T:,}", **look(number))
    success.set(title="by likelihood", xlabel="samples", ylim=(0, 1.05))
    success.set_ylabel("share of tasks whose whole support is known")
    success.legend(loc="lower right")
    return figure, f"N = 3, sparsity 2; median and quartiles over {replicates(found)} random tasks"


def _against_T(
    ax: Axes, lines: dict[str, tuple[Table, str]], apart: float, drift: Table, by_drift: str
) -> None:
    """Quartiles of columns of tables (label → table, column) beside each other, and the samples
    that the drift alone asks for."""
    for number, (label, (table, column)) in enumerate(lines.items()):
        xs, low, middle, high = quartiles(table, "T", column)
        error = np.array([middle - low, np.where(np.isfinite(high), high - middle, 0)])
        shifted = xs * (1 + apart * (number - len(lines) // 2))
        ax.errorbar(shifted, middle, error, capsize=2, label=label, **look(number, marker=True))
    ax.plot(
        *by_value(pick(drift, right=True), "T", "reached"),
        "k:",
        marker="x",
        markersize=4,
        label=by_drift,
    )
    ax.set(xscale="log", yscale="log", xlabel="sequence length T", ylabel="samples")


def bound(table: Table) -> Drawing:
    """F11: squared errors divided by the Cramér–Rao bound."""
    figure, axes = panels(2, height=3.0)
    for ax, name, error in zip(axes, "PQ", ("V − P", "A − Q"), strict=True):
        for number, (N, rows) in enumerate(groups(table, "N")):
            n = np.array(values(rows, "n"))
            ratio = [
                average(fits[f"square_{name}"] / fits[f"bound_{name}"])
                for _, fits in groups(rows, "n")
            ]
            middle = np.array([x.estimate for x in ratio])
            ends = np.abs(np.array([(x.low, x.high) for x in ratio]).T - middle)
            style = look(number, marker=True)
            ax.errorbar(n * 1.04**number, middle, ends, capsize=2, label=f"N = {N}", **style)
        ax.axhline(1, color="0.4", linewidth=0.8, linestyle=":")
        ax.set(xscale="log", yscale="log", xlabel="samples n", title=f"‖{error}‖²$_μ$ / bound")
        ax.set_yticks((0.5, 1, 2, 4), ("0.5", "1", "2", "4"))
        ax.yaxis.set_minor_formatter(NullFormatter())
    small_legend(axes[1], "upper right")
    return figure, (
        f"T = {table['T'][0]}, sparsity 2; maximum likelihood on the support that it found; means "
        f"over {replicates(table)} random tasks with 95 % intervals; dotted: the bound"
    )


def sequences(table: Table) -> Drawing:
    """F12: how often the support is exactly right, from one long sequence."""
    figure, (ax,) = panels(1, width=5.0, height=2.8)
    for number, (name, label) in enumerate(
        (("likelihood", "likelihood"), ("moments", "moments alone"))
    ):
        share_bars(ax, table, "length", name, number, label)
    ax.set(xscale="log", xlabel="tokens", ylabel="support exactly right", ylim=(-0.05, 1.05))
    lengths = values(table, "length")
    ax.set_xticks(lengths, [f"{length:,}" for length in lengths])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.legend(loc="lower center")
    return figure, (
        f"N = {table['N'][0]}, sparsity 2, T = {table['T'][0]}; {replicates(table)} random tasks "
        "for each length, 95 % intervals"
    )
