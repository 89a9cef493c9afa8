"""A study: cases that are run in processes of their own, one thread each, and kept one by one; and tables on pages.

Every case is a line of JSON in a file, written as soon as it is there, and what is in the file is not run again: a study that was
cut off goes on where it was. A table on a page stands between ``<!-- table NAME -->`` and ``<!-- end -->``.
"""

import argparse
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

Case = dict[str, Any]
Row = dict[str, Any]
Table = Callable[[list[tuple[Case, Row]]], list[str]]
DOCS = Path(__file__).parent.parent / "docs"


def read(path: Path) -> list[tuple[Case, Row]]:
    """What is there already; a line that was cut off is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            case, row = json.loads(line)
        except ValueError:
            continue
        found.append((case, row))
    return found


def rewrite(path: Path, rows: Sequence[tuple[Case, Row]]) -> None:
    """Put these cases with their rows into a file, in the place of all that is there."""
    path.write_text("".join(json.dumps([case, row]) + "\n" for case, row in rows))


def complete(path: Path, work: Callable[[Case], Row], cases: Sequence[Case], jobs: int, seconds: float = math.inf) -> None:
    """Run the cases that are missing in a file, and say how far it is; after so many seconds, begin no more of them."""
    done = {_key(case) for case, _ in read(path)}
    missing = [case for case in cases if _key(case) not in done]
    print(f"{len(missing)} of {len(cases)} cases are to be run", file=sys.stderr, flush=True)
    began = time.perf_counter()
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # the processes are spawned, and see it before they load anything
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool, path.open("a") as file:
        futures = {pool.submit(_in_time, work, case, time.time() + seconds): case for case in missing}
        for number, future in enumerate(as_completed(futures), start=1):
            try:
                row = future.result()
            except Exception as error:  # the others go on, and this one is run again the next time
                print(f"\n{futures[future]}: {error!r}", file=sys.stderr, flush=True)
                continue
            if row is None:
                continue
            print(json.dumps([futures[future], row]), file=file, flush=True)
            left = (time.perf_counter() - began) / number * (len(missing) - number) / 60
            print(f"\r{number} of {len(missing)}, about {left:.0f} minutes left ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def _in_time(work: Callable[[Case], Row], case: Case, deadline: float) -> Row | None:
    """The row of a case, if it begins before the deadline."""
    return work(case) if time.time() < deadline else None


def _key(case: Case) -> str:
    return json.dumps(case, sort_keys=True)


def keep(path: Path, what: str, rows: Sequence[Row]) -> None:
    """Put the rows of one kind (``what`` in each of them) into a file, a line of JSON each, in the place of earlier ones."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    others = [line for line in lines if json.loads(line).get("what") != what]
    path.parent.mkdir(exist_ok=True)
    text = "".join(f"{line}\n" for line in [*others, *(json.dumps(row, ensure_ascii=False) for row in rows)])
    path.write_text(text, encoding="utf-8")


def group(rows: list[tuple[Case, Row]], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by some fields of their cases, sorted."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for case, row in rows:
        found.setdefault(tuple(case[name] for name in names), []).append(row)
    return dict(sorted(found.items()))


def table_of(headings: str, lines: Sequence[Sequence[Any]]) -> list[str]:
    """A table in Markdown; headings with bars between them."""
    names = headings.split("|")
    rows = [" | ".join(str(cell) for cell in line) for line in lines]
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|", *(f"| {row} |" for row in rows)]


def fill(page: Path, name: str, table: Sequence[str]) -> None:
    """Put a table into its place on a page."""
    text = page.read_text(encoding="utf-8")
    place = re.compile(rf"(<!-- table {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not place.search(text):
        raise SystemExit(f"{page.name} has no place for the table {name!r}")
    page.write_text(place.sub(lambda found: found[1] + "\n".join(table) + "\n" + found[2], text), encoding="utf-8")


@dataclass(frozen=True)
class Section:
    """A part of a study: its cases, what is done for one of them, and the tables that its results make, by their names on the
    page. A section without tables is quoted number by number.
    """

    cases: Sequence[Case]
    work: Callable[[Case], Row]
    tables: Mapping[str, Table] = field(default_factory=dict)


def main(description: str | None, kept: Path, page: str, sections: Mapping[str, Section]) -> None:
    """The command of a study: run what is missing in ``kept``, a file for each section, and write the tables of a page."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(sections)}; all if none is named")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of each section, after which no further case is begun")
    parser.add_argument("--out", type=Path, default=kept, help="the folder of the results")
    parser.add_argument("--only", type=int, nargs="*", metavar="N", help="cases with so many tokens")
    parser.add_argument("--tables", action="store_true", help="run nothing; write the tables of what is there")
    asked = parser.parse_args()
    if unknown := set(asked.sections) - set(sections):
        parser.error(f"{unknown.pop()} is not a section: there are {', '.join(sections)}")
    asked.out.mkdir(exist_ok=True)
    for name in asked.sections or sections:
        section = sections[name]
        path = asked.out / f"{name}.jsonl"
        if not asked.tables:
            print(name, end=": ", file=sys.stderr, flush=True)
            cases = [case for case in section.cases if not asked.only or case["N"] in asked.only]
            complete(path, section.work, cases, asked.jobs, asked.seconds)
        if asked.out != kept:
            continue
        for heading, table in section.tables.items():
            fill(DOCS / page, heading, table(read(path)))


def rounded(**numbers: Any) -> Row:
    """Numbers with six digits, which is more than a study shows, so that its file stays small."""
    return {name: float(f"{value:.6g}") for name, value in numbers.items()}


def percent(share: float, form: str = ".1f") -> str:
    """A share as pages write it, 95.0 %, in one piece."""
    return f"{100 * share:{form}}\N{NO-BREAK SPACE}%"


def so_many(part: int, whole: int) -> str:
    """How many of how many, in one piece."""
    return f"{part} of {whole}".replace(" ", "\N{NO-BREAK SPACE}")


def wilson(right: int, of: int) -> str:
    """Wilson's 95 % interval of a share."""
    if of == 0:
        return ""
    p, z = right / of, 1.96
    middle = p + z * z / (2 * of)
    half = z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    scale = 1 + z * z / of
    return f"{max(0.0, 100 * (middle - half) / scale):.1f} to {percent((middle + half) / scale)}"
