"""The evaluations of a run, which become rows of its history."""

from dataclasses import replace
from typing import Any

import numpy as np

from scb import metrics
from scb.arrays import Array
from scb.model import LinearTransformer
from scb.task import Task
from scb.training.engine import Looks, Taken
from scb.training.run import COLUMNS, Run

# Entries of V: temporary arrays of more would leave the cache
BLOCK = 1 << 17


def attention_of(run: Run) -> Any:
    """Return the attention (T, N) of a run where it is stored: as an array, or on a GPU while the
    run trains there.
    """
    return run.parameters if run.transformer is LinearTransformer else run.A


class Evaluations:
    """Evaluations of a run that are not in its history yet.

    Only sums over the columns of A are kept. The rows are computed all at once when they are
    needed, because computing them one by one would take longer than small steps.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._counts: list[tuple[float, ...]] = []  # step, stage, samples, batch_loss
        # V (E, N, N), and the sums of A, of one evaluation or of several
        self._points: list[tuple[Array, Array, Array]] = []
        self._of_heads: list[dict[str, float]] = []  # instead of points: what was measured

    def note(self, run: Run, taken: Taken | None = None) -> None:
        """Evaluate a run before its first step, or after the steps that have been ``taken``."""
        between_stages = run.stage_step == 0 and run.step > 0
        # The history counts stages from 1. A row between two of them belongs to the one that has
        # ended.
        stage = run.stage if between_stages else run.stage + 1
        self._counts.append((run.step, stage, run.samples, taken.loss if taken else np.nan))
        if self._task.heads > 1 or run.V.ndim == 3:
            self._of_heads.append(metrics.measure(self._task, run.V, run.A))
        else:
            # What the steps have left is no longer A after a rounding.
            sums = taken.sums if taken is not None and taken.A is run.parameters else None
            moments, on_support = sums or metrics.column_sums(self._task, attention_of(run))
            self._points.append((run.V[None], moments[None], on_support[None]))

    def note_on_the_way(self, run: Run, batch_size: int, looks: Looks | None) -> None:
        """Evaluate a run at moments between its next steps."""
        if looks is None:
            return
        for at, loss in zip(looks.steps.tolist(), looks.losses.tolist(), strict=True):
            samples = run.samples + at * batch_size
            self._counts.append((run.step + at, run.stage + 1, samples, loss))
        self._points.append((looks.V, looks.moments, looks.on_support))

    def noted(self, run: Run, taken: Taken, every: int) -> bool:
        """Evaluate a run if an evaluation is due, as it is at multiples of ``every`` and at the end
        of each stage; return whether it was due.
        """
        due = run.step % every == 0 or run.finished or run.stage_step == 0
        if due:
            self.note(run, taken)
        return due

    def written(self, run: Run) -> Run:
        """Return the run with all evaluations in its history and, if it has finished, with NumPy
        arrays.
        """
        if run.finished:
            run = replace(run, parameters=np.asarray(run.parameters))
        if not self._counts:
            return run
        counts = dict(zip(COLUMNS[:4], np.array(self._counts).T, strict=True))
        names = COLUMNS
        if self._of_heads:
            measured = {name: [row[name] for row in self._of_heads] for name in self._of_heads[0]}
            rows = counts | {name: np.array(column) for name, column in measured.items()}
            names = tuple(rows)
        else:
            points = [np.concatenate(parts) for parts in zip(*self._points, strict=True)]
            some = 1 + BLOCK // self._task.N**2
            blocks = [
                metrics.measure_all(self._task, *(part[i : i + some] for part in points))
                for i in range(0, len(self._counts), some)
            ]
            rows = counts | {
                name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]
            }
        self._counts = []
        self._points = []
        self._of_heads = []
        history = {name: np.append(run.history.get(name, ()), rows[name]) for name in names}
        return replace(run, history=history)
