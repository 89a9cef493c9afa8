"""Numbers in prose that come from results on disk: <!-- number wrong-signs; sum not right; T=5000, projector=mu -->3<!-- end -->.

``python benchmarks/pages.py`` writes the number between the two comments, so that a page is whole wherever it is read, and
tests/project/test_site.py compares it with the results.

The words are separated by semicolons: a table, what to take, which rows, and how to write it.

table   a file of docs/tables without its ending, a .jsonl file below benchmarks, or ``paper`` (what the registry has); or a claim,
        as ``claim:ID``, whose columns are the numbers that its judge gave, and whose rows are ensembles and cases.
        ``FILE.md # HEADING`` is the table under a heading of a file below benchmarks; of a cell, its first number, and as a
        column ``NAME ±`` the one after the sign.
what    count; sum, mean, median, min, max of a column, or q25, its quantile; ``not`` before a column of truth values; value, where
        all rows agree.
        ``a/b`` in the place of a column is one column over another, row by row; ``a.low`` the lower end of a number of a claim
rows    column=value, separated by commas (a value may have commas of its own); left out, all rows. Also <, <=, > and >=: then a
        count may be 0.
        ``case=`` takes all words that follow it, with their commas
how     a format of Python such as ,.0f or .2f; ``,`` unless given; .1p is 5.5·10⁻⁷. A number of a claim has those of
        ``scb.paper.numbers.Number``
"""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from claim_outcomes import read_outcomes
from scb.paper.numbers import Number
from scb.paper.report import Judged

ROOT = Path(__file__).parents[2]
REDUCTIONS = {"sum": np.sum, "mean": np.mean, "median": np.median, "min": np.min, "max": np.max}
COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
IN_PAGE = re.compile(r"<!-- number (.+?) -->(.*?)<!-- end -->")


def evaluate(words: str) -> str:
    """The number that the words ask for, as text; ValueError says what is wrong with them."""
    table, what, where, form = ([part.strip() for part in words.split(";")] + ["", "", ""])[:4]
    columns = paper_facts() if table == "paper" else read(table)
    chosen = np.ones(len(next(iter(columns.values()))), dtype=bool)
    where, case, label = where.partition("case=")
    if case:
        chosen &= matches(column_of(columns, "case", words), label.strip())
    bounds = []
    for condition in filter(None, (part.strip() for part in re.split(",(?=[^,=<>]*[=<>])", where))):
        name, sign, value = (part.strip() for part in re.split("(<=|>=|<|>|=)", condition, maxsplit=1))
        column = column_of(columns, name, words)
        if sign == "=":
            chosen &= matches(column, value)
        else:
            bounds.append((column, sign, float(value)))
    found = chosen.any()  # so that a value that no row has is a mistake, even in a count
    for column, sign, value in bounds:
        chosen[chosen] = COMPARISONS[sign](column[chosen].astype(float), value)
    if not found or not (chosen.any() or what == "count"):
        raise ValueError(f"{words!r}: no row is left")
    return written(reduce(columns, what, chosen, words), form)


def written(value: Any, form: str) -> str:
    """A number in a format; one that ends in p writes a power of ten."""
    if not form.endswith("p"):
        default = "" if isinstance(value, Number) else ","
        return re.sub("(?<! )%", " %", format(value, form or default))  # as on all pages
    digits, _, power = format(value, f"{form[:-1]}e").partition("e")
    return f"{digits}·10{str(int(power)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def reduce(columns: dict[str, np.ndarray], what: str, chosen: np.ndarray, words: str) -> Any:
    """One number from the chosen rows."""
    if what == "count":
        return int(chosen.sum())
    verb, _, name = what.partition(" ")
    negated = name.startswith("not ")
    picked = column_of(columns, name.removeprefix("not "), words)[chosen].tolist()
    if verb == "value":
        if len(set(picked)) != 1 or picked[0] is None:
            raise ValueError(f"{words!r}: {len(set(picked))} different values, where one is asked for")
        return picked[0]
    values = np.array(picked)
    if negated:
        values = ~values.astype(bool)
    if re.fullmatch(r"q\d\d", verb):
        return np.percentile(values, int(verb[1:])).item()
    if verb not in REDUCTIONS:
        raise ValueError(f"{words!r}: {verb!r} is none of count, value, {', '.join(REDUCTIONS)}, q25")
    return REDUCTIONS[verb](values).item()


