"""How often a random task meets the paper's assumptions, and how strong its P is: four ensembles of ``scb.Task.random``.

    python benchmarks/ensembles.py [--jobs 2]

2,000 tasks for each ensemble and N, in blocks of 200. Results are kept in benchmarks/ensembles; the table is on
docs/paper/notation.md.
"""

from pathlib import Path
from typing import get_args

import numpy as np
from study import Case, Row, Section, group, main, table_of

import scb
from scb.task.task import Ensemble

KEPT = Path(__file__).parent / "ensembles"
SIZES = (3, 10, 20)
BLOCK = 200
BLOCKS = 10


def work(case: Case) -> Row:
    """K_P of each task of a block, and how many tasks meet (b) with C = 2 and (c)."""
    first = BLOCK * case["block"]
    tasks = [scb.Task.random(case["N"], 1000, 2, seed=seed, ensemble=case["ensemble"]) for seed in range(first, first + BLOCK)]
    reports = [task.check(C=2) for task in tasks]
    met = {letter: int(sum(report[letter].holds for report in reports)) for letter in "bc"}
    return {"K_P": [float(f"{task.K_P:.4g}") for task in tasks], **met}


def table(rows: list[tuple[Case, Row]]) -> list[str]:
    """An ensemble and a size in each row."""
    lines = []
    for (ensemble, N), blocks in group(rows, "ensemble", "N").items():
        strengths = np.concatenate([block["K_P"] for block in blocks])
        met = [sum(block[letter] for block in blocks) for letter in "bc"]
        lines.append([ensemble, N, f"{np.median(strengths):.3f}", *(f"{count:,} of {len(strengths):,}" for count in met)])
    return table_of("ensemble|N|median K_P|meet (b) with C = 2|meet (c), K_P ≥ ‖μ‖²", lines)


CASES = [{"ensemble": name, "N": N, "block": i} for i in range(BLOCKS) for name in get_args(Ensemble) for N in SIZES]
SECTIONS = {"assumptions": Section(CASES, work, {"ensembles": table})}

if __name__ == "__main__":
    main(__doc__, KEPT, "paper/notation.md", SECTIONS)
