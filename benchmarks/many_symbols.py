"""The price of a matrix and the evidence for a lag, tried out: many symbols, noise, and fits whose
evidence is compared with fits without the lag.

    python benchmarks/many_symbols.py noise --seeds 100 --out rows/
    python benchmarks/many_symbols.py family evidence --out rows/
    python benchmarks/many_symbols.py --table rows/

Rows are appended to ``rows.jsonl`` as they come; what is not done after ``--seconds`` is left out.
"""

import argparse
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np

import scb
from scb.mixture.em import maximise
from scb.mixture.evidence import PendingEvidence
from scb.mixture.fit import fit_mixture
from scb.mixture.newton import Point
from scb.sequences.coding import windows_of_codes

LAGS = (2, 4, 7, 11)
# Symbols → labels, of noise
SIZES = {2: 2000, 4: 2000, 10: 3000, 30: 3000, 100: 5000, 300: 6000, 500: 6000}


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


def noise(kind: str, N: int, n: int, seed: int) -> np.ndarray:
    """Independent symbols."""
    rng = np.random.default_rng([N, seed])
    weights = {
        "uniform": np.ones(N),
        "Zipf": 1 / np.arange(1, N + 1),
        "Dirichlet": rng.dirichlet(np.full(N, 0.5)) + 1e-9,
    }[kind]
    return rng.choice(N, size=n, p=weights / weights.sum())


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


def noise_row(kind: str, N: int, transition: Any, seed: int) -> dict[str, Any]:
    """How many lags are found where there are none."""
    x = noise(kind, N, SIZES[N], seed)
    model = scb.SparseContextualBigram(8, transition=transition).fit(x)
    return {"lags": int(model.attention_.nnz), "converged": bool(model.converged_)}


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
    for i in np.argsort(-nats, kind="stable")[:: max(1, nats.size // 4)].tolist():
        loss = max(pending.loglik - refitted(pending, slots[i]), 0.0)
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


def refitted(pending: PendingEvidence, slot: tuple[int, int]) -> float:
    """The log-likelihood of a long fit without a slot."""
    start = pending.search.mixture.without(*slot).lifted()
    if pending.shrinkage is None:
        return maximise(pending.rows, start, tolerance=0.1, steps=600).loglik
    point = Point.from_rows(pending.rows, start)
    for _ in range(200):
        point = pending.shrinkage.step(pending.rows, point)
    return point.loglik


PARTS = {"noise": noise_row, "family": family_row, "evidence": evidence_row}


def cases(part: str, seeds: int) -> list[dict[str, Any]]:
    """What there is to do, the longest first."""
    kinds = ("shared", "per_lag")
    if part == "family":
        sizes = ((500, 100_000, "shared"), (300, 50_000, "auto"))
        return [
            {"N": N, "n": n, "per_symbol": s, "lags": lags, "transition": kind, "seed": seed}
            for N, n, kind in sizes
            for s in (1, 2)
            for lags in ("auto", 2)
            for seed in range(max(1, seeds // 100))
        ]
    if part == "evidence":
        return [
            {"data": data, "transition": kind, "context": context, "seed": seed}
            for data in ("genome", "letters", "panel")
            for kind in kinds
            for context in (True, False)
            for seed in range(2 if data != "genome" else 1)
        ]
    return [
        {"kind": kind, "N": N, "transition": transition, "seed": seed}
        for N in sorted(SIZES)
        for seed in range(seeds)
        for kind in ("uniform", "Zipf", "Dirichlet")[: 3 if N <= 100 else 2]
        for transition in kinds
    ]


def run(part: str, case: dict[str, Any]) -> dict[str, Any]:
    """One row."""
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    row = PARTS[part](**case)
    return {"part": part, **case, **row, "seconds": time.perf_counter() - begin}


def table(rows: list[dict[str, Any]]) -> list[str]:
    """One line for each group of rows."""
    lines = []
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        names = {
            "noise": ("kind", "N", "transition"),
            "family": ("N", "n", "per_symbol", "transition", "lags_asked"),
            "evidence": ("data", "transition", "context", "seed"),
        }[row["part"]]
        groups.setdefault((row["part"], *(row.get(name) for name in names)), []).append(row)
    for key, group in sorted(groups.items(), key=str):
        seconds = np.mean([row["seconds"] for row in group])
        line = f"{' '.join(map(str, key))}: n = {len(group)}, {seconds:.1f} s each"
        if key[0] == "noise":
            line += f", {sum(row['lags'] for row in group)} lags in all,"
            line += f" {sum(row['lags'] > 0 for row in group)} fits with lags"
        else:
            skipped = {"part", "seconds", *key}
            for name in group[0]:
                value = group[0][name]
                if name not in skipped and isinstance(value, int | float):
                    line += f", {name} {np.mean([row[name] for row in group]):.6g}"
        lines.append(line)
    return lines


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--largest", type=int, default=500, help="the most symbols of noise")
    parser.add_argument("--smallest", type=int, default=2, help="the fewest symbols of noise")
    parser.add_argument("--out", type=Path, default=Path("runs/many_symbols"))
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.table:
        text = (options.table / "rows.jsonl").read_text(encoding="utf-8")
        print("\n".join(table([json.loads(line) for line in text.splitlines()])))
        return
    end = time.monotonic() + options.seconds
    options.out.mkdir(parents=True, exist_ok=True)
    work = [(part, case) for part in options.parts for case in cases(part, options.seeds)]
    work = [(part, case) for part, case in work if part != "noise" or options.smallest <= case["N"] <= options.largest]
    rows = []
    with (
        ProcessPoolExecutor(options.jobs) as pool,
        (options.out / "rows.jsonl").open("a", encoding="utf-8") as file,
    ):
        pending = {pool.submit(run, *one): one for one in work}
        try:
            for future in as_completed(pending, timeout=max(end - time.monotonic(), 1)):
                row = future.result()
                if row["part"] == "family":
                    row["lags_asked"] = row.pop("lags")
                rows.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
        except (TimeoutError, BrokenProcessPool):
            for process in (pool._processes or {}).values():
                process.terminate()
        print("\n".join(table(rows)))
        pool.shutdown(wait=False, cancel_futures=True)


if __name__ == "__main__":
    main()
