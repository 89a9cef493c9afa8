"""Does measuring the noise of A by 2,048 positions change what a run decides? Runs of ``tuned`` by this rule and by all positions.

    python benchmarks/noise_rule.py [--out FILE] [--jobs J] [--seconds S] [--tasks K]

Both runs of a task have the same seed, so that they are equal until a decision differs. The table counts by how many evaluations
the ends of Stages 1 and 2 differ, and how many runs end within 0.05 of the truth.
"""

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

KINDS = ((3, 5000, "strong"), (3, 20_000, "strong"), (4, 10_000, "strong"), (5, 5000, "strong"))
EVERY = 10
TOLERANCE = 0.05


def compare(number: int) -> dict[str, Any]:
    """Both runs of a task: where their stages end, and where they do."""
    import numpy as np

    from scb.task import Task
    from scb.training import roundings
    from scb.training.loop import train
    from scb.training.recipes import tuned

    N, T, ensemble = KINDS[number % len(KINDS)]
    task = Task.random(N, T, 2, ensemble=ensemble, seed=number)
    row: dict[str, Any] = {"task": number, "N": N, "T": T, "ensemble": ensemble}
    usual = roundings.SAMPLE
    for name, sample in (("sample", usual), ("all", T)):
        roundings.SAMPLE = sample
        begin = time.perf_counter()
        run = train(task, tuned(task), number, every=EVERY)
        stage = run.history["stage"]
        ends = [int(run.history["step"][stage == number].max()) for number in (1, 2) if (stage == number).any()]
        far = max(float(run.history[x][-1]) for x in ("dist_V", "dist_A"))
        row[name] = {"ends": ends, "distance": far, "verdict": run.verdict, "seconds": time.perf_counter() - begin}
    roundings.SAMPLE = usual
    row["apart"] = int(np.abs(np.subtract(row["sample"]["ends"], row["all"]["ends"])).max()) // EVERY
    return row


def main() -> None:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("noise_rule.jsonl"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1e9)
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    begun = time.monotonic()
    rows = []
    with options.out.open("w") as file, ProcessPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(compare, number) for number in range(options.tasks)]
        for future in as_completed(waiting):
            if not future.cancelled():
                rows.append(future.result())
                file.write(json.dumps(rows[-1]) + "\n")
                file.flush()
            if time.monotonic() - begun > options.seconds:
                for other in waiting:
                    other.cancel()
    apart = [row["apart"] for row in rows]
    print(f"{len(rows)} tasks; evaluations between the ends: " + ", ".join(f"{x}: {apart.count(x)}" for x in sorted(set(apart))))
    for name in ("sample", "all"):
        within = sum(row[name]["distance"] <= TOLERANCE for row in rows)
        print(f"{name}: {within} of {len(rows)} within {TOLERANCE}, {sum(row[name]['seconds'] for row in rows):.1f} s")


if __name__ == "__main__":
    main()
