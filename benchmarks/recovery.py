"""How well does recovery work? Many random tasks, another one in each repetition.

    python benchmarks/recovery.py [support bound sequences levels cost curve] [--jobs 2] [--tables]

Results are kept in benchmarks/recovery/, a file for each part; what is there is not run again. Tables and numbers of
docs/explanation/recovery.md come from there. All of it takes about half an hour on one core. Run ``cost`` with one job: memory is
that of the process, whose cases come in order of size.
"""

import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from study import Case, Row, Section, group, main, percent, rounded, so_many, table_of, wilson

KEPT = Path(__file__).with_suffix("")
SIZES = (200, 250, 300, 350, 400, 500, 600, 800)  # samples of the curve
EDGES = (0.0, 0.5, 1.0, 2.0, 4.0, np.inf)  # how far entries of P lie from 0, in standard errors


def wrong(task: Any, fit: Any, prefix: str = "") -> Row:
    """Positions missed, and false ones."""
    pairs = list(zip(task.support, fit.support, strict=True))
    missed = sum(np.setdiff1d(a, b).size for a, b in pairs)
    false = sum(np.setdiff1d(b, a).size for a, b in pairs)
    return {f"{prefix}missed": missed, f"{prefix}false": false}


def is_right(row: Row, prefix: str = "") -> bool:
    """Whether no position was missed and none is false."""
    return row[f"{prefix}missed"] == row[f"{prefix}false"] == 0


# --------------------------------------------------------------------------------------------------------- the fits


def support(case: Case) -> Row:
    """The likelihood's support; and that of the moments alone, where it is cheap."""
    import scb

    N, T = case["N"], case["T"]
    task = scb.Task.random(N, T, 2, seed=case["seed"])
    batch = scb.sample(task, case["n"], case["seed"], compiled=True)
    row = wrong(task, scb.recover(batch, N=N))
    if T <= 5000 and N < 20:
        row |= wrong(task, scb.recover(batch, N=N, method="spectral"), "moments_")
    return row


def bound(case: Case) -> Row:
    """Squared errors over the Cramér–Rao bound, which entries lie within 1.96 standard errors, and for P how many of them at each
    distance from 0.
    """
    import scb
    from scb.theory.information import cramer_rao

    N, n, seed = case["N"], case["n"], 20_000 + case["seed"]
    task = scb.Task.random(N, 50, 2, seed=seed)
    fit = scb.recover(scb.sample(task, n, seed, compiled=True), N=N)
    least = cramer_rao(task, n)
    on = task.Q > 0
    inside_P = np.abs(fit.V - task.P) <= 1.96 * fit.stderr.V
    inside_Q = (np.abs(fit.A - task.Q) <= 1.96 * fit.stderr.A)[on]
    numbers = rounded(
        ratio_P=np.square(fit.V - task.P).sum() / least.P.sum(),
        ratio_Q=np.square(fit.A - task.Q)[on].sum() / least.Q.sum(),
        inside_P=inside_P.mean(),
        inside_Q=inside_Q.mean(),
    )
    place = np.digitize(task.P / np.sqrt(least.P), EDGES[1:-1])
    near = [[int(inside_P[place == i].sum()), int((place == i).sum())] for i in range(len(EDGES) - 1)]
    return numbers | wrong(task, fit) | {"near": near}


def sequences(case: Case) -> Row:
    """One long sequence, whose contexts depend on each other; and the moments alone."""
    import scb

    seed = 30_000 + case["seed"]
    task = scb.Task.random(4, 50, 2, seed=seed)
    tokens = scb.generate(task, 200_000, seed=seed)
    start = time.process_time()
    fit = scb.recover(tokens, N=4, max_lag=50)
    seconds = time.process_time() - start
    inside = np.mean(np.abs(fit.V - task.P) <= 1.96 * fit.stderr.V)
    moments = scb.recover(tokens, N=4, max_lag=50, method="spectral")
    marked = [len(s) for s in moments.support]
    numbers = rounded(seconds=seconds, worst=np.abs(fit.V - task.P).max(), inside_P=inside)
    numbers |= {"fewest": min(marked), "most": max(marked)}
    return numbers | wrong(task, fit) | wrong(task, moments, "moments_")


def levels(case: Case) -> Row:
    """False positions of the moments in 50 fits, where 0.5 of them are allowed for on average."""
    import scb

    found = []
    for i in range(50):
        seed = 50_000 + 50 * case["block"] + i
        task = scb.Task.random(case["N"], case["T"], 2, seed=seed)
        batch = scb.sample(task, 4000, seed, compiled=True)
        fit = scb.recover(batch, N=case["N"], method="spectral", false_positions=0.5)
        found.append(wrong(task, fit)["false"])
    return {"fits": 50, "false": sum(found), "rate": sum(found) / 50}


def cost(case: Case) -> Row:
    """Seconds of one core, and the most memory that the process has held, tokens and imports included."""
    import scb

    N, T, seed = case["N"], case["T"], 40_000 + case["seed"]
    scb.recover(scb.sample(scb.Task.random(N, 50, 2), 500), N=N)  # kernels are loaded
    task = scb.Task.random(N, T, 2, seed=seed)
    batch = scb.sample(task, case["n"], seed, compiled=True)
    start = time.process_time()
    fit = scb.recover(batch, N=N)
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return rounded(seconds=seconds, memory=memory) | wrong(task, fit)


def curve(case: Case) -> Row:
    """Whether the support is right, for each number of samples; the samples are nested."""
    import scb

    seed = 10_000 + case["seed"]
    task = scb.Task.random(3, case["T"], 2, seed=seed)
    batch = scb.sample(task, max(SIZES), seed, compiled=True)
    return {"right": [is_right(wrong(task, scb.recover(batch[:n], N=3))) for n in SIZES]}


