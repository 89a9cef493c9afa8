"""This module runs jobs in this process, and holds the one loop that hands out jobs in batches and
keeps their results.

A batch holds about a second's worth of jobs, or less towards the end of the work.
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
from scb.jobs.store import Failure, Result, Store

if TYPE_CHECKING:
    from scb.jobs.dask import DaskPool
    from scb.jobs.processes import Processes

# ``slots`` is the number of batches that it wants at a time; ``submit`` takes a batch, and
# ``collect`` returns those that are done.
Pool: TypeAlias = "InProcess | Processes | DaskPool"
# Called with the number of jobs that are done, and their share of the work
Progress = Callable[[int, float], None]
Note = Callable[[str], None]  # called with a line for the user
BATCH_SECONDS = 1.0
# Numba's threads serve one caller at a time; a worker may have several threads
_kernels = Lock()


class BatchResult(NamedTuple):
    """The result of a batch, which says for each job, by its key, what the job returned or how it
    failed.
    """

    results: dict[str, Result]
    failures: dict[str, Failure]
    seconds: float
    # Whether a process died over the batch, so that any of its jobs may be to blame
    lost: bool = False


def lost_batch(batch: Sequence[Job], reason: str) -> BatchResult:
    """The result of a batch over which a process died."""
    failure = Failure(reason, "")
    return BatchResult({}, {job.key: failure for job in batch}, 0.0, lost=True)


def run_batch(batch: Sequence[Job], threads: int | None = None) -> BatchResult:
    """Run the jobs of a batch in this process; a job that raises has failed, and the others
    continue.

    BLAS always uses one thread, because its sums depend on the number of threads. Our kernels give
    the same bits on any number of threads; ``threads`` limits this number.
    """
    # Imported here, because the driver of a sweep does not need it
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
    return BatchResult(results, failures, perf_counter() - begin)


class InProcess:
    """A pool that runs batches one after the other in this process."""

    slots = 1

    def submit(self, batch: Sequence[Job]) -> None:
        """Keep the batch until it is collected."""
        self._batch = batch

    def collect(self) -> list[tuple[Sequence[Job], BatchResult]]:
        """Run the batch."""
        return [(self._batch, run_batch(self._batch))]


class Pace:
    """The number of seconds per unit of cost, which is the median over the latest batches.

    The first batch of a process is slower, because it loads the kernels.
    """

    def __init__(self) -> None:
        self._latest: deque[float] = deque(maxlen=20)

    def note(self, cost: float, seconds: float) -> None:
        """Update the pace from a finished batch."""
        self._latest.append(max(seconds / cost, 1e-9))

    def take(self, jobs: deque[Job], left: float, slots: int) -> list[Job]:
        """Return the next batch, which has at least one job; ``left`` is the cost of all jobs."""
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


class _Queue:
    """The jobs that wait, the longest first, and those that a process died over.

    A long job that came last would run alone. Equally long ones come in the order of their keys,
    which is random, so that no corner of a grid comes last.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.waiting = deque(sorted(jobs, key=lambda job: (-job.cost, job.key)))
        self.suspects: deque[Job] = deque()
        self.pace = Pace()
        self.left = self.total = _cost(self.waiting)
        self.under_way = 0  # batches
        self._alone = False  # whether suspects are being tried

    def __bool__(self) -> bool:
        return bool(self.waiting or self.suspects or self.under_way)

    def hand_out(self, pool: Pool) -> None:
        """Submit batches until the pool has enough; suspects last, one job at a time."""
        while self.waiting and self.under_way < pool.slots:
            batch = self.pace.take(self.waiting, self.left, pool.slots)
            self.left -= _cost(batch)
            self.under_way += 1
            pool.submit(batch)
        if self.suspects and not self.under_way:
            self._alone = True
            self.under_way += 1
            pool.submit([self.suspects.popleft()])

    def takes_back(self, batch: Sequence[Job], returned: BatchResult) -> bool:
        """Whether the jobs of a batch that came back are to be tried again, each alone."""
        self.under_way -= 1
        if returned.lost and not self._alone:
            self.suspects.extend(batch)
            return True
        if not returned.lost:
            self.pace.note(_cost(batch), returned.seconds)
        return False


def run_jobs(
    jobs: Sequence[Job],
    pool: Pool,
    store: Store,
    progress: Progress = lambda done, share: None,
) -> None:
    """Run the jobs, and keep every result as it arrives; however the run ends, the results that
    have arrived are on disk.

    If a process dies, the jobs of its batch are tried again one at a time after all other jobs are
    done, to find the job at fault.
    """
    queue = _Queue(jobs)
    done = 0
    work_done = 0.0
    begin = written = monotonic()
    progress(0, 0.0)
    try:
        while queue:
            queue.hand_out(pool)
            for batch, returned in pool.collect():
                if queue.takes_back(batch, returned):
                    continue
                by_key = {job.key: job for job in batch}
                # Results first: a failure may end the run
                for key, result in returned.results.items():
                    store.add(by_key[key], result)
                for key, failure in returned.failures.items():
                    store.fail(by_key[key], failure)
                done += len(batch)
                work_done += _cost(batch)
            progress(done, work_done / queue.total)
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
