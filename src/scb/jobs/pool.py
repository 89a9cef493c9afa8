"""Where jobs run, in this process or in several, and the one loop that hands them out in batches and keeps what comes back.

Jobs are taken the longest first, and equally long ones in the order of their keys, which is random: so the first ones say how
long the rest will take, and no corner of a grid comes last. A batch holds about a second of jobs, and less towards the end.
"""

import multiprocessing
import os
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait as wait_for
from statistics import median
from threading import Lock, Thread
from time import monotonic, perf_counter
from typing import Any, NamedTuple, Protocol

import numba
from threadpoolctl import threadpool_limits

from scb.jobs.job import Job
from scb.jobs.store import Cache, Failure, Result, SweepStore

Progress = Callable[[int, float], None]
"""Called with the number of jobs that are through, and the share of the work that this is."""

BATCH_SECONDS = 1.0
_kernels = Lock()  # Numba's threads serve one caller at a time; a worker may have several threads


class Answer(NamedTuple):
    """What came back for a batch: for each job, by its key, what it gave, or how it failed.

    Or ``lost``, the reason, if process after process died over it.
    """

    results: dict[str, Result]
    failures: dict[str, Failure]
    seconds: float
    lost: str | None = None


class Pool(Protocol):
    """Where batches are run."""

    @property
    def slots(self) -> int:
        """How many batches it wants to have at a time."""
        ...

    def submit(self, batch: Sequence[Job]) -> None:
        """Take a batch."""
        ...

    def collect(self) -> list[tuple[Sequence[Job], Answer]]:
        """Wait until a batch is through, for a second at most where that is possible."""
        ...


def run_batch(batch: Sequence[Job], threads: int | None = None) -> Answer:
    """Do the jobs of a batch in this process; one that raises is a failure, and the others go on.

    BLAS has one thread, here as everywhere, since its sums depend on their number; those of our kernels do not, and ``threads``
    limits theirs.
    """
    results = {}
    failures = {}
    with _kernels, threadpool_limits(1, "blas"):
        before = numba.get_num_threads()
        numba.set_num_threads(min(threads or before, before))  # Numba refuses more than it has started
        begin = perf_counter()
        try:
            for job in batch:
                start = perf_counter()
                try:
                    results[job.key] = Result(job.run(), perf_counter() - start)
                except Exception as error:
                    line = "".join(traceback.format_exception_only(error)).strip()
                    failures[job.key] = Failure(line, traceback.format_exc())
        finally:
            numba.set_num_threads(before)
    return Answer(results, failures, perf_counter() - begin)


class InProcess:
    """Batches one after the other in this process."""

    def __init__(self) -> None:
        self.slots = 1
        self._batches: deque[Sequence[Job]] = deque()

    def submit(self, batch: Sequence[Job]) -> None:
        """Put the batch into the queue."""
        self._batches.append(batch)

    def collect(self) -> list[tuple[Sequence[Job], Answer]]:
        """Run the oldest batch."""
        batch = self._batches.popleft()
        return [(batch, run_batch(batch))]


