"""Phase diagrams: how often runs succeed over two axes of a sweep, and how sure that is."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from scb.drawing import caption, panels, quiet
from scb.jobs.table import Table, concatenate, pick, values, where, wilson
from scb.paper.experiments.training import lost_to_noise

NAMES = {
    "N": "tokens N",
    "T": "positions T",
    "sparsity": "positions a token attends to",
    "lam": "λ",
    "batch_size": "batch size B",
    "eta": "η",
    "overlap": "overlap of P̂ with P",
    "K_P": "K$_P$",
}
COLOURS = "cividis"  # made for the colour-blind, and even in grey
LINE = "#D55E00"


class Phase(NamedTuple):
    """Counts over a grid: ``successes`` and ``trials`` are (len(ys), len(xs))."""

    xs: list[Any]
    ys: list[Any]
    successes: NDArray[np.int64]
    trials: NDArray[np.int64]

    @property
    def rate(self) -> NDArray[np.float64]:
        """The share of successes; NaN where nothing was tried."""
        return np.where(self.trials > 0, self.successes / np.maximum(self.trials, 1), np.nan)

    @classmethod
    def of(cls, table: Table, x: str, y: str) -> "Phase":
        """Count; numbers ascend along their axis, words stay in their order."""
        xs, ys = (_in_order(values(table, name)) for name in (x, y))
        masks = [[(table[x] == a) & (table[y] == b) for a in xs] for b in ys]
        successes = np.array([[int(table["success"][mask].sum()) for mask in row] for row in masks])
        return cls(
            xs, ys, successes, np.array([[int(mask.sum()) for mask in row] for row in masks])
        )


def split(table: Table, x: str, y: str, panel: str | None) -> list[tuple[str, Phase]]:
    """One diagram for each value of ``panel``, with its title; one without title if there is no
    such axis."""
    if panel is None:
        return [("", Phase.of(table, x, y))]
    found = _in_order(values(table, panel))
    return [
        (f"{panel} = {text(value)}", Phase.of(pick(table, **{panel: value}), x, y))
        for value in found
    ]


def _in_order(found: list[Any]) -> list[Any]:
    return found if any(isinstance(value, str) for value in found) else sorted(found)


def noise_wins(table: Table) -> Figure:
    """F13: how many tasks each method does not lose to noise, by batch size and by K_P."""
    names = {
        "proximal, sign settled": "proximal, λ = 1e-5",
        "proximal, larger λ": "proximal, λ = 1e-4",
        "SGD, sign settled": "SGD",
    }
    last = concatenate([_last(pick(table, method=method)) for method in values(table, "method")])
    found = last | {
        "success": ~lost_to_noise(last),
        "method": np.array([names[method] for method in last["method"]]),
    }
    size = f"N = {table['N'][0]}, T = {table['T'][0]:,}, sparsity 2"
    setting = f"{size}, uniform ensemble moved to K$_P$, 1,000 steps, sign resolved"
    return phase(
        found,
        "batch_size",
        "K_P",
        "method",
        "F13  Where noise wins: share of tasks that are not lost to it",
        setting,
    )


def _last(runs: Table) -> Table:
    """The last row of every run."""
    return where(runs, np.r_[runs["seed"][1:] != runs["seed"][:-1], True])


@quiet
def phase(
    table: Table, x: str, y: str, panel: str | None = None, title: str = "", setting: str = ""
) -> Figure:
    """Colour: the success rate. Lines: where it, and the ends of its 95 % interval (Wilson's), are
    one half.

    Between the two dashed lines, the runs do not tell on which side of one half the probability
    lies.
    """
    parts = split(table, x, y, panel)
    across = max(len(part.xs) for _, part in parts)
    down = max(len(part.ys) for _, part in parts)
    size = {
        "width": min(max(4.6, 0.42 * across + 1.2), 9),
        "height": min(max(3.0, 0.34 * down + 1.2), 7),
    }
    counts = np.concatenate([part.trials.ravel() for _, part in parts])
    seeds = (
        f"{counts.max()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"
    )
    figure, axes = panels(
        len(parts), f"{title or 'How often runs succeed'} ({seeds} seeds a cell)", **size
    )
    crossed = [_draw(ax, part) for ax, (_, part) in zip(axes, parts, strict=True)]
    for ax, (name, _) in zip(axes, parts, strict=True):
        ax.set(xlabel=NAMES.get(x, x), ylabel=NAMES.get(y, y), title=name)
    bar = figure.colorbar(
        axes[0].collections[0], ax=axes, label="success rate", pad=0.02, aspect=30
    )
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    meaning = (
        "solid line: rate 1/2; dashed: where an end of its 95 % interval is 1/2"
        if any(crossed)
        else ""
    )
    caption(figure, "\n".join(filter(None, (setting, meaning))))
    return figure


def _draw(ax: Axes, part: Phase) -> bool:
    """One diagram; whether there are lines in it."""
    u = _places(part.xs)
    v = _places(part.ys)
    ax.pcolormesh(_edges(u), _edges(v), part.rate, cmap=COLOURS, vmin=0, vmax=1)
    ax.set_facecolor("0.85")  # cells without runs
    ax.grid(visible=False)
    slanted = max(len(text(value)) for value in part.xs) * len(part.xs) > 50
    ax.set_xticks(
        u, [text(value) for value in part.xs], rotation=45 if slanted else 0, fontsize=7.5
    )
    ax.set_yticks(v, [text(value) for value in part.ys], fontsize=7.5)
    if min(part.rate.shape) == 1 or not part.trials.all():
        return False
    low, high = wilson(part.successes, part.trials)
    lines = (part.rate, "-", 1.6), (low, "--", 1.0), (high, "--", 1.0)
    crossed = [line for line in lines if line[0].min() < 0.5 < line[0].max()]
    for level, style, width in crossed:
        ax.contour(u, v, level, [0.5], colors=LINE, linestyles=style, linewidths=width)
    return bool(crossed)


def _places(found: Sequence[Any]) -> NDArray[np.float64]:
    """Where the values stand: by their logarithms if these, or by themselves if they, are about
    evenly spread; else by number."""
    if len(found) > 1 and all(isinstance(value, int | float) for value in found):
        numbers = np.array(found, dtype=float)
        for scale in (np.log, np.asarray) if numbers.min() > 0 else (np.asarray,):
            gaps = np.diff(scale(numbers))
            if gaps.max() <= 2.5 * gaps.min():
                return scale(numbers)
    return np.arange(len(found), dtype=float)


def _edges(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """The borders of cells around the places, half-way between them."""
    if len(places) == 1:
        return places[0] + np.array([-0.5, 0.5])
    middles = (places[1:] + places[:-1]) / 2
    return np.r_[2 * places[0] - middles[0], middles, 2 * places[-1] - middles[-1]]


def text(value: Any) -> str:
    """A value as it is written at an axis."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
