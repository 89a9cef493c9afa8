"""Shrinkage of matrices to the distribution of all labels, if there are few labels for each entry.

At the maximum of the likelihood, a matrix with many entries has memorised its labels and predicts
new labels badly. So each column gets α additional labels, distributed as all labels are; the
concentration α makes the labels of all columns most likely (``price``). Then the labels are divided
anew among the slots, and so on. This is EM for the matrices and weights that are most probable
under the Dirichlet prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scb.arrays import Array
from scb.mixture.data import Rows
from scb.mixture.model import Mixture, normalised
from scb.mixture.newton import Point
from scb.mixture.price import ColumnCounts
from scb.mixture.tuning import TUNING


@dataclass(frozen=True)
class Shrinkage:
    """How far the matrices of a mixture are shrunk."""

    labels: Array  # (N,), the distribution of all labels
    concentrations: Sequence[float]  # of each matrix

    def step(self, rows: Rows, point: Point) -> Point:
        """One EM step."""
        at = point.at
        more = at.P * point.gP + np.repeat(self.concentrations, at.N) * self.labels[:, None]
        q = normalised(at.q * point.gq, 1, at.q)
        return Point.from_rows(rows, replace(at, P=more / more.sum(axis=0), q=q))


def shrunk(
    rows: Rows, at: Mixture, labels: Array, smoothing: float
) -> tuple[Point, Shrinkage] | None:
    """A mixture at its maximum, with its matrices shrunk to the distribution of all labels (N,).

    The result is None if the labels are hardly more likely than with ``smoothing``, the number of
    labels that would be added to each column without shrinkage.
    """
    point = Point.from_rows(rows, at)
    matrices = _matrices(point, labels)
    best = [one.marginal(one.concentration()).sum() for one in matrices]
    plain = [one.marginal(smoothing).sum() for one in matrices] if smoothing else [-np.inf]
    labels_in_use = sum(one.n.sum() for one in matrices)
    if sum(best) - sum(plain) <= TUNING.shrinkage_gain * labels_in_use:
        return None
    # The first step forgets what was learned by heart
    shrinkage = Shrinkage(labels, [at.N / 2] * len(matrices))
    for _ in range(TUNING.shrinkage_steps):
        loglik = point.loglik
        point = shrinkage.step(rows, point)
        if abs(point.loglik - loglik) < TUNING.shrinkage_change * labels_in_use:
            break
        before = shrinkage.concentrations
        matrices = zip(_matrices(point, labels), before, strict=True)
        shrinkage = Shrinkage(labels, [one.concentration(alpha) for one, alpha in matrices])
    return point, shrinkage


def _matrices(point: Point, labels: Array) -> list[ColumnCounts]:
    """The expected labels of each matrix."""
    counts = point.at.P * point.gP
    return [
        ColumnCounts(counts[:, first : first + point.at.N], labels)
        for first in range(0, counts.shape[1], point.at.N)
    ]
