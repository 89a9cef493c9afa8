"""Many symbols, and evidence that adds up: which lags are found where most symbols are a permutation of an earlier one, and what
the nats of all lags add up to, beside what the model gains and what long fits without a lag lose.

    python benchmarks/many_symbols.py [family evidence] [--jobs 2] [--tables]

Results are kept in benchmarks/many_symbols/; what is there is not computed again. The tables go to docs/explanation/estimator.md.
"""

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from study import Case, Row, Section, main, rounded, table_of

import scb
from scb.mixture.em import maximise
from scb.mixture.evidence import PendingEvidence
from scb.mixture.fit import fit_mixture
from scb.mixture.model import Mixture
from scb.mixture.newton import Point
from scb.sequences.coding import windows_of_codes

KEPT = Path(__file__).with_suffix("")
LAGS = (2, 4, 7, 11)


def permuted(N: int, n: int, seed: int, per_symbol: int) -> tuple[np.ndarray, list[set[int]]]:
    """Of the symbols, 70 % are a permutation of an earlier one, at a lag that the current symbol
    chooses out of one or two; the others are uniform. Also the lags after each symbol.
    """
    rng = np.random.default_rng(seed)
    permutation = rng.permutation(N)
    chosen = np.array([rng.choice(LAGS, size=per_symbol, replace=False) for _ in range(N)])
    start = max(LAGS)
    x = rng.integers(N, size=start + n)
    copied = rng.random(start + n) < 0.7
    which = rng.integers(per_symbol, size=start + n)
    for t in range(start, start + n):
        if copied[t]:
            x[t] = permutation[x[t - chosen[x[t - 1], which[t]]]]
    return x[start:], [set(lags.tolist()) for lags in chosen]


