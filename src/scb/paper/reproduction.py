"""The steps from a choice of figures to their pictures: run the missing jobs, write tables, and
draw."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from scb.folders import Folder
from scb.inputs import InputError
from scb.jobs.forecast import Forecast
from scb.jobs.job import Job
from scb.jobs.shipped import copy_shipped, read_shipped
from scb.jobs.shipped import shipped as names_shipped
from scb.jobs.store import Cache
from scb.jobs.table import Table
from scb.jobs.workers import Workers, workers
from scb.paper.entries import Experiment
from scb.paper.registry import ELSEWHERE, FIGURES, TABLES, drawable, needed, tables
from scb.paper.report import draw_figure, write_tables
from scb.training.warm_up import SECONDS, compile_kernels

# Seconds until a process has started and loaded what it needs; to draw a figure in all formats;
# and to load compiled kernels, as a share of compiling them
START = 1.7
FIGURE = 1.7
LOADING = 0.01
SHIPPED = "--shipped docs/tables"


@dataclass(frozen=True)
class Chosen:
    """The figures to make, and the tables that they need.

    Attributes
    ----------
    asked : list of str
        The figures that were requested by name; empty if all figures were requested.
    figures : list of str
        The figures that can be made.
    experiments : dict of Experiment
        The tables to compute, by name.
    quick : bool
        Whether the sizes are small.
    shipped : Path or None
        The directory with tables of an earlier full run.
    from_file : dict of tuple
        The tables that are read from ``shipped``, and facts about each.

    Examples
    --------
    >>> from scb.paper.reproduction import choose_figures
    >>> chosen = choose_figures("F12", quick=True)
    >>> chosen.figures, len(list(chosen.jobs)) > 1, list(chosen.work) == list(chosen.experiments)
    (['F12'], True, True)
    >>> list(chosen.costs(workers=2))
    ['starting', 'compiling kernels', 'running', 'drawing']
    """

    asked: list[str]
    figures: list[str]
    experiments: dict[str, Experiment]
    quick: bool
    shipped: Path | None
    from_file: dict[str, tuple[Table, dict[str, Any]]]

    @cached_property
    def work(self) -> dict[str, list[Job]]:
        """The jobs of each table."""
        return {name: experiment.jobs() for name, experiment in self.experiments.items()}

    @property
    def jobs(self) -> Iterable[Job]:
        """The jobs of all tables; two tables may share some."""
        return chain.from_iterable(self.work.values())

    def costs(self, workers: int) -> dict[str, float]:
        """Return the seconds that each phase takes if all jobs run on an otherwise idle machine.

        Parameters
        ----------
        workers : int
            The number of processes.

        Returns
        -------
        dict of float
        """
        return {
            "starting": START,
            "compiling kernels": max(SECONDS.values()) if workers > 1 else sum(SECONDS.values()),
            "running": sum(job.cost for job in self.jobs) / workers,
            "drawing": START + FIGURE * len(self.figures) / workers,
        }


class Made(NamedTuple):
    """The results of the runs.

    Attributes
    ----------
    tables : dict of dict of (rows,) arrays
        The tables by name.
    seconds : dict of float
        The seconds that the jobs for each table took, including jobs that ran earlier.
    fresh : int
        The number of jobs that were run during this call.

    Examples
    --------
    >>> from scb.paper.reproduction import Made
    >>> Made(tables={}, seconds={"rates": 2.0}, fresh=1).fresh
    1
    """

    tables: dict[str, Table]
    seconds: dict[str, float]
    fresh: int


def choose_figures(
    only: str = "",
    *,
    quick: bool = False,
    full: bool = False,
    shipped: Path | None = None,
    seeds: int | None = None,
    device: str = "cpu",
) -> Chosen:
    """Choose figures from the report, and find the tables that they need.

    Parameters
    ----------
    only : str, optional
        The figures, such as "F1,F7"; by default all figures are chosen.
    quick, full : bool, default False
        ``quick`` uses smaller sizes; ``full`` uses larger sizes and draws more figures.
    shipped : Path, optional
        A directory with tables of an earlier full run.
    seeds : int, optional
        The number of random tasks at each point.
    device : {"cpu", "cuda"}
        With "cuda", the tables that need a GPU are computed as well.

    Returns
    -------
    Chosen

    Examples
    --------
    >>> from scb.paper.reproduction import choose_figures
    >>> choose_figures("F1,F7").figures
    ['F1', 'F7']
    """
    asked = [name.strip().upper() for name in only.split(",") if name.strip()]
    for name in asked:
        if name not in FIGURES:
            raise InputError(f"only has {name!r}: the figures are {', '.join(FIGURES)}")
    if shipped is not None and not shipped.is_dir():
        raise InputError(f"shipped = {shipped}: there is no such directory")
    made = tables(quick, seeds, full, gpu=device == "cuda")
    elsewhere = [name for name in (*TABLES, *ELSEWHERE) if name not in made]
    given = names_shipped(shipped, elsewhere) if shipped else []
    possible = drawable(FIGURES, (*made, *given))
    for name in asked:
        if name not in possible:
            words, option = what_makes(FIGURES[name].needs)
            options = dict.fromkeys((option, SHIPPED))  # once, where they are the same
            raise InputError(
                f"only has {name!r}, which needs tables {words}: add {', or '.join(options)}"
            )
    figures = [name for name in possible if name in asked or not asked]
    wanted = needed(figures)
    from_file = {name: read_shipped(shipped, name) for name in given if name in wanted and shipped}
    experiments = {name: one for name, one in made.items() if name in wanted}
    return Chosen(asked, figures, experiments, quick, shipped, from_file)


def make_figures(
    chosen: Chosen,
    folder: Folder,
    count: int = 1,
    scheduler: str | None = None,
    forecast: Forecast | None = None,
    note: Any = print,
) -> Made:
    """Run the jobs that have not been run, write the tables, and draw the figures.

    Parameters
    ----------
    chosen : Chosen
        The figures to draw, and their tables.
    folder : Folder
        The folder for the results; finished runs are kept in its subfolder cache/.
    count : int, default 1
        The number of processes on this machine.
    scheduler : str, optional
        The address of a Dask scheduler on which to run the jobs instead; figures are drawn on this
        machine.
    forecast : Forecast, optional
        A forecast that is updated with the progress of the phases of ``Chosen.costs``.
    note : callable, default print
        A function that is called with each line for the user.

    Returns
    -------
    Made

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.folders import opened
    >>> from scb.paper.reproduction import choose_figures, make_figures
    >>> chosen = choose_figures("F12", quick=True, seeds=1)
    >>> with opened(Path("results"), "making results") as folder:
    ...     made = make_figures(chosen, folder)
    >>> sorted(path.name for path in Path("results/figures").glob("*.png")), made.fresh > 0
    (['F12-narrow.png', 'F12.png'], True)
    """
    forecast = forecast or Forecast(chosen.costs(count))
    cache = Cache(folder.path / "cache", folder.check)
    missing = cache.missing(chosen.jobs)
    for path in cache.damaged:
        note(f"{path} is damaged: it is made again")
    forecast.expect("running", sum(job.cost for job in missing) / count)
    with workers(count, scheduler, note) as ready:
        if missing and scheduler is None:
            _warm_up(ready, forecast)
        forecast.note("running", 0.0)
        ready.run(missing, cache, lambda _, share: forecast.note("running", share))
        loaded = {name: cache.load(jobs) for name, jobs in chosen.work.items()}
        found = {name: table for name, (table, _) in loaded.items()}
        write_tables(folder.file("tables/"), found, chosen.experiments)
        if chosen.shipped is not None:
            copy_shipped(chosen.shipped, folder.path / "tables", chosen.from_file)
        found |= {name: table for name, (table, _) in chosen.from_file.items()}
        _draw(ready, chosen.figures, found, folder.file("figures/"), forecast)
    return Made(found, {name: seconds for name, (_, seconds) in loaded.items()}, len(missing))


def _warm_up(ready: Workers, forecast: Forecast) -> None:
    """Compile each family of kernels in one process; the others load them."""
    forecast.note("starting", 0.0)
    first, *families = SECONDS
    (cold,) = ready.each(compile_kernels, [(first,)])
    if not cold:
        forecast.expect("compiling kernels", LOADING * sum(SECONDS.values()))
    forecast.note("compiling kernels", 0.0)
    for number, _ in enumerate(ready.each(compile_kernels, [(name,) for name in families]), 1):
        forecast.note("compiling kernels", number / len(families))


def _draw(
    ready: Workers,
    figures: Sequence[str],
    found: Mapping[str, Table],
    folder: Path,
    forecast: Forecast,
) -> None:
    forecast.note("drawing", 0.0)
    calls = [
        (name, {need: found[need] for need in FIGURES[name].needs}, folder) for name in figures
    ]
    for number, _ in enumerate(ready.each(draw_figure, calls), start=1):
        forecast.note("drawing", number / len(calls))


def what_makes(needs: Iterable[str]) -> tuple[str, str]:
    """What the tables beyond those of the default run need, and the option that computes them."""
    names = set(needs)
    if names & ELSEWHERE.keys():
        return "that are made with PyTorch", SHIPPED
    if any(TABLES[name].gpu for name in names):
        return "of a GPU", "--device cuda"
    return "of the full run", "--full"
