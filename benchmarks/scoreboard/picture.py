"""The picture of the scoreboard: shares with their intervals, and bits, from kept rows."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from study import DOCS

from report import CODONS, LAGS, SONGS, TEXTS, Group, bits_of, by_estimator, order, right
from scb.drawing import COLOURS, MARKERS, quiet
from scb.jobs.table import wilson

PICTURE = DOCS / "images" / "scoreboard.png"


def draw_shares(ax: Axes, title: str, groups: list[Group], labels: list[str]) -> None:
    """A line for each estimator, a mark with its interval for each group."""
    found = [by_estimator(group, right) for group in groups]
    names = sorted({name for one in found for name in one}, key=order)[::-1]
    for i, (one, label) in enumerate(zip(found, labels, strict=True)):
        heights = [names.index(name) + 0.16 * ((len(groups) - 1) / 2 - i) for name in one]
        sums = np.array([sum(rows.values()) for rows in one.values()])
        counts = np.array([len(rows) for rows in one.values()])
        low, high = wilson(sums, counts)
        ax.hlines(heights, low, high, color=COLOURS[i], linewidth=1)
        ax.plot(sums / counts, heights, MARKERS[i], color=COLOURS[i], label=label, markersize=4)
    name_lines(ax, names)
    ax.set_xlim(-0.03, 1.03)
    ax.set_title(title, loc="left")
    ax.legend(loc="upper center", bbox_to_anchor=(0.4, -0.1), ncols=2)


def name_lines(ax: Axes, names: list[str]) -> None:
    """Names of estimators beside their lines, ours bold."""
    ax.set_yticks(range(len(names)), names)
    for label in ax.get_yticklabels():
        if label.get_text().startswith("scb"):
            label.set_fontweight("bold")


def draw_bits(ax: Axes, title: str, groups: list[Group], labels: list[str]) -> None:
    """Bits per letter, fewer to the left, the best on top."""
    found = [by_estimator(group, lambda case, row: row) for group in groups]
    best = {
        name: min(bits_of(one[name]) for one in found if name in one)
        for name in {n for f in found for n in f}
    }
    names = sorted(best, key=lambda name: -best[name])
    for i, (one, label) in enumerate(zip(found, labels, strict=True)):
        bits = [bits_of(one[name]) for name in one]
        ax.plot(
            bits,
            [names.index(name) for name in one],
            MARKERS[i],
            color=COLOURS[i],
            label=label,
            markersize=4,
        )
    name_lines(ax, names)
    ax.set_title(title, loc="left")
    ax.legend(loc="upper center", bbox_to_anchor=(0.4, -0.1), ncols=2)


@quiet
def draw() -> None:
    """Draw and save."""
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 9.5), layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    sizes = [
        "{1, 5}, n = 1,000",
        "{1, 5}, n = 10,000",
        "{1, 15, 30}, n = 1,000",
        "{1, 15, 30}, n = 10,000",
    ]
    draw_shares(axes[0], "hdMTD's designs: all lags right, no other", LAGS[:4], sizes)
    draw_shares(
        axes[1],
        "Songs: the strongest lag is the bar",
        SONGS[3:],
        ["20 songs", "bars shuffled", "notes shuffled"],
    )
    draw_shares(
        axes[2],
        "Codons: the strongest lag is a multiple of 3",
        CODONS[:3],
        ["coding", "other strand", "non-coding"],
    )
    draw_bits(
        axes[3],
        "Texts: bits per letter",
        TEXTS,
        ["alice29, held out", "plrabn12, held out", "alice29, whole", "plrabn12, whole"],
    )
    figure.savefig(PICTURE)
