"""The forms in which a run is shown to people: a summary that prints well, a data frame, and
curves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from scb import notebook
from scb.arrays import AnyArray, Array
from scb.extras import wanted_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# column of the history → heading and how a value is written; some are of several heads only
SHOWN = {
    "stage": ("stage", ".0f"),
    "step": ("step", ",.0f"),
    "samples": ("samples", ",.0f"),
    "alpha_V": ("α_V", ".3f"),
    "alpha_A": ("α_A", ".3f"),
    "dist": ("‖F−M‖", ".3f"),
    "dist_V": ("‖V−P‖", ".3f"),
    "dist_A": ("‖A−Q‖", ".3f"),
    "dist_A_star": ("‖A*−Q‖", ".3f"),
    "overlap": ("overlap", ".3f"),
    "loss": ("loss", ".4f"),
}


@dataclass(frozen=True, repr=False)
class RunSummary:
    """A summary of a run: the last evaluation of each stage, and the verdict.

    ``Run.summary`` returns a summary. The summary prints as a table and is shown as HTML in a
    notebook; ``columns`` and ``to_pandas()`` provide the numbers.

    Attributes
    ----------
    title : str
        A line with the recipe, the sizes, the seed, and the numbers of steps and samples so far.
    outcome : list of str
        Lines of text that give the verdict.
    columns : dict of (stages,) arrays
        The history at the end of each stage, by column name.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
    >>> recipe = scb.recipes.paper(task, steps=(20, 20, 0))
    >>> summary = scb.train(task, recipe, seed=0, judge=False).summary()
    >>> summary.title
    'paper: N = 3, T = 40, seed 0; 40 steps, 2,560 samples'
    >>> summary.outcome
    []
    >>> summary.columns["samples"], summary.to_pandas().shape
    (array([1280, 2560]), (2, 17))
    >>> headings, rows = summary.cells()
    >>> headings[:3], rows[0][:3]
    (['stage', 'step', 'samples'], ['1', '20', '1,280'])
    """

    title: str
    outcome: list[str]
    columns: dict[str, AnyArray]

    def to_pandas(self) -> Any:
        """Convert ``columns`` to a data frame.

        Returns
        -------
        pandas.DataFrame
            A data frame with one row for the end of each stage.
        """
        return frame(self.columns)

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Format the table as text, cell by cell.

        Returns
        -------
        headings : list of str
            The headings of the columns.
        rows : list of lists of str
            The cells, with one row for the end of each stage.
        """
        shown = {name: SHOWN[name] for name in SHOWN if name in self.columns}
        headings = [heading for heading, _ in shown.values()]
        columns = [
            [format(value, form) for value in self.columns[name]]
            for name, (_, form) in shown.items()
        ]
        return headings, [list(row) for row in zip(*columns, strict=True)]

    def __str__(self) -> str:
        headings, rows = self.cells()
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in (headings, *rows)]
        said = [
            part
            for line in self.outcome
            for part in wrap(line, 80, subsequent_indent="  ", break_long_words=False)
        ]
        return "\n".join((self.title, *lines, *said))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return (
            notebook.text(self.title)
            + notebook.table(*self.cells())
            + "".join(map(notebook.text, self.outcome))
        )


def with_counts(history: Mapping[str, Array], rows: Any = slice(None)) -> dict[str, AnyArray]:
    """Return the rows of a history, with counts as integers."""
    counts = ("step", "stage", "samples")
    return {
        name: column[rows].astype(np.int64 if name in counts else np.float64)
        for name, column in history.items()
    }


def frame(table: Mapping[str, AnyArray]) -> Any:
    """Return a table as a data frame of pandas."""
    with wanted_for("to_pandas()"):
        import pandas as pd

    return pd.DataFrame(dict(table))


# panel → column of the history → label
CURVES = {
    "distance to the truth": {
        "dist_V": "‖V − P‖",
        "dist_A": "‖A − Q‖",
        "dist_A_star": "‖A* − Q‖, normalised",
    },
    "signals": {"alpha_V": "α_V", "alpha_A": "α_A"},
    "distance to the population's line": {"delta_V": "‖Δ_V‖", "delta_A": "‖Δ_A‖"},
}


HEAD_CURVES = {
    "distance to the truth": {
        "dist": "‖F − M‖, of the function",
        "dist_V": "‖V − P‖, worst head",
        "dist_A": "‖A − Q‖, worst head",
    },
    "overlap with the truth": {"overlap": "worst head"},
}


def curves(history: Mapping[str, Array], title: str) -> "Figure":
    """Draw the distances, signals and errors of a run, with a grey line where each stage begins.

    Parameters
    ----------
    history : dict of (rows,) arrays
        The columns of ``Run.history``.
    title : str
        The title of the figure.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import scb
    >>> from scb.training.run_summary import curves
    >>> task = scb.Task.random(N=3, T=40, sparsity=2)
    >>> run = scb.train(task, scb.recipes.paper(task, steps=(5, 5, 0)), judge=False)
    >>> len(curves(run.history, "a short run").axes) > 1
    True
    """
    with wanted_for("a picture"):
        from scb.drawing import look, panels, quiet

    shown: dict[str, dict[str, str]] = CURVES
    if "overlap" in history:
        values = [name for name in history if name.startswith("sigma_")]
        shown = HEAD_CURVES | {"singular values": {n: n.replace("sigma", "σ") for n in values}}

    def draw() -> "Figure":
        figure, axes = panels(len(shown), title)
        changes = history["step"][np.flatnonzero(np.diff(history["stage"]))]
        for ax, (name, lines) in zip(axes, shown.items(), strict=True):
            for number, (column, label) in enumerate(lines.items()):
                ax.plot(history["step"], history[column], label=label, **look(number))
            for step in changes:
                ax.axvline(step, color="0.5", linewidth=0.8)
            ax.set(title=name, xlabel="step")
            ax.legend()
        return figure

    return quiet(draw)()
