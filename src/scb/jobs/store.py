"""Tables on disk: Parquet with config, versions and seeds in the file; jobs are found again by what they depend on."""

from __future__ import annotations

import io
import json
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

from scb.files import write_atomically
from scb.jobs.job import Config, Job
from scb.jobs.table import Table, concatenate
from scb.provenance import code_digest, versions


def write_table(path: Path, table: Table, facts: dict[str, Any]) -> None:
    """Write a table and its facts in one atomic step; the same table gives the same bytes."""
    import pyarrow as pa
    from pyarrow.parquet import write_table as write

    arrow = pa.table({name: pa.array(column) for name, column in table.items()})
    buffer = io.BytesIO()
    write(arrow.replace_schema_metadata({"scb": json.dumps(facts, sort_keys=True)}), buffer)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, buffer.getvalue())


def read_table(path: Path) -> tuple[Table, dict[str, Any]]:
    """A table that ``write_table`` wrote, and its facts."""
    from pyarrow.parquet import read_table as read

    arrow = read(path)
    facts = json.loads((arrow.schema.metadata or {})[b"scb"])
    return {name: arrow[name].to_numpy() for name in arrow.column_names}, facts


class Store:
    """Results of jobs in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, job: Job) -> Path:
        """Where the job's table is, or will be."""
        key = json.dumps({"code": code_digest(), **job.identity}, sort_keys=True)
        return self.directory / job.identity["experiment"] / f"{sha256(key.encode()).hexdigest()[:24]}.parquet"

    def has(self, job: Job) -> bool:
        """Whether the job is done."""
        return self.path(job).exists()

    def compute(self, job: Job) -> None:
        """Run the job and keep its table."""
        begin = perf_counter()
        table = job.table()
        facts = {"job": job.identity, "versions": versions(), "seconds": perf_counter() - begin}
        write_table(self.path(job), table, facts)

    def _read(self, job: Job) -> tuple[Table, dict[str, Any]]:
        path = self.path(job)
        try:
            return read_table(path)
        except Exception as error:
            raise ValueError(f"{path} cannot be read ({error}); delete it and run again") from error

    def load(self, config: Config) -> tuple[Table, float]:
        """The table of an experiment all of whose jobs are done, and the seconds that they took."""
        tables, facts = zip(*(self._read(job) for job in config.jobs()), strict=True)
        return concatenate(tables), sum(fact["seconds"] for fact in facts)
