"""``scb reproduce``: the main job."""

import os
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from time import perf_counter

from rich.progress import Progress, TimeElapsedColumn, TimeRemainingColumn

from scb.files import write_atomically
from scb.provenance import machine, versions


def reproduce(
    out: Path = Path("results"),
    only: str = "",
    quick: bool = False,
    full: bool = False,
    seeds: int | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> None:
    """Redraw the paper's figures from real runs and judge its claims by them.

    Makes OUT/report.html (figures beside claims, one file to send around), OUT/claims.md, OUT/figures (PNG and PDF) and OUT/tables
    (Parquet).
    Finished runs are kept in OUT/cache: a second call redraws without running anything again, and a call after an
    interruption goes on where that one stopped. The same seeds give the same tables, whatever runs them.

    Args:
        out: Directory for the results.
        only: Figures to make, such as F1,F7; all of them unless given.
        quick: Smaller sizes and fewer seeds: half a minute for a first look.
        full: Larger sizes too, where they take a minute or more: F10 up to T = 500,000.
        seeds: Random tasks for each thing that is random; 10 or more unless given.
        jobs: Processes side by side; as many as there are cores unless given.
        scheduler: Address of a Dask scheduler to run on instead; figures are drawn here all the same.
    """
    from scb.jobs.dask import connected
    from scb.jobs.pool import processes, run_jobs
    from scb.jobs.store import Cache
    from scb.paper.registry import FIGURES, needed, tables
    from scb.paper.report import draw_figure, judge, markdown_table, terminal_table, write_report, write_tables

    begin = perf_counter()
    asked = [name.strip().upper() for name in only.split(",") if name.strip()]
    for name in asked:
        if name not in FIGURES:
            raise ValueError(f"only has {name!r}: the figures are {', '.join(FIGURES)}")
    figures = [name for name in FIGURES if name in asked or not asked]
    if quick and full:
        raise ValueError("quick and full exclude each other")
    for name, value in (("seeds", seeds), ("jobs", jobs)):
        if value is not None and value < 1:
            raise ValueError(f"{name} = {value}: it must be at least 1")
    experiments = {name: one for name, one in tables(quick, seeds, full).items() if name in needed(figures)}
    work = {name: experiment.jobs() for name, experiment in experiments.items()}
    cache = Cache(out / "cache")
    missing = cache.missing(job for jobs_of_table in work.values() for job in jobs_of_table)
    with ExitStack() as stack:
        columns = (*Progress.get_default_columns()[:3], TimeRemainingColumn(), TimeElapsedColumn())
        bar = stack.enter_context(Progress(*columns))
        here = stack.enter_context(processes(jobs or os.cpu_count() or 1))
        pool = here if scheduler is None else stack.enter_context(connected(scheduler, bar.console.print))
        running = bar.add_task("running", total=1)
        run_jobs(missing, pool, cache, lambda _, share: bar.update(running, completed=share))
        bar.update(running, completed=1)
        loaded = {name: cache.load(jobs_of_table) for name, jobs_of_table in work.items()}
        found = {name: table for name, (table, _) in loaded.items()}
        write_tables(out / "tables", found, experiments)
        drawing = bar.add_task("drawing", total=len(figures))
        pictures = {name: {need: found[need] for need in FIGURES[name].needs} for name in figures}
        for _ in here.each(draw_figure, [(name, drawn, out / "figures") for name, drawn in pictures.items()]):
            bar.advance(drawing)
    judged = judge(figures, found)
    facts = {
        "machine": machine(),
        "versions": versions(),
        "date": date.today().isoformat(),
        "quick": quick,
        "jobs": len({job.key for jobs_of_table in work.values() for job in jobs_of_table}),
        "fresh": len(missing),
        "wall": _duration(perf_counter() - begin),
        "compute": _duration(sum(seconds for _, seconds in loaded.values())),
        "tables": {name: (str(experiments[name]), seconds) for name, (_, seconds) in loaded.items()},
    }
    report = out / "report.html"
    write_report(report, judged, figures, out / "figures", facts)
    if judged:
        write_atomically(out / "claims.md", markdown_table(judged).encode())
        bar.console.print(terminal_table(judged))
    bar.console.print(f"{len(missing)} new runs, {perf_counter() - begin:.0f} s; the report is {report}", highlight=False)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