def genome(seed: int, n: int = 154_000) -> list[np.ndarray]:
    """Four symbols like those of a chloroplast: a chain of order 3 whose composition drifts, and a
    sixth of it again, backwards and complemented.
    """
    rng = np.random.default_rng(seed)
    base = np.array([0.31, 0.19, 0.19, 0.31])
    chain = np.array([rng.dirichlet(30 * base) for _ in range(64)])
    drift = np.exp(0.3 * np.cumsum(rng.normal(size=n // 500 + 1)) / 5)
    x = rng.integers(4, size=n)
    u = rng.random(n)
    for t in range(3, n):
        p = chain[16 * x[t - 3] + 4 * x[t - 2] + x[t - 1]] * np.array([1, *[drift[t // 500]] * 2, 1])
        x[t] = min(3, int(np.searchsorted(np.cumsum(p / p.sum()), u[t])))
    repeat = n // 6
    x[-repeat:] = 3 - x[n - 3 * repeat : n - 2 * repeat][::-1]
    return [x]


def letters(seed: int, n: int = 40_000) -> list[np.ndarray]:
    """Letters and spaces of our own pages."""
    pages = sorted(Path(__file__).parents[1].glob("docs/**/*.md"))
    text = "".join(page.read_text(encoding="utf-8").lower() for page in pages)
    kept = np.array([ord(c) - 96 if c.isalpha() else 0 for c in text if c.isascii()])
    first = seed * n % (kept.size - n)
    return [kept[first : first + n]]


def panel(seed: int, N: int = 6) -> list[np.ndarray]:
    """Sequences of 200 patients with habits of their own, who repeat what they had 3 visits ago."""
    rng = np.random.default_rng(seed)
    sequences = []
    for _ in range(200):
        habits = rng.dirichlet(np.full(N, 2.0))
        x = rng.choice(N, size=rng.integers(40, 120), p=habits)
        for t in range(3, x.size):
            if rng.random() < 0.3:
                x[t] = x[t - 3]
        sequences.append(x)
    return sequences


# --------------------------------------------------------------------------------------- the parts


def family_row(N: int, n: int, per_symbol: int, lags: Any, transition: Any, seed: int) -> dict[str, Any]:
    """Which lags are found, and how well held-out symbols are predicted."""
    x, truth = permuted(N, n + n // 5, seed, per_symbol)
    model = scb.SparseContextualBigram(12, lags=lags, transition=transition, handle_unknown="missing").fit(x[:n])
    found: dict[int, set[int]] = {k: set() for k in range(N)}
    for k, lag in zip(model.lags_["context"].tolist(), model.lags_["lag"].tolist(), strict=True):
        found[k].add(lag)
    return {
        "true": sum(len(lags) for lags in truth),
        "found": sum(len(found[k] & truth[k]) for k in range(N)),
        "false": sum(len(found[k] - truth[k]) for k in range(N)),
        "bits": -model.score(x[n:]) / np.log(2),
        "converged": bool(model.converged_),
    }


def evidence_row(data: str, transition: Any, context: bool, seed: int) -> dict[str, Any]:
    """What the evidence adds up to, what the model gains, and how far it is from long refits."""
    codes = {"genome": genome, "letters": letters, "panel": panel}[data](seed)
    N = 1 + max(int(x.max()) for x in codes)
    windows = windows_of_codes(codes, N, 12, context)
    pending = fit_mixture(windows, matrices=transition, shrink=1.0).evidence
    begin = time.perf_counter()
    evidence = pending.find()
    seconds = time.perf_counter() - begin
    nats = np.concatenate(evidence.nats)
    bounds = np.concatenate(evidence.bounds) > 0
    slots = pending.search.all_slots()
    worst = 0.0
    whole = refitted(pending, pending.search.mixture)
    for i in np.argsort(-nats, kind="stable")[:: max(1, nats.size // 4)].tolist():
        loss = max(whole - refitted(pending, pending.search.mixture.without(*slots[i])), 0.0)
        apart = (nats[i] - loss) / max(loss, 10.0)
        worst = max(worst, abs(apart) if not bounds[i] else -min(apart, 0.0))
    labels = windows.label_distribution[windows.label_distribution > 0]
    alone = windows.n * float((labels * np.log(labels)).sum())
    return {
        "lags": nats.size,
        "nats": float(nats.sum()),
        "bounds": int(bounds.sum()),
        "gain": pending.loglik - alone,
        "apart": worst,
        "evidence_s": seconds,
    }


def refitted(pending: PendingEvidence, mixture: Mixture) -> float:
    """The log-likelihood of a long fit from a mixture."""
    start = mixture.lifted()
    if pending.shrinkage is None:
        return maximise(pending.rows, start, tolerance=0.1, steps=600).loglik
    point = Point.from_rows(pending.rows, start)
    for _ in range(200):
        point = pending.shrinkage.step(pending.rows, point)
    return point.loglik


def family(case: Case) -> Row:
    """A row of the table of many symbols."""
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    row = family_row(**case)
    return row | rounded(bits=row["bits"], seconds=time.perf_counter() - begin)


def evidence(case: Case) -> Row:
    """A row of the table of evidence."""
    warnings.simplefilter("ignore")
    row = evidence_row(**case)
    return row | rounded(**{name: row[name] for name in ("nats", "gain", "apart", "evidence_s")})


def family_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Fits that choose the number of lags, beside those that were asked for two after each symbol."""
    asked = {_but(case, "lags"): row for case, row in rows if case["lags"] == 2}
    lines = []
    for case, row in sorted(rows, key=lambda one: str(sorted(one[0].items()))):
        if case["lags"] == "auto" and (other := asked.get(_but(case, "lags"))):
            found = f"{row['found']:,} of {row['true']:,}"
            bits = [f"{row['bits']:.4f}", f"{other['bits']:.4f}", f"{row['bits'] - other['bits']:+.4f}"]
            lines.append([case["N"], f"{case['n']:,}", case["per_symbol"], found, row["false"], *bits, f"{row['seconds']:.0f}"])
    return table_of("symbols|tokens|lags after each|found|others|bits|bits with lags=2|more|seconds", lines)


def _but(case: Case, name: str) -> str:
    return str(sorted((key, value) for key, value in case.items() if key != name))


def evidence_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """What nats add up to, and how far they are from long fits without a lag."""
    lines = []
    for case, row in sorted(rows, key=lambda one: str(one[0])):
        kind = [case["data"], case["transition"], case["context"], case["seed"]]
        sums = [f"{row['gain']:,.0f}", f"{row['nats']:,.0f}", f"{row['nats'] / row['gain']:.3f}" if row["lags"] else ""]
        lines.append([*kind, row["lags"], row["bounds"], *sums, f"{row['apart']:.1%}"])
    return table_of(
        "data|transition|context|seed|lags|of these, bounds|the model gains|nats add up to|ratio|furthest from a long fit", lines
    )


SECTIONS = {
    "family": Section(
        [
            {"N": N, "n": n, "per_symbol": s, "lags": lags, "transition": "auto", "seed": 70 + seed}
            for N, n, seeds in ((500, 100_000, 1), (300, 50_000, 2))
            for s in (2, 1)
            for lags in ("auto", 2)
            for seed in range(seeds)
        ],
        family,
        {"many-symbols": family_table},
    ),
    "evidence": Section(
        [
            {"data": data, "transition": kind, "context": context, "seed": 30 + seed}
            for data in ("genome", "letters", "panel")
            for kind in ("per_lag", "shared")
            for context in (True, False)
            for seed in range(1 if data == "genome" else 2)
        ],
        evidence,
        {"evidence": evidence_table},
    ),
}

if __name__ == "__main__":
    main(__doc__, KEPT, "explanation/estimator.md", SECTIONS)
