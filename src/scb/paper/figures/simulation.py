"""F5: the Gaussian simulation, and how closely it predicts real gradients."""

import numpy as np
from matplotlib.figure import Figure

from scb.jobs.table import Table, pick, values
from scb.paper.figures.style import COLOURS, band, caption, grid, quiet, replicates


@quiet
def simulation(simulated: Table, prediction: Table) -> Figure:
    """Signals and errors at N = 100 and 500; in the last row real gradients with the simulation of the same steps."""
    Ns = values(simulated, "N")
    figure, axes = grid(len(Ns) + 1, 3, "F5  Large sizes: population gradients plus Gaussian noise, and real gradients", height=2.1)
    for row, N in zip(axes, Ns, strict=False):
        batch = int(simulated["batch_size"][simulated["N"] == N].max())
        for number, method in enumerate(("proximal", "SGD")):
            mine = pick(simulated, N=N, method=method, batch_size=batch)
            for ax, column in zip(row, ("alpha_A", "delta_A", "dist_A"), strict=True):
                band(ax, mine, "step", column, number, method)
        row[0].set_ylabel(f"N = {N}, T = {simulated['T'][0]:,}\nsimulated, B = {batch:,}", fontsize=8)
    for ax, title in zip(axes[0], ("signal α$_A$", "‖Δ$_A$‖$_μ$", "‖A − Q‖$_μ$"), strict=True):
        ax.set_title(title)
    axes[0, 1].legend()
    last = axes[-1]
    for number, lam in enumerate(sorted(values(prediction, "lam"), reverse=True)):
        name = "SGD" if lam == 0 else f"proximal, λ = {lam:.0e}"
        real, guess = (pick(prediction, lam=lam, gradients=kind) for kind in ("real", "simulated"))
        for ax, column in zip(last, ("alpha_A", "delta_A", "alpha_V"), strict=True):
            band(ax, real, "step", column, number, name)
            steps = np.unique(guess["step"])
            middle = [np.median(guess[column][guess["step"] == s]) for s in steps]
            ax.plot(steps, middle, "o", markersize=3, markerfacecolor="white", color=COLOURS[number])
    for ax, title in zip(last, ("signal α$_A$", "‖Δ$_A$‖$_μ$", "signal α$_V$"), strict=True):
        ax.set(title=title, xlabel="step")
    last[1].plot([], [], "o", markersize=3, markerfacecolor="white", color="0.3", label="circles: simulated")
    last[1].legend()
    last[0].set_ylabel(f"N = {prediction['N'][0]}, T = {prediction['T'][0]:,}\nreal, B = {prediction['batch_size'][0]}", fontsize=8)
    caption(figure, f"sparsity 2; median and quartiles over {replicates(simulated)} random tasks in each row")
    return figure
