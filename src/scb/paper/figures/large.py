"""F21, F22 and F24: experiments that were run on a GPU."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from scb.drawing import COLOURS, MARKERS, look, panels
from scb.jobs.table import Table, groups, pick, replicates, where
from scb.paper.claims.large import RIGHT
from scb.paper.claims.projector import PROJECTORS
from scb.paper.figures.bars import Drawing, share_bars, small_legend
from scb.paper.stage_one import least_at_each, power_laws, share_by_power_law
from scb.theory.constants import attention_error

CURVES = {
    "alpha_V": "α$_V$",
    "alpha_A": "α$_A$",
    "delta_V": "‖Δ$_V$‖$_μ$",
    "delta_A": "‖Δ$_A$‖$_μ$",
}
STAGES = (1, 2, 3)


def real(table: Table) -> Drawing:
    """F21: the signal and the error of A in real runs at the largest of the paper's simulated
    sizes, compared with simulated runs."""
    largest = pick(table, N=table["N"].max(), method="proximal")
    figure, axes = panels(2, width=3.8, height=2.8)
    for ax, column in zip(axes, ("alpha_A", "delta_A"), strict=True):
        for number, gradients in enumerate(("simulated", "real")):
            runs = pick(largest, gradients=gradients)
            style: dict[str, Any] = {"color": COLOURS[number], "linewidth": 1.2 - 0.4 * number}
            for _, run in groups(runs, "trial"):
                ax.plot(run["step"], np.where(run[column] > 0, run[column], np.nan), **style)
            ax.plot([], [], label=gradients, **style)
        ax.set(title=CURVES[column], xlabel="step")
    axes[1].set_yscale("log")
    axes[0].legend(loc="upper left")
    size = f"N = {largest['N'][0]}, T = {largest['T'][0]:,}, B = {largest['batch_size'][0]:,}"
    return figure, (
        f"{size}, sparsity 2, proximal method, one task, a line per run; no line where ‖Δ$_A$‖ is "
        "0. The claims have the other sizes"
    )


def signs(table: Table) -> Drawing:
    """F22: the least batch against T, and how often Stage 1 finds the sign with a multiple of the
    least batch."""
    figure, (left, right) = panels(2, width=4.4, height=3.4)
    for number, projector in enumerate(("euclidean", "mu")):
        _signs_of(left, right, pick(table, projector=projector), number, projector)
    ratio = np.geomspace(0.05, 8, 100)
    expected = {"color": "0.4", "linewidth": 1.0, "label": "Φ(z√(B/B$_T$))"}
    right.plot(ratio, share_by_power_law(ratio, RIGHT), **expected)
    words = f"least B for {RIGHT:.0%} right signs, B$_T$"
    left.set(xscale="log", yscale="log", xlabel="sequence length T", title=words)
    small_legend(left, room=30)
    right.set(xscale="log", xlabel="B / B$_T$", title="share of right signs", ylim=(0.4, 1.03))
    small_legend(right, "lower right")
    return figure, (
        f"N = 3, sparsity 2, η = 0.05, {replicates(table)} random tasks per point, no sign "
        "resolution; first: lines are a power of T fitted to all T, marks each T by itself, dotted "
        "T and T²; second: runs at neighbouring B / B$_T$ together, 95 % intervals"
    )


def _signs_of(left: Axes, right: Axes, table: Table, number: int, projector: str) -> None:
    """The marks and lines of one projector in both panels; shares in six bins of B / B_T."""
    law, low, high = power_laws(table, RIGHT)[projector]
    T, each = least_at_each(table, RIGHT)
    text = f"{PROJECTORS[projector]}: T$^{{{law.exponent:.2f}}}$ [{low:.2f}, {high:.2f}]"
    points: dict[str, Any] = {"color": COLOURS[number], "marker": MARKERS[number]}
    points |= {"markersize": 5, "linestyle": "none"}
    left.plot(T, law.least(T), color=COLOURS[number], label=text)
    left.plot(T, each, **points)
    power = 2 if projector == "euclidean" else 1  # by the theory
    beside = law.least(T)[0] * (T / T[0]) ** power
    left.plot(T, beside, color="0.6", linewidth=0.8, linestyle=":")
    left.annotate("T²" if power == 2 else "T", (T[-1], beside[-1]), fontsize=8)
    ratio = table["batch_size"] / law.least(table["T"])
    edges = np.geomspace(0.07, 3, 7)
    middles = np.sqrt(edges[1:] * edges[:-1])
    # The outer bins also take what lies beyond them
    binned = middles[np.clip(np.digitize(ratio, edges) - 1, 0, middles.size - 1)]
    share_bars(right, table | {"ratio": binned}, "ratio", "right", number, PROJECTORS[projector])


def plan(table: Table) -> Drawing:
    """F24: one run at the planner's batch sizes, stage by stage, with what the lemmas promise at
    the end of each stage."""
    figure, (signals, errors) = panels(2, width=4.4, height=3.2)
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
    small_legend(signals)
    signals.set(title="signals")
    errors.set(title="squared errors", yscale="log")
    errors.set_ylim(top=1e7)  # room for the legend
    small_legend(errors, ncols=2)
    sizes = f"N = {N:g}, T = {table['T'][0]}, Q = {sparsity:g}, ε = {epsilon:g}"
    return figure, (
        f"{sizes}, δ = {table['delta'][0]:g}; {table['samples'][-1]:.2g} samples in all; where a "
        "square is 0 there is no mark"
    )
