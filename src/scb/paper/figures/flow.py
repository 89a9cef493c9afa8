"""F9: the population process in two dimensions, with real trajectories on it; and the slow direction near (1, 1)."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scb.jobs.table import Table, pick, values
from scb.paper.experiments.population import residual
from scb.paper.figures.style import caption, look, panels, quiet, replicates
from scb.theory.dynamics import population_drift


@quiet
def flow(training: Table, near: Table) -> Figure:
    """The flow of (α_V, α_A) under real runs; differences and sums near (1, 1)."""
    figure, (left, right) = panels(2, "F9  The population process in two dimensions", width=4.4, height=3.8)
    _field(left, float(np.median(training["K_P"])), float(np.median(training["K_Q"])), int(training["T"][0]))
    for number, (method, name) in enumerate((("proximal, larger λ", "proximal, λ = 1e-4"), ("SGD", "SGD"))):
        mine = pick(training, method=method)
        for i in np.unique(mine["replicate"]):
            run = pick(mine, replicate=i)
            label = name if i == 0 else None
            left.plot(run["alpha_V"], run["alpha_A"], linewidth=0.8, label=label, **look(number))
    x = np.linspace(0.5, 1.3, 50)
    left.plot(x, 1 / x, color="black", linewidth=0.8, linestyle=":", label="α$_V$α$_A$ = 1: equally good fits")
    left.plot(1, 1, "*", color="black", markersize=10)
    left.set(xlabel="α$_V$", ylabel="α$_A$", xlim=(-0.3, 1.3), ylim=(-0.3, 1.5), title="flow (grey) and real runs")
    left.legend(loc="lower right")
    labels = {
        "difference": "|α$_V$ − α$_A$| / 2, from (1 + δ, 1 − δ)",
        "sum": "|1 − (α$_V$ + α$_A$) / 2|, from (1 − δ, 1 − δ)",
        "normalised": "|1 − α$_V$| with A = Q: Stage 3",
    }
    for number, direction in enumerate(values(near, "direction")):
        mine = pick(near, direction=direction)
        right.semilogy(mine["step"], residual(mine, direction), label=labels[direction], **look(number))
    right.set(xlabel="step", title=f"near (1, 1), η = {near['eta'][0]:g}", ylim=(1e-6, 3))
    right.legend(loc="upper right")
    caption(
        figure,
        f"left: N = 3, T = {training['T'][0]:,}, {replicates(training)} random tasks; "
        f"right: recursion with K$_P$ = K$_Q$ = 0.5, T = {near['T'][0]:,}",
    )
    return figure


def _field(ax: Axes, K_P: float, K_Q: float, T: int) -> None:
    """The flow as grey lines."""
    x, y = np.meshgrid(np.linspace(-0.3, 1.3, 40), np.linspace(-0.3, 1.5, 40))
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    drift = np.array([population_drift(point, K_P, K_Q, T) for point in points]).reshape(*x.shape, 2)
    ax.streamplot(x, y, drift[..., 0] / K_Q, drift[..., 1] / K_P, color="0.75", linewidth=0.6, arrowsize=0.6, density=1.2)
