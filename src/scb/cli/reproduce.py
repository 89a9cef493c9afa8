"""``scb reproduce``: the main job."""

import os
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rich.console import Console

from scb.cli.progress import progress
from scb.cli.terminal import terminal
from scb.extras import require
from scb.files import write_atomically
from scb.folders import Folder, opened
from scb.inputs import InputError, integer
from scb.provenance import machine, versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from scb.jobs.forecast import Forecast
    from scb.jobs.job import Job
    from scb.jobs.table import Table
    from scb.paper.entries import Experiment

# Seconds until a process is there, has loaded what it needs, and has compiled its first kernels
START = 1.7
FIGURE = 1.7  # seconds to draw one, in all its formats

SHIPPED = "--shipped docs/tables"
MOST_JOBS = 4096  # processes; more are a mistake


def reproduce(
    out: Path = Path("results"),
    only: str = "",
    quick: bool = False,
    full: bool = False,
    shipped: Path | None = None,
    seeds: int | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    device: Literal["cpu", "cuda"] = "cpu",
    overwrite: bool = False,
    lock: bool = True,
) -> None:
    """Redraw the paper's figures from real runs and judge its claims by them.

    The results are OUT/report.html (one self-contained page with the figures and claims),
    OUT/claims.md, OUT/figures (PNG and PDF) and OUT/tables (Parquet). Finished runs are kept in
    OUT/cache: a second call draws the figures without running anything again, and a call after an
    interruption continues where it stopped. The same seeds give the same tables on any number of
    processes or machines.

    Args:
        out: Directory for the results.
        only: Figures to make, such as F1,F7. The default is all of them.
        quick: Use smaller sizes and fewer seeds, for a first look in about a minute.
        full: Use larger sizes, and add figures and claims that the default run leaves out: an hour
            or more on two cores. With --quick, small versions of all of them are made.
        shipped: Directory with the tables of an earlier full run, such as docs/tables.
            Figures and claims that need them are made from there and marked as such.
        seeds: Number of random tasks at each point of every table. By default each table has its
            own number, mostly 50 for shares.
        jobs: Number of parallel processes. The default is the number of cores.
        scheduler: Address of a Dask scheduler to run on instead. Figures are still drawn on this
            machine.
        device: cuda also makes the tables that need an NVIDIA GPU (F21 to F24), in one process
            unless --jobs is given. It is best used with --only, since they take minutes.
        overwrite: Replace files in OUT that scb did not write. Finished runs are kept.
        lock: Keep other processes out of OUT. Some file systems cannot do so.
    """
    from scb.jobs.grid import MOST_SEEDS

    begin = perf_counter()
    require("scb reproduce", "matplotlib", "jinja2", "pyarrow")
    for name, value, most in (("seeds", seeds, MOST_SEEDS), ("jobs", jobs, MOST_JOBS)):
        if value is not None:
            integer(name, value, low=1, high=most)
    if device == "cuda" and scheduler is None:
        from scb.kernels.cuda.device import Gpu

        Gpu()  # says at once what is missing
        jobs = jobs or 1
    order = _order(only, quick, full, shipped, seeds, device)
    with opened(out, "making results", lock=lock, overwrite=overwrite) as folder:
        folder.claim("report.html", "claims.md", "cache/", "tables/", "figures/")
        made = _make(order, folder, jobs or os.cpu_count() or 1, scheduler)
        _report(order, made, folder, begin, quick)


@dataclass(frozen=True)
class _Order:
    """What is to be made: figures, and the tables that they need, from runs or from files of an
    earlier full run.
    """

    # Figures by name; all of them if empty
    asked: list[str]
    figures: list[str]
    experiments: "dict[str, Experiment]"  # by the names of their tables
    shipped: Path | None
    from_file: "dict[str, tuple[Table, dict[str, Any]]]"

    @cached_property
    def work(self) -> "dict[str, list[Job]]":
        """The jobs of each table."""
        return {name: experiment.jobs() for name, experiment in self.experiments.items()}

    @property
    def jobs(self) -> "Iterator[Job]":
        """The jobs of all tables; two tables may share some."""
        return chain.from_iterable(self.work.values())


class _Made(NamedTuple):
    """What came of it."""

    tables: "dict[str, Table]"
    seconds: dict[str, float]  # that the jobs of each table took, whenever that was
    fresh: int  # jobs that were run now


def _order(
    only: str, quick: bool, full: bool, shipped: Path | None, seeds: int | None, device: str = "cpu"
) -> _Order:
    """What is asked for; InputError for a figure that there is not, or that needs tables which are
    not there.
    """
    from scb.jobs.shipped import read_shipped
    from scb.jobs.shipped import shipped as names_shipped
    from scb.paper.registry import ELSEWHERE, FIGURES, TABLES, drawable, needed, tables

    asked = [name.strip().upper() for name in only.split(",") if name.strip()]
    for name in asked:
        if name not in FIGURES:
            raise InputError(f"only has {name!r}: the figures are {', '.join(FIGURES)}")
    if shipped is not None and not shipped.is_dir():
        raise InputError(f"shipped = {shipped}: there is no such directory")
    made = tables(quick, seeds, full, gpu=device == "cuda")
    given = (
        []
        if shipped is None
        else names_shipped(shipped, (name for name in (*TABLES, *ELSEWHERE) if name not in made))
    )
    possible = drawable(FIGURES, (*made, *given))
    for name in asked:
        if name not in possible:
            words, option = _what_makes(FIGURES[name].needs)
            options = dict.fromkeys((option, SHIPPED))  # once, where they are the same
            raise InputError(
                f"only has {name!r}, which needs tables {words}: add {', or '.join(options)}"
            )
    figures = [name for name in possible if name in asked or not asked]
    wanted = needed(figures)
    return _Order(
        asked=asked,
        figures=figures,
        experiments={name: one for name, one in made.items() if name in wanted},
        shipped=shipped,
        from_file={name: read_shipped(shipped, name) for name in given if name in wanted}
        if shipped
        else {},
    )


