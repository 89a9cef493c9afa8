"""One small thing of every kind that scb writes, how it is written, and how it is read: the targets of flips and faults."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import scb
from scb.files import read_json, read_sealed, write_json
from scb.jobs.job import Job
from scb.jobs.shipped import read_shipped, write_shipped
from scb.jobs.store import Failure, Result
from scb.jobs.table_file import read_table, write_table
from scb.sequences.fit_folder import read_fit
from scb.sequences.model_file import load_model
from scb.sweeps.grid import Sweep
from scb.sweeps.kinds import KINDS
from scb.sweeps.store import SWEEP, SweepStore
from scb.task import Task
from scb.training.run import Run
from scb.training.settings import TrainingSettings

GRID = 'kind = "recover"\nseeds = 3\n[fixed]\nT = 9\nsamples = 20\n[grid]\nN = [2, 3]\n'


@dataclass(frozen=True)
class Thing:
    """A kind of file: write version 0 or 1 of it into a folder, read it back as text that tells any two versions apart."""

    file: str  # a glob in the folder
    write: Callable[[Path, int], None]
    read: Callable[[Path], str]


def told(*values: Any) -> str:
    """Values as text, exact to the last bit."""
    return repr([value.tolist() if isinstance(value, np.ndarray) else value for value in values])


def told_table(table: dict[str, np.ndarray], *more: Any) -> str:
    return told(*((name, column.dtype.str, column.tolist()) for name, column in table.items()), *more)


@cache
def run(version: int) -> Run:
    task = Task.random(3, 12, 2, seed=version)
    return scb.train(task, scb.recipes.paper(task, steps=(3, 2, 0)), every=2)


@cache
def fitted(version: int) -> Any:
    text = "abac" * 30 if version == 0 else "abcacb" * 25
    return scb.SparseContextualBigram(3).fit(list(text))


def _write_model(folder: Path, version: int) -> None:
    estimator = fitted(version)
    estimator.save(folder / "model.safetensors")


def _read_model(folder: Path) -> str:
    saved = load_model(folder / "model.safetensors")
    model = saved.model
    arrays = (model.classes, model.attention.toarray(), model.errors.data, model.prior, model.frequencies)
    matrices = sorted((lag, P.tolist()) for lag, P in model.matrices.items())
    return told(*arrays, *matrices, model.facts, saved.parameters, saved.width)


def _write_summary(folder: Path, version: int) -> None:
    _write_model(folder, 0)
    score = {"name": "ours", "bits": 1.5 + version, "difference": 0.0, "error": 0.0, "own": True, "best": True}
    model = sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    facts = {"file": f"{version}.txt", "separator": "", "held_out": [score], "model": model}
    write_json(folder / "summary.json", facts)


def _read_summary(folder: Path) -> str:
    fit = read_fit(folder)
    return told(*map(tuple, fit.scores), fit.separator)


def _run_told(folder: Path) -> str:
    found = Run.load(folder)
    facts = [getattr(found, name) for name in ("recipe", "seed", "step", "stage", "stage_step", "samples", "finished", "made_by")]
    return told(found.V, found.parameters, found.diverged, *facts, *((name, x.tolist()) for name, x in found.history.items()))


def _sweep() -> Sweep:
    return Sweep.parse(GRID, KINDS)


def _rows(job: Job, version: int) -> dict[str, Any]:
    return {"exact": True, "missed": 0, "false": version, "dist_V": 0.1 + version, "dist_A": float(job.seed % 7)}


def _write_sweep(folder: Path, version: int) -> None:
    """Version 0 has two rows and a failure; version 1 has one row more."""
    sweep = _sweep()
    jobs = sweep.jobs()
    with SweepStore.alone(folder) as store:
        store.begin(sweep, jobs)
        if not store.done():
            for job in jobs[:2]:
                store.add(job, Result(_rows(job, 0), 1.0))
            store.fail(jobs[2], Failure("ValueError: no", "Traceback"))
            store.flush()
        if version:
            store.add(jobs[2], Result(_rows(jobs[2], 0), 1.0))
            store.flush()


def _read_sweep(folder: Path) -> str:
    read_sealed(folder / SWEEP)  # as scb sweep --status does
    sweep = Sweep.read(folder / SWEEP, KINDS)
    store = SweepStore(folder)
    store.missing(sweep.jobs())  # a failure whose row came later is none
    facts = read_json(folder / "facts.json")
    table = store.table(sweep)
    assert table is not None
    return told_table(table, sorted(store.failures.items()), facts, [job.key for job in sweep.jobs()])


def _write_table(folder: Path, version: int) -> None:
    table = {
        "name": np.array(["λ", "b"]),
        "x": np.array([0.5, 1.5 + version]),
        "n": np.array([1, -2]),
        "ok": np.array([True, False]),
    }
    write_table(folder / "t.parquet", table, {"seconds": 1.5, "version": version})


def _write_shipped(folder: Path, version: int) -> None:
    write_shipped(folder, "rates", {"x": np.array([0.1, 0.2 + version]), "name": np.array(["a", "b"])}, {"version": version})


THINGS: dict[str, Thing] = {
    "run": Thing("run.safetensors", lambda folder, version: run(version).save(folder), _run_told),
    "task": Thing(
        "task.npz",
        lambda folder, version: Task.random(3, 9, 2, seed=version).save(folder / "task.npz"),
        lambda folder: (lambda t: told(t.P, t.positions, t.weights, t.T, t.mu))(Task.load(folder / "task.npz")),
    ),
    "settings": Thing(
        "config.json",
        lambda folder, version: TrainingSettings(T=50 + version, options={"lam": 1e-4}).save(folder),
        lambda folder: told(TrainingSettings.load(folder)),
    ),
    "model": Thing("model.safetensors", _write_model, _read_model),
    "summary": Thing("summary.json", _write_summary, _read_summary),
    "table": Thing("t.parquet", _write_table, lambda folder: told_table(*read_table(folder / "t.parquet"))),
    "shipped": Thing("rates.csv", _write_shipped, lambda folder: told_table(*read_shipped(folder, "rates"))),
    "sweep rows": Thing("rows/*.parquet", _write_sweep, _read_sweep),
    "sweep facts": Thing("facts.json", _write_sweep, _read_sweep),
    "sweep failures": Thing("failures.json", _write_sweep, _read_sweep),
    "sweep": Thing("sweep.toml", _write_sweep, _read_sweep),
}
