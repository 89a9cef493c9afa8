"""What the estimator finds where its model does not hold: with the law of all labels as background, and with an n-gram beside it.

    python benchmarks/misspecified.py [--seeds 20] [--jobs 2]

Five kinds of sequences that are no mixtures of lags, drawn by plain code that shares nothing with the library: a Markov chain of
order 3, a hidden Markov model, a chain with seasons, a random walk on a ring, and one with momentum. For each: which lags are
found, in how many of the seeds, and bits a held-out symbol beside those of the law that made the sequence.

Results are kept in benchmarks/misspecified/, a file for each job; what is there is not computed again. The table goes to
benchmarks/misspecified.md.
"""

from __future__ import annotations

import os

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

import scb

KEPT = Path(__file__).with_suffix("")
TABLE = Path(__file__).with_suffix(".md")
LENGTH, HELD, MAX_LAG = 20_000, 5_000, 15
BACKGROUNDS = ("labels", "ngram")

Drawn = tuple[np.ndarray, np.ndarray]  # a sequence (LENGTH + HELD,), and the probability of each symbol given those before it


# ----------------------------------------------------------------------------------------------------- the sequences


def chain_of_order_3(rng: np.random.Generator) -> Drawn:
    """Three symbols; each triple has a law of its own for the next one, from Dirichlet(0.7)."""
    laws = rng.dirichlet(np.full(3, 0.7), size=(3, 3, 3))
    x, p = np.zeros(LENGTH + HELD, int), np.ones(LENGTH + HELD)
    for t in range(3, x.size):
        law = laws[x[t - 3], x[t - 2], x[t - 1]]
        x[t] = rng.choice(3, p=law)
        p[t] = law[x[t]]
    return x, p


def hidden_states(rng: np.random.Generator) -> Drawn:
    """Four hidden states that last ten steps on average; each has a law of four symbols, from Dirichlet(0.5)."""
    emit = rng.dirichlet(np.full(4, 0.5), size=4)
    move = 0.9 * np.eye(4) + 0.1 / 3 * (1 - np.eye(4))
    state, belief = 0, np.full(4, 0.25)
    x, p = np.zeros(LENGTH + HELD, int), np.ones(LENGTH + HELD)
    for t in range(x.size):
        state = rng.choice(4, p=move[state])
        x[t] = rng.choice(4, p=emit[state])
        joint = belief @ move * emit[:, x[t]]
        p[t] = joint.sum()
        belief = joint / p[t]
    return x, p


def seasons(rng: np.random.Generator) -> Drawn:
    """Two symbols and a memory of one step; both chances swing with a period of 365 steps."""
    x, p = np.zeros(LENGTH + HELD, int), np.ones(LENGTH + HELD)
    for t in range(1, x.size):
        chance = 0.45 + 0.3 * np.sin(2 * np.pi * t / 365) + (0.12 if x[t - 1] else -0.12)
        x[t] = rng.random() < chance
        p[t] = chance if x[t] else 1 - chance
    return x, p


def walk_on_a_ring(rng: np.random.Generator) -> Drawn:
    """Eight places on a ring: one step back (0.3), none (0.3) or one on (0.4)."""
    step = rng.choice([-1, 0, 1], p=(0.3, 0.3, 0.4), size=LENGTH + HELD)
    return np.cumsum(step) % 8, np.array([0.3, 0.3, 0.4])[step + 1]


def walk_with_momentum(rng: np.random.Generator) -> Drawn:
    """Eight places on a ring: the step before is taken again with probability 0.7, else any of three."""
    x, p, step = np.zeros(LENGTH + HELD, int), np.ones(LENGTH + HELD), 0
    for t in range(1, x.size):
        new = step if rng.random() < 0.7 else int(rng.choice([-1, 0, 1]))
        p[t] = 0.7 * (new == step) + 0.1
        step = new
        x[t] = (x[t - 1] + step) % 8
    return x, p


KINDS = {
    "Markov chain of order 3": chain_of_order_3,
    "hidden Markov model": hidden_states,
    "chain with seasons": seasons,
    "random walk on a ring": walk_on_a_ring,
    "random walk with momentum": walk_with_momentum,
}


# ----------------------------------------------------------------------------------------------------- the fits


def work(kind: str, background: str, seed: int) -> dict[str, Any]:
    """Draw, fit, and score."""
    x, p = KINDS[kind](np.random.default_rng(seed))
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = scb.SparseContextualBigram(MAX_LAG, transition="per_lag", background=background).fit(x[:LENGTH])
    seconds = time.perf_counter() - began
    laws = model.predict_proba(x[LENGTH - MAX_LAG :])[MAX_LAG - 1 : -1]
    scores = np.log2(laws[np.arange(HELD), np.searchsorted(model.classes_, x[LENGTH:])])
    moves = model.influence_.data.tolist()
    lags = {}
    for lag, move in zip(model.lags_["lag"].tolist(), moves, strict=True):
        if lag > 1:  # lag 1 is the context
            lags[lag] = max(lags.get(lag, 0.0), move)
    truth = float(-np.log2(p[LENGTH:]).mean())
    return {"lags": lags, "bits": float(-scores.mean()), "truth": truth, "converged": bool(model.converged_), "seconds": seconds}


def _place(kind: str, background: str, seed: int) -> Path:
    return KEPT / f"{kind.replace(' ', '-')}-{background}-{seed}.json"


def table(seeds: int) -> str:
    """What has been computed so far."""
    lines = [
        "| sequence | background | seeds | lags beyond 1 found (seeds, largest influence) | bits above the truth | converged |"
    ]
    lines += ["|---|---|---|---|---|---|"]
    for kind in KINDS:
        for background in BACKGROUNDS:
            paths = [_place(kind, background, seed) for seed in range(seeds)]
            found = [json.loads(path.read_text()) for path in paths if path.exists()]
            if not found:
                continue
            often = Counter(int(lag) for one in found for lag in one["lags"])
            largest = {lag: np.median([one["lags"][str(lag)] for one in found if str(lag) in one["lags"]]) for lag in often}
            named = ", ".join(f"{lag} ({often[lag]}, {largest[lag]:.2f})" for lag in sorted(often))
            above = np.array([one["bits"] - one["truth"] for one in found])
            settled = sum(one["converged"] for one in found)
            lines.append(
                f"| {kind} | {background} | {len(found)} | {named or 'none'} | {above.mean():.4f} ± {above.std():.4f} | {settled} |"
            )
    return "\n".join(
        ["# Where the model does not hold", "", f"{LENGTH:,} symbols, max_lag {MAX_LAG}, a matrix for each lag.", "", *lines, ""]
    )


def main() -> None:
    """Compute what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    every = [(kind, background, seed) for seed in range(asked.seeds) for kind in KINDS for background in BACKGROUNDS]
    with ProcessPoolExecutor(asked.jobs) as pool:
        jobs = {pool.submit(work, *job): job for job in every if not _place(*job).exists()}
        for job in as_completed(jobs):
            _place(*jobs[job]).write_text(json.dumps(job.result()))
            print(*jobs[job], job.result(), file=sys.stderr, flush=True)
            TABLE.write_text(table(asked.seeds))
    TABLE.write_text(table(asked.seeds))


if __name__ == "__main__":
    main()
