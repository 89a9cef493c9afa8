"""How many samples Stage 1 needs to find the sign, from runs with several batch sizes: a fit, and
the exponent in T."""

from typing import Any, NamedTuple

import numpy as np

from scb.arrays import Array
from scb.jobs.table import Table, concatenate, pick, values, where
from scb.paper.experiments.projector import GOAL


def least_batches(rows: Table) -> tuple[Array, Array]:
    """The values of T, and at each the least B with which the sign is right with probability
    ``GOAL``.

    Maximum likelihood for Pr(right) = Φ(z + c·log(B/B_T)), Φ(z) = ``GOAL``, with one c for all T.
    """
    from scipy.optimize import minimize
    from scipy.special import log_ndtr, ndtri

    T = np.unique(rows["T"])
    which = np.searchsorted(T, rows["T"])
    log_batch = np.log(rows["batch_size"])
    sign = np.where(rows["right"], 1.0, -1.0)

    def loss(theta: Array) -> float:
        z = ndtri(GOAL) + np.exp(theta[-1]) * (log_batch - theta[which])
        return -float(log_ndtr(sign * z).sum())

    start = [np.mean(log_batch[which == i]) for i in range(len(T))]
    found = minimize(loss, np.array([*start, 0.0]), method="BFGS").x
    return T, np.exp(found[:-1])


def stage_one_slopes(table: Table, draws: int = 100) -> dict[str, tuple[float, float, float]]:
    """For each projector the exponent of the least B in T, and its 95 % interval by drawing
    replicates anew."""
    found = {}
    for projector in values(table, "projector"):
        rng = np.random.default_rng(0)
        mine = pick(table, projector=projector)
        replicates = np.unique(mine["replicate"])
        by_replicate = [pick(mine, replicate=i) for i in replicates]
        slopes = [_slope(mine)]
        for _ in range(draws):
            chosen = [by_replicate[i] for i in rng.integers(len(replicates), size=len(replicates))]
            slopes.append(_slope(concatenate(chosen)))
        found[projector] = (slopes[0], *np.percentile(slopes[1:], (2.5, 97.5)))
    return found


class PowerLaw(NamedTuple):
    """Pr(right) = Φ(z·√(B/B_T)), as ``experiments.projector`` says, with B_T =
    scale·(T/middle)^exponent and Φ(z) = ``goal``."""

    exponent: float
    scale: float
    middle: float  # the geometric mean of T
    goal: float

    def least(self, T: Array) -> Array:
        """The least B at each T."""
        return self.scale * (np.asarray(T, dtype=float) / self.middle) ** self.exponent


def power_law(rows: Table, goal: float) -> PowerLaw:
    """The power law of the least B in T by maximum likelihood, over all T together: a few runs at
    each are enough."""
    from scipy.optimize import minimize

    log_T = np.log(rows["T"])
    middle = log_T.mean()
    log_batch = np.log(rows["batch_size"])
    start = np.polyfit(log_T - middle, log_batch, 1)

    def loss(theta: Array) -> float:
        return _disagreement(
            rows["right"], log_batch - theta[0] - theta[1] * (log_T - middle), goal
        )

    level, exponent = minimize(loss, start[::-1], method="Nelder-Mead").x
    return PowerLaw(float(exponent), float(np.exp(level)), float(np.exp(middle)), goal)


def least_at_each(rows: Table, goal: float) -> tuple[Array, Array]:
    """The values of T, and the least B at each by its own runs; at most 30 times the largest B that
    was run."""
    from scipy.optimize import minimize_scalar

    T = np.unique(rows["T"])
    found = []
    for t in T:
        mine = pick(rows, T=t)
        log_batch = np.log(mine["batch_size"])
        ends = (log_batch.min() - np.log(30), log_batch.max() + np.log(30))

        def loss(level: float, right: Array = mine["right"], log_batch: Array = log_batch) -> float:
            return _disagreement(right, log_batch - level, goal)

        best: Any = minimize_scalar(loss, bounds=ends, method="bounded")
        found.append(np.exp(best.x))
    return T, np.array(found)


def share_by_power_law(ratio: Array, goal: float) -> Array:
    """The share of right signs at a multiple of B_T."""
    from scipy.special import ndtr, ndtri

    return ndtr(ndtri(goal) * np.sqrt(ratio))


def _disagreement(right: Array, above: Array, goal: float) -> float:
    """Minus the log-likelihood of the signs, ``above`` being log(B/B_T)."""
    from scipy.special import log_ndtr, ndtri

    z = ndtri(goal) * np.exp(np.clip(above / 2, -50, 5))
    return -float(log_ndtr(np.where(right, z, -z)).sum())


def power_laws(
    table: Table, goal: float, draws: int = 100
) -> dict[str, tuple[PowerLaw, float, float]]:
    """For each projector the power law of the least B in T, and the 95 % interval of its exponent
    by drawing replicates anew."""
    found = {}
    for projector in values(table, "projector"):
        rng = np.random.default_rng(0)
        mine = pick(table, projector=projector)
        counted = {name: mine[name] for name in ("T", "batch_size", "right")}
        rows = [np.flatnonzero(mine["replicate"] == i) for i in np.unique(mine["replicate"])]
        exponents = []
        for _ in range(draws):
            chosen = np.concatenate([rows[i] for i in rng.integers(len(rows), size=len(rows))])
            exponents.append(power_law(where(counted, chosen), goal).exponent)
        found[projector] = (power_law(mine, goal), *np.percentile(exponents, (2.5, 97.5)))
    return found


def _slope(rows: Table) -> float:
    T, least = least_batches(rows)
    return float(np.polyfit(np.log(T), np.log(least), 1)[0])
