"""``scb bench``: our engine against what one would otherwise write."""

import re
from pathlib import Path

from rich.table import Column, Table

from scb.cli.terminal import terminal
from scb.files import write_atomically
from scb.inputs import InputError
from scb.provenance import machine, versions

CONTENDERS = Path("benchmarks/contenders.py")
HEADING = """\
# Benchmark: one training step

Made by `make bench`. One whole step: draw 64 fresh samples, differentiate, precondition, soft-threshold with λ = 1e-4,
project. All contenders take turns, each in a process of its own; medians in milliseconds, and how many times slower
than our engine on 2 threads. Memory is the peak of the contender's process. In the second table our engine has a busy process
beside it on each core, so that it gets about half of their time.
"""


def bench(
    out: Path = Path("benchmarks/results.md"),
    repeats: int = 9,
    sizes: tuple[str, ...] = ("3x5000", "10x5000", "20x5000", "100x100000", "500x100000"),
    contenders: Path | None = None,
) -> None:
    """Time one whole training step (B = 64, λ > 0) of our engine against NumPy, PyTorch and JAX.

    All contenders take turns, each in a process of its own; the table shows medians, ratios and peak memory. PyTorch and JAX are
    written in benchmarks/contenders.py of the sources, and take part where that file is and they are installed ('pip install
    scb[bench]' brings JAX; PyTorch is up to you). All contenders draw fresh samples, differentiate, precondition, soft-threshold
    and project; their losses are compared first. Last, our engine is timed beside a busy process on each core.

    Args:
        out: Markdown file for the table.
        repeats: Timed rounds.
        sizes: N x T of the tasks.
        contenders: Python file with further contenders; benchmarks/contenders.py, if it is there, unless given.
    """
    from scb.training.benchmark import OURS, compare

    if repeats < 1:
        raise InputError(f"repeats = {repeats}: it must be at least 1")
    if contenders is None:
        contenders = CONTENDERS if CONTENDERS.exists() else None
    elif not contenders.is_file():
        raise FileNotFoundError(f"{contenders} is not there, or not a file")
    console = terminal()
    results = []
    for size in sizes:
        if (found := re.fullmatch("([0-9]+)x([0-9]+)", size)) is None:
            raise InputError(f"sizes has {size!r}: it must look like 3x5000")
        N, T = map(int, found.groups())
        with console.status(f"N = {N}, T = {T:,}"):
            results.append(compare(N, T, repeats, contenders))
    names = list(results[0]["ms"])
    title = "one step, B = 64, λ > 0: median ms (times slower than scb on 2 threads)"
    table = Table(*(Column(name, justify="right") for name in ("N", "T", *names)), title=title, title_justify="left")
    about = f"Machine: {machine()}. " + ", ".join(f"{name} {number}" for name, number in versions().items()) + "."
    lines = [HEADING, about, "", "| N | T | " + " | ".join(names) + " |", "|" + "---:|" * (len(names) + 2)]
    for row in results:
        best = row["ms"]["scb, 2 threads"]
        table.add_row(str(row["N"]), f"{row['T']:,}", *(f"{ms:.3g} ({ms / best:.3g})" for ms in row["ms"].values()))
        cells = (f"{ms:.3g} ms, {ms / best:.3g} × ({row['mb'][name]:,.0f} MB)" for name, ms in row["ms"].items())
        lines.append(f"| {row['N']} | {row['T']:,} | " + " | ".join(cells) + " |")
    console.print(table)
    title = "our engine beside a busy process on each core: median ms (times slower than 1 thread alone)"
    table = Table(*(Column(name, justify="right") for name in ("N", "T", *OURS)), title=title, title_justify="left")
    lines += ["", "| N | T | " + " | ".join(f"{name}, busy" for name in OURS) + " |", "|" + "---:|" * (len(OURS) + 2)]
    for row in results:
        alone = row["ms"][OURS[0]]
        cells = [f"{ms:.3g} ({ms / alone:.3g})" for ms in row["busy_ms"].values()]
        table.add_row(str(row["N"]), f"{row['T']:,}", *cells)
        lines.append(f"| {row['N']} | {row['T']:,} | " + " | ".join(cells) + " |")
    console.print(table)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, "\n".join([*lines, ""]).encode())
    console.print(f"wrote {out}")
