"""The presentation of tables: figures, verdicts, and the report, a self-contained HTML file."""

import base64
import html
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from scb.files import write_atomically
from scb.jobs.shipped import write_shipped
from scb.jobs.table import Table
from scb.jobs.table_file import write_table
from scb.paper.claims.claim import Claim
from scb.paper.entries import Experiment
from scb.paper.forest import forest
from scb.paper.frozen import frozen
from scb.paper.outcome import Outcome, Verdict
from scb.paper.registry import FIGURES, NOT_COVERED, claims_for
from scb.picture import strip_picture
from scb.provenance import machine, versions

MARKS = dict(zip(Verdict, "✓±~?✗", strict=True))
COLOURS = dict(zip(Verdict, ("green", "yellow", "yellow", "blue", "red"), strict=True))


@dataclass(frozen=True)
class Judged:
    """A claim with its number, its outcome, and the settings of the tables by which it was
    judged."""

    number: int
    claim: Claim
    outcome: Outcome
    settings: str

    @property
    def told(self) -> str:
        """The verdict as a phrase; our own claims hold as stated, since nobody has printed them."""
        return _stated(self.outcome.told) if self.claim.ours else self.outcome.told

    @property
    def mark(self) -> str:
        """One character for the verdict."""
        return MARKS[self.outcome.verdict]

    @property
    def measured(self) -> str:
        """A description of the measured numbers, with a line for each ensemble or case."""
        return "\n".join(self.claim.measured(self.outcome))

    @property
    def control(self) -> str:
        """A description of the numbers of the control; empty if there is no control."""
        return "\n".join(self.claim.controlled(self.outcome))

    @property
    def frozen(self) -> str:
        """When the criterion was frozen, and whether its tables had been seen."""
        found = frozen().get(self.claim.id)
        return found.told if found else "not yet"

    @property
    def note(self) -> str:
        """Which change the claim needs, or what happens instead; empty if the claim holds."""
        note = self.claim.note(self.outcome)
        return _stated(note) if self.claim.ours else note


def write_tables(
    directory: Path, tables: Mapping[str, Table], experiments: Mapping[str, Experiment]
) -> None:
    """Write a Parquet file for each table, with its settings, for further analysis. If the table
    requires the full run or a GPU, also write it as text, to be shipped.
    """
    for name, table in tables.items():
        facts = {"table": name, "config": experiments[name].settings, "versions": versions()}
        write_table(directory / name.replace(" ", "-"), table, facts)
        if experiments[name].shipped:
            write_shipped(directory, name, table, full_run_facts(experiments[name]))


def full_run_facts(experiment: Experiment, made_on: str | None = None) -> dict[str, Any]:
    """How a table of the full run was computed, for readers of the table alone. The machine is this
    one unless another is named."""
    return {
        "command": experiment.command,
        "settings": str(experiment),
        "machine": made_on or machine(gpu=experiment.gpu),
        "made": date.today().isoformat(),
        "versions": versions(),
    }


def draw_figure(
    name: str,
    tables: Mapping[str, Table],
    directory: Path,
    formats: tuple[str, ...] = ("png", "pdf"),
) -> None:
    """Draw the figure NAME of the report in its wide version, with a file for each format, and for
    narrow screens as NAME-narrow.png."""
    from scb.drawing import narrow, save

    save(FIGURES[name].draw(tables), directory / name, formats)
    with narrow():
        save(FIGURES[name].draw(tables), directory / f"{name}-narrow", ("png",))


def judge(figures: Sequence[str], tables: Mapping[str, Table]) -> list[Judged]:
    """Judge the claims that belong to these figures by the tables, except claims that need a
    missing table."""
    found = []
    for number, claim in claims_for(figures).items():
        if all(need in tables for need in claim.needs):
            given = {name.replace(" ", "_"): tables[name] for name in claim.uses if name in tables}
            settings = claim.settings(*given.values())
            found.append(Judged(number, claim, outcome=claim(**given), settings=settings))
    return found


