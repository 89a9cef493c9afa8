"""The last step of ``scb reproduce``, which judges the claims and writes them and the report."""

from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from scb.files import write_atomically
from scb.folders import Folder
from scb.paper.claims_file import write_outcomes
from scb.paper.registry import FIGURES, claims_for
from scb.paper.report import judge, markdown_table, tally, terminal_table, write_report
from scb.paper.reproduction import Chosen, Made, what_makes
from scb.provenance import machine, versions


class Results(NamedTuple):
    """The files that were written, and the lines to print.

    Attributes
    ----------
    report : Path
        The page with all figures and claims.
    table : object or None
        The claims as a table for the terminal.
    lines : list of str
        Lines that say how many claims hold and which claims were left out.

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.paper.results import Results
    >>> Results(Path("report.html"), table=None, lines=[]).report.name
    'report.html'
    """

    report: Path
    table: Any
    lines: list[str]


def write_results(chosen: Chosen, made: Made, folder: Folder, seconds: float = 0.0) -> Results:
    """Judge the claims, and write both the claims and the report.

    Parameters
    ----------
    chosen : Chosen
        The chosen figures and tables.
    made : Made
        The tables; the figures are already drawn.
    folder : Folder
        The folder for the results.
    seconds : float, default 0
        The time taken so far, in seconds, for the report.

    Returns
    -------
    Results

    Examples
    --------
    >>> from dataclasses import replace
    >>> from pathlib import Path
    >>> from scb.folders import opened
    >>> from scb.paper.reproduction import Made, choose_figures
    >>> from scb.paper.results import write_results
    >>> nothing = replace(choose_figures("F12", quick=True), figures=[])
    >>> with opened(Path("results"), "making results") as folder:
    ...     write_results(nothing, Made({}, {}, 0), folder).report.name
    'report.html'
    """
    judged = judge(chosen.figures, made.tables)
    left_out = _left_out(chosen, {row.number for row in judged})
    about = {"machine": machine(), "versions": versions(), "date": date.today().isoformat()}
    facts = about | {
        "quick": chosen.quick,
        "jobs": len({job.key for job in chosen.jobs}),
        "fresh": made.fresh,
        "wall": _duration(seconds),
        "compute": _duration(sum(made.seconds.values())),
        "tables": {
            name: (str(chosen.experiments[name]), taken) for name, taken in made.seconds.items()
        },
        "shipped": {name: facts for name, (_, facts) in chosen.from_file.items()},
        "left_out": left_out,
    }
    report = folder.file("report.html")
    write_report(report, judged, chosen.figures, folder.path / "figures", facts)
    if judged:
        write_atomically(folder.file("claims.md"), markdown_table(judged).encode())
        write_outcomes(folder.file("claims.csv").parent, judged, about)
    lines = [_more(numbers, command) for command, numbers in left_out.items()]
    if lines:
        lines = [f"{'; '.join(lines)}; docs/paper/claims.md has them"]
    return Results(report, terminal_table(judged) if judged else None, [*lines, *tally(judged)])


def _left_out(chosen: Chosen, seen: set[int]) -> dict[str, list[int]]:
    """The numbers of claims that were not judged, by the command that judges them."""
    found: dict[str, list[int]] = {}
    for number, claim in claims_for(chosen.asked or FIGURES).items():
        if number not in seen:
            found.setdefault(f"scb reproduce {what_makes(claim.needs)[1]}", []).append(number)
    return found


def _more(numbers: list[int], command: str) -> str:
    noun = "claim is" if len(numbers) == 1 else "claims are"
    return f"{len(numbers)} more {noun} judged by {command} ({', '.join(map(str, numbers))})"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
