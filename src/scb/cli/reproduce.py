"""``scb reproduce``: the main job."""

from __future__ import annotations

from pathlib import Path


def reproduce(
    out: Path = Path("results"),
    only: str = "",
    quick: bool = False,
    full: bool = False,
    seeds: int | None = None,
    jobs: int | None = None,
) -> None:
    """Redraw the paper's figures from real runs and judge its claims by them.

    Makes OUT/report.html (figures beside claims, one file to send around), OUT/claims.md, OUT/figures (PNG and PDF) and OUT/tables
    (Parquet).
    Finished runs are kept in OUT/cache: a second call redraws without running anything again, and a call after an
    interruption goes on where that one stopped. The same seeds give the same tables, whatever the number of processes.

    Args:
        out: Directory for the results.
        only: Figures to make, such as F1,F7; all of them unless given.
        quick: Smaller sizes and fewer seeds: half a minute for a first look.
        full: Larger sizes too, where they take a minute or more: F10 up to T = 500,000.
        seeds: Random tasks for each thing that is random; 10 or more unless given.
        jobs: Processes side by side; as many as there are cores unless given.
    """
    import os
    from time import perf_counter

    from rich.console import Console

    from scb.jobs.runner import run_jobs
    from scb.jobs.store import Store
    from scb.paper.registry import datasets, needed

    figures = _chosen(only)
    if quick and full:
        raise ValueError("quick and full exclude each other")
    for name, value in (("seeds", seeds), ("jobs", jobs)):
        if value is not None and value < 1:
            raise ValueError(f"{name} = {value}: it must be at least 1")
    begin, console, store, workers = perf_counter(), Console(), Store(out / "cache"), jobs or os.cpu_count() or 1
    configs = {name: config for name, config in datasets(quick, seeds, full).items() if name in needed(figures)}
    work = [job for config in configs.values() for job in config.jobs()]
    with _bar(console) as bar:
        task = bar.add_task("running", total=None)
        fresh = run_jobs(work, store, workers, lambda d, t: bar.update(task, completed=d, total=t or 1))
        bar.update(task, completed=1, total=1)
        loaded = {name: store.load(config) for name, config in configs.items()}
        tables = {name: table for name, (table, _) in loaded.items()}
        _write_tables(out / "tables", tables, configs)
        images = _draw(out / "figures", figures, out / "tables", workers, bar)
    judged = _judge(figures, tables)
    _report(out, judged, figures, images, configs, loaded, fresh, len(set(work)), quick, perf_counter() - begin)
    if judged:
        from scb.files import write_atomically
        from scb.paper.report import markdown_table, terminal_table

        write_atomically(out / "claims.md", markdown_table(judged).encode())
        console.print(terminal_table(judged))
    console.print(
        f"{fresh} new runs, {perf_counter() - begin:.0f} s; the report is {out / 'report.html'}", highlight=False
    )


def _chosen(only: str) -> list[str]:
    from scb.paper.registry import FIGURES

    names = [name.strip().upper() for name in only.split(",") if name.strip()]
    for name in names:
        if name not in FIGURES:
            raise ValueError(f"only has {name!r}: the figures are {', '.join(FIGURES)}")
    return [name for name in FIGURES if name in names or not names]


def _bar(console):
    from rich.progress import Progress, TimeElapsedColumn, TimeRemainingColumn

    return Progress(*Progress.get_default_columns()[:3], TimeRemainingColumn(), TimeElapsedColumn(), console=console)


def _write_tables(directory: Path, tables: dict, configs: dict) -> None:
    from dataclasses import asdict

    from scb.jobs.store import write_table
    from scb.provenance import versions

    for name, table in tables.items():
        facts = {"table": name, "config": asdict(configs[name]), "versions": versions()}
        write_table(_table(directory, name), table, facts)


def _draw(directory: Path, figures: list[str], tables: Path, workers: int, bar) -> dict[str, Path]:
    from scb.jobs.runner import side_by_side

    task = bar.add_task("drawing", total=len(figures))
    for _ in side_by_side(_draw_one, [(name, tables, directory / name) for name in figures], workers):
        bar.advance(task)
    return {name: directory / f"{name}.png" for name in figures}


def _draw_one(name: str, tables: Path, path: Path) -> None:
    from scb.jobs.store import read_table
    from scb.paper.figures.style import save
    from scb.paper.registry import FIGURES

    figure = FIGURES[name]
    save(figure.draw({need: read_table(_table(tables, need))[0] for need in figure.needs}), path)


def _table(directory: Path, name: str) -> Path:
    return directory / f"{name.replace(' ', '-')}.parquet"


def _judge(figures: list[str], tables: dict) -> list:
    from scb.paper.registry import CLAIMS
    from scb.paper.report import Judged

    numbered = enumerate(CLAIMS, start=1)
    return [
        Judged(number, claim, claim.judge(*(tables[need] for need in claim.needs)))
        for number, claim in numbered
        if claim.figure in figures
    ]


def _report(out: Path, judged, figures, images, configs, loaded, fresh, jobs, quick, seconds) -> None:
    from datetime import date

    from scb.paper.registry import FIGURES
    from scb.paper.report import write_report
    from scb.provenance import machine, versions

    facts = {
        "machine": machine(),
        "versions": versions(),
        "date": date.today().isoformat(),
        "quick": quick,
        "jobs": jobs,
        "fresh": fresh,
        "wall": _duration(seconds),
        "compute": _duration(sum(spent for _, spent in loaded.values())),
        "tables": {
            name: (str(configs[name]).partition("(")[2].rstrip(")"), spent) for name, (_, spent) in loaded.items()
        },
    }
    write_report(out / "report.html", judged, {name: FIGURES[name] for name in figures}, images, facts)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
