"""F21 to F24: what was run on a GPU."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scb.drawing import COLOURS, MARKERS, caption, grid, look, panels
from scb.jobs.table import Table, by_value, pick, replicates, where
from scb.paper.claims.large import RIGHT
from scb.paper.claims.projector import PROJECTORS
from scb.paper.claims.rates import AXES
from scb.paper.experiments.large import LARGE_BASE
from scb.paper.figures.rates import SYMBOLS, exponent_panels
from scb.paper.stage_one import least_at_each, power_laws, share_by_power_law
from scb.theory.constants import attention_error

CURVES = {
    "alpha_V": "α$_V$",
    "alpha_A": "α$_A$",
    "delta_V": "‖Δ$_V$‖$_μ$",
    "delta_A": "‖Δ$_A$‖$_μ$",
}
STAGES = (1, 2, 3)


def real(table: Table) -> Figure:
    """F21: signals and errors of real runs at the paper's simulated sizes, beside simulated
    runs."""
    sizes = list(
        dict.fromkeys(
            zip(
                table["N"].tolist(),
                table["method"].tolist(),
                table["batch_size"].tolist(),
                strict=True,
            )
        )
    )
    title = "F21  The simulated sizes with real gradients"
    figure, axes = grid(len(sizes), len(CURVES), title, width=2.6, height=2.0, beside=2)
    for row, (N, method, batch_size) in zip(axes, sizes, strict=True):
        mine = pick(table, N=N, method=method)
        for ax, (column, symbol) in zip(row, CURVES.items(), strict=True):
            for number, gradients in enumerate(("simulated", "real")):
                label: str | None = gradients
                runs = pick(mine, gradients=gradients)
                for i in np.unique(runs["trial"]):
                    run = pick(runs, trial=i)
                    y = np.where(run[column] > 0, run[column], np.nan)
                    style = (
                        {"color": "0.1", "linestyle": "--", "linewidth": 1.2}
                        if number
                        else {"color": COLOURS[1], "linewidth": 0.8}
                    )
                    ax.plot(run["step"], y, label=label, **style)
                    label = None
            ax.set(
                title=symbol,
                xlabel="step",
                yscale="log" if column.startswith("delta") else "linear",
            )
            ax.tick_params(labelsize=7)
        row[0].set_ylabel(f"N = {N}, {method}\nB = {batch_size:,}", fontsize=8)
    axes[0][0].legend(fontsize=7, loc="upper left")
    caption(figure, f"T = {table['T'][0]:,}, sparsity 2, one task a size; no line where ‖Δ‖ is 0")
    return figure


def signs(table: Table) -> Figure:
    """F22: the least batch against T, and how often Stage 1 finds the sign with a multiple of
    it."""
    title = "F22  Stage 1 by the drift alone, at long lengths"
    figure, (left, right) = panels(2, title, width=4.4, height=3.4)
    for number, projector in enumerate(("euclidean", "mu")):
        _signs_of(left, right, pick(table, projector=projector), number, projector)
    ratio = np.geomspace(0.05, 8, 100)
    expected = {"color": "0.4", "linewidth": 1.0, "label": "Φ(z√(B/B$_T$))"}
    right.plot(ratio, share_by_power_law(ratio, RIGHT), **expected)
    words = f"least B for {RIGHT:.0%} right signs, B$_T$"
    left.set(xscale="log", yscale="log", xlabel="sequence length T", title=words)
    left.set_ylim(top=30 * left.get_ylim()[1])  # room for the legend
    left.legend(loc="upper left", fontsize=7)
    right.set(xscale="log", xlabel="B / B$_T$", title="share of right signs", ylim=(0.4, 1.03))
    right.legend(loc="lower right", fontsize=7)
    caption(
        figure,
        f"N = 3, sparsity 2, η = 0.05, {replicates(table)} random tasks per point, no sign "
        "resolution; lines: one distribution for all T; marks: each T by itself; dotted: T and T²",
    )
    return figure


def _signs_of(left: Axes, right: Axes, table: Table, number: int, projector: str) -> None:
    """The marks and lines of one projector in both panels."""
    law, low, high = power_laws(table, RIGHT)[projector]
    T, each = least_at_each(table, RIGHT)
    text = f"{PROJECTORS[projector]}: T$^{{{law.exponent:.2f}}}$ [{low:.2f}, {high:.2f}]"
    points: dict[str, Any] = {"color": COLOURS[number], "marker": MARKERS[number]}
    points |= {"markersize": 5, "linestyle": "none"}
    left.plot(T, law.least(T), color=COLOURS[number], label=text)
    left.plot(T, each, **points)
    power = 2 - number
    beside = law.least(T)[0] * (T / T[0]) ** power
    left.plot(T, beside, color="0.6", linewidth=0.8, linestyle=":")
    left.annotate("T²" if number == 0 else "T", (T[-1], beside[-1]), fontsize=8)
    label: str | None = PROJECTORS[projector]
    for t in T:
        batch, share = by_value(pick(table, T=t), "batch_size", "right", np.mean)
        right.plot(batch / law.least(t), share, label=label, alpha=0.7, **points)
        label = None


def rates(table: Table) -> Figure:
    """F23: the least number of samples of each stage, one size varied at a time, beyond the sizes
    of F15."""
    title = "F23  The least number of samples at large sizes"
    symbols = {axis: symbol for axis, symbol in AXES.items() if axis != "K_P"}
    stages = {stage: f"Stage {stage}" for stage in STAGES}
    figure, axes = exponent_panels(title, table, LARGE_BASE, stages, symbols, width=2.3)
    axes[-1][0].legend(fontsize=6, loc="upper left")
    base = ", ".join(f"{SYMBOLS[name]} = {x:g}" for name, x in LARGE_BASE.items())
    searches = f"1 or {replicates(table)} searches with {table['runs'][0]} tasks each"
    caption(figure, f"the others {base}; exponents above the panels; {searches}")
    return figure


def plan(table: Table) -> Figure:
    """F24: one run at the planner's batch sizes, stage by stage, with what the lemmas promise at
    the end of each."""
    figure, (signals, errors) = panels(
        2, "F24  Algorithm 1 at the planner's own batch sizes", width=4.4, height=3.2
    )
    N, sparsity, epsilon = (float(table[name][0]) for name in ("N", "sparsity", "epsilon"))
    ends = [int(table["step"][table["stage"] == stage][-1]) for stage in STAGES]
    for number, column in enumerate(("alpha_V", "alpha_A")):
        signals.plot(
            table["step"], table[column], label=CURVES[column], **look(number, marker=True)
        )
    squares = {"‖Δ$_A$‖$_μ^2$": "delta_A", "‖A − Q‖$_μ^2$": "dist_A", "‖V − P‖$_μ^2$": "dist_V"}
    for number, (symbol, column) in enumerate(squares.items()):
        shown = where(table, table[column] > 0)
        errors.plot(shown["step"], shown[column] ** 2, label=symbol, **look(number, marker=True))
    promised = {"color": "0.3", "marker": "x", "markersize": 7, "linestyle": "none"}
    signals.plot(ends[0], min(0.5, 1 / (sparsity * N)), label="promised, at least", **promised)
    errors.plot(
        ends[1],
        attention_error(int(N), int(sparsity), epsilon),
        label="promised, at most",
        **promised,
    )
    errors.plot(ends[2], epsilon, **promised)
    for ax in (signals, errors):
        for end in ends[:-1]:
            ax.axvline(end, color="0.8", linewidth=0.8)
        ax.set_xlabel("step; lines between stages")
        ax.legend(fontsize=7)
    signals.set(title="signals")
    errors.set(title="squared errors", yscale="log")
    sizes = f"N = {N:g}, T = {table['T'][0]}, Q = {sparsity:g}, ε = {epsilon:g}"
    caption(
        figure,
        f"{sizes}, δ = {table['delta'][0]:g}; {table['samples'][-1]:.2g} samples in all; where a "
        "square is 0 there is no mark",
    )
    return figure
