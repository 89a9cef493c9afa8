"""Outcomes of claims as a table, which is written next to the page of claims;
docs/_ext/claim_outcomes.py reads it for the pages of the site."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from scb.jobs.shipped import write_shipped
from scb.paper.numbers import Number
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
