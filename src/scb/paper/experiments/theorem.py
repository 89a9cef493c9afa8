"""Runs inside all assumptions of the theorem, (d) included: T ≥ (NQ)^10."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from scb.geometry import Projector
from scb.jobs.job import Job, Rows
from scb.jobs.table import Table, where
from scb.paper.experiments import history_of, shortened, task_of
from scb.training.recipes import paper

# (NQ)^10 for N = 3 and Q = 1
LONG = 59_049


@dataclass(frozen=True)
class AssumptionsJob(Job):
    """One run of Algorithm 1 to the letter, with the theorem's thresholds and all three stages, and
    without resolving the sign.
    """

    label: ClassVar = {"experiment": "theorem", "job": "AssumptionsJob"}

    T: int = LONG
    projector: Projector = "mu"
    replicate: int = 0
    N: int = 3
    sparsity: int = 1
    batch_size: int = 1024
    eta: float = 0.05

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 1 + self.batch_size * 400 * self.T * 1.3e-9

    def run(self) -> Rows:
        """The history, thinned, with the measured value of each assumption and whether all of them
        hold.
        """
        task = task_of(self)
        signal = 1 / (self.sparsity * self.N)  # α at the end of Stage 1
        recipe = paper(
            task,
            eta=(self.eta, self.eta, self.eta),
            steps=(round(16 / self.eta), round(8 / self.eta), round(6 / self.eta)),
            batch_size=self.batch_size,
            lam=self.eta * 0.02 / self.sparsity,
            threshold=signal * task.weight_threshold,
            resolve_sign=False,
            signal=(signal, 0.95),
            projector=self.projector,
        )
        history = history_of(task, replace(recipe, name="theorem"), self.seed, every=5)
        report = task.check()
        facts = {f"assumption_{name}": found.measured for name, found in report.items()}
        facts["inside"] = all(found.holds for found in report.values())
        rows = {
            name: history[name]
            for name in (
                "step",
                "stage",
                "samples",
                "alpha_V",
                "alpha_A",
                "delta_A",
                "dist_V",
                "dist_A",
            )
        }
        return thinned(
            {name: np.full(len(rows["step"]), fact) for name, fact in facts.items()} | rows
        )


def thinned(history: Table) -> Table:
    """Every twentieth step and the last step of each stage, with numbers to six digits, which is
    enough for a line and keeps the file small."""
    stage = history["stage"]
    last = np.r_[stage[1:] != stage[:-1], True]
    return shortened(where(history, last | (history["step"] % 20 == 0)))
