"""Jobs side by side in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import Any

from scb.jobs.job import Job
from scb.jobs.store import Store

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
    for index in side_by_side(_compute, [(job, store.directory) for job in missing], workers):
        done += missing[index].cost
        progress(done, total)
    return len(missing)


def _compute(job: Job, directory: Path) -> None:
    Store(directory).compute(job)


def side_by_side(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], workers: int) -> Iterator[int]:
    """Call a function in other processes, once with each of the tuples of arguments; yields the index of each that is done.

    If anything goes wrong here, an interrupt for instance, the processes are ended.
    """
    with _one_thread_each(workers):
        pool = ProcessPoolExecutor(min(workers, len(calls)), multiprocessing.get_context("spawn"), _start)
        try:
            futures = {pool.submit(function, *arguments): i for i, arguments in enumerate(calls)}
            for future in as_completed(futures):
                future.result()
                yield futures[future]
        except BaseException:
            processes = list((pool._processes or {}).values())
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()
            raise
        pool.shutdown()


def _start() -> None:
    """In a worker: an interrupt is for the parent, which ends its workers; and without a parent there is nothing left to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)  # files are written atomically: any moment is good


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
