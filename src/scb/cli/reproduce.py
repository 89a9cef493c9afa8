"""``scb reproduce`` redraws the figures of the paper and judges its claims."""

import os
from pathlib import Path
from time import perf_counter
from typing import Literal

from rich.console import Console

from scb.cli.progress import progress
from scb.cli.terminal import terminal
from scb.extras import require
from scb.folders import opened
from scb.inputs import integer
from scb.jobs.forecast import Forecast, crowding
from scb.provenance import machine


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
    OUT/claims.md, OUT/figures (PNG and PDF) and OUT/tables (Parquet; JSON without pyarrow).
    Finished runs are kept in OUT/cache: a second call draws the figures without running anything
    again, and a call after an interruption continues where it stopped. The same seeds produce the
    same tables on any number of processes or machines.

    Args:
        out: Directory for the results.
        only: Figures to make, such as F1,F7. The default is all of them.
        quick: Use smaller sizes and fewer seeds, for a first look in about a minute.
        full: Use larger sizes, and add figures and claims that the default run leaves out; this
            takes an hour or more on two cores. With --quick, small versions of all figures and
            claims are made.
        shipped: Directory with the tables of an earlier full run, such as docs/tables. Figures and
            claims that need these tables are made from them and marked as such.
        seeds: Number of random tasks at each point of every table. By default, each table has its
            own number, which is mostly 50 for tables of shares.
        jobs: Number of parallel processes. The default is the number of cores.
        scheduler: Address of a Dask scheduler to run on instead. Figures are still drawn on this
            machine.
        device: cuda also makes the tables that need an NVIDIA GPU (F21 to F24), in one process
            unless --jobs is given. This is best combined with --only, since these tables take
            minutes.
        overwrite: Replace files in OUT that scb did not write. Finished runs are kept.
        lock: Keep other processes out of OUT. Some file systems do not support this.
    """
    begin = perf_counter()
    require("scb reproduce", "matplotlib", "jinja2")
    from scb.paper.reproduction import choose_figures, make_figures
    from scb.paper.results import write_results

    for name, value in (("seeds", seeds), ("jobs", jobs)):
        if value is not None:
            integer(name, value, low=1, high=1_000_000 if name == "seeds" else 4096)
    if device == "cuda" and scheduler is None:
        machine(gpu=True)  # says at once what is missing
        jobs = jobs or 1
    count = jobs or os.cpu_count() or 1
    chosen = choose_figures(
        only, quick=quick, full=full, shipped=shipped, seeds=seeds, device=device
    )
    with opened(out, "making results", lock=lock, overwrite=overwrite) as folder:
        folder.claim("report.html", "claims.md", "cache/", "tables/", "figures/")
        forecast = Forecast(chosen.costs(count), crowding(count))
        with progress(forecast) as note:
            made = make_figures(chosen, folder, count, scheduler, forecast, note)
        results = write_results(chosen, made, folder, perf_counter() - begin)
    if results.table is not None:
        Console().print(results.table)
    console = terminal()
    for line in results.lines:
        console.print(line)
    seconds = f"{perf_counter() - begin:.0f} s"
    console.print(f"{made.fresh} new runs, {seconds}; the report is {results.report}")
