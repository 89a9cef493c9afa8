"""The store of the tables of jobs, with one file for each job.

Only the process that hands out jobs writes to the store. It writes only whole files, each of which
appears under its name in one step. Whichever process is killed, everything on disk can be read, and
at most the results of running jobs are missing.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from scb.files import make_directory, read_sealed, remove_abandoned, write_atomically
from scb.inputs import DamagedFileError
from scb.jobs.job import Job, Rows
from scb.jobs.table import Table, concatenate
from scb.jobs.table_file import ENDING, read_table, write_table
from scb.provenance import code_digest, versions

FAILURE = "failure.txt"


class Result(NamedTuple):
    """The rows that a job returned, and the seconds that the job took."""

    rows: Rows
    seconds: float


class Failure(NamedTuple):
    """The error that a job raised, as a line for people and as a traceback."""

    error: str
    traceback: str


class JobFailed(ChildProcessError):
    """A job of an experiment failed; the message gives the job, the reason and the traceback."""


class Store(Protocol):
    """The interface of a store, which keeps the results of jobs as they arrive."""

    def add(self, job: Job, result: Result) -> None:
        """Keep the result of a job."""

    def fail(self, job: Job, failure: Failure) -> None:
        """Note that a job failed, or end the run with an error."""

    def flush(self) -> None:
        """Write all results that are not on disk yet."""


class Cache:
    """The tables of jobs in a directory, one file for each job.

    A file is named after the job and the version of the scb code. A job that fails ends the run.

    Parameters
    ----------
    directory : Path
        The folder.
    check : callable
        A function that is called before each file is written.

    Attributes
    ----------
    damaged : list of Path
        The files that ``missing`` found damaged.

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.jobs.store import Cache, Result
    >>> from scb.sweeps.kinds import RecoverJob
    >>> cache, job = Cache(Path("cache")), RecoverJob(T=20, samples=50, method="spectral")
    >>> cache.missing([job, job]) == [job]
    True
    >>> cache.add(job, Result(job.run(), seconds=0.1))
    >>> cache.flush()
    >>> cache.path(job).exists(), cache.missing([job])
    (True, [])
    >>> table, seconds = cache.load([job])
    >>> len(table["exact"]), seconds
    (1, 0.1)
    """

    def __init__(self, directory: Path, check: Callable[[], None] = lambda: None) -> None:
        self.directory = directory
        self._check = check
        self.damaged: list[Path] = []

    def path(self, job: Job) -> Path:
        """Return the path of the job's table, whether or not the table exists yet.

        Parameters
        ----------
        job : Job
            The job.

        Returns
        -------
        Path
        """
        kind = next(iter(job.label.values()))
        code = code_digest(type(job).__module__)
        return self.directory / kind / f"{job.key}-{code[:16]}{ENDING}"

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs whose tables are missing or damaged; equal jobs count as one.

        Parameters
        ----------
        jobs : iterable of Job
            The jobs. No other process may be writing their tables.

        Returns
        -------
        list of Job
        """
        (self.directory / FAILURE).unlink(missing_ok=True)
        for folder in self.directory.glob("*/"):
            remove_abandoned(folder)
        different = {job.key: job for job in jobs}  # two tables may share jobs
        return [job for job in different.values() if not self._has(job)]

    def _has(self, job: Job) -> bool:
        """Whether the job's table is on disk and whole; a damaged one is noted in ``damaged``."""
        path = self.path(job)
        if not path.exists():
            return False
        try:
            read_sealed(path)
        except DamagedFileError:
            self.damaged.append(path)
            return False
        return True

    def add(self, job: Job, result: Result) -> None:
        """Write the job's table immediately.

        Parameters
        ----------
        job : Job
            The job.
        result : Result
            The rows of the job, and the seconds that the job took.
        """
        facts = {"job": job.identity, "versions": versions(), "seconds": result.seconds}
        self._check()
        write_table(self.path(job), job.table(result.rows), facts)

    def fail(self, job: Job, failure: Failure) -> None:
        """Write the traceback to a file and raise an error, since an experiment needs all its jobs.

        Parameters
        ----------
        job : Job
            The job that failed.
        failure : Failure
            The error that the job raised.

        Examples
        --------
        >>> from pathlib import Path
        >>> from scb.jobs.store import Cache, Failure
        >>> from scb.sweeps.kinds import RecoverJob
        >>> try:
        ...     Cache(Path("cache")).fail(RecoverJob(), Failure("ValueError: no", "Traceback …"))
        ... except ChildProcessError as error:
        ...     print(str(error).partition("failed: ")[2])
        ValueError: no. Its traceback is in cache/failure.txt; finished runs are kept
        """
        path = self.directory / FAILURE
        self._check()
        make_directory(self.directory)
        write_atomically(path, f"{job}\n{failure.traceback}".encode(errors="backslashreplace"))
        raise JobFailed(
            f"{job} failed: {failure.error}. Its traceback is in {path}; finished runs are kept"
        )

    def flush(self) -> None:
        """Do nothing, because every table is already on disk."""

    def load(self, jobs: Sequence[Job]) -> tuple[Table, float]:
        """Return the joined tables of finished jobs and the number of seconds that the jobs took.

        Parameters
        ----------
        jobs : list of Job
            The jobs, in the order of the rows.

        Returns
        -------
        tuple of dict and float
        """
        loaded = [read_table(self.path(job)) for job in jobs]
        seconds = sum(facts["seconds"] for _, facts in loaded)
        return concatenate([table for table, _ in loaded]), seconds