def by_author(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """The claims of the paper and our own, each group under a heading; a heading without claims is
    left out.
    """
    groups = {
        "The paper says": [row for row in judged if not row.claim.ours],
        "We say": [row for row in judged if row.claim.ours],
    }
    return {heading: rows for heading, rows in groups.items() if rows}


def summary(judged: Sequence[Judged]) -> str:
    """One line on how many claims have each verdict."""
    counts = Counter(row.outcome.verdict for row in judged)
    noun = "claim" if len(judged) == 1 else "claims"
    line = f"{len(judged)} {noun}: " + ", ".join(
        f"{counts[v]} {_plural(v, counts[v])}" for v in Verdict if counts[v]
    )
    return _stated(line) if all(row.claim.ours for row in judged) else line


def tally(judged: Sequence[Judged]) -> list[str]:
    """One line on the paper's claims and one on ours, leaving out a line without claims."""
    owners = {"The paper says": "The paper's", "We say": "Our own"}
    return [f"{owners[heading]} {summary(rows)}" for heading, rows in by_author(judged).items()]


def _stated(text: str) -> str:
    """Words on a claim of the paper, as words on a claim of ours."""
    return text.replace("as printed", "as stated")


def _plural(verdict: Verdict, count: int) -> str:
    """The verdict on so many claims."""
    text = {Verdict.SOME: "holds in some ensembles", Verdict.UNSURE: "cannot be decided"}.get(
        verdict, verdict.value
    )
    return text if count == 1 else text.replace("holds", "hold").replace("does not", "do not")


def terminal_table(judged: Sequence[Judged]) -> Any:
    """The claims of the paper and our own, as tables for 80 columns."""
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Column, Table

    tables = []
    for heading, rows in by_author(judged).items():
        columns = (Column("", no_wrap=True), Column(heading, ratio=4), Column("measured", ratio=5))
        table = Table(*columns, title=summary(rows), title_justify="left", show_lines=True)
        for row in rows:
            measured = escape(row.measured) + (
                f"\n[dim]{escape(row.note)}[/dim]" if row.note else ""
            )
            colour = COLOURS[row.outcome.verdict]
            says = f"{escape(row.claim.says)}\n[dim]{escape(row.claim.where)}[/dim]"
            table.add_row(f"{row.number}\n[{colour}]{row.mark}[/{colour}]", says, measured)
        tables.append(table)
    return Group(*tables)


def markdown_table(judged: Sequence[Judged], details: str = "report.html#{id}") -> str:
    """A page with one line for each claim and its verdict, and with notes on how to read a verdict.

    ``details`` is a template for the link of a claim's number, given its figure and id. The page of
    a report also contains the sentence, the criterion and the measurements of each claim.
    """
    environment = _templates(autoescape=False)
    return environment.get_template("claims.md.j2").render(
        groups=by_author(judged),
        tally=tally(judged),
        not_covered=NOT_COVERED,
        details=details,
        in_full=details.startswith("report"),
    )


def markdown_section(row: Judged) -> str:
    """The section of one claim."""
    return _templates(autoescape=False).get_template("claim.md.j2").render(row=row)


def write_report(
    path: Path,
    judged: Sequence[Judged],
    figures: Sequence[str],
    images: Path,
    facts: Mapping[str, Any],
) -> None:
    """Write one self-contained page; only its links to the data need the files in tables/ next to
    it.

    ``images`` is the directory of the drawn figures.
    """
    from markupsafe import Markup

    environment = _templates(autoescape=True)
    environment.filters["maths"] = _maths
    environment.filters["by_author"] = by_author
    environment.filters["forest"] = forest
    # Our own SVG, in which nothing of a user's stands.
    environment.filters["drawn"] = Markup
    pictures = {
        name: [_embedded(images / f"{name}{kind}.png") for kind in ("", "-narrow")]
        for name in figures
    }
    page = environment.get_template("report.html.j2").render(
        judged=judged,
        strip=strip_picture(),
        figures={name: FIGURES[name] for name in figures},
        pictures=pictures,
        data={
            need: _data_file(path.parent, need) for name in figures for need in FIGURES[name].needs
        },
        counts={
            heading: Counter(row.outcome.verdict for row in rows)
            for heading, rows in by_author(judged).items()
        },
        tally=tally(judged),
        verdicts=list(Verdict),
        plural=_plural,
        marks=MARKS,
        **facts,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page.encode())


def _embedded(picture: Path) -> str:
    """A picture as text, in 256 colours: a quarter of the size, and a plot has no more."""
    from PIL import Image

    small = io.BytesIO()
    with Image.open(picture) as image:
        few = image.convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE)
        few.save(small, "png", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


def _data_file(directory: Path, table: str) -> str | None:
    """Where a table lies, as seen from the report in this directory; Parquet if it was made here,
    text if it came with docs."""
    stem = table.replace(" ", "-")
    places = [f"tables/{stem}{ending}" for ending in (".parquet", ".json", ".csv")]
    return next((place for place in places if (directory / place).exists()), None)


def _templates(autoescape: bool) -> Any:
    """The pages of this folder, to be filled."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    folder = PackageLoader("scb.paper", ".")
    how = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    # Pages of Markdown are not escaped: they are made of the project's own text alone.
    return Environment(loader=folder, autoescape=autoescape, **how)  # noqa: S701


def _maths(text: str) -> Any:
    """Subscripts: α_V, ‖·‖_μ, e₁; and exponents after T^."""
    from markupsafe import Markup

    safe = html.escape(text)
    safe = re.sub(r"([αΔηhKV∇‖μ])_([A-Za-zμ]+)", r"\1<sub>\2</sub>", safe)
    safe = re.sub(r"T\^([+−-]?[0-9.]+)", r"T<sup>\1</sup>", safe)
    # The text was escaped above, and only tags of our own were added since.
    return Markup(safe.replace("\n", "<br>"))  # noqa: S704
