"""F15 to F19: rates, the need of ℓ1, softmax dynamics, a run inside all assumptions, windows of one
sequence."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from scb.drawing import COLOURS, band, caption, grid, label_outer, look, panels
from scb.jobs.table import Table, pick, quartiles, replicates, values
from scb.paper.claims.projector import PROJECTORS
from scb.paper.claims.rates import AXES
from scb.paper.experiments.rates import BASE, LONGER_AXES, LONGER_BASE
from scb.paper.figures.bars import log_ticks, quartile_bars
from scb.paper.slopes import log_log_slope, printed_exponent, varied

SYMBOLS = AXES | {"K_P": "K$_P$"}
STAGES = {1: "Stage 1", 2: "Stage 2", 3: "Stage 3", 0: "in all"}
MU_FROM = {"of the task": "windows, μ of the task", "frequencies": "windows, μ by counting"}


def exponent_panels(
    title: str,
    table: Table,
    base: Mapping[str, float],
    stages: Mapping[int, str],
    symbols: Mapping[str, str],
    width: float,
) -> tuple[Figure, Any]:
    """The least number of samples, a row of panels for each stage and a column for each size.

    The measured exponents and the printed one stand above each panel. All have one scale.
    """
    figure, axes = grid(len(stages), len(symbols), title, width=width, height=1.9, beside=2)
    for row, (stage, words) in zip(axes, stages.items(), strict=True):
        column = f"samples_{stage}" if stage else "samples"
        for ax, (axis, symbol) in zip(row, symbols.items(), strict=True):
            found = []
            printed = ""
            for number, (projector, name) in enumerate(PROJECTORS.items()):
                mine = pick(table, projector=projector)
                rows = varied(mine, axis, base)
                if len(np.unique(rows[axis])) < 2:
                    continue
                quartile_bars(ax, rows, axis, column, number, name)
                slope = log_log_slope(rows[axis], rows[column]).estimate
                found.append(f"{slope:+.2f}" if np.isfinite(slope) else "none")
                if stage:
                    exponent = printed_exponent(mine, axis, stage, base)
                    printed = f"\nprinted {round(exponent, 1) + 0.0:+.1f}"
            ax.sharey(axes[0][0])
            log_ticks(ax, values(varied(table, axis, base), axis))
            ax.set_title(" | ".join(found) + printed, fontsize=7.5)
            ax.set(xlabel=symbol, ylabel=f"{words}: samples")
            label_outer(ax)
    return figure, axes


def rates(table: Table) -> Figure:
    """F15: the least number of samples of each stage and in all, one size varied at a time."""
    title = "F15  The least number of samples, one size varied at a time"
    return _rates(title, table, BASE, tuple(AXES))


def rates_elsewhere(table: Table) -> Figure:
    """F31: the same on another ensemble."""
    title = "F31  The least number of samples, ensemble dirichlet"
    return _rates(title, table, BASE, tuple(AXES))


def longer_rates(table: Table) -> Figure:
    """F32: the same around a longer T, for the sizes that were varied there."""
    title = "F32  The least number of samples at a longer T"
    return _rates(title, table, LONGER_BASE, tuple(LONGER_AXES))


def _rates(title: str, table: Table, base: Mapping[str, float], axes: tuple[str, ...]) -> Figure:
    symbols = {axis: SYMBOLS[axis] for axis in axes}
    figure, (first, *_) = exponent_panels(title, table, base, STAGES, symbols, width=2.0)
    first[0].legend(fontsize=6, loc="upper left")
    sizes = ", ".join(f"{SYMBOLS[name]} = {x:g}" for name, x in base.items())
    searches = f"quartiles of {replicates(table)} searches with {table['runs'][0]} tasks each"
    caption(figure, f"the others {sizes}; exponents above the panels; {searches}")
    return figure


def regulariser(least: Table, error: Table) -> Figure:
    """F16: samples of Stage 2, and ‖Δ_A‖² at one batch size, against T, without and with ℓ1."""
    figure, (ax, beside) = panels(2, "F16  Stage 2 without ℓ₁ and with it", width=4.2, height=3.2)
    for target, table, column in ((ax, least, "samples"), (beside, error, "square_A")):
        for number, multiple in enumerate(values(table, "multiple")):
            rows = pick(table, multiple=multiple)
            slope = log_log_slope(rows["T"], rows[column]).estimate
            name = "SGD" if multiple == 0 else f"λ = {multiple:g}σ"
            quartile_bars(target, rows, "T", column, number, f"{name}: T$^{{{slope:.2f}}}$")
        log_ticks(target, values(table, "T"))
        target.set_xlabel("sequence length T")
        target.set_ylim(top=4 * target.get_ylim()[1])  # room for the legend
        target.legend(fontsize=7, loc="upper left", ncols=2)
    ax.set(title="least samples, both layers within ε", ylabel="samples")
    beside.set(title=f"‖Δ$_A$‖$_μ^2$ at B = {error['batch_size'][0]:,}")
    caption(
        figure,
        f"N = 3, Q = 2, ensemble strong; ε = {least['epsilon'][0]:g}; σ: standard deviation of one "
        "entry's noise in one step; quartiles",
    )
    return figure


def softmax(attention: Table, elsewhere: Table, one_step: Table) -> Figure:
    """F17: samples until the signal shows and ‖Δ_A‖ at half of it, on two ensembles, and how far
    one step of softmax is from one of the linear model."""
    title = "F17  Softmax attention beside the linear model"
    figure, axes = grid(2, 3, title, width=3.6, height=2.9)
    columns = {"samples_10": "samples until α$_A$ = 0.1", "delta_50": "‖Δ$_A$‖$_μ$ at α$_A$ = 0.5"}
    tables = {"strong": attention, "dirichlet": elsewhere}
    for row, (ensemble, table) in zip(axes, tables.items(), strict=True):
        for ax, (column, words) in zip(row, columns.items(), strict=False):
            for number, method in enumerate(values(table, "method")):
                quartile_bars(ax, pick(table, method=method), "T", column, number, method)
            log_ticks(ax, values(table, "T"))
            ax.set(xlabel="sequence length T", title=f"{ensemble}: {words}")
    step, spare = axes[:, 2]
    spare.set_visible(False)
    axes[0, 0].legend(fontsize=7)
    for number, T in enumerate(values(one_step, "T")):
        band(step, quartiles(pick(one_step, T=T), "size", "error"), number, f"T = {T:,}")
    step.set(xscale="log", yscale="log", xlabel="ηT", title="one step: relative difference")
    step.tick_params(labelsize=7)
    step.legend(fontsize=7)
    tasks = f"{replicates(attention)} and {replicates(elsewhere)} random tasks"
    caption(
        figure,
        f"N = 3, Q = 2, B = {attention['batch_size'][0]}; quartiles over {tasks}, of the runs that "
        f"get there in {attention['steps'][0]:,} steps",
    )
    return figure


def theorem(table: Table) -> Figure:
    """F18: Algorithm 1 by its letter where all assumptions hold; thin dashed lines where Stage 1
    took the wrong sign."""
    figure, axes = panels(2, "F18  Inside Assumption 2.1: T = (NQ)$^{10}$", width=4.2, height=3.0)
    for number, projector in enumerate(values(table, "projector")):
        rows = pick(table, projector=projector)
        runs = [pick(rows, replicate=i) for i in np.unique(rows["replicate"])]
        right = [run["alpha_V"][-1] > 0 for run in runs]
        label: str | None = f"{PROJECTORS[projector]}\nsign right in {sum(right)} of {len(runs)}"
        for run, good in sorted(zip(runs, right, strict=True), key=lambda pair: not pair[1]):
            line: dict[str, Any] = {"linewidth": 0.9, "alpha": 0.8}
            if not good:
                line = {"linewidth": 0.7, "alpha": 0.6, "linestyle": "--"}
            for ax, name in zip(axes, ("dist_A", "dist_V"), strict=True):
                ax.plot(
                    run["samples"] / 1000, run[name], color=COLOURS[number], label=label, **line
                )
            label = None
    for ax, name in zip(axes, ("‖A − Q‖$_μ$", "‖V − P‖$_μ$"), strict=True):
        ax.axhline(0.05, color="0.5", linewidth=0.8, linestyle=":")
        ax.set(title=name, xlabel="samples (thousands)", yscale="log")
    axes[1].legend(fontsize=7, loc="lower left")
    caption(
        figure,
        f"N = {table['N'][0]}, Q = {table['sparsity'][0]}, T = {table['T'][0]:,}, "
        f"B = {table['batch_size'][0]:,}; sign not resolved; {replicates(table)} random tasks, a "
        "line each, dashed where the sign is wrong",
    )
    return figure


def windows(table: Table, marginal: Table) -> Figure:
    """F19: distances after Algorithm 1 on windows of one sequence, and how far the frequencies of
    its tokens are from μ."""
    figure, axes = panels(3, "F19  Algorithm 1 on windows of one sequence", width=3.4, height=3.0)
    kinds = list(dict.fromkeys(zip(table["data"].tolist(), table["law"].tolist(), strict=True)))
    for ax, name in zip(axes, ("dist_A", "dist_V"), strict=False):
        for number, (data, law) in enumerate(kinds):
            label = "independent samples" if data == "independent" else MU_FROM[law]
            band(ax, quartiles(pick(table, data=data, law=law), "length", name), number, label)
        ax.axhline(0.05, color="0.5", linewidth=0.8, linestyle=":")
        log_ticks(ax, values(table, "length"))
        ax.set_xlabel("tokens of the sequence")
    axes[0].set(title="‖A − Q‖$_μ$")
    axes[1].set(title="‖V − P‖$_μ$")
    axes[1].set_ylim(bottom=0.7 * axes[1].get_ylim()[0])  # room for the legend
    axes[1].legend(fontsize=7, loc="lower left")
    distance = np.sort(marginal["distance"])
    axes[2].step(distance, np.arange(1, len(distance) + 1) / len(distance), where="post", **look(0))
    axes[2].axvline(
        float(np.median(marginal["error"])), color="0.5", linestyle=":", label="by chance"
    )
    axes[2].set(
        xscale="log", xlabel="total variation from μ", title="frequencies of tokens: share of tasks"
    )
    axes[2].tick_params(labelsize=7)
    axes[2].legend(fontsize=7)
    words = f"N = {table['N'][0]}, Q = 2, T = {table['T'][0]}; recipe tuned"
    caption(
        figure,
        f"{words}; quartiles over {replicates(table)} tasks; last: {marginal['length'][0]:,} "
        "tokens",
    )
    return figure
