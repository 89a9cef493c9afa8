"""``scb bench``: our engine against what one would otherwise write."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scb.provenance import machine, versions

if TYPE_CHECKING:
    from rich.console import Console

CONTENDERS = Path("benchmarks/contenders.py")


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
    and project; their losses are compared first.

    Args:
        out: Markdown file for the table.
        repeats: Timed rounds.
        sizes: N x T of the tasks.
        contenders: Python file with further contenders; benchmarks/contenders.py, if it is there, unless given.
    """
    from rich.console import Console

    from scb.training.benchmark import compare

    if repeats < 1:
        raise ValueError(f"repeats = {repeats}: it must be at least 1")
    if contenders is None:
        contenders = CONTENDERS if CONTENDERS.exists() else None
    elif not contenders.is_file():
        raise FileNotFoundError(f"{contenders} is not there, or not a file")
    console = Console()
    results = []
    for size in sizes:
        N, T = _size(size)
        with console.status(f"N = {N}, T = {T:,}"):
            results.append(compare(N, T, repeats, contenders))
    _show(console, results)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(_markdown(results))
    console.print(f"wrote {out}", highlight=False)


def _size(text: str) -> tuple[int, int]:
    N, separator, T = text.partition("x")
    if not (separator and N.isdigit() and T.isdigit()):
        raise ValueError(f"sizes has {text!r}: it must look like 3x5000")
    return int(N), int(T)


def _show(console: "Console", results: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(title="one step, B = 64, λ > 0: median ms (times slower than scb on 2 threads)", title_justify="left")
    names = list(results[0]["ms"])
    for name in ("N", "T", *names):
        table.add_column(name, justify="right")
    for row in results:
        best = row["ms"]["scb, 2 threads"]
        table.add_row(str(row["N"]), f"{row['T']:,}", *(f"{ms:.3g} ({ms / best:.3g})" for ms in row["ms"].values()))
    console.print(table)


def _markdown(results: list[dict[str, Any]]) -> str:
    names = list(results[0]["ms"])
    lines = [
        "# Benchmark: one training step",
        "",
        "Made by `make bench`. One whole step: draw 64 fresh samples, differentiate, precondition, soft-threshold with λ = 1e-4,",
        "project. All contenders take turns, each in a process of its own; medians in milliseconds, and how many times slower",
        "than our engine on 2 threads. Memory is the peak of the contender's process.",
        "",
        f"Machine: {machine()}. " + ", ".join(f"{name} {number}" for name, number in versions().items()) + ".",
        "",
        "| N | T | " + " | ".join(names) + " |",
        "|" + "---:|" * (len(names) + 2),
    ]
    for row in results:
        best = row["ms"]["scb, 2 threads"]
        cells = (f"{ms:.3g} ms, {ms / best:.3g} × ({row['mb'][name]:,.0f} MB)" for name, ms in row["ms"].items())
        lines.append(f"| {row['N']} | {row['T']:,} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])
