"""Where results lie and are found again: a file for each job that gives many rows, or the rows of a sweep in batches.

Only the process that hands out jobs writes here, and only whole files, which appear under their names at once. So whatever is
killed, and whenever, all that is on disk can be read, nothing is there twice, and at most what was under way is lacking.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scb.files import write_atomically
from scb.jobs.grid import Sweep, succeeded
from scb.jobs.job import Job, Rows
from scb.jobs.table import Table, concatenate, read_table, where, write_table
from scb.provenance import code_digest, versions


class Result(NamedTuple):
    """What a job gave, and the seconds that it took."""

    rows: Rows
    seconds: float


class Failure(NamedTuple):
    """What a job raised: the line for people, and the traceback."""

    error: str
    traceback: str


class JobFailed(RuntimeError):
    """A job of an experiment raised; its traceback is in the message."""


class Cache:
    """A file for each job, named by the job and by the code that computes it. A job that fails ends the run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, job: Job) -> Path:
        """Where the job's table is, or will be."""
        name = f"{job.key}-{code_digest(type(job).__module__)[:16]}.parquet"
        return self.directory / job.identity["experiment"] / name

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs that have no table yet; equal jobs are one job."""
        different = {job.key: job for job in jobs}  # two tables may share jobs
        return [job for job in different.values() if not self.path(job).exists()]

    def add(self, job: Job, result: Result) -> None:
        """Write the job's table at once."""
        facts = {"job": job.identity, "versions": versions(), "seconds": result.seconds}
        write_table(self.path(job), job.table(result.rows), facts)

    def fail(self, job: Job, failure: Failure) -> None:
        """Raise: an experiment without one of its jobs is none."""
        raise JobFailed(f"{job} failed: {failure.error}\n{failure.traceback}")

    def flush(self) -> None:
        """Do nothing: every table is on disk already."""

    def load(self, jobs: Sequence[Job]) -> tuple[Table, float]:
        """The tables of jobs that are all done, one after the other, and the seconds that they took."""
        loaded = [read_table(self.path(job)) for job in jobs]
        return concatenate([table for table, _ in loaded]), sum(facts["seconds"] for _, facts in loaded)


