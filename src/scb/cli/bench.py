"""``scb bench`` times our engine against the obvious alternatives."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Column, Table

from scb.cli.json_output import print_json
from scb.cli.terminal import terminal
from scb.files import prepare_file, write_atomically
from scb.inputs import InputError
from scb.provenance import machine, versions

HEADING = """\
# Benchmark: one training step

These tables were written by `make bench`. A whole step consists of drawing 64 fresh samples,
differentiating, preconditioning, soft-thresholding with λ = 1e-4, and projecting. All baselines
take turns, each in its own process. Memory is the peak of the baseline's process. In the last
table, our engine shares each core with a busy process, so it gets about half of the cores' time.
"""


def bench(
    out: Path = Path("benchmarks/results.md"),
    repeats: int = 9,
    sizes: tuple[str, ...] = ("3x5000", "10x5000", "20x5000", "100x100000", "500x100000"),
    baselines: Path | None = None,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Time one whole training step (B = 64, λ > 0) of our engine against NumPy, PyTorch and JAX.

    In a step, every baseline draws fresh samples, differentiates, preconditions, soft-thresholds
    and projects. The losses of the baselines are compared first. Then the baselines take turns,
    each in its own process, and the table shows medians, ratios and peak memory. The steps in
    PyTorch and JAX are in benchmarks/step_baselines.py of the source tree. These steps are included
    with --baselines benchmarks/step_baselines.py, if the two libraries are installed ("pip install
    '.[bench]'" in the clone installs JAX, but not PyTorch). At the end, our engine is timed with
    another busy process on each core.

    Args:
        out: Markdown file for the table.
        repeats: Number of timed rounds.
        sizes: Sizes N x T of the tasks.
        baselines: Python file with further baselines. The file is executed.
        overwrite: Replace a file even if it is not a table of this command.
        json: Print the results as one JSON object on stdout, and the human-readable text on stderr.
    """
    from scb.training.benchmark import OURS, compare

    if repeats < 1:
        raise InputError(f"repeats = {repeats}: it must be at least 1")
    if baselines is not None and not baselines.is_file():
        raise FileNotFoundError(f"{baselines} is not there, or not a file")
    console = terminal(stderr=json)
    results = []
    if not sizes:
        raise InputError("sizes is empty: it must have at least one, such as 3x5000")
    for size in sizes:
        if re.fullmatch("[0-9]+x[0-9]+", size) is None:
            raise InputError(f"sizes has {size!r}: it must look like 3x5000")
    prepare_file(out, HEADING.partition("\n")[0], overwrite)
    for size in sizes:
        N, T = map(int, size.split("x"))
        terminal(stderr=True).print(f"timing N = {N}, T = {T:,}: up to two minutes …")
        with console.status(f"N = {N}, T = {T:,}"):
            results.append(compare(N, T, repeats, baselines))
    names = list(results[0]["ms"])
    about = (
        f"Machine: {machine()}. "
        + ", ".join(f"{name} {number}" for name, number in versions().items())
        + "."
    )
    lines = [HEADING, about]
    step = "One step, B = 64, λ > 0: median ms (times slower than scb on 2 threads)"
    busy = "Beside a busy process on each core: median ms (times slower than 1 thread alone)"
    tables = [
        _table(step, names, results, "ms", OURS[1]),
        _table("Peak memory in MB", names, results, "mb", None),
        _table(busy, OURS, results, "busy_ms", OURS[0]),
    ]
    for shown in tables:
        console.print(shown)
        lines += ["", f"{shown.title}:", "", *_markdown(shown)]
    write_atomically(out, "\n".join([*lines, ""]).encode())
    console.print(f"wrote {out}")
    if json:
        about = {"machine": machine(), "versions": versions()}
        print_json("benchmark", {"file": out, **about, "sizes": results})


def _table(
    title: str, names: Sequence[str], results: Sequence[dict[str, Any]], what: str, unit: str | None
) -> Table:
    """A row for each size, a column for each baseline; in brackets, the ratio to the milliseconds
    of baseline ``unit`` alone.
    """
    table = Table(
        *(Column(name, justify="right") for name in ("N", "T", *names)),
        title=title,
        title_justify="left",
    )
    for row in results:
        if unit is None:
            cells = [f"{row[what][name]:,.0f}" for name in names]
        else:
            cells = [
                f"{_digits(row[what][name])} ({_digits(row[what][name] / row['ms'][unit])})"
                for name in names
            ]
        table.add_row(str(row["N"]), f"{row['T']:,}", *cells)
    return table


def _digits(x: float) -> str:
    """Three digits; a large number without a power of ten."""
    return f"{x:,.0f}" if x >= 1000 else f"{x:.3g}"


def _markdown(table: Table) -> list[str]:
    """The same table as lines of Markdown."""
    headings = [str(column.header) for column in table.columns]
    rows = zip(*(column.cells for column in table.columns), strict=True)
    return [
        "| " + " | ".join(map(str, row)) + " |"
        for row in (headings, ["---:"] * len(headings), *rows)
    ]
