"""Run a sweep: do the missing runs, keep every row, write the table and draw the diagram."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scb.extras import require
from scb.files import read_sealed
from scb.jobs.forecast import Forecast
from scb.jobs.pool import Note
from scb.jobs.table import Table
from scb.jobs.workers import workers
from scb.sweeps.grid import Further, Kind, Sweep
from scb.sweeps.store import FIGURE, SWEEP, TABLE, SweepStore


@dataclass(frozen=True)
class SweepState:
    """The progress of a sweep.

    Attributes
    ----------
    runs : int
        The number of runs of the sweep.
    table : dict of (rows,) arrays, or None
        The rows that are done, in the order of the grid, with a column ``success``.
    failed : list of dict
        The runs that failed, each with its parameters, replicate, seed, error and traceback.
    fresh : int
        The number of runs that were tried in this call.
    files : list of Path
        The files that were written for users.

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.sweeps.grid import Sweep
    >>> from scb.sweeps.kinds import KINDS
    >>> from scb.sweeps.run import run_sweep
    >>> text = 'kind = "recover"\\nseeds = 2\\n[grid]\\nT = [10, 20]'
    >>> state = run_sweep(Sweep.parse(text, KINDS), Path("out"))
    >>> state.done, state.left, state.failed
    (4, 0, [])
    """

    runs: int
    table: Table | None
    failed: list[dict[str, Any]]
    fresh: int = 0
    files: tuple[Path, ...] = ()

    @property
    def done(self) -> int:
        """The number of rows that are done."""
        return 0 if self.table is None else len(self.table["key"])

    @property
    def left(self) -> int:
        """The number of runs that have neither succeeded nor failed."""
        return self.runs - self.done - len(self.failed)


def run_sweep(
    sweep: Sweep,
    directory: Path,
    *,
    count: int = 1,
    scheduler: str | None = None,
    retry: bool = False,
    forecast: Forecast | None = None,
    note: Note = print,
    file: Path | None = None,
    lock: bool = True,
    overwrite: bool = False,
) -> SweepState:
    """Carry out the missing runs of a sweep, and write its table and diagram.

    The same sweep produces the same rows with any number of processes or machines.

    Parameters
    ----------
    sweep : Sweep
        The sweep to run.
    directory : Path
        The directory of the results; rows that are already there are not computed again.
    count : int, default 1
        The number of processes; with 1, everything runs in this process.
    scheduler : str, optional
        The address of a Dask scheduler to run on instead.
    retry : bool, default False
        Whether to repeat the runs that failed.
    forecast : Forecast, optional
        A forecast that is updated as the runs proceed.
    note : callable, default print
        A function that is called with a line for the user, for instance when a process dies.
    file : Path, optional
        The file that the sweep was read from, which is never overwritten.
    lock : bool, default True
        Whether to keep other processes out of the directory.
    overwrite : bool, default False
        Whether files that scb did not write may be replaced.

    Returns
    -------
    SweepState

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.sweeps.grid import Sweep
    >>> from scb.sweeps.kinds import KINDS
    >>> from scb.sweeps.run import run_sweep
    >>> text = 'kind = "recover"\\nseeds = 2\\n[grid]\\nT = [10, 20]'
    >>> state = run_sweep(Sweep.parse(text, KINDS), Path("out"))
    >>> state.fresh, [path.name for path in state.files]
    (4, ['table.parquet'])
    """
    if sweep.figure is not None:
        require("the diagram of a sweep", "matplotlib")
    with SweepStore.alone(directory, lock=lock, overwrite=overwrite, sweep=file) as store:
        missing = store.missing(sweep.jobs(), retry)
        store.begin(sweep, missing)
        count = min(count, len(missing))
        if missing:
            forecast = forecast or Forecast({"running": 1.0})
            forecast.expect("running", sum(job.cost for job in missing) / count)
            with workers(count, scheduler, note, in_process=count == 1) as ready:
                ready.run(
                    missing,
                    store,
                    lambda done, share: forecast.note(
                        "running", share, f"{done:,} of {len(missing):,} runs"
                    ),
                )
        return _state(sweep, store, len(missing), _write(sweep, store))


def _write(sweep: Sweep, store: SweepStore) -> tuple[Path, ...]:
    """Write the table and the diagram of the rows that there are."""
    table = store.table(sweep)
    if table is None:
        return ()
    store.write(table, sweep)
    if sweep.figure is None:
        return (store.directory / TABLE,)
    from scb.drawing import save
    from scb.sweeps.phase import diagram

    pictures = save(diagram(sweep, table), store.file(FIGURE).with_suffix(""), ("png",))
    return (store.directory / TABLE, *pictures)


def sweep_state(
    directory: Path, kinds: Mapping[str, Kind], further: Further = dict
) -> tuple[Sweep, SweepState]:
    """Read the progress of the sweep in a directory without running anything.

    Parameters
    ----------
    directory : Path
        The directory that ``run_sweep`` writes to.
    kinds : dict of Kind
        The kinds of sweep by name.
    further : callable
        A function that returns further kinds. The function is called if the kind of the sweep is
        not among ``kinds``.

    Returns
    -------
    tuple of Sweep and SweepState

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.sweeps.grid import Sweep
    >>> from scb.sweeps.kinds import KINDS
    >>> from scb.sweeps.run import run_sweep, sweep_state
    >>> text = 'kind = "recover"\\nseeds = 2\\n[grid]\\nT = [10, 20]'
    >>> _ = run_sweep(Sweep.parse(text, KINDS), Path("out"))
    >>> sweep_state(Path("out"), KINDS)[1].done
    4
    """
    path = directory / SWEEP
    if not path.exists():
        raise FileNotFoundError(f"{directory} holds no sweep: there is no {SWEEP} in it")
    read_sealed(path)
    sweep = Sweep.read(path, kinds, further)
    return sweep, _state(sweep, SweepStore(directory))


def _state(
    sweep: Sweep, store: SweepStore, fresh: int = 0, files: tuple[Path, ...] = ()
) -> SweepState:
    table = store.table(sweep)
    done = set() if table is None else set(table["key"])
    keys = [job.key for job in sweep.jobs()]
    failed = [store.failures[key] for key in keys if key in store.failures and key not in done]
    return SweepState(len(keys), table, failed, fresh, files)
