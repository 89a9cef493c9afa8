"""Algorithm 1 from the end of Stage 1 at T = 1,000,000, real gradients on a GPU: a check of F27's simulation at its largest T.

    PYTHONPATH=src python benchmarks/long_ends.py OUT.csv --minutes 7

A row is written as soon as its run is through; after that many minutes no further run begins.
"""

import argparse
import csv
import time
from pathlib import Path

from scb.paper.experiments.to_the_end import EndJob

JOBS = [
    EndJob(T=1_000_000, multiple=multiple, batch_size=batch_size, gradients="real", replicate=i, device="cuda")
    for i in range(12)
    for batch_size in (256, 1024)
    for multiple in (0.0, 3.0)
]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=7.0)
    options = parser.parse_args()
    begin = time.monotonic()
    writer = None
    with options.out.open("w", newline="") as file:
        for job in JOBS:
            if time.monotonic() - begin > 60 * options.minutes:
                break
            row = job.columns | dict(job.run())
            if writer is None:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            print(f"{time.monotonic() - begin:5.0f} s  {row}", flush=True)


if __name__ == "__main__":
    main()