class Processes:
    """Batches side by side in processes of this machine, which share its cores."""

    def __init__(self, executor: ProcessPoolExecutor, workers: int) -> None:
        self.slots = 2 * workers  # one that runs and one that waits for each, so that no process is idle
        self._executor = executor
        self._threads = max(1, (os.cpu_count() or 1) // workers)
        self._batches: dict[Future[Answer], Sequence[Job]] = {}

    def submit(self, batch: Sequence[Job]) -> None:
        """Give the batch to the next process that is free."""
        self._batches[self._executor.submit(run_batch, batch, self._threads)] = batch

    def collect(self) -> list[tuple[Sequence[Job], Answer]]:
        """Wait for a second at most until batches are through."""
        through, _ = wait(self._batches, timeout=1, return_when=FIRST_COMPLETED)
        answered = [future for future in through if future.exception() is None]
        if through and not answered:
            next(iter(through)).result()  # raises
        return [(self._batches.pop(future), future.result()) for future in answered]

    def each(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[None]:
        """Call a function once with each of the tuples of arguments; yields whenever a call is through."""
        for future in as_completed([self._executor.submit(function, *arguments) for arguments in calls]):
            yield future.result()


@contextmanager
def processes(workers: int) -> Iterator[Processes]:
    """A pool of processes. If anything goes wrong here, an interrupt for instance, they are ended."""
    executor = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start)
    try:
        yield Processes(executor, workers)
    except BaseException as error:
        started = list((executor._processes or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for process in started:
            process.terminate()
        if isinstance(error, BrokenProcessPool):
            raise OSError(
                "a process died, out of memory perhaps. Finished runs are kept; the same command goes on from them"
            ) from None
        raise
    executor.shutdown()


def _start() -> None:
    """In a child: an interrupt is for the parent, which ends its children; and without a parent there is nothing left to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes
    Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)  # a child writes no files: any moment is good


class Pace:
    """Seconds for a unit of cost: the median of the latest batches, since the first one of a process loads the kernels."""

    def __init__(self) -> None:
        self._latest: deque[float] = deque(maxlen=20)

    def note(self, cost: float, seconds: float) -> None:
        """Learn from a batch."""
        self._latest.append(max(seconds / cost, 1e-9))

    def budget(self, left: float, slots: int) -> float:
        """The cost of the next batch, if so much is left."""
        pace = median(self._latest) if self._latest else BATCH_SECONDS
        return min(BATCH_SECONDS / pace, left / (2 * slots))  # small batches at the end, so that all end together


def take(jobs: deque[Job], budget: float) -> list[Job]:
    """The next jobs, at least one, until their cost reaches the budget."""
    batch = [jobs.popleft()]
    cost = batch[0].cost
    while jobs and cost < budget:
        batch.append(jobs.popleft())
        cost += batch[-1].cost
    return batch


def _cost(jobs: Sequence[Job] | deque[Job]) -> float:
    return sum(job.cost for job in jobs)


def run_jobs(jobs: Sequence[Job], pool: Pool, store: Cache | SweepStore, progress: Progress = lambda done, share: None) -> None:
    """Do the jobs, and keep every result as it comes; whatever ends this, what has come back is on disk.

    A batch over which processes died goes back to the end: its jobs are tried again when all others are through, alone and one at a
    time, so that the one which is to blame is known.
    """
    todo = deque(sorted(jobs, key=lambda job: (-job.cost, job.key)))  # a long job that comes last would run alone
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
                batch = take(todo, pace.budget(work_left, pool.slots))
                work_left -= _cost(batch)
                pool.submit(batch)
                under_way += 1
            if suspects and not under_way:
                alone = True
                pool.submit([suspects.popleft()])
                under_way += 1
            for batch, answer in pool.collect():
                under_way -= 1
                if answer.lost is not None and not alone:
                    suspects.extend(batch)
                    continue
                if answer.lost is None:
                    pace.note(_cost(batch), answer.seconds)
                _keep(store, batch, answer)
                done += len(batch)
                work_done += _cost(batch)
            progress(done, work_done / total)
            now = monotonic()
            if now - written > min(max(0.25, (now - begin) / 20), 10.0):  # few files, and little to lose
                store.flush()
                written = monotonic()
        store.flush()
    except BaseException:
        with suppress(OSError):
            store.flush()
        raise


def _keep(store: Cache | SweepStore, batch: Sequence[Job], answer: Answer) -> None:
    """Results first: a failure may end the run."""
    for job in batch:
        if job.key in answer.results:
            store.add(job, answer.results[job.key])
    for job in batch:
        if answer.lost is not None:
            store.fail(job, Failure(answer.lost, ""))
        elif job.key in answer.failures:
            store.fail(job, answer.failures[job.key])
