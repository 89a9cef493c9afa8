"""Where results lie and are found again: a file for each job that gives many rows, or the rows of a
sweep in batches.

Only the process that hands out jobs writes here, and only whole files, which appear under their
names at once. So whatever is killed, and whenever, all that is on disk can be read, nothing is
there twice, and at most what was under way is lacking.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scb.files import (
    SLOT,
    make_directory,
    read_json,
    read_sealed,
    remove_abandoned,
    seal,
    write_atomically,
    write_json,
)
from scb.folders import Folder, opened
from scb.inputs import DamagedFileError, InputError
from scb.jobs.grid import Sweep, succeeded
from scb.jobs.job import Job, Rows
from scb.jobs.table import Table, concatenate, read_table, where, write_table
from scb.provenance import code_digest, versions

SWEEP = "sweep.toml"
ROWS = "rows/"
FIGURE = "phase.png"
FAILURE = "failure.txt"
_DIGEST = "# digest of this file: "


class Result(NamedTuple):
    """What a job gave, and the seconds that it took."""

    rows: Rows
    seconds: float


class Failure(NamedTuple):
    """What a job raised: the line for people, and the traceback."""

    error: str
    traceback: str


class JobFailed(ChildProcessError):
    """A job of an experiment raised; the message says which one and what, and where its traceback
    is.
    """


class Cache:
    """A file for each job, named by the job and by the code that computes it. A job that fails ends
    the run.

    ``check`` is called before each file is written.
    """

    def __init__(self, directory: Path, check: Callable[[], None] = lambda: None) -> None:
        self.directory = directory
        self._check = check
        self.damaged: list[Path] = []  # tables that ``missing`` found damaged

    def path(self, job: Job) -> Path:
        """Where the job's table is, or will be."""
        name = f"{job.key}-{code_digest(type(job).__module__)[:16]}.parquet"
        return self.directory / job.identity["experiment"] / name

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs that have no table yet, or a damaged one; equal jobs are one job. Nobody else
        may be writing.
        """
        (self.directory / FAILURE).unlink(missing_ok=True)
        for folder in self.directory.glob("*/"):
            remove_abandoned(folder)
        different = {job.key: job for job in jobs}  # two tables may share jobs
        return [job for job in different.values() if not self._has(job)]

    def _has(self, job: Job) -> bool:
        path = self.path(job)
        if not path.exists():
            return False
        try:
            _, sealed = read_sealed(path)
        except DamagedFileError:
            sealed = False
        if not sealed:
            self.damaged.append(path)
        return sealed

    def add(self, job: Job, result: Result) -> None:
        """Write the job's table at once."""
        facts = {"job": job.identity, "versions": versions(), "seconds": result.seconds}
        self._check()
        write_table(self.path(job), job.table(result.rows), facts)

    def fail(self, job: Job, failure: Failure) -> None:
        """Raise: an experiment without one of its jobs is none."""
        path = self.directory / FAILURE
        self._check()
        make_directory(self.directory)
        write_atomically(path, f"{job}\n{failure.traceback}".encode(errors="backslashreplace"))
        raise JobFailed(
            f"{job} failed: {failure.error}. Its traceback is in {path}; finished runs are kept"
        )

    def flush(self) -> None:
        """Do nothing: every table is on disk already."""

    def load(self, jobs: Sequence[Job]) -> tuple[Table, float]:
        """The tables of jobs that are all done, one after the other, and the seconds that they
        took.
        """
        loaded = [read_table(self.path(job)) for job in jobs]
        return concatenate([table for table, _ in loaded]), sum(
            facts["seconds"] for _, facts in loaded
        )


