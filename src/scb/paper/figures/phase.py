"""F13: where noise wins."""

import numpy as np

from scb.drawing import panels
from scb.jobs.table import Table, pick, replicates, values, where
from scb.paper.experiments.training import lost_to_noise
from scb.paper.figures.bars import Drawing, log_ticks, share_bars, small_legend

METHODS = {
    "proximal, sign settled": "proximal, λ = 1e-5",
    "proximal, larger λ": "proximal, λ = 1e-4",
    "SGD, sign settled": "SGD",
}


def noise_wins(table: Table) -> Drawing:
    """F13: the share of tasks that each method does not lose to noise, against the batch size, for
    each K_P."""
    figure, axes = panels(len(METHODS), width=3.2, height=3.0)
    for ax, (method, name) in zip(axes, METHODS.items(), strict=True):
        last = _last(pick(table, method=method))
        kept = last | {"kept": ~lost_to_noise(last)}
        for number, K_P in enumerate(reversed(values(kept, "K_P"))):
            share_bars(ax, pick(kept, K_P=K_P), "batch_size", "kept", number, f"K$_P$ = {K_P:g}")
        log_ticks(ax, values(kept, "batch_size"))
        ax.set(yscale="linear", ylim=(-0.03, 1.03), title=name, xlabel="batch size B")
    axes[0].set_ylabel("share of tasks not lost to noise")
    small_legend(axes[0])
    return figure, (
        f"N = {table['N'][0]}, T = {table['T'][0]:,}, sparsity 2, uniform ensemble moved to K$_P$, "
        f"1,000 steps, sign resolved; {replicates(table)} random tasks per point, 95 % intervals"
    )


def _last(runs: Table) -> Table:
    """The last row of every run."""
    return where(runs, np.r_[runs["seed"][1:] != runs["seed"][:-1], True])
