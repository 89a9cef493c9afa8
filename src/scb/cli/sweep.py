"""``scb sweep``: many runs over a grid, here or on a cluster."""

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column
from rich.table import Table as TerminalTable

import scb.jobs
from scb.cli.progress import duration, progress
from scb.cli.terminal import terminal
from scb.extras import require
from scb.inputs import InputError

if TYPE_CHECKING:
    from scb.jobs.grid import Kind, Sweep
    from scb.jobs.pool import Pool
    from scb.jobs.store import SweepStore
    from scb.jobs.table import Table


def sweep(
    file: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")] = None,
    out: Path | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    retry: bool = False,
    status: Path | None = None,
    overwrite: bool = False,
    lock: bool = True,
) -> None:
    """Run trainings, recoveries or experiments of the paper over a grid of settings and seeds, and
    draw how often they succeed.

    Rows are saved as they are finished. After an interruption or a crash the same command
    continues, and a file with more seeds or values adds the missing rows. The same file gives the
    same rows on any number of processes or machines. OUT/table.parquet has all rows, and
    OUT/phase.png the figure, if the file asks for one.

    - On this machine: scb sweep support, which comes with scb; or scb sweep FILE.toml

    - On a cluster: scb sweep support.toml --scheduler tcp://10.0.0.1:8786

    - See how far a sweep is: scb sweep --status results/support

    With kind = "recover" or "train", the parameters are sizes and options of the library. Any
    experiment of the paper is a kind too, such as "noise", "rounding", "transfer" or "support" (the
    error for an unknown kind lists all). Its parameters are the fields of its job, and each row of
    the sweep is the last row of the job's table.

    Args:
        file: TOML file with kind, seeds, [fixed], [grid], and optionally [success] and [figure].
            Or the name of a sweep that comes with scb: lambda, support or symbols.
        out: Directory for the results. The default is results/NAME for a file NAME.toml.
        jobs: Number of processes on this machine. The default is the number of cores; 1 runs
            everything in this one.
        scheduler: Address of a Dask scheduler to run on instead.
        retry: Run the settings that failed once more.
        status: Print what is done and what failed in this results directory, and run nothing.
        overwrite: Replace files in OUT that scb did not write. The rows of a sweep are kept.
        lock: Keep other processes out of OUT. Some file systems cannot do so.
    """
    from scb.files import read_sealed, warn_unless
    from scb.jobs.grid import Sweep
    from scb.jobs.kinds import KINDS
    from scb.jobs.store import SWEEP, SweepStore

    console = terminal(soft_wrap=True)
    if status is not None:
        if not (status / SWEEP).exists():
            raise FileNotFoundError(f"{status} holds no sweep: there is no {SWEEP} in it")
        warn_unless(read_sealed(status / SWEEP)[1], status / SWEEP)
        asked = Sweep.read(status / SWEEP, KINDS, _experiments)
        store = SweepStore(status)
        _report(console, asked, store, store.table(asked), details=True)
        return
    if file is None:
        raise InputError("a sweep file is needed, or --status DIR")
    if jobs is not None and (jobs < 1 or scheduler is not None):
        raise InputError(f"jobs = {jobs}: it must be at least 1, and cannot go with --scheduler")
    require("scb sweep", "pyarrow")
    begin = perf_counter()
    file = _shipped(file)
    asked = Sweep.read(file, KINDS, _experiments)
    directory = out or Path("results") / file.stem
    with SweepStore.alone(directory, lock=lock, overwrite=overwrite, sweep=file) as store:
        fresh = _run(asked, store, jobs or os.cpu_count() or 1, scheduler, retry)
        console.print(f"{fresh:,} new runs in {duration(perf_counter() - begin)}")
        table = store.table(asked)
        _report(console, asked, store, table)
        if table is not None:
            store.write(table, asked)
            console.print(f"wrote {directory / 'table.parquet'}")
            if asked.figure is not None:
                console.print(f"wrote {_draw(asked, table, store)}")


def _shipped(file: Path) -> Path:
    """The file, or the sweep of that name that comes with scb, unless there is such a file."""
    shipped = Path(scb.jobs.__path__[0]) / "sweeps" / f"{file}.toml"
    return shipped if not file.exists() and file.name == str(file) and shipped.exists() else file


def _experiments() -> "dict[str, Kind]":
    """The experiments of the paper as kinds of sweep."""
    from scb.jobs.kinds import kind_of
    from scb.paper.registry import EXPERIMENTS

    return {name: kind_of(name, job) for name, job in EXPERIMENTS.items()}


