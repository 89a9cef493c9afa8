"""``scb sweep``: many runs over a grid, here or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from rich.console import Console

    from scb.jobs.grid import Sweep
    from scb.jobs.results import Results


def sweep(
    file: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")] = None,
    out: Path | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    retry: bool = False,
    status: Path | None = None,
) -> None:
    """Run a grid of trainings or recoveries × seeds, and draw how often they succeed.

    Rows are kept as they come: after an interruption or a crash the same command goes on, and a file with more seeds or more
    values adds what is missing. The same file gives the same rows, whatever runs them. OUT/table.parquet has all rows,
    OUT/phase.png the figure, if the file asks for one.

    - On this machine: scb sweep docs/sweeps/support.toml

    - On a cluster: scb sweep support.toml --scheduler tcp://10.0.0.1:8786

    - How far is it: scb sweep --status results/support

    Args:
        file: TOML file with kind = "recover" or "train", seeds, [fixed], [grid], and optionally [success] and [figure].
        out: Directory for the results; results/NAME for a file NAME.toml unless given.
        jobs: Processes on this machine; as many as there are cores unless given. 1 runs everything in this process, without Dask.
        scheduler: Address of a Dask scheduler to run on instead.
        retry: Try the runs that failed once more.
        status: Say what is done, and list failures, in this directory; nothing is run.
    """
    import os
    from time import perf_counter

    from rich.console import Console

    from scb.jobs.grid import Sweep
    from scb.jobs.results import Results

    console = Console(highlight=False)
    if status is not None:
        if not (status / "sweep.toml").exists():
            raise FileNotFoundError(f"{status} holds no sweep: there is no sweep.toml in it")
        there, results = Sweep.read(status / "sweep.toml"), Results(status)
        _report(console, there, results, results.table(there), details=True)
        return
    if file is None:
        raise ValueError("a sweep file is needed, or --status DIR")
    if jobs is not None and (jobs < 1 or scheduler is not None):
        raise ValueError(f"jobs = {jobs}: it must be at least 1, and cannot go with --scheduler")
    asked, directory = Sweep.read(file), out or Path("results") / file.stem
    begin = perf_counter()
    fresh = _run(asked, directory, jobs or os.cpu_count() or 1, scheduler, retry)
    console.print(f"{fresh:,} new runs in {_duration(perf_counter() - begin)}")
    results = Results(directory)
    table = results.table(asked)
    if table is not None:
        results.write(table, asked)
    _report(console, asked, results, table)
    if table is not None:
        console.print(f"wrote {directory / 'table.parquet'}", soft_wrap=True)
        if asked.figure is not None:
            console.print(f"wrote {_draw(asked, table, directory)}", soft_wrap=True)


def _run(asked: Sweep, directory: Path, jobs: int, scheduler: str | None, retry: bool) -> int:
    """Do what is missing; how many runs that was."""
    from scb.jobs.pool import pool_for, run_all
    from scb.jobs.results import Results

    with Results(directory).alone():
        results = Results(directory)
        missing = results.missing(asked, retry)
        results.begin(asked, missing)
        if not missing:
            return 0
        with (
            _progress(len(missing)) as (note, progress),
            pool_for(asked.kind.measure, min(jobs, len(missing)), scheduler, note) as pool,
        ):
            run_all(missing, pool, results, progress)
        return len(missing)


@contextmanager
def _progress(total: int) -> Iterator[tuple[Callable[[str], None], Callable[[int], None]]]:
    """A bar with the time left on a terminal, a line every ten seconds elsewhere; and a function for notes."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if console.is_terminal:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

        columns = (
            BarColumn(24),
            MofNCompleteColumn(),
            "runs",
            TimeRemainingColumn(),
            "left",
            TimeElapsedColumn(),
            "so far",
        )
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("", total=total)
            yield bar.console.print, lambda done: bar.update(task, completed=done)
    else:
        yield lambda text: console.print(text, soft_wrap=True), _Lines(console, total)


