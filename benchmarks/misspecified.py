"""What the estimator finds where its model does not hold: with the distribution of all labels as background, and with an n-gram
beside it.

    python benchmarks/misspecified.py [--seeds 20] [--jobs 2]

Five kinds of sequences that are no mixtures of lags, drawn by plain code that shares nothing with the library: a Markov chain of
order 3, a hidden Markov model, a chain with seasons, a random walk on a ring, and one with momentum. For each: which lags are
found, in how many of the seeds, and bits per held-out symbol beside those of the distribution that made the sequence.

Results are kept in benchmarks/misspecified.jsonl; what is there is not computed again. The table goes to
docs/explanation/misspecified.md. One case takes 5 to 60 s of one core: 20 seeds about an hour.
"""

import argparse
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from study import DOCS, Case, Row, complete, fill, group, read, table_of

KEPT = Path(__file__).with_suffix(".jsonl")
LENGTH, HELD, MAX_LAG = 20_000, 5_000, 15
BACKGROUNDS = ("labels", "ngram")

Drawn = tuple[np.ndarray, np.ndarray]  # a sequence (LENGTH + HELD,), and the probability of each symbol given those before it


# ----------------------------------------------------------------------------------------------------- the sequences


def chain_of_order_3(rng: np.random.Generator) -> Drawn:
    """Three symbols; each triple has a distribution of its own for the next one, from Dirichlet(0.7)."""
    distributions = rng.dirichlet(np.full(3, 0.7), size=(3, 3, 3))
    x, p = np.zeros(LENGTH + HELD, int), np.ones(LENGTH + HELD)
    for t in range(3, x.size):
        distribution = distributions[x[t - 3], x[t - 2], x[t - 1]]
        x[t] = rng.choice(3, p=distribution)
        p[t] = distribution[x[t]]
    return x, p


def hidden_states(rng: np.random.Generator) -> Drawn:
    """Four hidden states that last ten steps on average; each has a distribution of four symbols, from Dirichlet(0.5)."""
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


def work(case: Case) -> Row:
    """Draw, fit, and score."""
    import scb

    x, p = KINDS[case["kind"]](np.random.default_rng(case["seed"]))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = scb.SparseContextualBigram(MAX_LAG, transition="per_lag", context=True, background=case["background"]).fit(
            x[:LENGTH]
        )
    seconds = time.process_time() - began
    distributions = model.predict_proba(x[LENGTH - MAX_LAG :])[MAX_LAG - 1 : -1]
    scores = np.log2(distributions[np.arange(HELD), np.searchsorted(model.classes_, x[LENGTH:])])
    lags: dict[str, float] = {}
    for lag, influence in zip(model.lags_["lag"].tolist(), model.influence_.data.tolist(), strict=True):
        if lag > 1:  # lag 1 is the context
            lags[str(lag)] = max(lags.get(str(lag), 0.0), influence)
    truth = float(-np.log2(p[LENGTH:]).mean())
    found = {"lags": lags, "bits": float(-scores.mean()), "truth": truth}
    return found | {"converged": bool(model.converged_), "seconds": seconds}


def table(rows: list[tuple[Case, Row]]) -> list[str]:
    """What has been computed so far."""
    found = group(rows, "kind", "background")
    lines = []
    for kind in KINDS:
        for background in BACKGROUNDS:
            some = found.get((kind, background), [])
            if some:
                above = np.array([row["bits"] - row["truth"] for row in some])
                error = above.std() / np.sqrt(len(above))
                converged = f"{sum(row['converged'] for row in some)} of {len(some)}"
                lines.append([kind, f"`{background}`", _named(some), f"{above.mean():.4f} ± {error:.4f}", converged])
    return table_of("sequence|background|lags beyond 1 in most seeds (largest influence)|bits above the truth|converged", lines)


def often(rows: list[Row]) -> dict[int, float]:
    """Lag → the share of the seeds in which it is found."""
    counts = Counter(int(lag) for row in rows for lag in row["lags"])
    return {lag: counts[lag] / len(rows) for lag in sorted(counts)}


def _named(rows: list[Row]) -> str:
    """How many lags are found in more than half of the seeds, and the largest median influence among them."""
    usual = [lag for lag, share in often(rows).items() if share > 0.5]
    influence = [np.median([row["lags"][str(lag)] for row in rows if str(lag) in row["lags"]]) for lag in usual]
    return f"{len(usual)} ({max(influence):.2f})" if usual else "none"


def main() -> None:
    """Compute what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    cases = [
        {"kind": kind, "background": background, "seed": seed}
        for seed in range(asked.seeds)
        for kind in KINDS
        for background in BACKGROUNDS
    ]
    complete(KEPT, work, cases, asked.jobs)
    fill(DOCS / "explanation" / "misspecified.md", "misspecified", table(read(KEPT)))


if __name__ == "__main__":
    main()
