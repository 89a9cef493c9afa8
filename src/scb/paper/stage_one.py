"""How many samples Stage 1 needs to find the sign, from runs with several batch sizes: a fit, and the exponent in T."""

import numpy as np

from scb.geometry import Array
from scb.jobs.table import Table, concatenate, pick, values
from scb.paper.experiments.projector import GOAL


def least_batches(rows: Table, goal: float = GOAL) -> tuple[Array, Array]:
    """The values of T, and at each the least B with which the sign is right with probability ``goal``.

    Maximum likelihood for Pr(right) = Φ(z + c·log(B/B_T)), Φ(z) = ``goal``, with one c for all T.
    """
    from scipy.optimize import minimize
    from scipy.special import log_ndtr, ndtri

    T = np.unique(rows["T"])
    which = np.searchsorted(T, rows["T"])
    log_batch = np.log(rows["batch_size"])
    sign = np.where(rows["right"], 1.0, -1.0)

    def loss(theta: Array) -> float:
        z = ndtri(goal) + np.exp(theta[-1]) * (log_batch - theta[which])
        return -float(log_ndtr(sign * z).sum())

    start = [np.mean(log_batch[which == i]) for i in range(len(T))]
    found = minimize(loss, np.array([*start, 0.0]), method="BFGS").x
    return T, np.exp(found[:-1])


def stage_one_slopes(table: Table, draws: int = 100, goal: float = GOAL) -> dict[str, tuple[float, float, float]]:
    """For each projector the exponent of the least B in T, and its 95 % interval by drawing replicates anew."""
    found = {}
    for projector in values(table, "projector"):
        rng = np.random.default_rng(0)
        mine = pick(table, projector=projector)
        replicates = np.unique(mine["replicate"])
        by_replicate = [pick(mine, replicate=i) for i in replicates]
        slopes = [_slope(mine, goal)]
        for _ in range(draws):
            chosen = [by_replicate[i] for i in rng.integers(len(replicates), size=len(replicates))]
            slopes.append(_slope(concatenate(chosen), goal))
        found[projector] = (slopes[0], *np.percentile(slopes[1:], (2.5, 97.5)))
    return found


def _slope(rows: Table, goal: float) -> float:
    T, least = least_batches(rows, goal)
    return float(np.polyfit(np.log(T), np.log(least), 1)[0])