class _Lines:
    """Progress for a log file."""

    def __init__(self, console: Console, total: int) -> None:
        from time import monotonic

        self.clock, self.console, self.total = monotonic, console, total
        self.begin = self.said = monotonic()

    def __call__(self, done: int) -> None:
        now = self.clock()
        if done and now - self.said > 10:
            left = (now - self.begin) / done * (self.total - done)
            self.console.print(f"{done:,} of {self.total:,} runs, {_duration(left)} left", soft_wrap=True)
            self.said = now


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 100
        else f"{seconds / 60:.0f} min"
        if seconds < 6000
        else f"{seconds / 3600:.1f} h"
    )


def _report(console: Console, asked: Sweep, results: Results, table: dict | None, details: bool = False) -> None:
    from scb.jobs.kinds import in_words

    runs = asked.runs()
    done = set() if table is None else set(table["key"])
    failed = [results.failures[run.key] for run in runs if run.key in results.failures and run.key not in done]
    left = len(runs) - len(done) - len(failed)
    console.print(
        f"{asked.kind.name}: {len(done):,} of {len(runs):,} runs done, {len(failed):,} failed, {left:,} left",
        soft_wrap=True,
    )
    if table is not None:
        reached = f"{table['success'].sum():,} of {len(done):,}"
        console.print(f"success ({in_words(asked.success)}): {reached}", soft_wrap=True)
        if asked.figure is not None:
            _rates(console, asked, table)
    _failures(console, asked, failed, results.directory, details)


def _rates(console: Console, asked: Sweep, table: dict) -> None:
    """The diagram in numbers, where it fits into the terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from scb.paper.figures.phase import split, text

    figure = asked.figure or {}
    x, y, panel = figure["x"], figure["y"], figure.get("panel")
    for title, part in split(table, x, y, panel):
        shown = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for name in (y, *map(text, part.xs)):
            shown.add_column(name, justify="right", no_wrap=True)
        for name, row in zip(part.ys, part.rate, strict=True):
            shown.add_row(text(name), *("-" if rate != rate else f"{100 * rate:.0f}" for rate in row))
        if console.measure(shown).minimum <= console.width:
            console.print(f"success in %, {y} down, {x} across{title and '; ' + title}:", soft_wrap=True)
            console.print(shown)


def _failures(console: Console, asked: Sweep, failed: list[dict], directory: Path, details: bool) -> None:
    """What failed, and where; with the traceback of the first of each error if ``details``."""
    if not failed:
        return
    errors: dict[str, list[dict]] = {}
    for one in failed:
        errors.setdefault(one["error"], []).append(one)
    for error, ones in errors.items():
        console.print(f"{len(ones)} × {error}", style="red", markup=False, soft_wrap=True)
        for one in ones if details else ones[:3]:
            point = ", ".join(f"{name} = {one['parameters'][name]}" for name in asked.grid)
            console.print(f"  {point}, replicate {one['replicate']}", markup=False, soft_wrap=True)
        if len(ones) > 3 and not details:
            console.print(f"  and {len(ones) - 3} more")
        if details:
            console.print(ones[0]["traceback"].rstrip(), style="dim", markup=False, soft_wrap=True)
    console.print(f"tracebacks: {directory / 'failures.json'}; --retry tries these runs again", soft_wrap=True)


def _draw(asked: Sweep, table: dict, directory: Path) -> Path:
    from scb.jobs.kinds import in_words
    from scb.paper.figures.phase import phase
    from scb.paper.figures.style import save

    fixed = ", ".join(f"{name} = {value}" for name, value in asked.fixed.items())
    setting = "; ".join(filter(None, (fixed, f"success: {in_words(asked.success)}")))
    drawn = phase(table, **(asked.figure or {}), setting=setting)  # pyright: ignore[reportArgumentType]
    return save(drawn, directory / "phase", ("png",))[0]