class SweepStore:
    """The directory of a sweep.

    sweep.toml      the sweep, as it was asked for, and its digest as a comment
    facts.json      kind, parameters, versions
    rows/           a Parquet data set: one file for the rows of a few seconds, named by their keys
    failures.json   runs that raised, each with its parameters and traceback
    table.parquet   all rows in the order of the grid, with success; made from rows/

    Commands write to what ``alone`` yields, which nobody else has.
    """

    def __init__(self, directory: Path, opened: Folder | None = None) -> None:
        self.directory = directory
        self._opened = opened
        self.folder = directory / "rows"
        self.failures: dict[str, dict[str, Any]] = {}
        if (path := directory / "failures.json").exists():
            self.failures = _checked_failures(path)
        self._failures_changed = False
        # Key → row that is not on disk yet
        self._waiting: dict[str, Table] = {}

    def done(self) -> set[str]:
        """Keys of the rows on disk."""
        return {key for path in self._parts() for key in _rows(path, ["key"])["key"]}

    def missing(self, jobs: Iterable[Job], retry: bool = False) -> list[Job]:
        """The runs that are still to do; those that failed among them only if they are to be tried
        again.
        """
        done = self.done()
        # Killed after its row was written, before failures.json was
        for key in done & self.failures.keys():
            del self.failures[key]
        failed = set() if retry else self.failures.keys()
        return [job for job in jobs if job.key not in done and job.key not in failed]

    def begin(self, sweep: Sweep, jobs: Sequence[Job]) -> None:
        """Write down what is asked for; ValueError if what is there is another sweep, or of another
        code, with jobs left to do.
        """
        code = code_digest(type(sweep.jobs()[0]).__module__)
        facts = {
            "kind": sweep.kind.name,
            "parameters": sorted(next(sweep.points())),
            "code": code,
            "versions": versions(),
        }
        path = self.directory / "facts.json"
        before = read_json(path) if path.exists() else facts
        if not facts.keys() <= before.keys():
            raise DamagedFileError(f"{path} is damaged: it must have {', '.join(facts)}")
        for name in ("kind", "parameters"):
            if before[name] != facts[name]:
                difference = f"{name} {before[name]}, this one has {facts[name]}"
                raise InputError(
                    f"{self.directory} holds a sweep with {difference}: take another --out"
                )
        # Where nothing is left to run, a table can be drawn again by any code
        if jobs and before["code"] != code:
            raise InputError(
                f"{self.directory} was begun by another version of scb: go on with that one, or take another --out"
            )
        make_directory(self.folder)
        write_json(self.file("facts.json"), before)
        write_atomically(self.file(SWEEP), seal(_with_slot(sweep.text).encode()))

    def add(self, job: Job, result: Result) -> None:
        """Take the last row that a job gives; it is on disk after ``flush``."""
        parameters, replicate = _split(job)
        plain = {
            name: json.dumps(v) if isinstance(v, list | tuple) else v
            for name, v in parameters.items()
        }
        columns = {"key": job.key, **plain, "replicate": replicate, "seed": job.seed} | dict(
            result.rows
        )
        self._waiting[job.key] = {
            name: np.atleast_1d(values)[-1:] for name, values in columns.items()
        }
        if self.failures.pop(job.key, None) is not None:
            self._failures_changed = True

    def fail(self, job: Job, failure: Failure) -> None:
        """Note that a run failed; the others go on."""
        parameters, replicate = _split(job)
        self.failures[job.key] = {
            "parameters": parameters,
            "replicate": replicate,
            "seed": job.seed,
        } | failure._asdict()
        self._failures_changed = True

    def flush(self) -> None:
        """Write what has been added: a new part of the data set, and the failures."""
        if self._waiting:
            name = sha256(" ".join(sorted(self._waiting)).encode()).hexdigest()[:16]
            rows = concatenate(list(self._waiting.values()))
            write_table(self.file(ROWS) / f"{name}.parquet", rows, {"versions": versions()})
            self._waiting = {}
        if self._failures_changed:
            write_json(self.file("failures.json"), self.failures)
            self._failures_changed = False

    def table(self, sweep: Sweep) -> Table | None:
        """The rows of the sweep that are on disk, in the order of the grid, with success; None if
        there are none.
        """
        parts = {path: _rows(path) for path in self._parts()}
        if not parts:
            return None
        first = next(iter(parts))
        for path, part in parts.items():
            if part.keys() != parts[first].keys():
                odd = ", ".join(sorted(part.keys() ^ parts[first].keys()))
                raise DamagedFileError(
                    f"{path} and {first} are not of one sweep: only one has the column {odd!r}"
                )
        table = concatenate(list(parts.values()))
        order = {job.key: i for i, job in enumerate(sweep.jobs())}
        place = np.array([order.get(key, -1) for key in table["key"]])
        # Rows of other points stand first
        kept = np.argsort(place, kind="stable")[(place < 0).sum() :]
        if not len(kept):
            return None
        table = where(table, kept)
        return table | {"success": succeeded(table, sweep.success)}

    def write(self, table: Table, sweep: Sweep) -> None:
        """Write the table as one file; the same rows give the same bytes."""
        facts = {"kind": sweep.kind.name, "success": dict(sweep.success), "versions": versions()}
        write_table(self.file("table.parquet"), table, facts)

    @classmethod
    @contextmanager
    def alone(
        cls,
        directory: Path,
        *,
        lock: bool = True,
        overwrite: bool = False,
        sweep: Path | None = None,
    ) -> Iterator["SweepStore"]:
        """The sweep in a directory, to which no other process can add rows while this lasts;
        ``sweep`` is the file asked for.
        """
        inputs = () if sweep is None or _DIGEST.encode() in sweep.read_bytes() else (sweep,)
        with opened(
            directory, "running the sweep", lock=lock, overwrite=overwrite, inputs=inputs
        ) as folder:
            folder.claim(SWEEP, "facts.json", ROWS, "failures.json", "table.parquet", FIGURE)
            remove_abandoned(directory / ROWS)
            yield cls(directory, folder)

    def file(self, name: str) -> Path:
        """The path of a file of the sweep that is written now."""
        return self.directory / name if self._opened is None else self._opened.file(name)

    def _parts(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))


def _rows(path: Path, columns: list[str] | None = None) -> Table:
    """The rows of a part, or some of their columns; each row has its key."""
    table = read_table(path, columns)[0]
    if not all(isinstance(key, str) for key in table.get("key", [None])):
        raise DamagedFileError(f"{path} is damaged: its rows have no keys")
    return table


def _with_slot(text: str) -> str:
    """A TOML text with a slot for its digest in its last line, a comment; that of an earlier copy
    is taken out.
    """
    lines = [line for line in text.splitlines() if not line.startswith(_DIGEST)]
    return "\n".join([*lines, _DIGEST + SLOT, ""])


def _checked_failures(path: Path) -> dict[str, dict[str, Any]]:
    """The failures in a file; each says at least what it was and with which parameters."""
    found = read_json(path)
    for key, failure in found.items():
        if (
            not isinstance(failure, dict)
            or not {"parameters", "replicate", "error", "traceback"} <= failure.keys()
        ):
            raise DamagedFileError(f"{path} is damaged: {key} is no failure of a run")
    return found


def _split(job: Job) -> tuple[dict[str, Any], int]:
    """The parameters that a sweep gives to a job, and which of the random tasks at that point it
    takes.
    """
    parameters = dict(job.parameters)
    return parameters, parameters.pop("replicate", 0)
