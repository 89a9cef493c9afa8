"""The picture of the scoreboard: scb beside the best other estimator, and bits, from kept rows."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from study import DOCS

from report import TEXTS, best_first, bits_by_estimator, comparisons, mean
from scb.drawing import COLOURS, MARKERS, quiet

PICTURE = DOCS / "images" / "scoreboard.png"


def draw_shares(ax: Axes) -> None:
    """A line for each problem: scb and the best other with their intervals, the other by name."""
    lines = [line for line in comparisons() if not line.bits][::-1]
    heights = np.arange(len(lines))
    marks = (
        ("scb, defaults", [line.ours for line in lines], 0.13),
        ("the best other", [line.theirs for line in lines], -0.13),
    )
    for i, (label, scores, shift) in enumerate(marks):
        means, low, high = np.array(scores).T
        ax.hlines(heights + shift, low, high, color=COLOURS[i], linewidth=1.2)
        ax.plot(means, heights + shift, MARKERS[i], color=COLOURS[i], label=label, markersize=5)
    for height, line in enumerate(lines):
        ax.text(1.04, height, line.rival, va="center", fontsize=7, color=COLOURS[1])
    ax.set_yticks(heights, [line.title for line in lines])
    ax.set_xlim(-0.02, 1.02)
    ax.set_title("How often is the answer right? (share, 95 % interval)", loc="left")
    ax.legend(loc="upper center", bbox_to_anchor=(0.3, -0.06), ncols=2)


def draw_bits(ax: Axes) -> None:
    """Bits per letter of each estimator on each text, fewer to the left, the best on top."""
    found = [bits_by_estimator(group) for group in TEXTS]
    names = best_first(found)[::-1]
    for i, (one, group) in enumerate(zip(found, TEXTS, strict=True)):
        bits = [mean(blocks.values()).mean for blocks in one.values()]
        heights = [names.index(name) for name in one]
        ax.plot(bits, heights, MARKERS[i], color=COLOURS[i], label=group.title, markersize=5)
    ax.set_yticks(range(len(names)), names)
    for label in ax.get_yticklabels():
        if label.get_text().startswith("scb"):
            label.set_fontweight("bold")
    ax.set_title("Bits per letter (fewer are better)", loc="left")
    ax.legend(loc="upper center", bbox_to_anchor=(0.4, -0.06), ncols=2)


@quiet
def draw() -> None:
    """Draw and save."""
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    draw_shares(left)
    draw_bits(right)
    figure.savefig(PICTURE)
