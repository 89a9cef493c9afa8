"""A pool of Dask workers: a local cluster, or any scheduler by its address.

Jobs go out and what they gave comes back; nothing else crosses the network, and workers need no common file system with the
driver. If a worker dies, Dask runs its batches again on another one.
"""

import logging
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from multiprocessing import resource_tracker
from queue import Empty, Queue
from time import monotonic
from typing import Any

from scb.extras import install
from scb.inputs import InputError
from scb.jobs.job import Job
from scb.jobs.pool import Answer, run_batch
from scb.jobs.store import Failure
from scb.provenance import code_digest, require_code

CONNECT_SECONDS = 3.0
SILENT = logging.CRITICAL  # Dask's log is not shown: what a user needs to know is said by us
GONE = "the connection to the Dask scheduler was lost. Finished rows are kept; the same command goes on from them"
# What serves a dashboard, which nobody looks at, and giving memory back, of which little is held, take time from the jobs.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}
Note = Callable[[str], None]  # called with a line for the user


def modules_of(batch: Sequence[Job]) -> list[str]:
    """The modules that a worker needs for a batch: those of its jobs, and this one."""
    return sorted({__name__, *(type(job).__module__ for job in batch)})


def compute(batch: Sequence[Job], code: str) -> Answer:
    """On a worker: do the batch on one thread, if the worker has the driver's code."""
    require_code(code, *modules_of(batch))
    return run_batch(batch, threads=1)


class DaskPool:
    """Batches side by side on the workers of a Dask scheduler."""

    def __init__(self, client: Any, note: Note) -> None:
        self.client = client
        self.note = note
        self._futures: dict[str, tuple[Any, Sequence[Job]]] = {}
        self._done: Queue[Any] = Queue()
        self._workers: set[str] = set()
        self._looked = -1.0
        self._look_for_workers()

    @property
    def slots(self) -> int:
        """Two batches a worker, so that it need not wait; without one, too, so that a scheduler that adapts asks for some."""
        return 2 * max(1, len(self._workers))

    def submit(self, batch: Sequence[Job]) -> None:
        """Send the batch to the scheduler."""
        code = code_digest(*modules_of(batch))
        future = self.client.submit(compute, batch, code, pure=False)  # pure: equal batches would be one
        self._futures[future.key] = future, batch
        future.add_done_callback(self._done.put)

    def collect(self) -> list[tuple[Sequence[Job], Answer]]:
        """Wait for a second at most until a batch is through."""
        from distributed import KilledWorker

        if monotonic() - self._looked > 1:
            self._look_for_workers()
        try:
            future = self._done.get(timeout=1)
        except Empty:
            return []
        _, batch = self._futures.pop(future.key)
        try:
            return [(batch, future.result())]
        except KilledWorker as error:
            reason = f"every worker that ran it died, {error.allowed_failures + 1} of them: out of memory, perhaps"
            return [(batch, Answer({}, {job.key: Failure(reason, "") for job in batch}, 0.0, lost=True))]
        except (CancelledError, OSError):
            raise ConnectionError(GONE) from None
        except ImportError as error:
            raise InputError(f"a worker cannot run scb: {error}; install scb there as it is here") from None

    def _look_for_workers(self) -> None:
        """See which workers there are, and say so when one has gone."""
        first = self._looked < 0
        self._looked = monotonic()
        if self.client.status in ("closing", "closed"):  # it has given up reconnecting
            raise ConnectionError(GONE)
        try:
            workers = set(self.client.nthreads())
        except OSError:
            raise ConnectionError(GONE) from None
        for worker in sorted(self._workers - workers):
            self.note(f"worker {worker} has gone; what it was running goes to another one")
        if not workers and (first or self._workers):
            self.note("the scheduler has no workers: waiting for some")
        self._workers = workers


@contextmanager
def connected(address: str, note: Note) -> Iterator[DaskPool]:
    """The pool of the scheduler at an address."""
    distributed = _distributed()
    distributed.comm.registry.get_backend(distributed.comm.parse_address(address)[0])  # ValueError for what is no address
    with distributed.utils.silence_logging_cmgr(SILENT):
        try:
            client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except OSError:
            raise ConnectionError(f"no Dask scheduler at {address}: nothing answered within {CONNECT_SECONDS:g} s") from None
        with client:
            yield DaskPool(client, note)


@contextmanager
def local(workers: int, note: Note) -> Iterator[DaskPool]:
    """The pool of a cluster of its own on this machine: processes of one thread, reachable from here only."""
    distributed = _distributed()
    import dask.config

    with distributed.utils.silence_logging_cmgr(SILENT):
        with _deaf_children(), dask.config.set(QUIET):
            here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
            try:
                cluster = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, silence_logs=SILENT, **here)
            except (RuntimeError, TimeoutError) as error:  # a worker died before it could begin
                raise ChildProcessError(
                    f"the {workers} worker processes did not start ({error}): try again, or take --jobs 1"
                ) from None
        with cluster, distributed.Client(cluster, set_as_default=False) as client:
            yield DaskPool(client, note)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError(f"several processes or a scheduler need Dask: {install('dask')}, or take --jobs 1") from None
    return distributed


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Ctrl-C is for this process, which ends its workers: threads that start in here, and all their processes, do not hear it."""
    resource_tracker.ensure_running()  # it would undo the mask if it were started later
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
