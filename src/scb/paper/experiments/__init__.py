"""The experiments, whose jobs produce the tables, and what their runs have in common: random tasks,
histories with real or simulated gradients, and numbers to six digits."""

from typing import Any, Literal

import numpy as np

from scb.jobs.job import Job, Rows, random_task
from scb.jobs.table import Table
from scb.task import Task
from scb.training.loop import Device, train
from scb.training.recipes import Recipe

Gradients = Literal["real", "simulated"]
_TASK = ("N", "T", "sparsity", "replicate", "ensemble", "K_P")


def task_of(job: Job) -> Task:
    """The random task that the fields of a job name; its sparsity is 2 if no field says it."""
    fields: dict[str, Any] = {"sparsity": 2} | job.parameters
    return random_task(**{name: fields[name] for name in _TASK if name in fields})


def history_of(
    task: Task,
    recipe: Recipe,
    seed: int,
    every: int,
    gradients: Gradients = "real",
    device: Device | None = None,
) -> Table:
    """The history of a run with real gradients, or of a simulated one, in which what diverges shows
    as NaN."""
    if gradients == "real":
        return train(task, recipe, seed, device=device or "cpu", every=every, judge=False).history
    # Not above: the other jobs do without SciPy
    from scb.training.simulation import simulate

    with np.errstate(over="ignore", invalid="ignore"):
        return simulate(task, recipe, seed, every=every)


def shortened(rows: Rows) -> Table:
    """All numbers to six digits, which keeps files small."""
    table = {name: np.atleast_1d(values) for name, values in rows.items()}
    return {
        name: np.array([float(f"{v:.6g}") for v in x]) if x.dtype.kind == "f" else x
        for name, x in table.items()
    }