def _make(order: _Order, folder: Folder, workers: int, scheduler: str | None) -> _Made:
    """Run what has not been run, write the tables, draw the figures."""
    from scb.jobs.dask import connected
    from scb.jobs.pool import run_jobs
    from scb.jobs.processes import processes
    from scb.jobs.shipped import copy_shipped
    from scb.jobs.store import Cache
    from scb.jobs.warm_up import warm_up
    from scb.paper.registry import FIGURES
    from scb.paper.report import draw_figure, write_tables

    out = folder.path
    cache = Cache(out / "cache", folder.check)
    missing = cache.missing(order.jobs)
    for path in cache.damaged:
        terminal(stderr=True).print(f"{path} is damaged: it is made again")
    forecast = _forecast(missing, order.figures, workers)
    with ExitStack() as stack:
        shown = stack.enter_context(progress(forecast))
        here = stack.enter_context(processes(workers, shown.note))
        pool = here if scheduler is None else stack.enter_context(connected(scheduler, shown.note))
        if missing and scheduler is None:
            warm_up(here, missing, forecast)
        run_jobs(missing, pool, cache, lambda _, share: forecast.note("running", share))
        loaded = {name: cache.load(jobs_of_table) for name, jobs_of_table in order.work.items()}
        found = {name: table for name, (table, _) in loaded.items()}
        write_tables(folder.file("tables/"), found, order.experiments)
        if order.shipped is not None:
            copy_shipped(order.shipped, out / "tables", order.from_file)
        found |= {name: table for name, (table, _) in order.from_file.items()}
        forecast.note("drawing", 0.0)
        figures = folder.file("figures/")
        pictures = [
            (name, {need: found[need] for need in FIGURES[name].needs}, figures)
            for name in order.figures
        ]
        for number, _ in enumerate(here.each(draw_figure, pictures), start=1):
            forecast.note("drawing", number / len(pictures))
    return _Made(found, {name: seconds for name, (_, seconds) in loaded.items()}, len(missing))


def _report(order: _Order, made: _Made, folder: Folder, begin: float, quick: bool) -> None:
    """Judge the claims, write them and the report, and print what came of it; ``begin`` is when all
    began.
    """
    from scb.paper.claims_file import write_outcomes
    from scb.paper.registry import FIGURES, claims_for
    from scb.paper.report import judge, markdown_table, tally, terminal_table, write_report

    judged = judge(order.figures, made.tables)
    seen = {row.number for row in judged}
    left_out: dict[str, list[int]] = {}  # by the command that judges them
    for number, claim in claims_for(order.asked or FIGURES).items():
        if number not in seen:
            left_out.setdefault(f"scb reproduce {_what_makes(claim.needs)[1]}", []).append(number)
    facts = {
        "machine": machine(),
        "versions": versions(),
        "date": date.today().isoformat(),
        "quick": quick,
        "jobs": len({job.key for job in order.jobs}),
        "fresh": made.fresh,
        "wall": _duration(perf_counter() - begin),
        "compute": _duration(sum(made.seconds.values())),
        "tables": {
            name: (str(order.experiments[name]), seconds) for name, seconds in made.seconds.items()
        },
        "shipped": {name: facts for name, (_, facts) in order.from_file.items()},
        "left_out": left_out,
    }
    report = folder.file("report.html")
    write_report(report, judged, order.figures, folder.path / "figures", facts)
    if judged:
        write_atomically(folder.file("claims.md"), markdown_table(judged).encode())
        write_outcomes(
            folder.file("claims.csv").parent,
            judged,
            {name: facts[name] for name in ("machine", "versions", "date")},
        )
        Console().print(terminal_table(judged))
    console = terminal()
    if left_out:
        told = (_left_out(numbers, command) for command, numbers in left_out.items())
        console.print(f"{'; '.join(told)}; docs/paper/claims.md has them")
    for line in tally(judged):
        console.print(line)
    console.print(f"{made.fresh} new runs, {perf_counter() - begin:.0f} s; the report is {report}")


def _forecast(missing: "Sequence[Job]", figures: list[str], workers: int) -> "Forecast":
    """What is to be done, and its cost: starting processes, kernels unless they are compiled
    already, runs, figures.
    """
    from scb.jobs.forecast import Forecast, crowding
    from scb.jobs.warm_up import compiling, pieces_for

    costs = {
        "starting": START if missing else 0.0,
        "compiling kernels": compiling(pieces_for(missing), workers),
        "running": sum(job.cost for job in missing) / workers,
        "drawing": START + FIGURE * len(figures) / workers,
    }
    return Forecast(costs, crowding(workers))


def _what_makes(needs: "Iterable[str]") -> tuple[str, str]:
    """Of which kind tables are that the default run does not make, in words, and the option that
    brings them.
    """
    from scb.paper.registry import ELSEWHERE, TABLES

    names = set(needs)
    if names & ELSEWHERE.keys():
        return "that are made with PyTorch", SHIPPED
    return (
        ("of a GPU", "--device cuda")
        if any(TABLES[name].gpu for name in names)
        else ("of the full run", "--full")
    )


def _left_out(numbers: list[int], command: str) -> str:
    noun = "claim is" if len(numbers) == 1 else "claims are"
    return f"{len(numbers)} more {noun} judged by {command} ({', '.join(map(str, numbers))})"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