def _run(asked: "Sweep", store: "SweepStore", jobs: int, scheduler: str | None, retry: bool) -> int:
    """Do what is missing, in this process, in several, or on the scheduler at an address; how many
    runs that was.
    """
    from scb.jobs.dask import connected
    from scb.jobs.forecast import Forecast, crowding
    from scb.jobs.pool import InProcess, run_jobs
    from scb.jobs.processes import processes

    missing = store.missing(asked.jobs(), retry)
    store.begin(asked, missing)
    if not missing:
        return 0
    workers = min(jobs, len(missing))
    forecast = Forecast({"running": sum(job.cost for job in missing) / workers}, crowding(workers))
    with progress(forecast) as shown:
        pool: AbstractContextManager[Pool] = nullcontext(InProcess())
        if scheduler is not None:
            pool = connected(scheduler, shown.note)
        elif workers > 1:
            pool = processes(workers, shown.note)

        def show(done: int, share: float) -> None:
            shown.detail = f"{done:,} of {len(missing):,} runs"
            forecast.note("running", share)

        with pool as opened:
            run_jobs(missing, opened, store, show)
    return len(missing)


def _report(
    console: Console,
    asked: "Sweep",
    store: "SweepStore",
    table: "Table | None",
    details: bool = False,
) -> None:
    from scb.jobs.grid import in_words

    jobs = asked.jobs()
    done = set() if table is None else set(table["key"])
    failed = [
        store.failures[job.key] for job in jobs if job.key in store.failures and job.key not in done
    ]
    left = len(jobs) - len(done) - len(failed)
    console.print(
        f"{asked.kind.name}: {len(done):,} of {len(jobs):,} runs done, {len(failed):,} failed, {left:,} left"
    )
    if table is not None and asked.success:
        console.print(
            f"success ({in_words(asked.success)}): {table['success'].sum():,} of {len(done):,}"
        )
    if table is not None and asked.figure is not None:
        _rates(console, asked.figure, table)
    if failed:
        _show_failures(console, asked, failed, store.directory, details)


def _rates(console: Console, figure: dict[str, str], table: "Table") -> None:
    """The diagram in numbers, where it fits into the terminal."""
    from scb.paper.figures.phase import split, text

    x = figure["x"]
    y = figure["y"]
    for title, part in split(table, x, y, figure.get("panel")):
        columns = [Column(name, justify="right", no_wrap=True) for name in (y, *map(text, part.xs))]
        shown = TerminalTable(*columns, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for name, row in zip(part.ys, part.rate, strict=True):
            shown.add_row(
                text(name), *("-" if rate != rate else f"{100 * rate:.0f}" for rate in row)
            )
        if console.measure(shown).minimum <= console.width:
            console.print(f"success in %, {y} down, {x} across{title and '; ' + title}:")
            console.print(shown)


def _show_failures(
    console: Console, asked: "Sweep", failed: list[dict[str, Any]], directory: Path, details: bool
) -> None:
    """What failed, and where; with the traceback of the first of each error if ``details``."""
    for error in dict.fromkeys(one["error"] for one in failed):
        ones = [one for one in failed if one["error"] == error]
        console.print(f"{len(ones)} × {error}", style="red", markup=False)
        for one in ones if details else ones[:3]:
            point = ", ".join(f"{name} = {one['parameters'][name]}" for name in asked.grid)
            console.print(f"  {point}, replicate {one['replicate']}", markup=False)
        if len(ones) > 3 and not details:
            console.print(f"  and {len(ones) - 3} more")
        if details:
            console.print(ones[0]["traceback"].rstrip(), style="dim", markup=False)
    console.print(f"tracebacks: {directory / 'failures.json'}; --retry tries these runs again")


def _draw(asked: "Sweep", table: "Table", store: "SweepStore") -> Path:
    from scb.drawing import save
    from scb.jobs.grid import in_words
    from scb.jobs.store import FIGURE
    from scb.paper.figures.phase import phase

    fixed = ", ".join(f"{name} = {value}" for name, value in asked.fixed.items())
    success = f"success: {in_words(asked.success)}" if asked.success else ""
    setting = "; ".join(filter(None, (fixed, success)))
    figure = dict(asked.figure or {})
    if "title" in figure:
        figure["title"] = figure["title"].replace("$", r"\$")  # a price is no formula
    drawn = phase(table, **figure, setting=setting)  # pyright: ignore[reportArgumentType]
    return save(drawn, store.file(FIGURE).with_suffix(""), ("png",))[0]
