"""Where noise wins, as a phase diagram."""

import numpy as np
from matplotlib.figure import Figure

from scb.jobs.table import Table, concatenate, pick, values, where
from scb.paper.experiments.training import lost_to_noise
from scb.sweeps.phase import phase


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