class SweepStore:
    """The directory of a sweep.

    sweep.toml      the sweep, as it was asked for
    facts.json      kind, parameters, versions
    rows/           a Parquet data set: one file for the rows of a few seconds, named by their keys
    failures.json   runs that raised, each with its parameters and traceback
    table.parquet   all rows in the order of the grid, with success; made from rows/
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.folder = directory / "rows"
        self.failures: dict[str, dict[str, Any]] = {}
        if (path := directory / "failures.json").exists():
            self.failures = json.loads(path.read_text())
        self._failures_changed = False
        self._waiting: dict[str, Table] = {}  # key → row that is not on disk yet

    def done(self) -> set[str]:
        """Keys of the rows on disk."""
        return {key for path in self._parts() for key in read_table(path, ["key"])[0]["key"]}

    def missing(self, jobs: Iterable[Job], retry: bool = False) -> list[Job]:
        """The runs that are still to do; those that failed among them only if they are to be tried again."""
        done = self.done()
        for key in done & self.failures.keys():  # killed after its row was written, before failures.json was
            del self.failures[key]
        failed = set() if retry else self.failures.keys()
        return [job for job in jobs if job.key not in done and job.key not in failed]

    def begin(self, sweep: Sweep, jobs: Sequence[Job]) -> None:
        """Write down what is asked for; ValueError if what is there is another sweep, or of another code, with jobs left to do."""
        code = code_digest(type(sweep.jobs()[0]).__module__)
        facts = {"kind": sweep.kind.name, "parameters": sorted(next(sweep.points())), "code": code, "versions": versions()}
        path = self.directory / "facts.json"
        before = json.loads(path.read_text()) if path.exists() else facts
        for name in ("kind", "parameters"):
            if before[name] != facts[name]:
                difference = f"{name} {before[name]}, this one has {facts[name]}"
                raise ValueError(f"{self.directory} holds a sweep with {difference}: take another --out")
        if jobs and before["code"] != code:  # where nothing is left to run, a table can be drawn again by any code
            raise ValueError(f"{self.directory} was begun by another version of scb: go on with that one, or take another --out")
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, (json.dumps(before, indent=2) + "\n").encode())
            write_atomically(self.directory / "sweep.toml", sweep.text.encode())

    def add(self, job: Job, result: Result) -> None:
        """Take the last row that a job gives; it is on disk after ``flush``."""
        parameters, replicate = _split(job)
        plain = {name: json.dumps(v) if isinstance(v, list | tuple) else v for name, v in parameters.items()}
        columns = {"key": job.key, **plain, "replicate": replicate, "seed": job.seed} | dict(result.rows)
        self._waiting[job.key] = {name: np.atleast_1d(values)[-1:] for name, values in columns.items()}
        if self.failures.pop(job.key, None) is not None:
            self._failures_changed = True

    def fail(self, job: Job, failure: Failure) -> None:
        """Note that a run failed; the others go on."""
        parameters, replicate = _split(job)
        self.failures[job.key] = {"parameters": parameters, "replicate": replicate, "seed": job.seed} | failure._asdict()
        self._failures_changed = True

    def flush(self) -> None:
        """Write what has been added: a new part of the data set, and the failures."""
        with self._writing():
            if self._waiting:
                name = sha256(" ".join(sorted(self._waiting)).encode()).hexdigest()[:16]
                made = self.directory / "next.parquet"  # rows/ holds whole files only, after a kill too
                write_table(made, concatenate(list(self._waiting.values())), {"versions": versions()})
                os.replace(made, self.folder / f"{name}.parquet")
                self._waiting = {}
            if self._failures_changed:
                content = json.dumps(self.failures, indent=2, ensure_ascii=False) + "\n"
                write_atomically(self.directory / "failures.json", content.encode())
                self._failures_changed = False

    def table(self, sweep: Sweep) -> Table | None:
        """The rows of the sweep that are on disk, in the order of the grid, with success; None if there are none."""
        parts = [read_table(path)[0] for path in self._parts()]
        if not parts:
            return None
        table = concatenate(parts)
        order = {job.key: i for i, job in enumerate(sweep.jobs())}
        place = np.array([order.get(key, -1) for key in table["key"]])
        kept = np.argsort(place, kind="stable")[(place < 0).sum() :]  # rows of other points stand first
        if not len(kept):
            return None
        table = where(table, kept)
        return table | {"success": succeeded(table, sweep.success)}

    def write(self, table: Table, sweep: Sweep) -> None:
        """Write the table as one file; the same rows give the same bytes."""
        facts = {"kind": sweep.kind.name, "success": dict(sweep.success), "versions": versions()}
        with self._writing():
            write_table(self.directory / "table.parquet", table, facts)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While this lasts, no other process can add rows."""
        with self._writing():
            self.directory.mkdir(parents=True, exist_ok=True)
            file = open(self.directory / ".lock", "w")  # noqa: SIM115
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(f"another process is running the sweep in {self.directory}: wait for it, or end it") from None
            yield

    def _parts(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Say what cannot be written, and that nothing is lost."""
        try:
            yield
        except OSError as error:
            for partial in self.directory.glob("*.partial"):
                partial.unlink()
            kept = "Rows that are there stay; the same command goes on from them"
            raise OSError(f"cannot write to {self.directory}: {error.strerror}. {kept}") from error


def _split(job: Job) -> tuple[dict[str, Any], int]:
    """The parameters that a sweep gives to a job, and which of the random tasks at that point it takes."""
    parameters = dict(job.parameters)
    return parameters, parameters.pop("replicate", 0)
