"""F14: the paper's projector and the μ-projector."""

import numpy as np
from matplotlib.figure import Figure

from scb.drawing import COLOURS, LINES, MARKERS, caption, look, panels
from scb.jobs.table import Table, by_value, pick, replicates, values, wilson
from scb.paper.experiments.projector import GOAL
from scb.paper.stage_one import least_batches, stage_one_slopes

NAMES = {"euclidean": "I − μμᵀ/‖μ‖² (the paper's)", "mu": "H − (Hμ)1ᵀ"}


def projectors(noise: Table, signs: Table, stage_one: Table) -> Figure:
    """F14: noise at the start, wrong signs, and samples of Stage 1, against T with both
    projectors."""
    figure, (left, middle, right) = panels(3, "F14  The projector that keeps Vμ = μ", height=3.4)
    for number, (projector, name) in enumerate(NAMES.items()):
        for size, N in enumerate(values(noise, "N")):
            mine = pick(noise, projector=projector, N=N)
            line = {"color": COLOURS[number], "linestyle": LINES[size]}
            left.plot(
                *by_value(mine, "T", "exact", np.mean), **line, label=name if size == 0 else None
            )
            left.plot(
                *by_value(mine, "T", "square", np.mean),
                marker=MARKERS[size],
                color=COLOURS[number],
                **POINTS,
            )
        mine = pick(signs, projector=projector)
        T, wrong = by_value(mine, "T", "right", lambda right: 1 - np.mean(right))
        runs = by_value(mine, "T", "right", len)[1]
        low, high = wilson(wrong * runs, runs)
        error = np.maximum([wrong - low, high - wrong], 0)
        middle.errorbar(
            T * (1 + 0.04 * number),
            wrong,
            error,
            capsize=2,
            label=name,
            **look(number, marker=True),
        )
        mine = pick(stage_one, projector=projector)
        T, least = least_batches(mine)
        steps = by_value(mine | {"steps": mine["samples"] / mine["batch_size"]}, "T", "steps")[1]
        slope, low, high = stage_one_slopes(mine)[projector]
        text = f"T$^{{{slope:.2f}}}$ [{low:.2f}, {high:.2f}]"
        right.plot(T, least * steps, label=text, **look(number, marker=True))
        right.plot(
            T,
            least[0] * steps[0] * (T / T[0]) ** (2 - number),
            color="0.6",
            linewidth=0.8,
            linestyle=":",
        )
        right.annotate(
            f"T$^{2 - number}$" if number == 0 else "T",
            (T[-1], least[0] * steps[0] * (T[-1] / T[0]) ** (2 - number)),
        )
    left.set(
        xscale="log",
        yscale="log",
        xlabel="sequence length T",
        title="E‖h$_V$‖$_μ^2$ at the start, B = 64",
    )
    left.legend(loc="lower left", fontsize=7)
    middle.axhline(0.5, color="0.6", linewidth=0.8, linestyle=":")
    middle.set(
        xscale="log",
        xlabel="sequence length T",
        ylim=(0, 0.55),
        title=f"wrong signs, B = {signs['batch_size'][0]}",
    )
    middle.legend(loc="upper left", fontsize=7)
    right.set(
        xscale="log",
        yscale="log",
        xlabel="sequence length T",
        title=f"samples of Stage 1 for {GOAL:.0%} right signs",
    )
    right.legend(loc="upper left")
    sizes = " and ".join(
        f"N = {N} ({line})"
        for N, line in zip(values(noise, "N"), ("solid, ○", "dashed, □"), strict=False)
    )
    runs = (
        f"{replicates(signs)} and {replicates(stage_one)} runs per point on random tasks (N = 3), "
        "sparsity 2, no sign resolution"
    )
    caption(
        figure,
        f"first: exact (lines) and real gradients (marks), {sizes}; {runs}; dotted: T and T²",
    )
    return figure


POINTS = {"linestyle": "none", "markersize": 4, "markerfacecolor": "white"}
