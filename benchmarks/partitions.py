"""Is a fit in partitions the fit on one machine? Sequences, fitted whole and as dask arrays in chunks, number by number.

    python benchmarks/partitions.py [--seeds 15] [--jobs 2]

Rows go to benchmarks/partitions.jsonl, and what is there is not run again. Half of the sequences come from a distribution that the
model can have; in the others each label depends on two earlier symbols at once, so that no model of lags fits them.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from study import Case, Row, complete

import scb

KEPT = Path(__file__).with_suffix(".jsonl")
LENGTH = 8000


def sequence(N: int, distribution: str, seed: int) -> np.ndarray:
    """A sequence in which the next symbol is often that at lag 3 or 5; or else the sum of those at lags 1 and 3."""
    rng = np.random.default_rng(seed)
    x = rng.integers(N, size=LENGTH)
    u = rng.random(LENGTH)
    for t in range(5, LENGTH):
        if u[t] < 0.3:
            x[t] = x[t - 3] if distribution == "lags" else (x[t - 1] + x[t - 3]) % N
        elif u[t] < 0.5:
            x[t] = x[t - 5]
    return x


def numbers(model: Any) -> np.ndarray:
    """All that a fit has found, in one row."""
    matrices = list(model.transition_.values()) if isinstance(model.transition_, dict) else [model.transition_]
    parts = [model.lags_["weight"], *matrices, model.prior_, model.frequencies_]
    return np.concatenate([np.ravel(part) for part in parts])


def work(case: Case) -> Row:
    """One fit, twice."""
    import dask.array as da

    x = sequence(case["N"], case["law"], case["seed"])
    made = scb.SparseContextualBigram(6, transition=case["transition"], context=True, background="labels")
    whole = made.fit(x)
    parted = scb.SparseContextualBigram(6, transition=case["transition"], context=True, background="labels").fit(
        da.from_array(x, chunks=LENGTH // case["chunks"])
    )
    same = all(whole.lags_[name].tolist() == parted.lags_[name].tolist() for name in ("context", "lag"))
    difference = float(np.abs(numbers(whole) - numbers(parted)).max()) if same else float("inf")
    return {"same_lags": same, "difference": difference, "same_bits": difference == 0.0, "lags": len(whole.lags_["lag"])}


def main() -> None:
    """Run what is missing, and say how it came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=15)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    cases = [
        {"N": N, "law": distribution, "transition": transition, "chunks": chunks, "seed": seed}
        for seed in range(asked.seeds)
        for N, chunks in ((3, 4), (20, 12))  # few symbols: rows are counted; many: every sum is taken in each chunk
        for distribution in ("lags", "none")
        for transition in ("shared", "per_lag")
    ]
    complete(KEPT, work, cases, asked.jobs)


if __name__ == "__main__":
    main()
