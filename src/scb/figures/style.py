"""One quiet style for every figure: readable in grey (line styles differ too) and for the colour-blind (Okabe-Ito)."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))

QUIET = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "figure.dpi": 100,
    "savefig.dpi": 160,
}

quiet = mpl.rc_context(QUIET)  # pyright: ignore[reportArgumentType]
"""Decorator for functions that draw."""


def panels(count: int, title: str, width: float = 3.6, height: float = 3.0) -> tuple[Figure, list[Axes]]:
    """A figure of ``count`` panels side by side under one title."""
    figure = Figure(figsize=(width * count, height), layout="constrained")
    figure.suptitle(title, fontsize=10)
    return figure, [figure.add_subplot(1, count, i + 1) for i in range(count)]


def caption(figure: Figure, text: str) -> None:
    """A line under the panels that says the setting."""
    figure.supxlabel(text, fontsize=7.5, color="0.35")


@quiet
def save(figure: Figure, path: Path, formats: tuple[str, ...] = ("png", "pdf")) -> list[Path]:
    """Write one file a format beside each other; the same figure gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path.with_suffix(f".{name}") for name in formats]
    for file in written:
        figure.savefig(file, metadata={"Software": None} if file.suffix == ".png" else {"CreationDate": None})
    return written
