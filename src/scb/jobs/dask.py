"""This module runs jobs on the workers of a Dask scheduler.

Only jobs and their results cross the network; the workers and the driver share no file system. If a
worker dies, Dask runs its batches again on another worker.
"""

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from queue import Empty, Queue
from time import monotonic
from typing import Any

from scb.extras import install
from scb.inputs import InputError
from scb.jobs.job import Job
from scb.jobs.pool import BatchResult, Note, lost_batch, run_batch
from scb.provenance import code_digest, require_code

CONNECT_SECONDS = 3.0
# Dask's log is hidden: we say ourselves what a user needs to know
SILENT = logging.CRITICAL
TLS = (
    "the certificates that DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
    "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY name"
)
GONE = (
    "the connection to the Dask scheduler was lost. Finished rows are kept; the same command goes"
    " on from them"
)


def modules_of(batch: Sequence[Job]) -> set[str]:
    """Return the modules that define the jobs of a batch."""
    return {type(job).__module__ for job in batch}


def compute(batch: Sequence[Job], code: str) -> BatchResult:
    """On a worker, run the batch on one thread, if the worker has the driver's code."""
    require_code(code, *modules_of(batch))
    return run_batch(batch, threads=1)


class DaskPool:
    """A pool that runs batches side by side on the workers of a Dask scheduler."""

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
        """The number of batches to send: two per worker, so that no worker is idle, or two if there
        are no workers yet, so that an adaptive scheduler requests some.
        """
        return 2 * max(1, len(self._workers))

    def submit(self, batch: Sequence[Job]) -> None:
        """Send the batch to the scheduler."""
        code = code_digest(*modules_of(batch))
        # With pure=True, Dask would take equal batches for one
        future = self.client.submit(compute, batch, code, pure=False)
        self._futures[future.key] = future, batch
        future.add_done_callback(self._done.put)

    def collect(self) -> list[tuple[Sequence[Job], BatchResult]]:
        """Wait at most a second for a batch to be done."""
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
            deaths = error.allowed_failures + 1
            reason = f"every worker that ran it died, {deaths} of them: out of memory, perhaps"
            return [(batch, lost_batch(batch, reason))]
        except (CancelledError, OSError):
            raise ConnectionError(GONE) from None
        except ImportError as error:
            raise InputError(
                f"a worker cannot run scb: {error}; install scb there as it is here"
            ) from None

    def _look_for_workers(self) -> None:
        """Look which workers there are, and say when one has left."""
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
    """Connect to the scheduler at an address, and yield its pool."""
    distributed = _distributed()
    _check(address)
    with distributed.utils.silence_logging_cmgr(SILENT):
        try:
            client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except OSError:
            nothing = (
                f"no Dask scheduler at {address}: nothing answered within {CONNECT_SECONDS:g} s"
            )
            tls = (
                ", or it and we do not trust each other's certificates"
                if encrypted(address)
                else ""
            )
            raise ConnectionError(nothing + tls) from None
        with client:
            yield DaskPool(client, note)


def encrypted(address: str) -> bool:
    """Return whether traffic to this address is encrypted and both ends show certificates."""
    return address.startswith(("tls://", "wss://"))


def _check(address: str) -> None:
    """InputError for what is no address, and for one that Dask's settings for TLS do not fit."""
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend
    from distributed.security import Security

    try:
        scheme, place = parse_address(address)
        get_backend(scheme)
        parse_host_port(place)
    except ValueError as error:
        form = "it must look like tcp://10.0.0.1:8786"
        raise InputError(f"scheduler = {address!r}: {form} ({error})") from None
    try:
        settings = Security().get_connection_args("client")
    except OSError as error:
        raise InputError(f"{TLS} cannot be read: {error.strerror or error}") from None
    if encrypted(address) and settings["ssl_context"] is None:
        raise InputError(f"scheduler = {address!r}: TLS needs {TLS}")
    if settings["require_encryption"] and not encrypted(address):
        required = "Dask's settings require encryption: it must begin with tls://"
        raise InputError(f"scheduler = {address!r}: {required}")


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError(f"--scheduler needs Dask: {install('dask')}") from None
    return distributed
