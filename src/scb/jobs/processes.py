"""This module runs jobs in processes of this machine, each behind a pipe that no other process can
reach. These processes end together with this process.

If a process dies, only its current batch is lost, and another process takes its place.
"""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from threading import current_thread, main_thread
from typing import Any, NamedTuple

from scb.jobs.job import Job
from scb.jobs.pool import BatchResult, Note, run_batch
from scb.jobs.store import Failure
from scb.jobs.worker import work

# After so many failed starts in a row we give up.
MOST_FAILED_STARTS = 3
KEPT = "Finished runs are kept; the same command goes on from them"
# Stands for what a call returned if its process died over it.
LOST = object()


class Call(NamedTuple):
    """A function to call in a process."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Worker:
    """A process, the pipe to it, and its current call."""

    def __init__(self, number: int) -> None:
        self.call: Call | None = None
        self.ready = False
        self.reason = ""
        context = multiprocessing.get_context("spawn")
        self.link: Connection
        self.link, theirs = context.Pipe()
        with theirs:
            self.process = context.Process(target=work, args=(theirs,), name=f"worker-{number}")
            self.process.start()

    def take(self, call: Call) -> None:
        """Send a call to the process. If the process is dead, this is noticed when its reply is
        awaited.
        """
        self.call = call
        with suppress(OSError):
            self.link.send(call)

    def end(self) -> str:
        """End the process if it still runs; return how it ended."""
        self.link.close()
        self.process.kill()
        self.process.join()
        code = self.process.exitcode or 0
        return (
            self.reason or (signal.strsignal(-code) if code < 0 else None) or f"exit status {code}"
        )


class Processes:
    """A pool that runs batches side by side in processes of this machine, which share its cores."""

    def __init__(self, workers: int, note: Note) -> None:
        self.workers = workers
        # One batch that runs and one that waits for each, so that no process is idle.
        self.slots = 2 * workers
        self._note = note
        self._threads = max(1, (os.cpu_count() or 1) // workers)
        self._running: list[Worker] = []
        self._waiting: deque[Call] = deque()
        self._started = 0
        self._failed_starts = 0

    def submit(self, batch: Sequence[Job]) -> None:
        """Give the batch to the next process that is free."""
        self._waiting.append(Call(run_batch, (batch, self._threads)))
        self._hand_out()

    def collect(self) -> list[tuple[Sequence[Job], BatchResult]]:
        """Wait at most a second for batches to be done."""
        through = [(call.arguments[0], returned) for call, returned in self._collect()]
        return [
            (batch, _lost(batch) if returned is LOST else returned) for batch, returned in through
        ]

    def each(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Call a function once with each tuple of arguments; yield the results in the order in
        which the calls end.
        """
        self._waiting.extend(Call(function, arguments) for arguments in calls)
        left = len(calls)
        while left:
            for _, returned in self._collect():
                if returned is LOST:
                    raise ChildProcessError(f"a process died, out of memory perhaps. {KEPT}")
                left -= 1
                yield returned

    def end(self) -> None:
        """End all processes, whatever they are doing."""
        for worker in self._running:
            worker.end()

    def _hand_out(self) -> None:
        """Give what waits to idle processes, and start more of them where allowed."""
        free = [worker for worker in self._running if worker.call is None]
        while self._waiting and (free or len(self._running) < self.workers):
            worker = free.pop() if free else self._start()
            worker.take(self._waiting.popleft())

    def _start(self) -> Worker:
        self._started += 1
        try:
            with _interrupts_held_back():
                self._running.append(Worker(self._started))
        except OSError as error:
            raise _not_started(error.strerror or str(error)) from None
        return self._running[-1]

    def _collect(self) -> list[tuple[Call, Any]]:
        """The calls that end within a second, and what they returned. What a call raised is raised
        here.
        """
        self._hand_out()
        through = []
        links: dict[Any, Worker] = {worker.link: worker for worker in self._running}
        for link in wait(list(links), timeout=1):
            worker = links[link]
            try:
                reply = worker.link.recv()
            except (EOFError, OSError):
                through += self._replace(worker)
                continue
            if worker.ready:
                value, error = reply
                if error is not None:
                    raise error
                assert worker.call is not None
                through.append((worker.call, value))
                worker.call = None
            elif reply is None:
                worker.ready = True
                self._failed_starts = 0
            else:
                worker.reason = reply
        self._hand_out()
        return through

    def _replace(self, worker: Worker) -> list[tuple[Call, Any]]:
        """Replace a dead process: its call is lost, or waits again if it had not begun."""
        self._running.remove(worker)
        how = worker.end()
        if worker.ready:
            self._note(f"a worker process died ({how}); another one takes its place")
            return [] if worker.call is None else [(worker.call, LOST)]
        self._failed_starts += 1
        if self._failed_starts == MOST_FAILED_STARTS:
            raise _not_started(how)
        if worker.call is not None:
            self._waiting.appendleft(worker.call)
        return []


def _lost(batch: Sequence[Job]) -> BatchResult:
    failure = Failure("its process died, out of memory perhaps", "")
    return BatchResult({}, {job.key: failure for job in batch}, 0.0, lost=True)


def _not_started(reason: str) -> ChildProcessError:
    return ChildProcessError(
        f"worker processes do not start ({reason}): try fewer of them (--jobs). {KEPT}"
    )


@contextmanager
def processes(workers: int, note: Note = print) -> Iterator[Processes]:
    """Provide a pool of processes, which end with the context; ``note`` receives messages for the
    user.
    """
    pool = Processes(workers, note)
    try:
        yield pool
    finally:
        # A worker that a second Ctrl-C left running would be waited for without end
        with _interrupts_held_back():
            pool.end()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Around the start and the end of processes. A process that is started here ignores Ctrl-C: a
    terminal sends it to all processes, and this one ends the others.

    A Ctrl-C for this process waits until the context is over. A mask alone does not hold it back,
    because another thread may receive it.
    """
    if not hasattr(signal, "pthread_sigmask"):
        # On Windows nothing can be held back: a worker hears Ctrl-C as well, and ends.
        yield
        return
    came: list[Any] = []
    here = current_thread() is main_thread()
    # It would undo the mask if it were started later.
    resource_tracker.ensure_running()
    handler = signal.signal(signal.SIGINT, lambda *heard: came.append(heard)) if here else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if here:
            signal.signal(signal.SIGINT, handler)
        if came and callable(handler):
            handler(*came[0])
