"""What the studies of transformers share: their tasks and sequences, and tables of which rows are added as they are made."""

import csv
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from scb.task import Task
from scb.task.sampling import generate

TASKS = 8
SHARES = (0.9, 0.5, 0.1)  # of the excess loss that are left; samples are counted until then
LAG_TASK = (5, 32)  # N and T of the tasks that generate sequences
LENGTHS = (1_000, 4_000, 16_000, 64_000, 256_000)  # tokens of a sequence
WINDOW = 64  # tokens that a decoder sees
LOOKS = 2_000  # contexts on which a model is judged


class Sheet:
    """A table on disk, as text, of which rows can be added; a study that was stopped goes on behind what is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, str]] = []
        if path.exists():
            with path.open(newline="") as file:
                self.rows = list(csv.DictReader(file))

    def has(self, **values: Any) -> bool:
        """Whether there is a row with these values."""
        return any(all(row[name] == str(value) for name, value in values.items()) for row in self.rows)

    def add(self, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows and write them at once; the first ones name the columns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = [{name: f"{x:.6g}" if isinstance(x, float) else str(x) for name, x in row.items()} for row in rows]
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(text[0]), lineterminator="\n")
            if not self.rows:
                writer.writeheader()
            writer.writerows(text)
        self.rows += text


def samples_until(samples: Sequence[float] | np.ndarray, left: Sequence[float] | np.ndarray) -> dict[str, float]:
    """Samples until each of ``SHARES`` is left, by a straight line between looks, in logarithms; infinite if that never happens."""
    found = {}
    y = np.asarray(left, dtype=float)
    for share in SHARES:
        name = f"samples_{round(100 * share)}"
        below = np.flatnonzero(y <= share)  # a NaN is not
        found[name] = np.inf
        if below.size:
            i = int(below[0])
            found[name] = float(samples[i])
            if i and samples[i - 1] > 0:
                between = (np.log(y[i - 1]) - np.log(share)) / max(np.log(y[i - 1]) - np.log(max(y[i], 1e-9)), 1e-12)
                found[name] = float(samples[i - 1] * (samples[i] / samples[i - 1]) ** between)
    return found


def generated(task: Task, i: int) -> np.ndarray:
    """(max(LENGTHS),): the sequence that task number i generates, of which models get the first tokens."""
    return generate(task, max(LENGTHS), seed=10_000 + i)


def held_out(task: Task, i: int) -> tuple[np.ndarray, np.ndarray]:
    """(LOOKS, WINDOW) windows of another sequence, and (LOOKS, N), the true distribution of what comes after each."""
    sequence = generate(task, 10 * LOOKS + WINDOW, seed=20_000 + i)
    windows = np.stack([sequence[start : start + WINDOW] for start in range(0, 10 * LOOKS, 10)])
    context = windows[:, -(task.T + 1) :]
    last = context[:, -1]
    sources = context[np.arange(LOOKS), task.positions[:, last]]  # (Q, n)
    return windows, np.einsum("qn,jqn->nj", task.weights[:, last], task.P[:, sources])


SHIPPED = {  # the table in docs/tables → the files that it is made of
    "transformers": ("transformers.csv",),
    "transformer rivals": ("baselines.csv",),
    "transformer stages": ("stages.csv",),
    "decoders": ("decoders.csv", "lag-models.csv"),
}


def ship(directory: Path, target: Path, made: str) -> None:
    """Write what the studies have made so far as tables of docs; ``made`` says where."""
    from scb.jobs.shipped import write_shipped
    from scb.paper.registry import ELSEWHERE  # not above: a machine with a GPU may lack what the report needs
    from scb.provenance import versions

    for name, files in SHIPPED.items():
        sheets = [Sheet(directory / file) for file in files]
        rows = [row for sheet in sheets for row in sheet.rows]
        if rows:
            table = {column: _typed([row[column] for row in rows]) for column in rows[0]}
            facts = {"command": ELSEWHERE[name], "settings": _settings(table), "machine": made, "versions": versions()}
            write_shipped(target, name, table, facts | {"made": date.today().isoformat()})
            print(f"{name}: {len(rows)} rows")


def _typed(column: list[str]) -> np.ndarray:
    """Whole numbers, numbers, or text."""
    for kind in (np.int64, np.float64):
        try:
            return np.array(column, dtype=kind)
        except ValueError:
            continue
    return np.array(column)


def _settings(table: dict[str, np.ndarray]) -> str:
    """The values that were tried, for people."""
    names = [name for name in ("study", "model", "start", "rival", "N", "T", "length", "rate", "replicate") if name in table]
    return "; ".join(f"{name}: {', '.join(map(str, dict.fromkeys(table[name].tolist())))}" for name in names)
