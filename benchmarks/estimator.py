"""The estimator: which lags it finds; against mtdlearn and hmmlearn (seconds, memory, held-out likelihood); how its time grows.

    python benchmarks/estimator.py [lags baselines fits] [--with PYTHON]

mtdlearn and hmmlearn are in no lock. Put them in an environment of their own, and say where its interpreter is:

    python -m venv baselines && baselines/bin/pip install mtdlearn hmmlearn
    .venv/bin/python benchmarks/estimator.py --with baselines/bin/python

What is not installed is left out, with a line that says so. The tables go to benchmarks/estimator.md. Every fit runs in a process
of its own, on one thread. mtdlearn of order 10 takes about ten minutes and some gigabytes; the rest takes a few minutes. Progress
goes to stderr.
"""

from __future__ import annotations

import os

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

N, FIT, HELD = 4, 10_000, 2_500
LAGS, WEIGHTS = (1, 3, 5), (0.4, 0.35, 0.25)
ORDERS = (5, 8, 10)
TABLES = Path(__file__).with_suffix(".md")


# ----------------------------------------------------------------------------------------------------- the data


def distribution() -> np.ndarray:
    """P (N, N) of the plain Mixture Transition Distribution that the tokens come from: one matrix for all lags."""
    return np.random.default_rng(0).dirichlet(np.full(N, 0.4), size=N).T


def tokens() -> np.ndarray:
    """FIT + HELD tokens; what comes before them is thrown away."""
    rng, P, before = np.random.default_rng(1), distribution(), 1000
    x = rng.integers(N, size=before + FIT + HELD)
    for t in range(max(LAGS), x.size):
        x[t] = rng.choice(N, p=P[:, x[t - rng.choice(LAGS, p=WEIGHTS)]])
    return x[before:]


