"""F27 to F30: the benefit of ℓ1, the origin of the T² of Stage 1, transfer to the letter, and the
step size of softmax.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from scb.drawing import COLOURS, MARKERS, grid, label_outer, look, panels
from scb.jobs.table import Table, by_value, concatenate, groups, pick, replicates, values
from scb.paper.claims.projector import PROJECTORS
from scb.paper.figures.bars import (
    DOTTED,
    Drawing,
    log_ticks,
    quartile_bars,
    share_bars,
    small_legend,
)
from scb.paper.numbers import Number
from scb.paper.slopes import log_log_slope
from scb.paper.stage_one import least_at_each, power_law, power_laws

RIGHT = 0.9
"""The share of right signs that F28 asks for."""
DRAWS = 40
"""How often tasks are drawn anew for an interval."""


def powered(name: str, slope: Number) -> str:
    """A label with the exponent of T and its 95 % interval."""
    low, high = (f"{end:.2f}".replace("inf", "∞") for end in (slope.low, slope.high))
    return f"{name}: T$^{{{slope.estimate:.2f}}}$ [{low}, {high}]"


def to_the_end(table: Table, runs: Table, longest: Table) -> Drawing:
    """F27: the least batch of Stage 2 against T, without and with ℓ1, judged at the end of the
    stage and after normalisation and Stage 3. The other panels show why: ‖Δ_A‖² grows with T,
    whereas the largest entry does not."""
    ensembles = values(table, "ensemble")
    figure, axes = panels(len(ensembles) + 1, width=3.9, height=3.9)
    shown = pick(table, N=3, eta=table["eta"].max(), epsilon=table["epsilon"].min())
    for ax, ensemble in zip(axes, ensembles, strict=False):
        _least_batches(ax, pick(shown, ensemble=ensemble))
        ax.set(title=f"ensemble {ensemble}", xlabel="sequence length T", ylabel="B of Stage 2")
    shared = [
        {name: part[name] for name in longest if name != "device"} for part in (runs, longest)
    ]
    _largest_entry(axes[-1], pick(concatenate(shared), ensemble="strong", multiple=0.0))
    words = f"N = 3, Q = 2, ε = {shown['epsilon'][0]:g}, η = {shown['eta'][0]:g}, simulated"
    return figure, (
        f"{words}; the end: after thresholding-normalisation and Stage 3; medians and quartiles "
        f"over {replicates(shown)} random tasks; exponents with 95 % intervals; circles in the "
        "last panel: real gradients"
    )


def _least_batches(ax: Axes, rows: Table) -> None:
    """Lines for no ℓ1 and λ = 3σ, at both endings, and where runs without ℓ1 stop diverging."""
    number = 0
    for ending in values(rows, "ending"):
        for multiple, words in ((0.0, "no ℓ₁"), (3.0, "λ = 3σ")):
            mine = pick(rows, ending=ending, multiple=multiple)
            label = powered(f"{words}, {ending}", log_log_slope(mine["T"], mine["batch_size"]))
            quartile_bars(ax, mine, "T", "batch_size", number, label)
            number += 1
    plain = pick(rows, multiple=0.0)
    ax.plot(*by_value(plain, "T", "stable"), "k:", zorder=5, label="no ℓ₁: no divergence from here")
    log_ticks(ax, values(rows, "T"))
    small_legend(ax, fontsize=6.5, room=300)


def _largest_entry(ax: Axes, runs: Table) -> None:
    """‖Δ_A‖² and the largest entry off the support after Stage 2 at one batch size, against T."""
    batch_size = max(pick(runs, gradients="real")["batch_size"])
    runs = pick(runs, batch_size=batch_size, diverged=False)
    names = {"square_A": "‖Δ$_A$‖$_μ^2$", "largest": "largest entry off the support"}
    for number, (column, label) in enumerate(names.items()):
        quartile_bars(ax, pick(runs, gradients="simulated"), "T", column, number, label)
        real = by_value(pick(runs, gradients="real"), "T", column)
        ax.plot(*real, "o", color=COLOURS[number], markersize=9, markerfacecolor="none")
    log_ticks(ax, values(runs, "T"))
    ax.axhline(1 / 12, **DOTTED, label="threshold 1/(6Q)")
    ax.set(title=f"no ℓ₁, {runs['ensemble'][0]}, B = {batch_size:,}", xlabel="sequence length T")
    small_legend(ax, room=20)


def spread_of_mu(table: Table) -> Drawing:
    """F28: the least batch that finds the sign with the paper's projector, for each spread of μ,
    and the exponent of the least batch in T against the spread, with both projectors."""
    figure, (left, right) = panels(2, width=4.4, height=3.6)
    simulated = pick(table, gradients="simulated")
    shown = pick(simulated, chain="strong", projector="euclidean")
    for number, (spread, mine) in enumerate(groups(shown, "spread")):
        law = power_law(mine, RIGHT)
        T, each = least_at_each(mine, RIGHT)
        left.plot(T, law.least(T), label=f"max μ / min μ = {spread:g}", **look(number))
        left.plot(T, each, MARKERS[number], color=COLOURS[number], markersize=4)
    log_ticks(left, values(simulated, "T"))
    left.set(
        title=f"{PROJECTORS['euclidean']}: least B for {RIGHT:.0%} right signs",
        xlabel="sequence length T",
    )
    small_legend(left)
    _exponents(right, simulated)
    words = f"N = {table['N'][0]}, Q = 2, η = {table['eta'][0]:g}, simulated, sign not resolved"
    tasks = f"{replicates(simulated)} random tasks per point"
    return figure, (
        f"{words}, {tasks}; first: K$_P$ ≥ 1.4‖μ‖², lines: a power of T, marks: each T by itself; "
        "second: 95 % intervals by drawing tasks anew"
    )


def _exponents(ax: Axes, table: Table) -> None:
    """Exponents of the least batch in T against the spread, for both projectors and both kinds of
    P."""
    kinds = [(projector, chain) for projector in PROJECTORS for chain in values(table, "chain")]
    for number, (projector, chain) in enumerate(kinds):
        rows = pick(table, chain=chain)
        spreads = np.array(values(rows, "spread"))
        found = [power_laws(pick(rows, spread=s), RIGHT, DRAWS)[projector] for s in spreads]
        middle = np.array([law.exponent for law, _, _ in found])
        error = np.abs(np.array([(low, high) for _, low, high in found]).T - middle)
        label = f"{PROJECTORS[projector]}, {chain} P"
        place = spreads + 0.012 * (number - 1.5)
        ax.errorbar(place, middle, error, capsize=2, label=label, **look(number, marker=True))
    for power in (1, 2):
        ax.axhline(power, **DOTTED)
    ax.set(title="exponent of the least B in T", xlabel="max μ / min μ", ylim=(0.6, 2.9))
    small_legend(ax, ncols=2)


def transfer_to_the_letter(table: Table) -> Drawing:
    """F29: how often runs that follow Theorem 4.1 to the letter learn, against its condition; and
    Δ_V compared with the signal.
    """
    figure, (left, right) = panels(2, width=4.4, height=3.6)
    simulated = pick(table, gradients="simulated")
    T = min(50_000, simulated["T"].max())
    longest = [pick(simulated, N=N, T=T) for N in values(simulated, "N")]
    kinds = [(rows, chain) for rows in longest for chain in ("strong", "sharp")]
    for number, (rows, chain) in enumerate(kinds):
        mine = _placed(pick(rows, chain=chain))
        label = f"N = {rows['N'][0]}, {chain} P"
        share_bars(left, mine, "place", "learned", number, label)
    left.set(title="share of runs with both layers within ε", ylim=(-0.03, 1.05))
    small_legend(left, "lower right")
    _beside_the_signal(right, _placed(pick(longest[-1], chain="sharp")))
    for ax in (left, right):
        ax.axvline(1, color="0.5", linewidth=0.8)
        ax.set(xscale="log", xlabel="(⟨P̂, P⟩$_μ$ − ‖μ‖²) / ‖μ‖², median of the tasks")
        ax.set_xticks((0.1, 0.3, 1, 3), ("0.1", "0.3", "1", "3"))
        ax.xaxis.set_minor_formatter(NullFormatter())
    words = f"ε = {table['epsilon'][0]:g}, θ² = c/log(1/ε), c = 0.1 and 1, fixed λ, no last step"
    tasks = f"{replicates(simulated)} random tasks and both c per point"
    return figure, (
        f"{words}; T = {T:,}, simulated; line at 1: the printed condition; sharp: K$_P$ is "
        f"0.6(1 − ‖μ‖²) or more, for P̂ too; {tasks}, 95 % intervals and quartiles"
    )


def _beside_the_signal(ax: Axes, table: Table) -> None:
    """‖Δ_V‖ over the signal at the start, how it grows, and what it takes from α_A's steps."""
    ratios = {
        "ratio": "‖Δ$_V$‖ / (α$_V$√K$_P$) at the start",
        "growth": "‖Δ$_V$‖: largest in Stage 2 / at the start",
        "influence": "‖Δ$_V$‖²α$_A$ / (K$_P$α$_V$): largest",
    }
    for number, (column, label) in enumerate(ratios.items()):
        quartile_bars(ax, table, "place", column, number, label)
    ax.set(title=f"Δ$_V$ beside the signal, N = {table['N'][0]}, sharp P", yscale="log")
    ax.set_ylim(top=30 * ax.get_ylim()[1])  # room for the legend
    ax.axhline(1, **DOTTED)
    small_legend(ax, "upper right")


