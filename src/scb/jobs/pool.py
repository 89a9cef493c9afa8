"""Jobs in this process, and the one loop that hands them out in batches and keeps what comes back.

Jobs are taken the longest first, and equally long ones in the order of their keys, which is random:
so the first ones say how long the rest will take, and no corner of a grid comes last. A batch holds
about a second of jobs, and less towards the end.
"""

import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from statistics import median
from threading import Lock
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from threadpoolctl import threadpool_limits

from scb.jobs.job import Job
from scb.jobs.store import Cache, Failure, Result, SweepStore

if TYPE_CHECKING:
    from scb.jobs.dask import DaskPool
    from scb.jobs.processes import Processes

# It says how many batches it wants to have at a time (``slots``), takes one (``submit``), and gives
# back those that are through.
Pool: TypeAlias = "InProcess | Processes | DaskPool"
# Called with the number of jobs that are through, and their share of the work
Progress = Callable[[int, float], None]
Note = Callable[[str], None]  # called with a line for the user
BATCH_SECONDS = 1.0
# Numba's threads serve one caller at a time; a worker may have several threads
_kernels = Lock()


class Answer(NamedTuple):
    """What came back for a batch: for each job, by its key, what it gave, or how it failed."""

    results: dict[str, Result]
    failures: dict[str, Failure]
    seconds: float
    # Whether a process died over the batch, so that any of its jobs may be to blame
    lost: bool = False


def run_batch(batch: Sequence[Job], threads: int | None = None) -> Answer:
    """Do the jobs of a batch in this process; one that raises is a failure, and the others go on.

    BLAS has one thread, here as everywhere, since its sums depend on their number; those of our
    kernels do not, and ``threads`` limits theirs.
    """
    # Not above: a driver of sweeps does without it
    import numba

    results = {}
    failures = {}
    with _kernels, threadpool_limits(1, "blas"):
        before = numba.get_num_threads()
        # Numba refuses more than it has started
        numba.set_num_threads(min(threads or before, before))
        begin = perf_counter()
        try:
            for job in batch:
                start = perf_counter()
                try:
                    results[job.key] = Result(job.run(), perf_counter() - start)
                except Exception as error:
                    line = f"{type(error).__name__}: {error}"
                    failures[job.key] = Failure(line, traceback.format_exc())
        finally:
            numba.set_num_threads(before)
    return Answer(results, failures, perf_counter() - begin)


class InProcess:
    """Batches one after the other in this process."""

    slots = 1

    def submit(self, batch: Sequence[Job]) -> None:
        """Keep the batch until it is asked for."""
        self._batch = batch

    def collect(self) -> list[tuple[Sequence[Job], Answer]]:
        """Run the batch."""
        return [(self._batch, run_batch(self._batch))]


class Pace:
    """Seconds for a unit of cost: the median of the latest batches, since the first one of a
    process loads the kernels.
    """

    def __init__(self) -> None:
        self._latest: deque[float] = deque(maxlen=20)

    def note(self, cost: float, seconds: float) -> None:
        """Learn from a batch."""
        self._latest.append(max(seconds / cost, 1e-9))

    def take(self, jobs: deque[Job], left: float, slots: int) -> list[Job]:
        """The next batch, of at least one job; ``left`` is the cost of all jobs."""
        pace = median(self._latest or [BATCH_SECONDS])
        # Small batches at the end, so that all end together
        budget = min(BATCH_SECONDS / pace, left / (2 * slots))
        batch = [jobs.popleft()]
        cost = batch[0].cost
        while jobs and cost < budget:
            batch.append(jobs.popleft())
            cost += batch[-1].cost
        return batch


def _cost(jobs: Iterable[Job]) -> float:
    return sum(job.cost for job in jobs)


def run_jobs(
    jobs: Sequence[Job],
    pool: Pool,
    store: Cache | SweepStore,
    progress: Progress = lambda done, share: None,
) -> None:
    """Do the jobs, and keep every result as it comes; whatever ends this, what has come back is on
    disk.

    A batch over which processes died goes back to the end: its jobs are tried again when all others
    are through, alone and one at a time, so that the one which is to blame is known.
    """
    # a long job that comes last would run alone
    todo = deque(sorted(jobs, key=lambda job: (-job.cost, job.key)))
    suspects: deque[Job] = deque()
    pace = Pace()
    total = work_left = _cost(todo)
    done = 0
    work_done = 0.0
    under_way = 0  # batches
    alone = False  # whether suspects are being tried
    begin = written = monotonic()
    progress(0, 0.0)
    try:
        while todo or suspects or under_way:
            while todo and under_way < pool.slots:
                batch = pace.take(todo, work_left, pool.slots)
                work_left -= _cost(batch)
                pool.submit(batch)
                under_way += 1
            if suspects and not under_way:
                alone = True
                pool.submit([suspects.popleft()])
                under_way += 1
            for batch, answer in pool.collect():
                under_way -= 1
                if answer.lost and not alone:
                    suspects.extend(batch)
                    continue
                if not answer.lost:
                    pace.note(_cost(batch), answer.seconds)
                by_key = {job.key: job for job in batch}
                # First: a failure may end the run
                for key, result in answer.results.items():
                    store.add(by_key[key], result)
                for key, failure in answer.failures.items():
                    store.fail(by_key[key], failure)
                done += len(batch)
                work_done += _cost(batch)
            progress(done, work_done / total)
            now = monotonic()
            # Few files, and little to lose
            if now - written > min(max(0.25, (now - begin) / 20), 10.0):
                store.flush()
                written = monotonic()
        store.flush()
    except BaseException:
        with suppress(OSError):
            store.flush()
        raise
