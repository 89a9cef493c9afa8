"""The driver of a sweep: it hands out runs in batches, and keeps what comes back.

Runs are taken in the order of their keys, which is random: so the first runs say how long the rest will take, and no corner of
the grid comes last. A batch holds about a second of runs, and less towards the end.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from statistics import median
from threading import Lock
from time import monotonic, perf_counter
from typing import Any, NamedTuple, Protocol

from scb.jobs.grid import Run
from scb.jobs.kinds import Parameters, Row
from scb.jobs.results import Results

Measure = Callable[[Parameters, int, int], Row]
Progress = Callable[[int], None]
"""Called with the number of runs that are through."""

BATCH_SECONDS = 1.0
_kernels = Lock()  # Numba's threads serve one caller at a time; a worker may have several threads


class Answer(NamedTuple):
    """What came back for a batch: for each run, by its key, what was measured, or its error and traceback.

    Or ``lost``, the reason, if process after process died over it.
    """

    measured: dict[str, Row]
    failed: dict[str, tuple[str, str]]
    seconds: float
    lost: str | None = None


class Pool(Protocol):
    """Where batches are run."""

    @property
    def slots(self) -> int:
        """How many batches it wants to have at a time."""
        ...

    def submit(self, batch: Sequence[Run]) -> None:
        """Take a batch."""
        ...

    def collect(self) -> list[tuple[Sequence[Run], Answer]]:
        """Wait until a batch is through, for a second at most where that is possible."""
        ...


def run_batch(measure: Measure, batch: Sequence[Run], threads: int | None = None) -> Answer:
    """Do the runs of a batch in this process; one that raises is a failure, and the others go on.

    BLAS has one thread, here as everywhere, since its sums depend on their number; those of our kernels do not, and ``threads``
    limits theirs.
    """
    import numba
    from threadpoolctl import threadpool_limits

    measured, failed = {}, {}
    with _kernels, threadpool_limits(1, "blas"):
        begin = perf_counter()
        before = numba.get_num_threads()
        numba.set_num_threads(threads or before)
        try:
            for run in batch:
                try:
                    measured[run.key] = measure(*run)
                except Exception as error:
                    line = "".join(traceback.format_exception_only(error)).strip()
                    failed[run.key] = line, traceback.format_exc()
        finally:
            numba.set_num_threads(before)
    return Answer(measured, failed, perf_counter() - begin)


class InProcess:
    """Batches one after the other in this process."""

    def __init__(self, measure: Measure) -> None:
        self.measure, self.slots = measure, 1
        self._batches: deque[Sequence[Run]] = deque()

    def submit(self, batch: Sequence[Run]) -> None:
        """As ``Pool.submit``."""
        self._batches.append(batch)

    def collect(self) -> list[tuple[Sequence[Run], Answer]]:
        """Run the oldest batch."""
        batch = self._batches.popleft()
        return [(batch, run_batch(self.measure, batch))]


class Pace:
    """How long a run takes: the median of the latest batches, since the first one of a process loads the kernels."""

    def __init__(self) -> None:
        self._latest: deque[float] = deque(maxlen=20)

    def note(self, runs: int, seconds: float) -> None:
        """Learn from a batch."""
        self._latest.append(max(seconds / runs, 1e-9))

    def size(self, left: int, slots: int) -> int:
        """Runs in the next batch, if so many are left."""
        seconds = median(self._latest) if self._latest else BATCH_SECONDS
        return max(1, min(int(BATCH_SECONDS / seconds), -(-left // (2 * slots))))


def run_all(runs: Sequence[Run], pool: Pool, results: Results, progress: Progress = lambda done: None) -> None:
    """Do the runs, and keep every row as it comes; whatever ends this, what has come back is on disk.

    A batch over which processes died goes back to the end: its runs are tried again when all others are through, alone and one at a
    time, so that the one which is to blame is known.
    """
    todo = deque(sorted(runs, key=lambda run: run.key))
    suspects: deque[Run] = deque()
    pace, out, done, alone, begin, written = Pace(), 0, 0, False, monotonic(), monotonic()
    try:
        while todo or suspects or out:
            while todo and out < pool.slots:
                size = pace.size(len(todo), pool.slots)
                pool.submit([todo.popleft() for _ in range(size)])
                out += 1
            if suspects and not out:
                alone = True
                pool.submit([suspects.popleft()])
                out += 1
            for batch, answer in pool.collect():
                out -= 1
                if answer.lost is not None and not alone:
                    suspects.extend(batch)
                    continue
                if answer.lost is None:
                    pace.note(len(batch), answer.seconds)
                else:
                    answer = answer._replace(failed={run.key: (answer.lost, "") for run in batch})
                results.add(batch, answer.measured, answer.failed)
                done += len(batch)
            progress(done)
            now = monotonic()
            if now - written > min(max(0.25, (now - begin) / 20), 10.0):  # few files, and little to lose
                results.flush()
                written = monotonic()
        results.flush()
    except BaseException:
        with suppress(OSError):
            results.flush()
        raise


def pool_for(measure: Measure, jobs: int, scheduler: str | None, note: Callable[[str], None]) -> Any:
    """A context that gives the pool: this process, a local Dask cluster, or the scheduler at an address."""
    if scheduler is None and jobs == 1:
        return nullcontext(InProcess(measure))
    from scb.jobs.dask import connected, local

    return connected(scheduler, measure, note) if scheduler is not None else local(jobs, measure, note)
