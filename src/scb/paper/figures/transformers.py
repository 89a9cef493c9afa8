"""F25, F26: real transformers on the tasks of the paper."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from scb.drawing import COLOURS, band, look, panels
from scb.jobs.table import Table, groups, pick, quartiles, values, where
from scb.paper.figures.bars import DOTTED, Drawing, small_legend
from scb.paper.numbers import median, spread
from scb.paper.tuned import best_setting, chosen_decoders, transferred

LINES = {
    "transformer": ("scaling", "standard"),
    "its weights begin at 0.02": ("scaling, init 0.02", "standard"),
    "its values are centred": ("proximal", "values centred"),
}
KEPT = {"its values are kept (same P)": "values", "its values are frozen (same P)": "frozen"}
BASELINES = {"Algorithm 1": "Algorithm 1, mu", "recover": "recover"}
DESIGNS = (
    "two layers",
    "four heads",
    "no layer norm",
    "square loss",
    "linear attention",
    "SGD",
    "no MLP",
    "linear, no norm, no MLP",
)
BARS = {
    "standard": ("scaling", "standard"),
    **{design: ("design", design) for design in DESIGNS},
    "values centred": ("proximal", "values centred"),
    "weights shrunk, 0.5/L": ("proximal", "weights shrunk by 0.5/L"),
    "weights shrunk, 0.9/L": ("proximal", "weights shrunk by 0.9/L"),
    "logits thresholded": ("proximal", "logits thresholded at 1σ"),
    "all kept, same P": ("transfer", "all, overlap 1"),
    "values kept, same P": ("transfer", "values, overlap 1"),
    "values frozen, same P": ("transfer", "frozen, overlap 1"),
    "values kept, overlap 0.3": ("transfer", "values, overlap 0.3"),
    "values frozen, overlap 0.3": ("transfer", "frozen, overlap 0.3"),
}
GROUPS = {"scaling": 0, "design": 0, "proximal": 1, "transfer": 2}


def samples(table: Table, baselines: Table) -> Drawing:
    """F25: the samples until a tenth of the excess loss is left, against T, and the same at T = 128
    for one change at a time."""
    figure, (ten, three, bars) = panels(3, width=4.0, height=4.4)
    for ax, N in ((ten, 10), (three, 3)):
        lines = {
            label: (pick(table, study=study, variant=variant), "rate")
            for label, (study, variant) in LINES.items()
        }
        lines |= {label: (transferred(table, keep, "1"), "rate") for label, keep in KEPT.items()}
        lines |= {
            label: (pick(baselines, rival=baseline), "setting")
            for label, baseline in BASELINES.items()
        }
        for number, (label, (rows, setting)) in enumerate(lines.items()):
            mine = pick(rows, N=N)
            if len(mine["T"]):
                _line(ax, mine, setting, number, label)
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="sequence length T",
            title=f"N = {N}",
            ylim=(100, 6e7),
        )
    ten.set_ylabel("samples")
    small_legend(ten, fontsize=6.5)
    _bars(bars, pick(table, N=10, T=128))
    return figure, (
        "▲: not reached by half of the tasks with that many samples; each at the best of four "
        "settings; values kept beyond T = 512 are those of a task with T = 128; sparsity 2; "
        "medians and quartiles over 8 tasks; one layer, width 64, Adam, B = 256"
    )


def _line(ax: Axes, table: Table, setting: str, number: int, label: str) -> None:
    """Medians and quartiles against T, each at its best setting; a triangle where the median is not
    reached."""
    xs, lows, middles, highs = [], [], [], []
    for T in sorted(values(table, "T")):
        best = best_setting(pick(table, T=T), setting)
        middle, low, high, _ = spread(best["samples_10"])
        if np.isinf(middle):
            ax.plot(
                T * 1.03**number,
                float(best["samples"][0]),
                "^",
                color=COLOURS[number],
                markersize=7,
            )
            continue
        xs.append(T * 1.03**number)
        middles.append(middle)
        lows.append(middle - low)
        highs.append(high - middle if np.isfinite(high) else 0.0)
    ax.errorbar(
        xs, middles, np.array([lows, highs]), capsize=2, label=label, **look(number, marker=True)
    )


def _bars(ax: Axes, table: Table) -> None:
    """A row for each variant: the median and the quartiles of its samples."""
    for row, (study, variant) in enumerate(BARS.values()):
        best = best_setting(pick(table, study=study, variant=variant), "rate")
        middle, low, high, _ = spread(best["samples_10"])
        colour = COLOURS[GROUPS[study]]
        if np.isinf(middle):
            ax.plot(float(best["samples"][0]), -row, "^", color=colour, markersize=6)
        else:
            end = high if np.isfinite(high) else middle
            ax.errorbar(
                middle,
                -row,
                xerr=[[middle - low], [end - middle]],
                fmt="o",
                markersize=4,
                capsize=2,
                color=colour,
            )
    standard = best_setting(pick(table, study="scaling", variant="standard"), "rate")
    ax.axvline(median(standard["samples_10"]), **DOTTED)
    ax.set_yticks(-np.arange(len(BARS)), list(BARS), fontsize=6.5)
    ax.set(xscale="log", xlabel="samples", title="N = 10, T = 128: one change")


def stages(table: Table, decoders: Table) -> Drawing:
    """F26: the results of ``probe`` during training; the two signals against each other; decoders
    on one long sequence."""
    figure, (course, plane, sequences) = panels(3, width=4.0, height=3.6)
    _course(course, _common(pick(table, start="fresh")))
    _plane(plane, table)
    for number, (model, rows) in enumerate(groups(decoders, "model")):
        band(sequences, quartiles(chosen_decoders(rows), "length", "share"), number, model)
    sequences.axhline(0.1, **DOTTED)
    sequences.set(xscale="log", yscale="log", xlabel="tokens of one sequence")
    sequences.set_title("held out: share of the excess loss left")
    small_legend(sequences, "lower left", fontsize=6.5)
    return figure, (
        "first two: N = 10, T = 128, Adam at 0.001, B = 256; ★ is the task, the dotted line the "
        "paper's α$_V$ = α$_A$; last: N = 5, T = 32 lags, rate and step chosen on the last tenth; "
        "medians and quartiles over 8 tasks"
    )


def _course(ax: Axes, fresh: Table) -> None:
    """What is learned from a fresh start, against samples."""
    names = {
        "left": "excess loss left",
        "mass": "attention on true positions",
        "alpha_V": "α$_V$",
        "alpha_A": "α$_A$",
    }
    for number, (column, label) in enumerate(names.items()):
        band(ax, quartiles(fresh, "samples", column), number, label)
    ax.axhline(0.1, **DOTTED)
    ax.set(xscale="log", xlabel="samples", title="from a fresh start", ylim=(-0.03, 1.3))
    small_legend(ax, "center left")


def _plane(ax: Axes, table: Table) -> None:
    """The two signals against each other, from each start, one line per task."""
    for number, (start, runs) in enumerate(groups(table, "start")):
        colour: dict[str, Any] = {"color": COLOURS[number]}
        label: str | None = start
        for _, run in groups(runs, "replicate"):
            seen = where(run, run["signal"] > 0)
            line = colour | {"linewidth": 0.9, "alpha": 0.8, "label": label}
            ax.plot(seen["alpha_V"], seen["alpha_A"], **line)
            ax.plot(seen["alpha_V"][-1], seen["alpha_A"][-1], "o", markersize=3, **colour)
            label = None
    ax.plot([0, 1], [0, 1], **DOTTED)
    ax.plot(1, 1, "*", color="black", markersize=9)
    ax.set(xlabel="α$_V$", ylabel="α$_A$", title="the two signals, one line per task")
    ax.set(xlim=(-0.05, 1.65), ylim=(-0.05, 1.25))
    small_legend(ax)


def _common(table: Table) -> Table:
    """The rows of the looks that all tasks have."""
    tasks = len(np.unique(table["replicate"]))
    steps = [
        step for step in np.unique(table["samples"]) if np.sum(table["samples"] == step) == tasks
    ]
    return where(table, np.isin(table["samples"], steps))
