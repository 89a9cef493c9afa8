"""The three sweeps that come with the package: run them, and keep what docs/explanation/sweeps.md says of them.

    python benchmarks/phases.py [support lambda symbols] [--jobs 2]

``scb sweep NAME`` does the work, in results/NAME; what is there is not run again. A cell of the grid, and where half of the runs
succeed, are rows of benchmarks/phases/NAME.jsonl; the figures go to docs/images.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
from study import keep

from scb.jobs.table import Table, pick, where, wilson
from scb.provenance import machine

KEPT = Path(__file__).with_suffix("")
IMAGES = Path(__file__).parents[1] / "docs" / "images"
AXES = {"support": ("T", "samples"), "symbols": ("N", "samples"), "lambda": ("lam", "batch_size")}
"""Along the second axis more and more runs succeed, at each value of the first."""
CLOSE = 0.05  # ‖A* − Q‖_μ that counts as success after normalisation
Row = dict[str, Any]


def crossing(xs: np.ndarray, rates: np.ndarray) -> float | None:
    """Where a rate that rises along x is one half, on a line in log x between the two cells; None where it never is."""
    above = np.flatnonzero(rates >= 0.5)
    if not above.size or above[0] == 0:
        return None
    i = above[0]
    share = (0.5 - rates[i - 1]) / (rates[i] - rates[i - 1])
    return float(np.exp(np.log(xs[i - 1]) + share * (np.log(xs[i]) - np.log(xs[i - 1]))))


def half(table: Table, axis: str, along: str) -> list[Row]:
    """For each value of an axis: where half of the runs succeed, and where the ends of Wilson's 95 % interval are one half."""
    rows = []
    for value in np.unique(table[axis]).tolist():
        mine = pick(table, **{axis: value})
        xs = np.unique(mine[along])
        cells = [pick(mine, **{along: x})["success"] for x in xs.tolist()]
        successes = np.array([cell.sum() for cell in cells])
        trials = np.array([len(cell) for cell in cells])
        low, high = wilson(successes, trials)
        found = {name: crossing(xs, rates) for name, rates in (("at", successes / trials), ("low", high), ("high", low))}
        rows.append({"what": "half", axis: value, "best": int(successes.max()), **found})
    return rows


def cells(table: Table, axis: str, along: str) -> list[Row]:
    """Runs and successes of every cell; for supports also how many miss a position or have a false one, for training how many
    succeed after normalisation.
    """
    rows = []
    for value in np.unique(table[axis]).tolist():
        for x in np.unique(table[along]).tolist():
            mine = pick(table, **{axis: value, along: x})
            row = {"what": "cell", axis: value, along: x, "runs": len(mine["seed"]), "right": int(mine["success"].sum())}
            if "missed" in mine:
                row |= faults(where(mine, ~mine["success"]))
            if "normalised" in mine:
                row["normalised"] = int(mine["normalised"].sum())
            rows.append(row)
    return rows


def faults(wrong: Table) -> Row:
    """What is wrong with supports that are not exact."""
    return {
        "wrong": len(wrong["seed"]),
        "with_missed": int((wrong["missed"] > 0).sum()),
        "with_false": int((wrong["false"] > 0).sum()),
    }


def main() -> None:
    """Run, keep, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(AXES), help=", ".join(AXES))
    parser.add_argument("--jobs", default="2")
    asked = parser.parse_args()
    for name in asked.names:
        axis, along = AXES[name]
        out = Path("results") / name
        subprocess.run([Path(sys.executable).with_name("scb"), "sweep", name, "--out", out, "--jobs", asked.jobs], check=True)
        read = pyarrow.parquet.read_table(out / "table.parquet")
        table: Table = {column: read[column].to_numpy() for column in read.column_names}
        path = KEPT / f"{name}.jsonl"
        if "dist_A_star" in table:
            table["normalised"] = (table["dist_A_star"] <= CLOSE) & ~table["diverged"]
        keep(path, "cell", cells(table, axis, along))
        keep(path, "half", half(table, axis, along))
        keep(path, "sweep", [{"what": "sweep", "runs": len(read), "machine": machine()}])
        shutil.copy(out / "phase.png", IMAGES / f"phase-{name}.png")
        print("wrote", path)


if __name__ == "__main__":
    main()
