"""Numbers in prose that come from results on disk: {number}`wrong-signs | sum not right | T=5000, projector=mu`.

In a page of the site this is a role, and the number is put there when the page is built. README is not built: benchmarks/readme.py
writes its numbers.

The words are separated by bars: a table, what to take, which rows, and how to write it.

table   a file of docs/tables without its ending, a .jsonl file below benchmarks, or ``paper`` (what the registry has). ``claim`` is
        different: its number follows, and a regular expression whose group is what to quote of that claim on the page of claims.
        So is a .txt or .md file below benchmarks: a reduction follows, and a regular expression whose group is a number
what    count; sum, mean, median, min, max of a column, or q25, its quantile; ``not`` before a column of truth values; value, where
        all rows agree.
        ``a/b`` in the place of a column is one column over another, row by row
rows    column=value, separated by commas; left out, all rows. Also <, <=, > and >=: then a count may be 0
how     a format of Python such as ,.0f or .2f; ``,`` unless given; .1p is 5.5·10⁻⁷
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
REDUCTIONS = {"sum": np.sum, "mean": np.mean, "median": np.median, "min": np.min, "max": np.max}
COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
IN_PAGE = re.compile(r"\{number\}`([^`]+)`")


def evaluate(words: str) -> str:
    """The number that the words ask for, as text; ValueError says what is wrong with them."""
    table, what, where, form = ([part.strip() for part in words.split("|")] + ["", "", ""])[:4]
    if table == "claim":
        return quote(what, where, words)
    if table.endswith((".txt", ".md")):
        return from_text(table, what, where, form, words)
    columns = paper_facts() if table == "paper" else read(table)
    chosen = np.ones(len(next(iter(columns.values()))), dtype=bool)
    bounds = []
    for condition in filter(None, where.split(",")):
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
        return format(value, form or ",").replace("%", " %")  # as on all pages
    digits, _, power = format(value, f"{form[:-1]}e").partition("e")
    return f"{digits}·10{str(int(power)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def from_text(name: str, what: str, pattern: str, form: str, words: str) -> str:
    """One number from all that a pattern finds in a text that a benchmark has written."""
    found = re.findall(pattern, (ROOT / "benchmarks" / name).read_text())
    if not found:
        raise ValueError(f"{words!r}: not in {name}")
    if what == "value" and not form and len(set(found)) == 1:
        return found[0]
    columns = {"": np.array([float(text.replace(",", "")) for text in found])}
    return written(reduce(columns, what, np.ones(len(found), dtype=bool), words), form)


def quote(number: str, pattern: str, words: str) -> str:
    """What the pattern finds in a claim on the page of claims."""
    found = re.search(pattern, claim_sections().get(int(number), ""))
    if found is None:
        raise ValueError(f"{words!r}: not in claim {number}")
    return found[1]


@cache
def claim_sections() -> dict[int, str]:
    """What paper/claims.md has under each claim, by the claim's number."""
    text = (ROOT / "docs" / "paper" / "claims.md").read_text()
    parts = re.split(r'^### <a id="claim-(\d+)"></a>', text, flags=re.M)
    return {int(number): body.split("\n## ")[0] for number, body in zip(parts[1::2], parts[2::2], strict=True)}


def reduce(columns: dict[str, np.ndarray], what: str, chosen: np.ndarray, words: str) -> Any:
    """One number from the chosen rows."""
    if what == "count":
        return int(chosen.sum())
    verb, _, name = what.partition(" ")
    negated = name.startswith("not ")
    values = np.array(column_of(columns, name.removeprefix("not "), words)[chosen].tolist())
    if negated:
        values = ~values.astype(bool)
    if verb == "value":
        if len(set(values.tolist())) != 1:
            raise ValueError(f"{words!r}: {len(set(values.tolist()))} different values")
        return values.tolist()[0]
    if re.fullmatch(r"q\d\d", verb):
        return np.percentile(values, int(verb[1:])).item()
    if verb not in REDUCTIONS:
        raise ValueError(f"{words!r}: {verb!r} is none of count, value, {', '.join(REDUCTIONS)}, q25")
    return REDUCTIONS[verb](values).item()


def column_of(columns: dict[str, np.ndarray], name: str, words: str) -> np.ndarray:
    """A column by its name, or one over another."""
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
    return np.array([str(entry) == value for entry in column.tolist()])


@cache
def read(table: str) -> dict[str, np.ndarray]:
    """Columns of a table on disk."""
    if table.endswith(".jsonl"):
        lines = [json.loads(line) for line in (ROOT / "benchmarks" / table).read_text().splitlines()]
        rows = [{**line[0], **line[1]} if isinstance(line, list) else line for line in lines]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: np.array([row.get(name) for row in rows], dtype=object) for name in names}
    from scb.paper.shipped import read_shipped

    return read_shipped(ROOT / "docs" / "tables", table)[0]


@cache
def paper_facts() -> dict[str, np.ndarray]:
    """How much there is in the executable paper."""
    from scb.paper.registry import CLAIMS, FIGURES, tables

    jobs = sum(len(experiment.jobs()) for experiment in tables().values())
    ours = sum(claim.ours for claim in CLAIMS)
    facts = {"figures": len(FIGURES), "claims": len(CLAIMS), "ours": ours, "theirs": len(CLAIMS) - ours, "runs": jobs}
    return {name: np.array([value]) for name, value in facts.items()}


def in_cells(source: str) -> str:
    """A page in which the bars of roles in rows of tables are escaped: they would end a cell otherwise."""
    rows = re.compile(r"^\|.*\{number\}.*$", re.M)
    return rows.sub(lambda row: IN_PAGE.sub(lambda role: re.sub(r"(?<!\\)\|", r"\|", role[0]), row[0]), source)


def setup(app) -> dict:
    """Called by Sphinx."""
    from docutils import nodes

    def number(name, rawtext, text, lineno, inliner, options=None, content=None):
        try:
            return [nodes.inline("", evaluate(text), classes=["number"])], []
        except (ValueError, KeyError, OSError) as error:
            return [], [inliner.reporter.error(f"number: {error}", line=lineno)]

    def read_source(app, name, content):
        content[0] = in_cells(content[0])

    app.add_role("number", number)
    app.connect("source-read", read_source)
    return {"version": "1", "parallel_read_safe": True}
