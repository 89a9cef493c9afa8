"""F2, F5, F9: training compared with softmax attention, with the Gaussian simulation, and with the
flow of the population process."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, MaxNLocator

from scb.drawing import COLOURS, band, grid, look, panels
from scb.jobs.table import Table, by_value, groups, pick, quartiles, replicates, values
from scb.paper.experiments.population import residual
from scb.paper.figures.bars import Drawing
from scb.paper.figures.training import with_right_sign
from scb.theory.dynamics import population_drift


def softmax(patterns: Table, table: Table) -> Drawing:
    """F2: the learned attention and value matrices of softmax and linear attention next to the true
    ones, and both loss curves."""
    figure, axes = grid(2, 4, width=2.55, height=2.05, beside=2, width_ratios=(1, 1, 1, 1.5))
    sources = {
        "softmax": ("softmax", "A", "V"),
        "linear": ("linear", "A", "V"),
        "truth": ("linear", "Q", "P"),
    }
    kinds = (("attention", "last token", "position", 0.8), ("values", "from", "to", 0.5))
    for column, (name, (model, *matrices)) in enumerate(sources.items()):
        for ax, matrix, (what, xlabel, ylabel, darkest) in zip(
            axes[:, column], matrices, kinds, strict=True
        ):
            entries = pick(patterns, model=model, matrix=matrix)
            shown = np.empty((entries["row"].max() + 1, entries["column"].max() + 1))
            shown[entries["row"], entries["column"]] = entries["value"]
            image = ax.imshow(
                shown, cmap="Greys", vmin=0, vmax=darkest, aspect="auto", interpolation="nearest"
            )
            ax.grid(visible=False)
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.set(title=f"{name}: {what}", xlabel=xlabel, ylabel=ylabel)
            if column == 2:
                figure.colorbar(image, ax=ax, shrink=0.8)
    for ax, y, title in zip(
        axes[:, 3], ("loss", "sim_A"), ("population loss", "similarity with Q"), strict=True
    ):
        for number, model in enumerate(("softmax", "linear")):
            _by_samples(ax, pick(table, model=model), y, number, model)
        ax.set(title=title, xlabel="samples")
        ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes[0, 3].legend()
    return figure, (
        f"N = {table['N'][0]}, T = {table['T'][0]}, sparsity 2; heat maps: the first of "
        f"{replicates(table)} random tasks; curves: median and quartiles over all"
    )


def _by_samples(ax: Axes, table: Table, y: str, number: int, label: str) -> None:
    """Runs use different numbers of samples: their curves are read off at common ones, and end
    where the shortest does."""
    runs = [run for _, run in groups(table, "replicate")]
    xs = np.linspace(0, min(run["samples"][-1] for run in runs), 80)
    curves = {
        "samples": np.tile(xs, len(runs)),
        y: np.concatenate([np.interp(xs, run["samples"], run[y]) for run in runs]),
    }
    band(ax, quartiles(curves, "samples", y), number, label)


def simulation(simulated: Table, prediction: Table) -> Drawing:
    """F5: signals and errors at N = 100 and 500; in the last row, real gradients and the simulation
    of the same steps.
    """
    Ns = values(simulated, "N")
    figure, axes = grid(
        len(Ns) + 1,
        3,
        height=2.1,
    )
    for row, N in zip(axes, Ns, strict=False):
        batch = int(simulated["batch_size"][simulated["N"] == N].max())
        for number, method in enumerate(("proximal", "SGD")):
            mine = pick(simulated, N=N, method=method, batch_size=batch)
            for ax, column in zip(row, ("alpha_A", "delta_A", "dist_A"), strict=True):
                band(ax, quartiles(mine, "step", column), number, method)
        row[0].set_ylabel(
            f"N = {N}, T = {simulated['T'][0]:,}\nsimulated, B = {batch:,}", fontsize=8
        )
        for ax, title in zip(row, ("signal α$_A$", "‖Δ$_A$‖$_μ$", "‖A − Q‖$_μ$"), strict=True):
            ax.set_title(f"N = {N}: {title}")
    axes[0, 1].legend()
    last = axes[-1]
    circles = {"marker": "o", "linestyle": "none", "markersize": 3, "markerfacecolor": "white"}
    for number, lam in enumerate(sorted(values(prediction, "lam"), reverse=True)):
        name = "SGD" if lam == 0 else f"proximal, λ = {lam:.0e}"
        real, guess = (pick(prediction, lam=lam, gradients=kind) for kind in ("real", "simulated"))
        for ax, column in zip(last, ("alpha_A", "delta_A", "alpha_V"), strict=True):
            band(ax, quartiles(real, "step", column), number, name)
            ax.plot(*by_value(guess, "step", column), color=COLOURS[number], **circles)
    for ax, title in zip(last, ("signal α$_A$", "‖Δ$_A$‖$_μ$", "signal α$_V$"), strict=True):
        ax.set(title=f"N = {prediction['N'][0]}: {title}", xlabel="step")
    last[1].plot([], [], color="0.3", label="circles: simulated", **circles)
    last[1].legend()
    sizes = f"N = {prediction['N'][0]}, T = {prediction['T'][0]:,}"
    last[0].set_ylabel(f"{sizes}\nreal, B = {prediction['batch_size'][0]}", fontsize=8)
    return (
        figure,
        f"sparsity 2; median and quartiles over {replicates(simulated)} random tasks in each row",
    )


def flow(training: Table, near: Table) -> Drawing:
    """F9: the flow of (α_V, α_A) under real runs; differences and sums near (1, 1)."""
    figure, (left, right) = panels(2, width=4.4, height=3.8)
    K_P, K_Q = (float(np.median(training[name])) for name in ("K_P", "K_Q"))
    _streams(left, K_P, K_Q, int(training["T"][0]))
    shown = _runs(left, with_right_sign(training))
    x = np.linspace(0.5, 1.3, 50)
    dotted = {"color": "black", "linewidth": 0.8, "linestyle": ":"}
    left.plot(x, 1 / x, label="α$_V$α$_A$ = 1: equally good fits", **dotted)
    left.plot(1, 1, "*", color="black", markersize=10)
    left.set(xlabel="α$_V$", ylabel="α$_A$", title="flow (grey) and real runs")
    left.set(xlim=(-0.3, 1.3), ylim=(-0.3, 1.5))
    left.legend(loc="lower right")
    labels = {
        "difference": "|α$_V$ − α$_A$| / 2, from (1 + δ, 1 − δ)",
        "sum": "|1 − (α$_V$ + α$_A$) / 2|, from (1 − δ, 1 − δ)",
        "normalised": "|1 − α$_V$| with A = Q: Stage 3",
    }
    for number, (direction, label) in enumerate(labels.items()):
        mine = pick(near, direction=direction)
        right.semilogy(mine["step"], residual(mine, direction), label=label, **look(number))
    right.set(xlabel="step", title=f"near (1, 1), η = {near['eta'][0]:g}", ylim=(1e-6, 3))
    right.legend(loc="upper right")
    return figure, (
        f"first: N = 3, T = {training['T'][0]:,}, {shown} random tasks on which noise chose the "
        f"right sign; second: recursion with K$_P$ = K$_Q$ = 0.5, T = {near['T'][0]:,}"
    )


def _streams(ax: Axes, K_P: float, K_Q: float, T: int) -> None:
    """The flow, with K_P and K_Q as in the runs."""
    x, y = np.meshgrid(np.linspace(-0.3, 1.3, 40), np.linspace(-0.3, 1.5, 40))
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    drift = np.array([population_drift(point, K_P, K_Q, T) for point in points])
    drift = drift.reshape(*x.shape, 2)
    grey = {"color": "0.75", "linewidth": 0.6, "arrowsize": 0.6, "density": 1.2}
    ax.streamplot(x, y, drift[..., 0] / K_Q, drift[..., 1] / K_P, **grey)


def _runs(ax: Axes, training: Table) -> int:
    """Some runs of two methods, and how many tasks they are: more lines would hide each other."""
    shown = np.unique(training["replicate"])[:10]
    names = {"proximal, larger λ": "proximal, λ = 1e-4", "SGD": "SGD"}
    for number, (method, name) in enumerate(names.items()):
        for i in shown:
            run = pick(training, method=method, replicate=i)
            label = name if i == shown[0] else None
            ax.plot(run["alpha_V"], run["alpha_A"], linewidth=0.8, label=label, **look(number))
    return len(shown)
