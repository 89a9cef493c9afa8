"""Outcomes of claims as a table, which is written next to the page of claims and supplies the
numbers for pages of the site."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scb.jobs.shipped import read_shipped, write_shipped
from scb.jobs.table import Table
from scb.paper.numbers import Number
from scb.paper.outcome import Answer, Outcome
from scb.paper.registry import CLAIMS
from scb.paper.report import Judged

COLUMNS = ("claim", "ensemble", "case", "name", *Number._fields, "text")
"""A row is a number of a claim, or a word: an answer, its verdict, its settings, or one that a
judge gave."""
ANSWERS = ("printed", "changed")
"""The answers of an outcome. A number may have the same name; only an answer has a text."""


def write_outcomes(directory: Path, judged: Iterable[Judged], facts: dict[str, Any]) -> Path:
    """Write the outcomes as DIRECTORY/claims.csv, with facts about how they were computed."""
    rows = [row for one in judged for row in _rows(one)]
    table = dict(zip(COLUMNS, map(np.array, zip(*rows, strict=True)), strict=True))
    return write_shipped(directory, "claims", table, facts)


def _rows(judged: Judged) -> Iterator[tuple[Any, ...]]:
    """The rows of one claim."""
    for ensemble, outcome in {"": judged.outcome, **judged.outcome.ensembles}.items():
        for case, numbers in outcome.numbers.items():
            for name, number in numbers.items():
                yield from _row(judged, ensemble, case, name, number)
        for name in ANSWERS:
            yield from _row(judged, ensemble, "", name, getattr(outcome, name).name)
    yield from _row(judged, "", "", "verdict", judged.outcome.told)
    yield from _row(judged, "", "", "settings", judged.settings)


def _row(
    judged: Judged, ensemble: str, case: str, name: str, value: Any
) -> Iterator[tuple[Any, ...]]:
    """The row of a number or a word; none for what is missing."""
    place = (judged.claim.id, ensemble, case, name)
    if isinstance(value, str):
        yield (*place, np.nan, np.nan, np.nan, 0, value)
    elif value is not None:
        number = value if isinstance(value, Number) else Number(float(value))
        yield (*place, *number, "")


def read_outcomes(directory: Path) -> list[Judged]:
    """The claims that ``write_outcomes`` wrote, in the order of today's claims."""
    table, _ = read_shipped(directory, "claims")
    found: dict[str, dict[str, _Read]] = {}
    for claim, ensemble, case, name, *numbers, text in zip(*_columns(table), strict=True):
        read = found.setdefault(claim, {}).setdefault(ensemble, _Read({}, {}))
        if text and name in ANSWERS:
            read.answers[name] = Answer[text]
        else:
            read.cases.setdefault(case, {})[name] = text or Number(*numbers)
    judged = []
    for number, claim in enumerate(CLAIMS, start=1):
        if claim.id in found:
            outcomes = {name: _outcome(read) for name, read in found[claim.id].items()}
            whole = outcomes.pop("")
            settings = str(whole.numbers[""]["settings"])
            outcome = Outcome(whole.printed, whole.changed, whole.numbers, outcomes)
            judged.append(Judged(number, claim, outcome, settings))
    return judged


def _columns(table: Table) -> list[list[Any]]:
    return [table[name].tolist() for name in COLUMNS]


class _Read(NamedTuple):
    """The rows of a claim in one ensemble: its answers, and for each case its numbers and words."""

    answers: dict[str, Answer]
    cases: dict[str, dict[str, Any]]


def _outcome(read: _Read) -> Outcome:
    """The outcome in one ensemble; the verdict follows from the answers."""
    read.cases.setdefault("", {}).pop("verdict", None)
    printed, changed = (read.answers[name] for name in ANSWERS)
    return Outcome(printed, changed, read.cases)