def windows(x: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``order`` tokens before each label, oldest first, and the labels."""
    view = np.lib.stride_tricks.sliding_window_view(x, order + 1)
    return view[:, :-1], view[:, -1]


def truth() -> float:
    """Held-out mean log-likelihood of the distribution that made the tokens."""
    x, P = tokens(), distribution()
    at = np.arange(FIT, FIT + HELD)
    return float(np.log(sum(w * P[x[at], x[at - lag]] for lag, w in zip(LAGS, WEIGHTS, strict=True))).mean())


# ------------------------------------------------------------------------------------------------ the baselines
# Each is a function of the order that imports what it needs, and returns the fit (to be timed) and its held-out likelihood.

Baseline = tuple[Callable[[], Any], Callable[[Any], float]]


def ours(order: int, transition: str, lags: str) -> Baseline:
    """Without context, which is the model of mtdlearn; all lags up to the order, or those that are found."""
    import scb

    x, asked = tokens(), "auto" if lags == "auto" else range(1, order + 1)

    def fit() -> Any:
        return scb.SparseContextualBigram(order, transition=transition, context=False, lags=asked, background="labels").fit(x[:FIT])  # pyright: ignore

    return fit, lambda model: model.score(x[FIT - order :])


def mtdlearn(order: int, starts: int) -> Baseline:
    """As it is published, with its defaults but for the starts (10). It wants ``np.int``, which NumPy has dropped."""
    setattr(np, "int", int)  # noqa: B010
    from mtdlearn.mtd import MTD  # pyright: ignore[reportMissingImports]

    x = tokens()

    def fit() -> Any:
        np.random.seed(0)  # noqa: NPY002 (it draws its starts from the global generator)
        model = MTD(order=order, number_of_initiations=starts, n_jobs=1, verbose=0)
        model.fit(*windows(x[:FIT], order))
        return model

    def held(model: Any) -> float:
        before, label = windows(x[FIT - order :], order)
        return float(np.log(model.predict_proba(before)[np.arange(HELD), label]).mean())

    return fit, held


def hmm(states: int) -> Baseline:
    """The best of five starts on the tokens of the fit; held out, each token given all before it."""
    from hmmlearn.hmm import CategoricalHMM  # pyright: ignore[reportMissingImports]

    x = tokens()[:, None]

    def fit() -> Any:
        starts = [CategoricalHMM(n_components=states, n_iter=200, random_state=seed).fit(x[:FIT]) for seed in range(5)]
        return max(starts, key=lambda model: model.score(x[:FIT]))

    return fit, lambda model: (model.score(x) - model.score(x[:FIT])) / HELD


def growth(transition: str, length: int, max_lag: int) -> Baseline:
    """With context, lags to be found: tokens of a random task with lags up to 10."""
    import scb

    x = scb.generate(scb.Task.random(N, 10, 2, seed=0), length, seed=0)
    options: Any = {"transition": transition, "context": True, "background": "labels"}
    return lambda: scb.SparseContextualBigram(max_lag, **options).fit(x), lambda model: model.score(x)


BASELINES: dict[str, Callable[..., Baseline]] = {
    "ours": lambda order, transition, lags: ours(int(order), transition, lags),
    "mtdlearn": lambda order, starts: mtdlearn(int(order), int(starts)),
    "hmmlearn": lambda states: hmm(int(states)),
    "growth": lambda transition, length, max_lag: growth(transition, int(length), int(max_lag)),
}


def child(name: str, *options: str) -> None:
    """One baseline in this process: seconds of the fit, memory beyond that of the idle process, held-out likelihood; as JSON."""
    fit, held = BASELINES[name](*options)
    idle = _peak()
    if name in ("ours", "growth"):
        warm_up()
    loaded = _peak() - idle
    start = time.perf_counter()
    model = fit()
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "memory": _peak() - idle, "loaded": loaded, "held": held(model)}))


def warm_up() -> None:
    """Load the compiled kernels, as any second fit finds them."""
    import scb

    x = tokens()[:2000]
    for transition in ("shared", "per_lag"):
        for context in (True, False):
            scb.SparseContextualBigram(3, transition=transition, context=context, background="labels").fit(x)
            scb.SparseContextualBigram(3, transition=transition, context=context, lags=(1, 2)).fit(x)


def _peak() -> float:
    """The most memory that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# ------------------------------------------------------------------------------------------------------ the parent


def measured(python: str, *options: object) -> dict[str, float] | None:
    """Run a child; None, with a line that says why, if it cannot."""
    words = [str(option) for option in options]
    print(" ".join(words), "...", end=" ", file=sys.stderr, flush=True)
    answer = subprocess.run([python, __file__, "--child", *words], capture_output=True, text=True)
    if answer.returncode:
        print(f"left out: {answer.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    result = json.loads(answer.stdout.splitlines()[-1])
    print(f"{result['seconds']:.2f} s, {result['memory']:.0f} MB", file=sys.stderr)
    return result


def baselines(python: str) -> str:
    """The table of baselines."""
    loaded = np.nan
    lines = [
        f"The data are one sequence of a plain MTD with {N} states, lags {LAGS} with weights {WEIGHTS}, and one matrix."
        f' {FIT:,} tokens are fitted, and {HELD:,} are held out. The column "held out" shows the mean log-likelihood in nats of'
        f" the same held-out tokens, given the same history; the distribution that generated the tokens has {truth():.4f}.",
        "",
        "| order | model | seconds | memory, MB | held out | times our seconds |",
        "|---|---|---|---|---|---|",
    ]
    for order in ORDERS:
        found = {
            "ours, all lags, a matrix per lag": measured(sys.executable, "ours", order, "per_lag", "all"),
            "ours, all lags, one matrix": measured(sys.executable, "ours", order, "shared", "all"),
            "ours, lags found, a matrix per lag": measured(sys.executable, "ours", order, "per_lag", "auto"),
            "ours, lags found, one matrix": measured(sys.executable, "ours", order, "shared", "auto"),
            "mtdlearn, one start": measured(python, "mtdlearn", order, 1),
            "mtdlearn, 10 starts": measured(python, "mtdlearn", order, 10) if order < 10 else None,  # hours
        }
        first = found["ours, all lags, a matrix per lag"]
        loaded = first["loaded"] if first else loaded
        lines += [_line(str(order), name, row, first) for name, row in found.items() if row]
    for states in (4, 8):
        if row := measured(python, "hmmlearn", states):
            lines.append(_line("–", f"hmmlearn, {states} hidden states, best of 5 starts", row, None))
    note = (
        "The last column compares the seconds with those of our fit with all lags and a matrix per lag, which is the model of"
        f" mtdlearn. Memory is what the process uses beyond imports and data; {loaded:.0f} MB of our memory are the compiled"
        " kernels, which are loaded before the clock starts."
    )
    return "\n".join([*lines, "", note])


def lags(_: str) -> str:
    """In how many of 20 seeds the table of lags is exactly right, and the likelihood of the truth is reached."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from scb import SparseContextualBigram
    from truth.mtd import MTD, SUPPORT  # pyright: ignore[reportMissingImports]

    def found(model: Any) -> set[tuple[int | None, int]]:
        return set(zip(model.lags_["context"].tolist(), model.lags_["lag"].tolist(), strict=True))

    lines = ["| what | of 20 seeds |", "|---|---|"]
    twice = ((2, 7), (1, 11), (2, 7), (1, 11))
    for name, support in (("{2, 7}, {1, 11}, {11}, {2}", SUPPORT), ("{2, 7}, {1, 11}, {2, 7}, {1, 11}", twice)):
        for transition in ("shared", "per_lag"):
            exact = 0
            for seed in range(20):
                truth = MTD.random(seed, support, per_lag=transition == "per_lag")
                model = SparseContextualBigram(20, transition=transition, context=True, background="labels").fit(
                    truth.sample(50_000, seed)
                )
                exact += found(model) == truth.table
            lines.append(f"| lags {name} of four symbols, {transition}, 50,000 tokens, max_lag 20: exactly right | {exact} |")
            print(lines[-1], file=sys.stderr, flush=True)
    given = auto = 0
    for seed in range(20):
        order = (3, 5, 8, 10)[seed % 4]
        truth = MTD.random(seed, (tuple(range(1, order + 1)),))
        weights = np.random.default_rng(seed).dirichlet(np.ones(order))
        truth.weights[0].update(zip(range(1, order + 1), weights, strict=True))
        x = truth.sample(10_000, seed)
        model = SparseContextualBigram(order, context=False, lags=range(1, order + 1)).fit(x)
        given += after(model, x, order) >= truth.loglik(x, order)
        truth = MTD.random(seed, ((2, 5, 9),))
        x = truth.sample(10_000, seed)
        auto += after(SparseContextualBigram(20, context=False, background="labels").fit(x), x, 20) >= truth.loglik(x, 20)
    lines.append(f"| plain MTD, all lags up to 3, 5, 8 or 10, 10,000 tokens: log-likelihood at least the truth's | {given} |")
    lines.append(f"| plain MTD, lags {{2, 5, 9}} of 20 to be found, 10,000 tokens: the same | {auto} |")
    spurious = fitted = 0
    for seed in range(20):
        x = np.random.default_rng(seed).integers(N, size=5000)
        for transition in ("shared", "per_lag"):
            for context in (True, False):
                model = SparseContextualBigram(20, transition=transition, context=context, background="labels").fit(x)
                spurious, fitted = spurious + int(model.lags_["lag"].size > 0), fitted + 1
    lines.append(f"| independent symbols, 5,000 tokens, max_lag 20, four models: some lag is found | {spurious} of {fitted} fits |")
    return "\n".join(lines)


def after(model: Any, x: np.ndarray, max_lag: int) -> float:
    """The log-likelihood of all symbols after the first ``max_lag``; ``loglik_`` has the first ones, too."""
    distributions = model.predict_proba(x)[max_lag - 1 : -1]
    return float(np.log(distributions[np.arange(len(distributions)), x[max_lag:]]).sum())


def _line(order: str, name: str, row: dict[str, float], first: dict[str, float] | None) -> str:
    times = f"{row['seconds'] / first['seconds']:,.1f}" if first else ""
    return f"| {order} | {name} | {row['seconds']:.3g} | {row['memory']:,.0f} | {row['held']:.4f} | {times} |"


def fits(python: str) -> str:
    """Our own time and memory with context, in tokens and in max_lag; slopes of log seconds in log size."""
    lengths, longest = (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000), (25, 50, 100, 200)
    lines = [
        f"In these fits N = {N}, the current symbol chooses the lags, and the lags have to be found. Memory is defined as above,"
        " and includes the kernels.",
        "",
        "| transition | tokens | max_lag | seconds | memory, MB |",
    ]
    lines += ["|---|---|---|---|---|"]
    slopes = []
    for transition in ("shared", "per_lag"):
        of_size: dict[str, list[tuple[int, float]]] = {"tokens": [], "max_lag": []}
        sizes = [("tokens", n, n, 50) for n in lengths] + [("max_lag", lag, 1_000_000, lag) for lag in longest]
        for what, size, length, max_lag in sizes:
            if row := measured(sys.executable, "growth", transition, length, max_lag):
                of_size[what].append((size, row["seconds"]))
                lines.append(f"| {transition} | {length:,} | {max_lag} | {row['seconds']:.2f} | {row['memory']:,.0f} |")
        slopes.append(f"| {transition} | {' | '.join(f'{_slope(points):.2f}' for points in of_size.values())} |")
    head = ["", "### Slopes of log time", "", "| transition | in tokens | in max_lag |", "|---|---|---|"]
    return "\n".join([*lines, *head, *slopes])


def _slope(points: list[tuple[int, float]]) -> float:
    sizes, seconds = np.log(np.array(points)).T
    return float(np.polyfit(sizes, seconds, 1)[0])


SECTIONS = {
    "lags": ("Which lags are found", lags),
    "rivals": ("Against mtdlearn and hmmlearn", baselines),
    "fits": ("How time grows", fits),
}


def main() -> None:
    """Run the sections asked for, and write them; what was not asked for stays as it is in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all if none is named")
    parser.add_argument("--with", dest="python", default=sys.executable, help="an interpreter that has the baselines")
    asked = parser.parse_args()
    if unknown := set(asked.sections) - set(SECTIONS):
        parser.error(f"{unknown.pop()} is not a section: there are {', '.join(SECTIONS)}")
    old = TABLES.read_text() if TABLES.exists() else ""
    kept = {part.split("\n", 1)[0]: part.split("\n", 1)[1].strip() for part in old.split("\n## ")[1:]}
    for name in asked.sections or SECTIONS:
        title, section = SECTIONS[name]
        kept[title] = section(asked.python)
        print(f"{title}\n\n{kept[title]}\n", flush=True)
    parts = [f"## {title}\n\n{kept[title]}\n" for title, _ in SECTIONS.values() if title in kept]
    TABLES.write_text("# The estimator, measured\n\n`benchmarks/estimator.py`, one thread.\n\n" + "\n".join(parts))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