def _placed(table: Table) -> Table:
    """The table with ``place``, the median of the condition over the rows of the same overlap."""
    medians = dict(zip(*by_value(table, "overlap", "condition"), strict=True))
    return table | {"place": np.array([medians[overlap] for overlap in table["overlap"]])}


def softmax_steps(table: Table) -> Drawing:
    """F30: the samples until the signal of softmax attention shows, and how accurate the attention
    is in the end, against T, for step sizes of W that grow differently with T."""
    ensembles = values(table, "ensemble")
    figure, axes = grid(2, len(ensembles), width=4.4, height=2.8)
    for column, ensemble in enumerate(ensembles):
        first, last = axes[:, column]
        for number, step in enumerate(values(table, "step")):
            mine = pick(table, ensemble=ensemble, step=step)
            there = np.isfinite(mine["samples_10"])
            slope = log_log_slope(mine["T"], mine["samples_10"])
            power = f"∝ T$^{{{mine['power'][0]:g}}}$"
            label = powered(power if step != "equivalent" else "T² times the linear one", slope)
            quartile_bars(first, mine, "T", "samples_10", number, f"{label}, {there.mean():.0%}")
            quartile_bars(last, mine, "T", "sim_A_end", number, step)
        log_ticks(first, values(table, "T"))
        log_ticks(last, values(table, "T"))
        last.set(yscale="linear", ylim=(-0.03, 1.03), ylabel="μ-cosine of attention and Q")
        first.set(title=f"ensemble {ensemble}", ylabel="samples until α$_A$ = 0.1")
        small_legend(first, fontsize=6.5, room=200)
        last.set_xlabel("sequence length T")
        label_outer(last)
    words = (
        f"N = {table['N'][0]}, Q = 2, B = {table['batch_size'][0]}; per cent: runs that get there"
    )
    return figure, (
        f"{words}; step sizes ∝ T$^p$ are equal at T = 50; the linear "
        f"one has η = 0.01; median and quartiles over {replicates(table)} random tasks"
    )
