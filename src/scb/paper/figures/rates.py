"""F15 to F19: rates, the need for ℓ1, softmax dynamics, a run inside all assumptions, and windows
of one sequence."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from scb.drawing import COLOURS, MARKERS, grid, look, panels
from scb.jobs.table import Table, groups, replicates, values
from scb.paper.claims.projector import PROJECTORS
from scb.paper.claims.rates import AXES, exponents
from scb.paper.experiments.large import LARGE_BASE
from scb.paper.experiments.rates import BASE, LONGER_AXES, LONGER_BASE
from scb.paper.figures.bars import DOTTED, Drawing, log_ticks, quartile_bars, small_legend
from scb.paper.slopes import log_log_slope

SYMBOLS = AXES | {"K_P": "K$_P$"}
RANGE = (-5.0, 7.5)  # of exponents in a picture
MU_FROM = {"of the task": "windows, μ of the task", "frequencies": "windows, μ by counting"}


def _exponent_marks(
    table: Table, base: Mapping[str, float], sizes: tuple[str, ...] = tuple(AXES)
) -> Drawing:
    """The exponents of the least number of samples, a panel for each stage and a row for each size:
    measured with both projectors, with 95 % intervals, beside the printed ones.
    """
    figure, axes = panels(3, width=3.1, height=2.9)
    for stage, ax in enumerate(axes, start=1):
        cases = exponents(table, {stage: sizes}, base)
        marked = [
            (row, number, cases[label])
            for row, axis in enumerate(sizes)
            for number, name in enumerate(PROJECTORS.values())
            if (label := f"{AXES[axis]}, Stage {stage}, {name}") in cases
        ]
        for row, number, case in marked:
            slope = case["slope"]
            place = row + 0.3 * number - 0.15
            ends = np.clip((slope.low, slope.high), *RANGE)
            ax.plot(ends, (place, place), color=COLOURS[number])
            ax.plot(slope.estimate, place, MARKERS[number], color=COLOURS[number], markersize=5)
            ax.plot(case["printed"], row, "|", color="black", markersize=18, markeredgewidth=2)
        ax.set_yticks(range(len(sizes)), [SYMBOLS[axis] for axis in sizes])
        ax.axvline(0, color="0.6", linewidth=0.8)
        ax.set(title=f"Stage {stage}", xlabel="exponent", xlim=RANGE, ylim=(len(sizes) - 0.5, -0.5))
    for number, name in enumerate(PROJECTORS.values()):
        axes[-1].plot([], [], MARKERS[number], color=COLOURS[number], label=name)
    axes[-1].plot([], [], "|", color="black", markersize=9, markeredgewidth=2, label="printed")
    small_legend(axes[-1], "lower right")
    fixed = ", ".join(f"{SYMBOLS[name]} = {x:g}" for name, x in base.items())
    searches = f"{replicates(table)} searches with {table['runs'][0]} tasks each"
    return figure, (
        f"samples grow like size to the exponent; a printed one is an upper bound; one size varied "
        f"at a time, the others {fixed}; 95 % intervals over up to {searches}; a line that ends at "
        "the edge has no end"
    )


def rates(table: Table) -> Drawing:
    """F15: exponents of the least number of samples of each stage, next to the printed
    exponents."""
    return _exponent_marks(table, BASE)


def large_rates(table: Table) -> Drawing:
    """F23: exponents of the least number of samples beyond the sizes of F15."""
    return _exponent_marks(table, LARGE_BASE, ("T", "N", "sparsity", "epsilon"))


def rates_elsewhere(table: Table) -> Drawing:
    """F31: exponents of the least number of samples on another ensemble."""
    return _exponent_marks(table, BASE)


def longer_rates(table: Table) -> Drawing:
    """F32: exponents around a longer T, for the sizes that were varied there."""
    return _exponent_marks(table, LONGER_BASE, tuple(LONGER_AXES))


def regulariser(least: Table, error: Table) -> Drawing:
    """F16: samples of Stage 2, and ‖Δ_A‖² at one batch size, against T, without and with ℓ1."""
    figure, (ax, beside) = panels(2, width=4.2, height=3.2)
    for target, table, column in ((ax, least, "samples"), (beside, error, "square_A")):
        for number, (multiple, rows) in enumerate(groups(table, "multiple")):
            slope = log_log_slope(rows["T"], rows[column]).estimate
            name = "SGD" if multiple == 0 else f"λ = {multiple:g}σ"
            quartile_bars(target, rows, "T", column, number, f"{name}: T$^{{{slope:.2f}}}$")
        log_ticks(target, values(table, "T"))
        target.set_xlabel("sequence length T")
        small_legend(target, ncols=2, room=4)
    ax.set(title="least samples, both layers within ε", ylabel="samples")
    beside.set(title=f"‖Δ$_A$‖$_μ^2$ at B = {error['batch_size'][0]:,}")
    return figure, (
        f"N = 3, Q = 2, ensemble strong; ε = {least['epsilon'][0]:g}; σ: standard deviation of one "
        "entry's noise in one step; quartiles"
    )


def softmax(attention: Table, elsewhere: Table) -> Drawing:
    """F17: samples until the signal shows and ‖Δ_A‖ at half of it, on two ensembles."""
    figure, axes = grid(2, 2, width=3.6, height=2.6)
    columns = {"samples_10": "samples until α$_A$ = 0.1", "delta_50": "‖Δ$_A$‖$_μ$ at α$_A$ = 0.5"}
    tables = {"strong": attention, "dirichlet": elsewhere}
    for row, (ensemble, table) in zip(axes, tables.items(), strict=True):
        for ax, (column, words) in zip(row, columns.items(), strict=True):
            for number, (method, rows) in enumerate(groups(table, "method")):
                quartile_bars(ax, rows, "T", column, number, method)
            log_ticks(ax, values(table, "T"))
            ax.set(xlabel="sequence length T", title=f"{ensemble}: {words}")
    axes[0, 0].legend(fontsize=7)
    tasks = f"{replicates(attention)} and {replicates(elsewhere)} random tasks"
    return figure, (
        f"N = 3, Q = 2, B = {attention['batch_size'][0]}; quartiles over {tasks}, of the runs that "
        f"get there in {attention['steps'][0]:,} steps"
    )


def theorem(table: Table) -> Drawing:
    """F18: Algorithm 1 to the letter where all assumptions hold; runs in which Stage 1 took the
    wrong sign are thin dashed lines.
    """
    figure, axes = panels(2, width=4.2, height=3.0)
    for number, (projector, rows) in enumerate(groups(table, "projector")):
        runs = [run for _, run in groups(rows, "replicate")]
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
        ax.axhline(0.05, **DOTTED)
        ax.set(title=name, xlabel="samples (thousands)", yscale="log", ylim=(1e-3, 2))
    small_legend(axes[1], "lower left")
    return figure, (
        f"N = {table['N'][0]}, Q = {table['sparsity'][0]}, T = {table['T'][0]:,}, "
        f"B = {table['batch_size'][0]:,}; sign not resolved; {replicates(table)} random tasks, a "
        "line each, dashed where the sign is wrong; below 0.001 nothing is drawn"
    )


def windows(table: Table, marginal: Table) -> Drawing:
    """F19: how far the frequencies of a sequence's tokens are from μ, and the distances after
    Algorithm 1 on windows of one sequence."""
    figure, (frequencies, *axes) = panels(3, width=3.4, height=3.0)
    distance = np.sort(marginal["distance"])
    share = np.arange(1, len(distance) + 1) / len(distance)
    frequencies.step(distance, share, where="post", **look(0))
    by_chance = float(np.median(marginal["error"]))
    frequencies.axvline(by_chance, color="0.5", linestyle=":", label="by chance")
    frequencies.set(xscale="log", xlabel="total variation from μ", ylabel="share of tasks")
    frequencies.set(title=f"frequencies in {marginal['length'][0]:,} tokens")
    frequencies.tick_params(labelsize=7)
    frequencies.legend(fontsize=7)
    distances = {"dist_A": "‖A − Q‖$_μ$", "dist_V": "‖V − P‖$_μ$"}
    for ax, (column, name) in zip(axes, distances.items(), strict=True):
        for number, (data, law, mine) in enumerate(groups(table, "data", "law")):
            label = "independent samples" if data == "independent" else MU_FROM[law]
            apart = mine | {"length": mine["length"] * 1.08 ** (number - 1)}
            quartile_bars(ax, apart, "length", column, number, label)
        ax.axhline(0.05, **DOTTED)
        log_ticks(ax, values(table, "length"))
        ax.set(title=f"trained: {name}", xlabel="tokens of the sequence")
    axes[1].set_ylim(bottom=0.6 * axes[1].get_ylim()[0])  # room for the legend
    small_legend(axes[1], "lower left")
    words = f"N = {table['N'][0]}, Q = 2, T = {table['T'][0]}; recipe tuned"
    return figure, f"{words}; medians and quartiles over {replicates(table)} tasks"
