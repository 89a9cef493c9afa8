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

MARKS = {Verdict.HOLDS: "✓", Verdict.CHANGED: "~", Verdict.SOME: "±", Verdict.FAILS: "✗"}
COLOURS = {Verdict.HOLDS: "green", Verdict.CHANGED: "yellow", Verdict.SOME: "yellow", Verdict.FAILS: "red"}


@dataclass(frozen=True)
class Judged:
    """A claim with its number, its outcome, and the settings of the tables that it was judged by."""

    number: int
    claim: Claim
    outcome: Outcome
    settings: str

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
    found = []
    for number, claim in claims_for(figures).items():
        if all(need in tables for need in claim.needs):
            given = [tables[name] for name in claim.uses if name in tables]  # those that may be missing come last
            found.append(Judged(number, claim, outcome=claim.judge(*given), settings=claim.settings(*given)))
    return found


def by_author(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """The claims of the paper, and ours, under a heading each; without the heading that has none."""
    groups = {
        "The paper says": [row for row in judged if not row.claim.ours],
        "We say": [row for row in judged if row.claim.ours],
    }
    return {heading: rows for heading, rows in groups.items() if rows}


def summary(judged: Sequence[Judged]) -> str:
    """How many claims hold, and how."""
    counts = Counter(row.outcome.verdict for row in judged)
    noun = "claim" if len(judged) == 1 else "claims"
    return f"{len(judged)} {noun}: " + ", ".join(f"{counts[v]} {_plural(v, counts[v])}" for v in Verdict if counts[v])


def _plural(verdict: Verdict, count: int) -> str:
    text = verdict.value
    return text if count == 1 else text.replace("holds", "hold").replace("does not", "do not")


def terminal_table(judged: Sequence[Judged]) -> Any:
    """The claims for 80 columns: those of the paper, and ours."""
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Column, Table

    tables = []
    for heading, rows in by_author(judged).items():
        columns = (Column("", no_wrap=True), Column(heading, ratio=4), Column("measured", ratio=5))
        table = Table(*columns, title=summary(rows), title_justify="left", show_lines=True)
        for row in rows:
            measured = escape(row.outcome.measured) + (f"\n[dim]{escape(row.note)}[/dim]" if row.note else "")
            colour = COLOURS[row.outcome.verdict]
            says = f"{escape(row.claim.says)}\n[dim]{escape(row.claim.where)}[/dim]"
            table.add_row(f"{row.number}\n[{colour}]{row.mark}[/{colour}]", says, measured)
        tables.append(table)
    return Group(*tables)


HOW_TO_READ = """\
# Claims, beside what was measured

This page is made by `scb reproduce --shipped docs/tables` (`make reproduce`), which writes it to `results/claims.md`; `results/report.html` has the
claims beside the figures. Each of them has

- the sentence as the paper prints it, where it stands, and the condition that it names. Claims without a quote are ours, and stand in a table of their own;
- the **criterion**, in numbers, by which a function of the tables decides (`src/scb/paper/claims`); `tests/test_claims.py` feeds it data for and against it;
- the **settings**: sizes, how many random tasks at each point, and the ensemble that they are drawn from;
- what was **measured**: medians with quartiles in brackets, shares with Wilson's 95 % interval in parentheses;
- a **control** where one is possible: the same measurement where the cause that the claim names is taken away;
- the **verdict**. A claim *holds* if the criterion is met as printed, and *holds with a change* if it is met after the change in parentheses. Where ensembles
  differ it *holds in some ensembles*, which are named; else it *does not hold*.

The paper takes "a randomly sampled transition matrix" without saying from which law, so its experiments are judged in four ensembles of `scb.Task.random`:

| ensemble | law of P | K_P at N = 3, 10, 20 (median) | meets (b) with C = 2 | meets (c), K_P ≥ ‖μ‖² |
|---|---|---|---|---|
| strong | made to meet (a) to (c): K_P ≥ 1.4 ‖μ‖² | 0.48, 0.18, 0.13 | always | always |
| dirichlet | columns uniform on the simplex | 0.085, 0.071, 0.042 | 60, 75, 94 % | 0.3, 0.7, 1 % |
| uniform | uniform entries, columns divided by their sums | 0.050, 0.029, 0.016 | 81, 96, 100 % | 0 of 2,000; 0; 0 |
| softmax | columns are the softmax of standard normal numbers | 0.074, 0.082, 0.055 | 67, 66, 87 % | 1 of 2,000; 7 %; 64 % |

Assumption (d), T ≥ (NQ)¹⁰, is met by none of the tasks unless it is said. "The sign is settled" means that a run goes over to its mirror image where A is skewed
to the left, which the paper does not do: without it, noise makes many runs learn the mirror image of the truth ([Algorithm 1 in practice](algorithm.md)).
"""


def markdown_table(judged: Sequence[Judged]) -> str:
    """The claims as a page: how to read it, a table of verdicts, then what was said, looked at and found, claim by claim."""
    lines = [HOW_TO_READ]
    for heading, rows in by_author(judged).items():
        lines += [f"## {heading}", "", f"{summary(rows)}.", "", "| | | |", "|---:|---|---|"]
        for row in rows:
            cells = (f"[{row.number}](#claim-{row.number})", row.claim.says, f"{row.mark} {row.outcome.verdict.value}")
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        for row in rows:
            lines += ["", *_section(row)]
        lines.append("")
    return "\n".join(lines)


def _section(row: Judged) -> list[str]:
    """One claim with all that belongs to it, as Markdown."""
    claim, outcome = row.claim, row.outcome
    lines = [f'### <a id="claim-{row.number}"></a>{row.number}. {claim.says}', ""]
    if not claim.ours:
        lines += [f"> {claim.quote}", ">", f"> *{claim.where}; condition: {claim.condition}*", ""]
    else:
        lines += [f"*{claim.where}*", ""]
    facts = {
        "Criterion": claim.criterion,
        "Settings": row.settings,
        "Measured": outcome.measured,
        "Control": outcome.control,
        "Verdict": f"{row.mark} {outcome.verdict.value}" + (f" ({row.note})" if row.note else ""),
    }
    for name, text in facts.items():
        parts = text.split("\n")
        if len(parts) > 1:
            lines += [f"- **{name}**", *(f"  - {part}" for part in parts)]
        elif text:
            lines.append(f"- **{name}** {text}")
    return lines


def write_report(path: Path, judged: Sequence[Judged], figures: Sequence[str], images: Path, facts: Mapping[str, Any]) -> None:
    """One self-contained page; ``images`` is the directory of the drawn figures."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("scb.paper", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["maths"] = _maths
    environment.filters["by_author"] = by_author
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
    safe = re.sub(r"T\^([+−-]?[0-9.]+)", r"T<sup>\1</sup>", safe)
    return Markup(safe.replace("\n", "<br>"))
