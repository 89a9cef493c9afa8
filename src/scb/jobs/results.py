"""The directory of a sweep: rows as they come, failures, and the table of all of them.

    sweep.toml      the sweep, as it was asked for
    facts.json      kind, parameters, versions
    rows/           a Parquet data set: one file for the rows of a few seconds, named by their keys
    failures.json   runs that raised, each with its parameters and traceback
    table.parquet   all rows in the order of the grid, with success; made from rows/

Only the driver writes here, and only whole files, which appear under their names at once. So whatever is killed, and whenever,
rows/ can be read, holds no row twice, and lacks at most what was under way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from scb.files import write_atomically
from scb.jobs.grid import Run, Sweep
from scb.jobs.kinds import Row, succeeded
from scb.jobs.store import read_table, write_table
from scb.jobs.table import Table, concatenate
from scb.provenance import code_digest, versions

Failure = dict[str, Any]
"""Parameters, replicate, seed, error, traceback."""


class Results:
    """What is there of a sweep."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.rows = directory, directory / "rows"
        self._waiting: list[Row] = []
        self.failures: dict[str, Failure] = {}
        if (path := directory / "failures.json").exists():
            self.failures = json.loads(path.read_text())
        self._unsaved = False

    def done(self) -> set[str]:
        """Keys of the rows on disk."""
        from pyarrow.parquet import read_table as read

        return {key for path in self._parts() for key in read(path, columns=["key"])["key"].to_pylist()}

    def missing(self, sweep: Sweep, retry: bool = False) -> list[Run]:
        """The runs that are still to do; those that failed among them only if they are to be tried again."""
        done = self.done()
        for key in done & self.failures.keys():
            del self.failures[key]
        failed = set() if retry else self.failures.keys()
        return [run for run in sweep.runs() if run.key not in done and run.key not in failed]

    def begin(self, sweep: Sweep, runs: Iterable[Run]) -> None:
        """Write down what is asked for; ValueError if what is there is another sweep, or of another code."""
        path = self.directory / "facts.json"
        facts = {"kind": sweep.kind.name, "parameters": sweep.parameters, "code": code_digest(), "versions": versions()}
        if path.exists():
            before = json.loads(path.read_text())
            for name in ("kind", "parameters"):
                if before[name] != facts[name]:
                    raise ValueError(
                        f"{self.directory} holds a sweep with {name} {before[name]}, this one has {facts[name]}: take another --out"
                    )
            if runs and before["code"] != facts["code"]:
                raise ValueError(
                    f"{self.directory} was begun by another version of scb: go on with that one, or take another --out"
                )
        with self._writing():
            self.rows.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                write_atomically(path, (json.dumps(facts, indent=2) + "\n").encode())
            write_atomically(self.directory / "sweep.toml", sweep.text.encode())

    def add(self, batch: Iterable[Run], measured: dict[str, Row], failed: dict[str, tuple[str, str]]) -> None:
        """Take what a batch has given; it is on disk after ``flush``."""
        for run in batch:
            if run.key in measured:
                self._waiting.append(run.columns | measured[run.key])
                self._unsaved |= self.failures.pop(run.key, None) is not None
            else:
                error, trace = failed[run.key]
                self.failures[run.key] = {**run._asdict(), "error": error, "traceback": trace}
                self._unsaved = True

    def flush(self) -> None:
        """Write what has been added: a new part of the data set, and the failures."""
        with self._writing():
            if self._waiting:
                keys = sorted(row["key"] for row in self._waiting)
                name = f"{sha256(' '.join(keys).encode()).hexdigest()[:16]}.parquet"
                table = {column: np.array([row[column] for row in self._waiting]) for column in self._waiting[0]}
                made = self.directory / "next.parquet"  # rows/ holds whole files only, after a kill too
                write_table(made, table, {"versions": versions()})
                os.replace(made, self.rows / name)
                self._waiting = []
            if self._unsaved:
                content = json.dumps(self.failures, indent=2, ensure_ascii=False) + "\n"
                write_atomically(self.directory / "failures.json", content.encode())
                self._unsaved = False

    def table(self, sweep: Sweep) -> Table | None:
        """The rows of the sweep that are on disk, in the order of the grid, with success; None if there are none."""
        parts = [read_table(path)[0] for path in self._parts()]
        if not parts:
            return None
        table = concatenate(parts)
        order = {run.key: i for i, run in enumerate(sweep.runs())}
        place = np.array([order.get(key, -1) for key in table["key"]])
        kept = np.argsort(place, kind="stable")[(place < 0).sum() :]
        table = {name: column[kept] for name, column in table.items()}
        return table | {"success": succeeded(table, sweep.success)} if len(kept) else None

    def write(self, table: Table, sweep: Sweep) -> Path:
        """The table as one file; the same rows give the same bytes."""
        path = self.directory / "table.parquet"
        facts = {"kind": sweep.kind.name, "success": dict(sweep.success), "versions": versions()}
        with self._writing():
            write_table(path, table, facts)
        return path

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While this lasts, no other process can add rows."""
        import fcntl

        with self._writing():
            self.directory.mkdir(parents=True, exist_ok=True)
            file = open(self.directory / ".lock", "w")  # noqa: SIM115
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    f"another process is running the sweep in {self.directory}: wait for it, or end it"
                ) from None
            yield

    def _parts(self) -> list[Path]:
        return sorted(self.rows.glob("*.parquet"))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Say what cannot be written, and that nothing is lost."""
        try:
            yield
        except OSError as error:
            for partial in self.directory.glob("*.partial"):
                partial.unlink()
            raise OSError(
                f"cannot write to {self.directory}: {error.strerror}. Rows that are there stay; the same command goes on from them"
            ) from error
