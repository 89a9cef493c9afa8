"""What the estimator gains from matrices that are known from another task: lags, seconds, and held-out likelihood.

    python benchmarks/known_matrices.py [--seeds 20] [--jobs 1]

12 symbols with one or two lags after each, and one matrix for all lags. The other task has the same matrix and other lags, and
100,000 tokens; of the new one there are 2,000. Sequences are drawn by plain code that shares nothing with the library. Results are
kept in benchmarks/known_matrices.jsonl, and what is there is not computed again; docs/explanation/estimator.md reads them.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from study import Case, Row, complete, group, read

KEPT = Path(__file__).with_suffix(".jsonl")
N, MAX_LAG, KNOWN, FIT, HELD = 12, 12, 100_000, 2_000, 20_000
SUPPORT = ((2, 7), (4,), (3, 9))  # the lags of every third symbol
SMOOTHING = {"nothing known": 1, "known": 1, "known and trusted": 100}  # labels that are added to each column


def work(case: Case) -> Row:
    """Fit one sequence in one of the three ways."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from scb import SparseContextualBigram
    from truth.mtd import MTD  # pyright: ignore[reportMissingImports]

    seed = case["seed"]
    first = MTD.random(seed, tuple(SUPPORT[k % 3] for k in range(N)), N=N)
    second = MTD((*first.weights[1:], first.weights[0]), first.matrices)
    init = None
    if case["start"] != "nothing known":
        init = SparseContextualBigram(MAX_LAG, transition="shared", context=True, background="labels").fit(
            first.sample(KNOWN, seed)
        )
    x = second.sample(FIT, 1_000 + seed)
    unseen = second.sample(HELD, 2_000 + seed)
    model = SparseContextualBigram(
        MAX_LAG, transition="shared", smoothing=SMOOTHING[case["start"]], context=True, background="labels"
    )
    model.fit(x[: FIT // 2], init=init)  # so that everything is compiled
    began = time.perf_counter()
    model.fit(x, init=init)
    seconds = time.perf_counter() - began
    found = set(zip(model.lags_["context"].tolist(), model.lags_["lag"].tolist(), strict=True))
    best = second.loglik(unseen, MAX_LAG) / (HELD - MAX_LAG)
    ours = float(model.log_likelihoods(unseen)[MAX_LAG - 1 :].mean())  # the first symbol is not predicted
    return {"right": found == second.table, "lags": len(found), "above": best - ours, "seconds": seconds}


def main() -> None:
    """Run what is missing, and print the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    cases = [{"seed": seed, "start": start} for seed in range(asked.seeds) for start in SMOOTHING]
    complete(KEPT, work, cases, asked.jobs)
    for (start,), rows in group(read(KEPT), "start").items():
        above = np.mean([row["above"] for row in rows])
        seconds = np.median([row["seconds"] for row in rows])
        right = sum(row["right"] for row in rows)
        print(f"{start}: {right} of {len(rows)} exactly right, {above:.4f} nats above the truth, {seconds:.2f} s")


if __name__ == "__main__":
    main()
