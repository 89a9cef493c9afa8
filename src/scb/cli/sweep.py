"""``scb sweep`` runs many settings over a grid, here or on a cluster."""

import os
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

from scb.cli.progress import duration, progress
from scb.cli.terminal import terminal
from scb.inputs import InputError
from scb.jobs.forecast import Forecast, crowding

if TYPE_CHECKING:
    from scb.sweeps.grid import Sweep
    from scb.sweeps.run import SweepState


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

    Rows are saved as they are finished. After an interruption or a crash, the same command
    continues the sweep, and a file with more seeds or values adds the missing rows. The same file
    produces the same rows on any number of processes or machines. OUT/table.parquet (table.json
    without pyarrow) holds all rows, and OUT/phase.png holds the figure, if the file requests one.

    - On this machine: scb sweep support, which comes with scb; or scb sweep FILE.toml

    - On a cluster: scb sweep support.toml --scheduler tcp://10.0.0.1:8786

    - See the progress of a sweep: scb sweep --status results/support

    With kind = "recover" or "train", the parameters are sizes and options of the library. Any
    experiment of the paper is a kind too, such as "noise", "rounding", "transfer" or "support" (the
    error for an unknown kind lists all). Its parameters are the fields of its job, and each row of
    the sweep is the last row of the job's table.

    Args:
        file: TOML file with kind, seeds, [fixed], [grid], and optionally [success] and [figure]; or
            the name of a sweep that comes with scb: lambda, support or symbols.
        out: Directory for the results. The default is results/NAME for a file NAME.toml.
        jobs: Number of processes on this machine. The default is the number of cores; 1 runs
            everything in the main process.
        scheduler: Address of a Dask scheduler to run on instead.
        retry: Repeat the runs that failed.
        status: Print what is done and what has failed in this results directory, and run nothing.
        overwrite: Replace files in OUT that scb did not write. The rows of a sweep are kept.
        lock: Keep other processes out of OUT. Some file systems do not support this.
    """
    from scb.paper.kinds import experiment_kinds
    from scb.sweeps.grid import Sweep
    from scb.sweeps.kinds import KINDS
    from scb.sweeps.run import run_sweep, sweep_state

    console = terminal(soft_wrap=True)
    if status is not None:
        asked, state = sweep_state(status, KINDS, experiment_kinds)
        _report(console, asked, state, status, details=True)
        return
    if file is None:
        raise InputError("a sweep file is needed, or --status DIR")
    if jobs is not None and (jobs < 1 or scheduler is not None):
        raise InputError(f"jobs = {jobs}: it must be at least 1, and cannot go with --scheduler")
    begin = perf_counter()
    file = _shipped(file)
    asked = Sweep.read(file, KINDS, experiment_kinds)
    directory = out or Path("results") / file.stem
    count = jobs or os.cpu_count() or 1
    forecast = Forecast({"running": 1.0}, crowding(count))
    with progress(forecast) as note:
        state = run_sweep(
            asked,
            directory,
            count=count,
            scheduler=scheduler,
            retry=retry,
            forecast=forecast,
            note=note,
            file=file,
            lock=lock,
            overwrite=overwrite,
        )
    console.print(f"{state.fresh:,} new runs in {duration(perf_counter() - begin)}")
    _report(console, asked, state, directory)
    for path in state.files:
        console.print(f"wrote {path}")


def _shipped(file: Path) -> Path:
    """The file, or the sweep of that name that comes with scb, unless there is such a file."""
    from scb.sweeps.grid import SHIPPED

    shipped = SHIPPED / f"{file}.toml"
    return shipped if not file.exists() and file.name == str(file) and shipped.exists() else file


def _report(
    console: Console,
    asked: "Sweep",
    state: "SweepState",
    directory: Path,
    details: bool = False,
) -> None:
    from scb.sweeps.grid import in_words

    console.print(
        f"{asked.kind.name}: {state.done:,} of {state.runs:,} runs done,"
        f" {len(state.failed):,} failed, {state.left:,} left"
    )
    if state.table is not None:
        if asked.success:
            count = state.table["success"].sum()
            console.print(f"success ({in_words(asked.success)}): {count:,} of {state.done:,}")
        if asked.figure is not None:
            _rates(console, asked.figure, state)
    if state.failed:
        _show_failures(console, asked, state, directory, details)


def _rates(console: Console, figure: dict[str, str], state: "SweepState") -> None:
    """Print the diagram in numbers, where it fits into the terminal."""
    from scb.sweeps.phase import phases

    x = figure["x"]
    y = figure["y"]
    for title, part in phases(state.table or {}, x, y, figure.get("panel")):
        heading, *rows = part.cells()
        columns = [Column(name, justify="right", no_wrap=True) for name in (y, *heading)]
        shown = Table(*columns, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for row in rows:
            shown.add_row(*row)
        if console.measure(shown).minimum <= console.width:
            console.print(f"success in %, {y} down, {x} across{title and '; ' + title}:")
            console.print(shown)


def _show_failures(
    console: Console, asked: "Sweep", state: "SweepState", directory: Path, details: bool
) -> None:
    """Print the failed runs by error, three of each; if ``details``, all, and one traceback."""
    for error in dict.fromkeys(one["error"] for one in state.failed):
        ones = [one for one in state.failed if one["error"] == error]
        console.print(f"{len(ones)} × {error}", style="red")
        shown = ones if details else ones[:3]
        for one in shown:
            point = ", ".join(f"{name} = {one['parameters'][name]}" for name in asked.grid)
            console.print(f"  {point}, replicate {one['replicate']}")
        if len(ones) > len(shown):
            console.print(f"  and {len(ones) - len(shown)} more")
        if details:
            console.print(ones[0]["traceback"].rstrip(), style="dim")
    console.print(f"tracebacks: {directory / 'failures.json'}; --retry tries these runs again")
