"""The scoreboard: run what is missing; write the table and the picture from kept rows.

    python benchmarks/scoreboard [DATASET ...] [--estimators NAME ...]
        [--again NAME ...] [--jobs 2] [--seconds 200] [--tables]

A row is a case of a data set with an estimator, kept in rows/ with the version that made it, and
never run twice; ``--again`` runs those of an estimator anew, after it has changed. Data sets whose
files are missing are left out (`make scoreboard-data`).
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.append(str(Path(__file__).parent.parent))

from study import DOCS, complete, fill, read, rewrite

from chains import MissingData
from frame import HERE, cases, estimators, modules, work
from picture import draw
from report import tables


def main() -> None:
    """Run what is asked for and missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "datasets", nargs="*", help=f"of {', '.join(modules('datasets'))}; all if none is named"
    )
    parser.add_argument(
        "--estimators", nargs="*", default=list(estimators()), help="all if none is named"
    )
    parser.add_argument(
        "--again", nargs="*", default=[], help="estimators whose rows are made anew"
    )
    parser.add_argument("--only", default="", help="a word of the cases to run, such as alice29")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin nothing after so many seconds"
    )
    parser.add_argument("--rows", type=Path, default=HERE / "rows", help="where rows are kept")
    parser.add_argument("--tables", action="store_true", help="run nothing")
    asked = parser.parse_args()
    asked.rows.mkdir(exist_ok=True)
    began = time.perf_counter()
    for name in [] if asked.tables else asked.datasets or modules("datasets"):
        path = asked.rows / f"{name}.jsonl"
        if asked.again:
            rewrite(
                path,
                [(case, row) for case, row in read(path) if case["estimator"] not in asked.again],
            )
        wanted = [case for case in cases([name], asked.estimators) if asked.only in str(case)]
        try:
            modules("datasets")[name].load(**modules("datasets")[name].CASES[0])
        except MissingData as missing:
            print(f"{name}: left out, {missing}", file=sys.stderr)
            continue
        print(name, end=": ", file=sys.stderr, flush=True)
        complete(path, work, wanted, asked.jobs, asked.seconds - (time.perf_counter() - began))
    if asked.rows == HERE / "rows":
        for name, table in tables().items():
            fill(DOCS / "explanation" / "scoreboard.md", name, table)
        draw()


if __name__ == "__main__":
    main()
