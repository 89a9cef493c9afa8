"""Jobs side by side in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

from scb.experiments.jobs import Job
from scb.experiments.store import Store

Progress = Callable[[float, float], None]
"""Cost done, cost in all."""


def run_jobs(jobs: Iterable[Job], store: Store, workers: int, progress: Progress = lambda done, total: None) -> int:
    """Run the jobs that the store does not hold, the longest first; the number that was run.

    Each job is kept as soon as it is done, by the process that did it: whatever stops this one, the next call goes on from there.
    """
    missing = sorted((job for job in dict.fromkeys(jobs) if not store.has(job)), key=lambda job: -job.cost)
    total, done = sum(job.cost for job in missing), 0.0
    progress(done, total)
    if not missing:
        return 0
    with _one_thread_each(workers):
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start)
        try:
            futures = {pool.submit(_compute, job, store.directory): job for job in missing}
            for future in as_completed(futures):
                future.result()
                done += futures[future].cost
                progress(done, total)
        except BaseException:
            processes = list((pool._processes or {}).values())
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()
            raise
        pool.shutdown()
    return len(missing)


def _start() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the parent, which ends its workers


def _compute(job: Job, directory: Path) -> None:
    Store(directory).compute(job)


@contextmanager
def _one_thread_each(workers: int) -> Iterator[None]:
    """Children share the cores: each has its part of them as threads."""
    name, threads = "NUMBA_NUM_THREADS", max(1, (os.cpu_count() or 1) // workers)
    before = os.environ.get(name)
    os.environ[name] = str(threads)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