def column_of(columns: dict[str, np.ndarray], name: str, words: str) -> np.ndarray:
    """A column by its name, one over another, or a part of each number in it."""
    whole, dot, part = name.partition(".")
    if dot and whole in columns:
        return np.array([getattr(number, part, None) for number in columns[whole]])
    above, bar, below = name.partition("/")
    if bar and name not in columns:
        pairs = zip(*(column_of(columns, part.strip(), words).tolist() for part in (above, below)), strict=True)
        return np.array([None if None in pair else pair[0] / pair[1] for pair in pairs], dtype=object)
    if name not in columns:
        raise ValueError(f"{words!r}: {name!r} is none of {', '.join(columns)}")
    return columns[name]


def matches(column: np.ndarray, value: str) -> np.ndarray:
    """Rows whose entry is the value, as text or as a number."""
    if column.dtype.kind in "if":
        return column == float(value)
    found = first_number(value) if " " not in value else value
    return np.array([entry == found or str(entry) == value for entry in column.tolist()])


@cache
def claims() -> dict[str, Judged]:
    """The outcomes of the claims, by their identifiers."""
    return {row.claim.id: row for row in read_outcomes(ROOT / "docs" / "paper")}


@cache
def read(table: str) -> dict[str, np.ndarray]:
    """Columns of a table on disk, or of a claim."""
    if table.startswith("claim:"):
        id = table.removeprefix("claim:")
        if id not in claims():
            raise ValueError(f"{table!r}: no claim of docs/paper/claims.csv has this identifier")
        return numbers_of(claims()[id])
    name, hash, heading = (part.strip() for part in table.partition("#"))
    if hash:
        return table_under(heading, (ROOT / "benchmarks" / name).read_text())
    if table.endswith(".jsonl"):
        lines = [json.loads(line) for line in (ROOT / "benchmarks" / table).read_text().splitlines()]
        rows = [{**line[0], **line[1]} if isinstance(line, list) else line for line in lines]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: np.array([row.get(name) for row in rows], dtype=object) for name in names}
    from scb.jobs.shipped import read_shipped

    return read_shipped(ROOT / "docs" / "tables", table)[0]


def table_under(heading: str, text: str) -> dict[str, np.ndarray]:
    """The columns of the first table under a heading of a Markdown page, or of the whole page if there is none."""
    lines = text.partition(f"# {heading}\n")[2].splitlines() if heading else text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("|")), None)
    if start is None:
        raise ValueError(f"no table under {heading!r}")
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    head, _, *body = rows
    columns: dict[str, np.ndarray] = {}
    for name, *cells in zip(head, *body, strict=True):
        columns[name] = np.array([first_number(cell) for cell in cells], dtype=object)
        if any("±" in cell for cell in cells):
            errors = [first_number(cell.partition("±")[2].strip()) for cell in cells]
            columns[f"{name} ±"] = np.array(errors, dtype=object)
    return columns


def first_number(cell: str) -> float | str:
    """The number that a cell begins with, or all of the cell."""
    try:
        return float(cell.split()[0].replace(",", ""))
    except (ValueError, IndexError):
        return cell


def numbers_of(row: Judged) -> dict[str, np.ndarray]:
    """The numbers of a claim: a row for each ensemble and case, a column for each name; None where a case lacks it."""
    parts = row.outcome.ensembles or {"": row.outcome}
    rows = [{"ensemble": name, "case": case, **numbers} for name, part in parts.items() for case, numbers in part.numbers.items()]
    columns = {name: np.empty(len(rows), dtype=object) for name in dict.fromkeys(name for row in rows for name in row)}
    for name, column in columns.items():
        for i, numbers in enumerate(rows):
            column[i] = numbers.get(name)
    return columns


@cache
def paper_facts() -> dict[str, np.ndarray]:
    """How much there is in the executable paper."""
    from scb.paper.registry import CLAIMS, FIGURES, tables

    jobs = sum(len(experiment.jobs()) for experiment in tables().values())
    ours = sum(claim.ours for claim in CLAIMS)
    facts = {"figures": len(FIGURES), "claims": len(CLAIMS), "ours": ours, "theirs": len(CLAIMS) - ours, "runs": jobs}
    verdicts = Counter(("ours" if row.claim.ours else "theirs", row.outcome.verdict.name) for row in claims().values())
    facts |= {f"{owner} {name}": count for (owner, name), count in verdicts.items()}
    return {name: np.array([value]) for name, value in facts.items()}


def filled(page: str) -> str:
    """A page with today's numbers."""
    return IN_PAGE.sub(lambda found: f"<!-- number {found[1]} -->{evaluate(found[1])}<!-- end -->", page)
