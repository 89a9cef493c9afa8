"""The directory of a sweep holds its file, its rows in batches, and the runs that failed.

Only the process that hands out runs writes to the directory. It writes only whole files, each of
which appears under its name in one step. Whichever process is killed, everything on disk can be
read, no row is there twice, and at most the rows of running jobs are missing.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from scb.files import (
    SLOT,
    make_directory,
    read_json,
    remove_abandoned,
    seal,
    write_atomically,
    write_json,
)
from scb.folders import Folder, opened
from scb.inputs import DamagedFileError, InputError
from scb.jobs.job import Job
from scb.jobs.store import Failure, Result
from scb.jobs.table import Table, concatenate, where
from scb.jobs.table_file import ENDING, ENDINGS, read_table, write_table
from scb.provenance import code_digest, versions
from scb.sweeps.grid import Sweep, succeeded

SWEEP = "sweep.toml"
TABLE = f"table{ENDING}"
FIGURE = "phase.png"
_ROWS = "rows/"
_FACTS = "facts.json"
_FAILURES = "failures.json"
_DIGEST = "# digest of this file: "


class SweepStore:
    """The directory of a sweep.

    sweep.toml      the sweep as it was given, and its digest as a comment
    facts.json      kind, parameters, versions
    rows/           a Parquet data set: one file per few seconds of rows, named after their keys
    failures.json   runs that raised, each with its parameters and traceback
    table.parquet   all rows in the order of the grid, with success; made from rows/

    Commands write through the store that ``alone`` yields, which keeps other processes out.
    """

    def __init__(self, directory: Path, opened: Folder | None = None) -> None:
        self.directory = directory
        self._opened = opened
        self.folder = directory / _ROWS
        self.failures: dict[str, dict[str, Any]] = {}
        if (path := directory / _FAILURES).exists():
            self.failures = _checked_failures(path)
        self._failures_changed = False
        # Key → row that is not on disk yet
        self._waiting: dict[str, Table] = {}

    def done(self) -> set[str]:
        """The keys of the rows on disk."""
        return {key for path in self._parts() for key in _rows(path, ["key"])["key"]}

    def missing(self, jobs: Iterable[Job], retry: bool = False) -> list[Job]:
        """Return the runs that are left; failed runs are included only if ``retry`` is true."""
        done = self.done()
        # Killed after its row was written, before failures.json was
        for key in done & self.failures.keys():
            del self.failures[key]
        failed = set() if retry else self.failures.keys()
        return [job for job in jobs if job.key not in done and job.key not in failed]

    def begin(self, sweep: Sweep, jobs: Sequence[Job]) -> None:
        """Write the sweep's file and facts; raise an InputError if the directory holds another
        sweep, or an unfinished one that other code began.
        """
        code = code_digest(type(sweep.jobs()[0]).__module__)
        facts = {
            "kind": sweep.kind.name,
            "parameters": sorted(next(sweep.points())),
            "code": code,
            "versions": versions(),
        }
        path = self.directory / _FACTS
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
                f"{self.directory} was begun by another version of scb: go on with that one, or"
                " take another --out"
            )
        make_directory(self.folder)
        write_json(self.file(_FACTS), before)
        write_atomically(self.file(SWEEP), seal(_with_slot(sweep.text).encode()))

    def add(self, job: Job, result: Result) -> None:
        """Keep the last row of a job; it is on disk after ``flush``."""
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
        """Note that a run failed; the others continue."""
        parameters, replicate = _split(job)
        self.failures[job.key] = {
            "parameters": parameters,
            "replicate": replicate,
            "seed": job.seed,
        } | failure._asdict()
        self._failures_changed = True

    def flush(self) -> None:
        """Write everything that has been added: a new part of the data set, and the failures."""
        if self._waiting:
            name = sha256(" ".join(sorted(self._waiting)).encode()).hexdigest()[:16]
            rows = concatenate(list(self._waiting.values()))
            write_table(self.file(_ROWS) / f"{name}{ENDING}", rows, {"versions": versions()})
            self._waiting = {}
        if self._failures_changed:
            write_json(self.file(_FAILURES), self.failures)
            self._failures_changed = False

    def table(self, sweep: Sweep) -> Table | None:
        """Return the rows of the sweep that are on disk, in the order of the grid, with a column
        success; return None if there are no rows.
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
        write_table(self.file(TABLE), table, facts)

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
        """Open the directory for writing, and keep other processes out; ``sweep`` is the file that
        the user gave.
        """
        inputs = () if sweep is None or _DIGEST.encode() in sweep.read_bytes() else (sweep,)
        with opened(
            directory, "running the sweep", lock=lock, overwrite=overwrite, inputs=inputs
        ) as folder:
            folder.claim(SWEEP, _FACTS, _ROWS, _FAILURES, TABLE, FIGURE)
            remove_abandoned(directory / _ROWS)
            yield cls(directory, folder)

    def file(self, name: str) -> Path:
        """Return the path of a file of the sweep that is to be written."""
        return self.directory / name if self._opened is None else self._opened.file(name)

    def _parts(self) -> list[Path]:
        return sorted(path for ending in ENDINGS for path in self.folder.glob(f"*{ending}"))


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
