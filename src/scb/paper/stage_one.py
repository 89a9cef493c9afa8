"""The number of samples that Stage 1 needs to find the sign, from a fit to runs with several batch
sizes, and its exponent in T."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from scb.arrays import Array
from scb.jobs.table import Table, concatenate, groups, pick
from scb.paper.experiments.projector import GOAL


def least_batches(rows: Table) -> tuple[Array, Array]:
    """The values of T and, at each, the least B with which the sign is right with probability
    ``GOAL``.

    Maximum likelihood for Pr(right) = Φ(z + c·log(B/B_T)), Φ(z) = ``GOAL``, with one c for all T.
    """
    from scipy.optimize import minimize
    from scipy.special import ndtri

    counted = _counted(rows)
    T = np.unique(counted.T)
    at = T[:, None] == counted.T  # (values of T, rows)

    def loss(theta: Array) -> tuple[float, Array]:
        slope = np.exp(theta[-1])
        above = counted.log_batch - theta[:-1] @ at
        value, by_z = counted.disagreement(ndtri(GOAL) + slope * above)
        return value, np.append(-slope * (at @ by_z), slope * (by_z @ above))

    start = [np.average(counted.log_batch[one], weights=counted.runs[one]) for one in at]
    found = minimize(loss, np.array([*start, 0.0]), method="BFGS", jac=True).x
    return T, np.exp(found[:-1])


def stage_one_slopes(table: Table, draws: int = 100) -> dict[str, tuple[float, float, float]]:
    """For each projector, the exponent of the least B in T, with its 95 % interval from resampled
    replicates.
    """
    return {
        projector: (_slope(mine), *_resampled(mine, _slope, draws))
        for projector, mine in groups(table, "projector")
    }


def _slope(rows: Table) -> float:
    T, least = least_batches(rows)
    return float(np.polyfit(np.log(T), np.log(least), 1)[0])


def _resampled(rows: Table, exponent: Callable[[Table], float], draws: int) -> tuple[float, float]:
    """The 95 % interval of an exponent, from replicates that are drawn anew."""
    rng = np.random.default_rng(0)
    runs = [mine for _, mine in groups(rows, "replicate")]
    found = [
        exponent(concatenate([runs[i] for i in rng.integers(len(runs), size=len(runs))]))
        for _ in range(draws)
    ]
    low, high = np.percentile(found, (2.5, 97.5))
    return low, high


class PowerLaw(NamedTuple):
    """The model Pr(right) = Φ(z·√(B/B_T)) of ``experiments.projector``, with B_T =
    scale·(T/middle)^exponent and Φ(z) = ``goal``."""

    exponent: float
    scale: float
    middle: float  # the geometric mean of T
    goal: float

    def least(self, T: Array) -> Array:
        """The least B at each T."""
        return self.scale * (np.asarray(T, dtype=float) / self.middle) ** self.exponent


def power_law(rows: Table, goal: float) -> PowerLaw:
    """The power law of the least B in T by maximum likelihood, over all T together, so a few runs
    at each T are enough."""
    from scipy.optimize import minimize

    counted = _counted(rows)
    log_T = np.log(counted.T)
    middle = np.average(log_T, weights=counted.runs)
    # (2, rows): what log B_T is made of
    basis = np.stack((np.ones(len(log_T)), log_T - middle))
    start = np.polyfit(basis[1], counted.log_batch, 1, w=np.sqrt(counted.runs))

    def loss(theta: Array) -> tuple[float, Array]:
        z = _z_by_power_law(counted.log_batch - theta @ basis, goal)
        value, by_z = counted.disagreement(z)
        return value, -basis @ (by_z * z / 2)

    level, exponent = minimize(loss, start[::-1], method="BFGS", jac=True).x
    return PowerLaw(float(exponent), float(np.exp(level)), float(np.exp(middle)), goal)


def least_at_each(rows: Table, goal: float) -> tuple[Array, Array]:
    """The values of T, and the least B at each T from its own runs, limited to 30 times the largest
    B that was run."""
    from scipy.optimize import minimize_scalar

    T = np.unique(rows["T"])
    found = []
    for t in T:
        mine = _counted(pick(rows, T=t))
        ends = (mine.log_batch.min() - np.log(30), mine.log_batch.max() + np.log(30))

        def loss(level: float, mine: _Counted = mine) -> float:
            return mine.disagreement(_z_by_power_law(mine.log_batch - level, goal))[0]

        best: Any = minimize_scalar(loss, bounds=ends, method="bounded")
        found.append(np.exp(best.x))
    return T, np.array(found)


def share_by_power_law(ratio: Array, goal: float) -> Array:
    """The share of right signs at a multiple of B_T."""
    from scipy.special import ndtr, ndtri

    return ndtr(ndtri(goal) * np.sqrt(ratio))


def _z_by_power_law(above: Array, goal: float) -> Array:
    """z·√(B/B_T) with Φ(z) = ``goal``, ``above`` being log(B/B_T)."""
    from scipy.special import ndtri

    return ndtri(goal) * np.exp(np.clip(above / 2, -50, 5))


class _Counted(NamedTuple):
    """Runs by T and B, and how many of them found the sign."""

    T: Array
    log_batch: Array
    right: Array
    wrong: Array

    @property
    def runs(self) -> Array:
        return self.right + self.wrong

    def disagreement(self, z: Array) -> tuple[float, Array]:
        """Minus the log-likelihood of the signs where Φ(z) is the chance of a right one, and its
        derivative in z."""
        from scipy.special import log_ndtr

        logs = log_ndtr(np.stack((z, -z)))
        counts = np.stack((self.right, self.wrong))
        density = np.exp(-(z**2) / 2 - logs) / np.sqrt(2 * np.pi)
        lost, won = counts * density
        return -float((counts * logs).sum()), won - lost


def _counted(rows: Table) -> _Counted:
    cells = np.stack((rows["T"], rows["batch_size"]))
    (T, batch), place = np.unique(cells, axis=1, return_inverse=True)
    runs: Any = np.bincount(place.ravel(), minlength=len(T))
    right: Any = np.bincount(place.ravel(), rows["right"], len(T))
    return _Counted(T, np.log(batch), right, runs - right)


def power_laws(
    table: Table, goal: float, draws: int = 100
) -> dict[str, tuple[PowerLaw, float, float]]:
    """For each projector, the power law of the least B in T, with the 95 % interval of its exponent
    from resampled replicates.
    """

    def exponent(rows: Table) -> float:
        return power_law(rows, goal).exponent

    return {
        projector: (power_law(mine, goal), *_resampled(mine, exponent, draws))
        for projector, mine in groups(table, "projector")
    }
