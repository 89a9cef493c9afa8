"""Workers, which run jobs in this process, in processes of this machine, or on a Dask cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from scb.jobs.job import Job
from scb.jobs.pool import InProcess, Note, Pool, Progress, run_jobs
from scb.jobs.processes import Processes, processes
from scb.jobs.store import Store


class Workers:
    """Workers that are ready to run jobs; ``workers`` opens them.

    Parameters
    ----------
    local : Processes
        The processes of this machine, which are started when they are needed.
    pool : InProcess, Processes or DaskPool
        The pool that runs the jobs.

    Examples
    --------
    >>> from scb.jobs.workers import workers
    >>> with workers(1) as ready:
    ...     list(ready.each(abs, [(-1,)]))
    [1]
    """

    def __init__(self, local: Processes, pool: Pool) -> None:
        self._local = local
        self._pool = pool

    def run(
        self, jobs: Sequence[Job], store: Store, progress: Progress = lambda done, share: None
    ) -> None:
        """Run jobs and keep every result as it arrives.

        However the run ends, the results that have arrived are on disk.

        Parameters
        ----------
        jobs : list of Job
            The jobs.
        store : Cache
            The store that keeps the results.
        progress : callable
            A function that is called with the number of jobs that are done and their share of the
            work.

        Examples
        --------
        >>> from pathlib import Path
        >>> from scb.jobs.store import Cache
        >>> from scb.jobs.workers import workers
        >>> from scb.sweeps.kinds import RecoverJob
        >>> jobs = [RecoverJob(T=20, samples=50, method="spectral", replicate=i) for i in range(3)]
        >>> cache = Cache(Path("cache"))
        >>> with workers(1, in_process=True) as ready:
        ...     ready.run(jobs, cache)
        >>> cache.load(jobs)[0]["replicate"]
        array([0, 1, 2])
        """
        run_jobs(jobs, self._pool, store, progress)

    def each(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Call a function in processes on this machine, once for each tuple of arguments.

        Parameters
        ----------
        function : callable
            A function at the top level of a module, which the processes import.
        calls : list of tuple
            The arguments of each call.

        Returns
        -------
        iterator
            The results of the calls, in the order in which the calls end.

        Examples
        --------
        >>> from scb.jobs.workers import workers
        >>> with workers(1) as ready:
        ...     list(ready.each(divmod, [(7, 2), (9, 4)]))
        [(3, 1), (2, 1)]
        """
        return self._local.each(function, calls)


@contextmanager
def workers(
    count: int, scheduler: str | None = None, note: Note = print, in_process: bool = False
) -> Iterator[Workers]:
    """Open workers for jobs; the workers stop when the context ends.

    Parameters
    ----------
    count : int
        The number of processes on this machine.
    scheduler : str, optional
        The address of a Dask scheduler, on whose workers jobs run instead.
    note : callable, default print
        A function that is called with a line for the user, for instance when a process dies.
    in_process : bool, default False
        Whether jobs run in this process instead.

    Returns
    -------
    context manager
        Yields ``Workers``.

    Examples
    --------
    >>> from scb.jobs.workers import workers
    >>> with workers(1) as ready:
    ...     list(ready.each(abs, [(-1,)]))
    [1]
    """
    with ExitStack() as stack:
        local = stack.enter_context(processes(count, note))
        if scheduler is not None:
            from scb.jobs.dask import connected

            yield Workers(local, stack.enter_context(connected(scheduler, note)))
        else:
            yield Workers(local, InProcess() if in_process else local)
