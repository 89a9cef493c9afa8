"""The curves of one run."""

import numpy as np
from matplotlib.figure import Figure

from scb.paper.figures.style import look, panels, quiet

PANELS = (
    ("distance to the truth", (("dist_V", "‖V − P‖"), ("dist_A", "‖A − Q‖"), ("dist_A_star", "‖A* − Q‖, normalised"))),
    ("signals", (("alpha_V", "α_V"), ("alpha_A", "α_A"))),
    ("distance to the population's line", (("delta_V", "‖Δ_V‖"), ("delta_A", "‖Δ_A‖"))),
)


@quiet
def curves(history: dict[str, np.ndarray], title: str) -> Figure:
    """Distances, signals and errors against steps; grey lines where a stage begins."""
    figure, axes = panels(len(PANELS), title)
    changes = history["step"][np.flatnonzero(np.diff(history["stage"]))]
    for ax, (name, lines) in zip(axes, PANELS, strict=True):
        for i, (column, label) in enumerate(lines):
            ax.plot(history["step"], history[column], label=label, **look(i))
        for step in changes:
            ax.axvline(step, color="0.5", linewidth=0.8)
        ax.set(title=name, xlabel="step")
        ax.legend()
    return figure