# ------------------------------------------------------------------------------------------------------- the tables


def support_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """How often the support is exactly right."""
    lines = []
    for (N, T, n), some in group(rows, "N", "T", "n").items():
        right, missed = _success(some, "")
        cells = [f"{right} ({wilson(sum(is_right(row) for row in some), len(some))})", missed]
        both = [row for row in some if "moments_missed" in row]
        lines.append([N, f"{T:,}", f"{n:,}", *cells, *(_success(both, "moments_") if both else ["", ""])])
    headings = "N|T|n|support exactly right (95 % interval)|missed, false|moments alone: right|missed, false"
    return table_of(headings, lines)


def _success(rows: list[Row], prefix: str) -> list[str]:
    """How many supports are right, and how many positions are missed and false in all."""
    missed, false = (sum(row[prefix + name] for row in rows) for name in ("missed", "false"))
    return [so_many(sum(is_right(row, prefix) for row in rows), len(rows)), f"{missed}, {false}"]


def bound_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Errors against the bound, and coverage."""
    lines = []
    for (N, n), some in group(rows, "N", "n").items():
        ratios = [_mean([row[f"ratio_{name}"] for row in some]) for name in "PQ"]
        inside = [percent(float(np.mean([row[f"inside_{name}"] for row in some]))) for name in "PQ"]
        right = sum(is_right(row) for row in some)
        lines.append([N, f"{n:,}", *ratios, *inside, so_many(right, len(some))])
    headings = "N|n|squared error / bound, P|Q|within 1.96 standard errors, P|Q|support exactly right"
    return table_of(headings, lines)


def _mean(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ± {np.std(values) / np.sqrt(len(values)):.2f}"


def near_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Coverage of entries of P by how far they lie from 0."""
    lines = []
    total = np.sum([row["near"] for _, row in rows], axis=0)
    for low, high, (inside, of) in zip(EDGES[:-1], EDGES[1:], total.tolist(), strict=True):
        words = f"more than {low:g}" if high == np.inf else f"{low:g} to {high:g}"
        if of:
            lines.append([words, f"{of:,}", percent(inside / of)])
    return table_of("true value, in standard errors|entries of P|within 1.96 standard errors of the estimate", lines)


def cost_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Seconds and memory."""
    lines = []
    for (N, T, n), some in group(rows, "N", "T", "n").items():
        seconds = [row["seconds"] for row in some]
        spent = [f"{np.median(seconds):.1f} ({max(seconds):.1f})", f"{max(row['memory'] for row in some):.2f}"]
        lines.append([N, f"{T:,}", f"{n:,}", f"{n * T / 1e9:.1f}", *spent, _success(some, "")[0]])
    return table_of("N|T|n|tokens, GB|seconds, median (largest)|memory, GB|support exactly right", lines)


def curve_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Success against n, a column for each T; where it passes a half and 90 %, and how far apart that is."""
    found = group(rows, "T")
    shares = [np.mean([row["right"] for row in some], axis=0) for some in found.values()]
    lines = [[n, *(percent(share[i], ".0f") for share in shares), ""] for i, n in enumerate(SIZES)]
    for words, level in (("half right at n =", 0.5), ("90 % right at n =", 0.9)):
        crossings = [_crossing(share, level) for share in shares]
        lines.append([words, *(f"{n:.0f}" for n in crossings), f"{max(crossings) / min(crossings):.2f}"])
    lines.append(["tasks", *(len(some) for some in found.values()), ""])
    return table_of("n|" + "|".join(f"T = {T:,}" for (T,) in found) + "|largest / smallest", lines)


def _crossing(share: Any, level: float) -> float:
    """n at which the share first reaches the level, linear in log n; NaN if it does not, the smallest n if it starts there."""
    above = np.flatnonzero(share >= level)
    if above.size == 0:
        return np.nan
    i = int(above[0])
    if i == 0:
        return float(SIZES[0])
    a = (level - share[i - 1]) / (share[i] - share[i - 1])
    return float(np.exp((1 - a) * np.log(SIZES[i - 1]) + a * np.log(SIZES[i])))


# -------------------------------------------------------------------------------------------------------- the cases

SUPPORTS = ((3, 500, 4000, 100), (3, 5000, 4000, 100), (3, 50_000, 4000, 100), (10, 5000, 20_000, 40), (20, 5000, 20_000, 40))
COSTS = ((3, 50_000, 4000, 5), (100, 20_000, 50_000, 4))
CURVE = ((500, 30), (5000, 30), (50_000, 30), (500_000, 15))
SECTIONS = {
    "support": Section(
        [{"N": N, "T": T, "n": n, "seed": seed} for N, T, n, seeds in SUPPORTS for seed in range(seeds)],
        support,
        {"support": support_table},
    ),
    "bound": Section(
        [{"N": N, "n": n, "seed": seed} for N in (3, 10) for n in (5000, 20_000) for seed in range(100)],
        bound,
        {"bound": bound_table, "near 0": near_table},
    ),
    "sequences": Section([{"seed": seed} for seed in range(20)], sequences),
    "levels": Section([{"N": N, "T": T, "block": block} for block in range(20) for N, T in ((3, 60), (3, 300), (10, 300))], levels),
    "cost": Section(
        [{"N": N, "T": T, "n": n, "seed": seed} for N, T, n, seeds in COSTS for seed in range(seeds)], cost, {"cost": cost_table}
    ),
    "curve": Section([{"T": T, "seed": seed} for T, tasks in CURVE for seed in range(tasks)], curve, {"curve": curve_table}),
}

if __name__ == "__main__":
    main(__doc__, KEPT, "explanation/recovery.md", SECTIONS)
