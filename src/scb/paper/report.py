"""From tables to what people look at: figures, verdicts, and the report, one HTML file that needs nothing else."""

import base64
import html
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from scb.files import write_atomically
from scb.jobs.table import Table, write_table
from scb.paper.claims.claim import Claim, Outcome, Verdict
from scb.paper.registry import FIGURES, Experiment, claims_for
from scb.paper.shipped import write_shipped
from scb.provenance import machine, versions

MARKS = {Verdict.HOLDS: "✓", Verdict.CHANGED: "~", Verdict.FAILS: "✗"}
COLOURS = {Verdict.HOLDS: "green", Verdict.CHANGED: "yellow", Verdict.FAILS: "red"}


@dataclass(frozen=True)
class Judged:
    """A claim with its number and its outcome."""

    number: int
    claim: Claim
    outcome: Outcome

    @property
    def mark(self) -> str:
        """One character for the verdict."""
        return MARKS[self.outcome.verdict]

    @property
    def note(self) -> str:
        """What it takes, or what happens instead; nothing where the claim holds."""
        return "" if self.outcome.verdict is Verdict.HOLDS else self.outcome.note


def write_tables(directory: Path, tables: Mapping[str, Table], experiments: Mapping[str, Experiment]) -> None:
    """One Parquet file a table, with its settings, for whoever wants to look further; and text beside it, to be shipped, if it
    takes the full run."""
    for name, table in tables.items():
        facts = {"table": name, "config": experiments[name].settings, "versions": versions()}
        write_table(directory / f"{name.replace(' ', '-')}.parquet", table, facts)
        if experiments[name].full_only:
            write_shipped(directory, name, table, full_run_facts(experiments[name]))


def full_run_facts(experiment: Experiment) -> dict[str, Any]:
    """How a table of the full run was made, for those who get the table alone."""
    return {
        "command": "scb reproduce --full",
        "settings": str(experiment),
        "machine": machine(),
        "made": date.today().isoformat(),
        "versions": versions(),
    }


def draw_figure(name: str, tables: Mapping[str, Table], directory: Path) -> None:
    """Draw a figure of the paper, as PNG and PDF."""
    from scb.paper.figures.style import save

    save(FIGURES[name].draw(tables), directory / name)


def judge(figures: Sequence[str], tables: Mapping[str, Table]) -> list[Judged]:
    """The claims beside these figures, judged by the tables, but for those that need one that is not there."""
    return [
        Judged(number, claim, claim.judge(*(tables[need] for need in claim.needs)))
        for number, claim in claims_for(figures).items()
        if all(need in tables for need in claim.needs)
    ]


def summary(judged: Sequence[Judged]) -> str:
    """How many claims hold, and how."""
    counts = Counter(row.outcome.verdict for row in judged)
    noun = "claim" if len(judged) == 1 else "claims"
    return f"{len(judged)} {noun}: " + ", ".join(f"{counts[v]} {_plural(v, counts[v])}" for v in Verdict)


def _plural(verdict: Verdict, count: int) -> str:
    text = verdict.value
    return text if count == 1 else text.replace("holds", "hold").replace("does not", "do not")


def terminal_table(judged: Sequence[Judged]) -> Any:
    """The claims for 80 columns."""
    from rich.table import Column, Table

    columns = (Column("", no_wrap=True), Column("the paper says", ratio=4), Column("measured", ratio=5))
    table = Table(*columns, title=summary(judged), title_justify="left", show_lines=True)
    for row in judged:
        measured = row.outcome.measured + (f"\n[dim]{row.note}[/dim]" if row.note else "")
        colour = COLOURS[row.outcome.verdict]
        says = f"{row.claim.says}\n[dim]{row.claim.where}[/dim]"
        table.add_row(f"{row.number}\n[{colour}]{row.mark}[/{colour}]", says, measured)
    return table


def markdown_table(judged: Sequence[Judged]) -> str:
    """The claims for a README."""
    lines = [f"{summary(judged)}.", "", "| | the paper says | measured | |", "|---:|---|---|---|"]
    for row in judged:
        says = f"{row.claim.says} *{row.claim.where}*"
        measured = row.outcome.measured + (f" ({row.note})" if row.note else "")
        cells = (str(row.number), says, measured, f"{row.mark} {row.outcome.verdict.value}")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, ""])


def write_report(path: Path, judged: Sequence[Judged], figures: Sequence[str], images: Path, facts: Mapping[str, Any]) -> None:
    """One self-contained page; ``images`` is the directory of the drawn figures."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("scb.paper", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["maths"] = _maths
    pictures = {name: base64.b64encode((images / f"{name}.png").read_bytes()).decode() for name in figures}
    page = environment.get_template("report.html.j2").render(
        judged=judged,
        figures={name: FIGURES[name] for name in figures},
        pictures=pictures,
        counts=Counter(row.outcome.verdict for row in judged),
        verdicts=list(Verdict),
        plural=_plural,
        marks=MARKS,
        **facts,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page.encode())


def _maths(text: str) -> Any:
    """Subscripts: α_V, ‖·‖_μ, e₁; and exponents after T^."""
    from markupsafe import Markup

    safe = html.escape(text)
    safe = re.sub(r"([αΔηhKV∇‖μ])_([A-Za-zμ]+)", r"\1<sub>\2</sub>", safe)
    return Markup(re.sub(r"T\^([+−-]?[0-9.]+)", r"T<sup>\1</sup>", safe))
