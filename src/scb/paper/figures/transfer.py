"""F20: transfer with a value matrix that was trained on another task."""

import numpy as np
from matplotlib.figure import Figure

from scb.drawing import COLOURS, caption, look, panels
from scb.jobs.table import Table, by_value, pick, replicates, values, wilson


def pretrained(table: Table, overlaps: Table) -> Figure:
    """F20: share of runs that learn both layers, against the overlap (for each N and θ), and by
    size, sparsity and family."""
    sizes = values(overlaps, "N")
    figure, axes = panels(
        len(sizes) + 1,
        "F20  Transfer from a trained value matrix: both layers within 0.05",
        height=3.4,
    )
    for ax, N in zip(axes, sizes, strict=False):
        for number, theta in enumerate(values(overlaps, "theta")):
            mine = pick(overlaps, N=N, theta=theta)
            x, learned = by_value(mine, "overlap", "learned", np.mean)
            runs = by_value(mine, "overlap", "learned", len)[1]
            low, high = wilson(learned * runs, runs)
            error = np.maximum([learned - low, high - learned], 0)
            ax.errorbar(
                x * 1.03**number,
                learned,
                error,
                capsize=2,
                label=f"θ = {theta:g}",
                **look(number, marker=True),
            )
        says = by_value(pick(overlaps, N=N), "overlap", "says", np.mean)
        ax.plot(*says, "x", color="black", markersize=5, label="runs that say so")
        bound = float(np.median(pick(overlaps, N=N)["bound"]))
        ax.axvline(bound, color="0.5", linewidth=0.8)
        ax.annotate(
            "‖μ‖²/K$_P$",
            (bound, 0.02),
            fontsize=7,
            color="0.35",
            ha="right",
            rotation=90,
            va="bottom",
        )
        ax.set(
            xscale="log",
            xlabel="overlap of P̂ with P",
            title=f"N = {N}, T = {overlaps['T'][0]}",
            ylim=(-0.03, 1.05),
        )
    axes[0].legend(loc="center right", fontsize=7)
    last = axes[-1]
    labels = []
    for row, case in enumerate(
        dict.fromkeys(zip(*(table[name].tolist() for name in CASE), strict=True))
    ):
        mine = pick(table, **dict(zip(CASE, case, strict=True)))
        good = int(mine["learned"].sum())
        low, high = wilson(np.array(good), np.array(len(mine["learned"])))
        share = good / len(mine["learned"])
        last.errorbar(
            share,
            -row,
            xerr=np.array([[max(share - float(low), 0.0)], [max(float(high) - share, 0.0)]]),
            fmt="o",
            markersize=4,
            color=COLOURS[0],
        )
        N, T, sparsity, family = case
        words = {"strong": "", "zipf": ", Zipf μ", "flat": ", flat P"}[family]
        labels.append(f"N {N}, T {T:,}, Q {sparsity}{words}: {np.median(mine['samples']):,.0f}")
    for row, label in enumerate(labels):
        last.text(0.02, -row, label, fontsize=6.5, va="center")
    last.set_yticks([])
    last.axvline(0.9, color="0.5", linewidth=0.8, linestyle=":")
    last.set(xlim=(0, 1.03), title="overlap 0.6, θ = 0.5; median samples")
    caption(
        figure,
        f"{replicates(overlaps)} (first panels) and {replicates(table)} (last) random tasks per "
        "point, 95 % intervals",
    )
    return figure


CASE = ("N", "T", "sparsity", "family")
