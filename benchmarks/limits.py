"""Is ``scb.recover`` at the limit of what samples can tell, and does it know where it is not? On tasks that no test has used.

    python benchmarks/limits.py [positions missed coverage verdicts times] [--jobs 2] [--seconds 200] [--out FOLDER]

Results are kept in benchmarks/limits/, a file for each part; what is there is not run again. Tables of docs/explanation/recovery.md
come from there. Tasks are drawn by plain code that shares nothing with the library.

``positions``: the least n on a ladder, in steps of 8 %, at which all positions are right; beside that of a test that knows P.
``missed``: columns that lack a position, whether they are marked, and whether their intervals hold; at an n that misses some.
``coverage``: intervals of P by distance from 0, and squared errors over the Cramér–Rao bound.
``verdicts``: what training says of itself where a small weight may be missed.
``times``: the estimator with one matrix for all lags, or one for each.
"""

from pathlib import Path
from typing import Any

import numpy as np
from study import Case, Row, Section, group, main, percent, rounded, so_many, table_of, wilson

KEPT = Path(__file__).with_suffix("")
STEP = 1.08
EDGES = (2.0, 4.0, 6.0)  # how far entries of P lie from 0, in standard errors


# -------------------------------------------------------------------------------------------------------------- tasks


def draw_P(kind: str, N: int, rng: Any) -> Any:
    """(N, N): a transition matrix with distributions in columns."""
    if kind == "flat":
        P = rng.dirichlet(np.full(N, 3.0), N).T
    elif kind == "permutation":
        P = np.full((N, N), 0.2 / N)
        P[rng.permutation(N), np.arange(N)] += 0.8
    elif kind == "near-permutation":
        P = np.full((N, N), 0.04 / N)
        P[rng.permutation(N), np.arange(N)] += 0.96
    elif kind == "block":
        blocks = max(2, round(N**0.5))
        block = rng.permutation(np.arange(N) % blocks)
        follows = rng.permutation(blocks)[block]
        P = np.full((N, N), 0.1 / N)
        for m in range(N):
            inside = block == follows[m]
            P[inside, m] += 0.9 * rng.dirichlet(np.full(inside.sum(), 2.0))
    elif kind == "zipf":
        frequencies = 1 / np.arange(1, N + 1)
        P = rng.dirichlet(N * frequencies / frequencies.sum(), N).T + 1e-6
    else:
        P = rng.dirichlet(np.full(N, 0.5), N).T + 1e-6
    return P / P.sum(axis=0)


def draw_task(case: Case) -> Any:
    """A task with two positions after each token, whose weights are Dirichlet(8); or of the library's own kind."""
    import scb

    N, T = case["N"], case["T"]
    if case["kind"] == "strong":
        return scb.Task.random(N, T, 2, seed=case["seed"])
    rng = np.random.default_rng([33, case["seed"], N, T])
    P = draw_P(case["kind"], N, rng)
    Q = np.zeros((T, N))
    common = rng.choice(T, 2, replace=False)
    for k in range(N):
        where = common if case.get("common") else rng.choice(T, 2, replace=False)
        Q[where, k] = rng.dirichlet([8.0, 8.0])
    return scb.Task(P, Q)


def some(batch: Any, n: int) -> Any:
    """The first n samples."""
    from scb.task.sampling import Batch

    return Batch(batch.context[:n], batch.last[:n], batch.label[:n])


def wrong(task: Any, support: Any) -> tuple[int, int]:
    """Positions missed, and false ones."""
    pairs = list(zip(task.support, support, strict=True))
    return sum(np.setdiff1d(a, b).size for a, b in pairs), sum(np.setdiff1d(b, a).size for a, b in pairs)


# ---------------------------------------------------------------------------------------------- the test that knows P


def fitted(D: Any) -> tuple[Any, float]:
    """Probabilities (n,) of the labels, from those under each slot (n, s), and their log-likelihood at the best weights."""
    q = np.full(D.shape[1], 1 / D.shape[1])
    for _ in range(300):
        growth = (D / (D @ q)[:, None]).mean(axis=0)
        q = q * growth
        if growth.max() < 1 + 1e-4:
            break
    f = D @ q
    return f, float(np.log(f).sum())


def with_P_known(task: Any, batch: Any) -> list[Any]:
    """The positions that the extended BIC asks for after each token, one at a time by their scores, where P is known."""
    T, N = task.Q.shape
    found = []
    for k in range(N):
        mine = batch.last == k
        labels = batch.label[mine]
        at = task.P[labels[:, None], batch.context[mine]]  # (n, T)
        slots = [(task.P @ task.mu)[labels]]
        cost = np.log(max(len(labels), 2)) + 2 * np.log(N * T)
        f, loglik = fitted(np.array(slots).T)
        positions: list[int] = []
        while len(labels):
            change = (at - slots[0][:, None]) / f[:, None]
            score = change.sum(axis=0) / np.sqrt((change**2).sum(axis=0))
            score[positions] = -np.inf
            best = int(score.argmax())
            after, higher = fitted(np.array([*slots, at[:, best]]).T)
            if 2 * (higher - loglik) < cost:
                break
            positions.append(best)
            slots.append(at[:, best])
            f, loglik = after, higher
        found.append(np.sort(positions))
    return found


# --------------------------------------------------------------------------------------------------------- the fits


def positions(case: Case) -> Row:
    """The rung of the ladder from which on each method is right, and false positions of all fits on the way."""
    import scb

    task = draw_task(case)
    N = case["N"]
    batch = scb.sample(task, size(case["most"]), seed=case["seed"])

    def known(rung: int) -> bool:
        return wrong(task, with_P_known(task, some(batch, size(rung)))) == (0, 0)

    false = []

    def ours(rung: int) -> bool:
        missed, wrongly = wrong(task, scb.recover(some(batch, size(rung)), N=N).support)
        false.append(wrongly > 0)
        return missed == wrongly == 0

    limit = first_right(known, case["start"], case["most"])
    return {"known": limit, "ours": first_right(ours, limit, case["most"]), "fits": len(false), "false": sum(false)}


def size(rung: int) -> int:
    """Samples at a rung of the ladder."""
    return round(STEP**rung)


def first_right(is_right: Any, start: int, most: int) -> int:
    """The lowest rung near ``start`` from which a method is right: down while it is, or else up until it is."""
    rung = min(start, most)
    if is_right(rung):
        while is_right(rung - 1):
            rung -= 1
        return rung
    while rung < most and not is_right(rung + 1):
        rung += 1
    return rung + 1


def missed(case: Case) -> Row:
    """Columns with a missed position: how many are marked, or have intervals that hold; complete ones that are marked."""
    import scb

    task = draw_task(case)
    fit = scb.recover(scb.sample(task, case["n"], seed=case["seed"]), N=case["N"])
    _, false = wrong(task, fit.support)
    counts = {"missed": 0, "marked": 0, "held": 0, "false_marks": 0, "complete": 0, "complete_held": 0, "false": false}
    for k, interval in enumerate(fit.intervals()):
        truth = task.Q[fit.support[k], k]
        holds = bool(((interval[:, 0] <= truth) & (truth <= interval[:, 1])).all())
        if np.setdiff1d(task.support[k], fit.support[k]).size:
            counts["missed"] += 1
            counts["marked"] += int(fit.incomplete[k])
            counts["held"] += int(holds and not fit.incomplete[k])
        else:
            counts["complete"] += 1
            counts["false_marks"] += int(fit.incomplete[k])
            counts["complete_held"] += int(holds)
    return counts


def coverage(case: Case) -> Row:
    """Entries of P in their intervals by their distance from 0, and squared errors over the Cramér–Rao bound."""
    import scb
    from scb.theory.information import cramer_rao

    N, n = case["N"], case["n"]
    task = draw_task(case)
    fit = scb.recover(scb.sample(task, n, seed=case["seed"]), N=N)
    least = cramer_rao(task, n)
    ends = fit.intervals().V
    inside = (ends[..., 0] <= task.P) & (ends[..., 1] >= task.P)
    simple = np.abs(fit.V - task.P) <= 1.96 * fit.stderr.V
    place = np.digitize(task.P / np.sqrt(least.P), EDGES)
    counts = [[int((place == i).sum()), int(inside[place == i].sum()), int(simple[place == i].sum())] for i in range(4)]
    far = place >= 2
    on = task.Q > 0
    errors = np.square(fit.V - task.P)
    ratios = rounded(
        ratio_P=errors.sum() / least.P.sum(),
        ratio_far=errors[far].sum() / least.P[far].sum(),
        ratio_near=errors[~far].sum() / least.P[~far].sum() if not far.all() else np.nan,
        ratio_Q=np.square(fit.A - task.Q)[on].sum() / least.Q.sum(),
    )
    return {"right": wrong(task, fit.support) == (0, 0), "marked": bool(fit.incomplete.any()), "near": counts} | ratios


def verdicts(case: Case) -> Row:
    """What a run says of itself, and how far from the truth it is; a third position has the ``weight``, if that is not 0."""
    import warnings

    import scb
    from scb.training.verdict import TOLERANCE

    N, T, seed = case["N"], case["T"], case["seed"]
    rng = np.random.default_rng([34, seed, N])
    Q = np.zeros((T, N))
    for k in range(N):
        *two, third = rng.choice(T, 3, replace=False)
        Q[two, k] = (1 - case["weight"]) * rng.dirichlet([8.0, 8.0])
        Q[third, k] = case["weight"]
    task = scb.Task(scb.Task.random(N, T, 2, seed=seed).P, Q)
    known = task.related(overlap=0.6, seed=seed).P if case["recipe"] == "transfer" else None
    recipe = scb.recipes.tuned(task) if known is None else scb.recipes.transfer(task, known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of runs that have failed
        run = scb.train(task, recipe, seed=seed)
    last = {name: float(run.history[name][-1]) for name in ("dist_V", "dist_A", "dist_A_star")}
    right = max(last["dist_V"], last["dist_A"]) <= TOLERANCE
    said = str(run.verdict).split(":")[0]
    return {"said": said, "right": right, "learned": said == "learned", "undecided": said == "undecided"} | rounded(**last)


def times(case: Case) -> Row:
    """Seconds of one core that the estimator takes, with one matrix for all lags or one for each, on data of either kind."""
    from time import process_time

    from held_out_tasks import drawn, mixture

    from scb import SparseContextualBigram

    rng = np.random.default_rng(case["seed"])
    x = drawn(*mixture(case["N"], (2, 5, 9), case["data"] == "per_lag", False, rng), case["n"], rng)
    model = SparseContextualBigram(12, transition=case["transition"], context=True, background="labels")
    model.fit(x)  # kernels are loaded
    seconds = []
    for _ in range(2):
        begin = process_time()
        model.fit(x)
        seconds.append(process_time() - begin)
    return rounded(seconds=min(seconds))


# ------------------------------------------------------------------------------------------------------- the tables


def positions_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """n for 90 % of the tasks, and fits with a false position."""
    lines = []
    for (kind, common, N), found in group(rows, "kind", "common", "N").items():
        known, ours = (np.quantile([size(row[name]) for row in found], 0.9) for name in ("known", "ours"))
        false = sum(row["false"] > 0 for row in found)
        where = "common" if common else "separate"
        low, high = ratio_interval(found)
        ratio = f"{ours / known:.2f} ({low:.2f} to {high:.2f})"
        lines.append(
            [
                kind,
                where,
                N,
                len(found),
                f"{known:,.0f}",
                f"{ours:,.0f}",
                ratio,
                f"{so_many(false, len(found))} ({wilson(false, len(found))})",
            ]
        )
    return table_of("P|positions|N|tasks|n, P known|n, `recover`|ratio|a false position on the way", lines)


def ratio_interval(found: list[Row]) -> Any:
    """(2,): the bootstrap's 95 % interval of the ratio of both n, over tasks."""
    sizes = STEP ** np.array([[row["known"], row["ours"]] for row in found])
    drawn = np.random.default_rng(0).integers(len(found), size=(2000, len(found)))
    known, ours = np.quantile(sizes[drawn], 0.9, axis=1).T
    return np.quantile(ours / known, (0.025, 0.975))


def missed_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Columns with a missed position, and fits with a false mark."""
    lines = []
    for (kind, N, n), found in group(rows, "kind", "N", "n").items():
        total = {name: sum(row[name] for row in found) for name in found[0]}
        good = total["marked"] + total["held"]
        marks, positions = (sum(row[name] > 0 for row in found) for name in ("false_marks", "false"))
        lines.append(
            [
                *(kind, N, f"{n:,}", len(found), total["missed"], total["marked"]),
                f"{percent(good / total['missed'])} ({wilson(good, total['missed'])})" if total["missed"] else "",
                f"{percent(total['complete_held'] / max(total['complete'], 1))}",
                f"{so_many(marks, len(found))} ({wilson(marks, len(found))})",
                f"{so_many(positions, len(found))} ({wilson(positions, len(found))})",
            ]
        )
    heads = "P|N|n|fits|columns that lack a position|marked|marked, or intervals hold|complete: intervals hold"
    return table_of(f"{heads}|a false mark|a false position", lines)


def coverage_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """How many entries of P lie in their intervals, by distance from 0."""
    lines = []
    for (kind, N, n), found in group(rows, "kind", "N", "n").items():
        right = [row for row in found if row["right"]]
        counts = np.sum([row["near"] for row in right], axis=0)
        cells = [_held(*count) if count[0] else "" for count in [*counts.tolist(), counts.sum(axis=0).tolist()]]
        marked = sum(row["marked"] for row in right)
        false = f"{so_many(marked, len(right))} ({wilson(marked, len(right))})"
        lines.append([kind, N, f"{n:,}", so_many(len(right), len(found)), *cells, false])
    return table_of("P|N|n|support right|below 2|2 to 4|4 to 6|above 6|all|a false mark", lines)


def _held(entries: int, inside: int, simple: int) -> str:
    """How often intervals hold; of how many; and how often those of ±1.96 standard errors do."""
    return f"{percent(inside / entries)} ({wilson(inside, entries)}) of {entries:,}; {percent(simple / entries)}"


def bound_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Squared errors over the bound, with the standard errors of their means; last, the mean of the rows with 5,000 samples."""
    lines = []
    at_5000 = []
    for (kind, N, n), found in group(rows, "kind", "N", "n").items():
        ratios = np.array([[row[f"ratio_{name}"] for name in ("P", "near", "far", "Q")] for row in found if row["right"]])
        counts = np.isfinite(ratios).sum(axis=0)
        means, errors = np.nanmean(ratios, axis=0), np.nanstd(ratios, axis=0, ddof=1) / counts**0.5
        lines.append([kind, N, f"{n:,}", len(ratios), *_with_errors(means, errors)])
        if n == 5000:
            at_5000.append((means, errors))
    means, errors = np.swapaxes(at_5000, 0, 1)
    pooled = _with_errors(means.mean(axis=0), np.sqrt(np.square(errors).sum(axis=0)) / len(errors))
    lines.append(["all", "", "5,000", "", *pooled])
    return table_of("P|N|n|fits|squared error / bound, P|entries below 4|above 4|Q", lines)


def _with_errors(means: Any, errors: Any) -> list[str]:
    return [f"{mean:.2f} ± {error:.2f}" for mean, error in zip(means, errors, strict=True)]


# -------------------------------------------------------------------------------------------------------- the cases

# Seeds from here on; a change of the method takes others
COVERED_FROM = 400_000  # lower ends near 0 are higher since then
# Rows are in another order since then, and Newton steps less exact
LADDER_FROM = 500_000
MISSED_FROM = 600_000
TIMED_FROM = 700_000

# Where the ladder is entered: samples of about which the test that knows P is right
ENTRIES = {3: 500, 5: 700, 10: 1100, 20: 1800, 30: 2300, 50: 3000}
FEW = (("dirichlet", 10, 1500), ("dirichlet", 20, 2500), ("dirichlet", 30, 3500), ("dirichlet", 50, 7500), ("block", 10, 1000))
FEW += (("block", 20, 1700), ("block", 30, 2200), ("block", 50, 3000))
FEW += (("permutation", 10, 350), ("permutation", 20, 800), ("permutation", 30, 1100), ("permutation", 50, 1700))
# Enough samples to find them all: the marks are false
FEW += (("near-permutation", 5, 5000), ("near-permutation", 5, 20_000), ("flat", 10, 30_000), ("flat", 20, 60_000))
COVERED = (("zipf", 5, 20_000), ("zipf", 10, 40_000), ("near-permutation", 5, 5000), ("near-permutation", 10, 5000))
COVERED += (("near-permutation", 5, 20_000), ("near-permutation", 10, 40_000))
COVERED += tuple((kind, N, n) for kind in ("dirichlet", "strong") for N in (3, 5, 10) for n in (5000, 20_000))
FITS = {3: 2700, 5: 500, 10: 200}  # so many that each distance from 0 has a few hundred entries


def _missed_fits(kind: str, N: int) -> int:
    """How many fits: more where nearly all positions are found and marks are false, and where fits miss few positions each."""
    if kind in ("flat", "near-permutation"):
        return 360
    return 400 if (kind, N) == ("block", 10) else 100


def rung(n: float) -> int:
    """The rung of the ladder next to n samples."""
    return round(float(np.log(n) / np.log(STEP)))


SECTIONS = {
    "positions": Section(
        [
            {"kind": kind, "common": common, "N": N, "T": 200, "start": rung(n), "most": rung(n) + 22, "seed": LADDER_FROM + seed}
            for seed in range(100)
            for N, n in reversed(ENTRIES.items())
            for kind in ("block", "permutation")
            for common in (False, True)
        ],
        positions,
        {"limit": positions_table},
    ),
    "missed": Section(
        [
            {"kind": kind, "N": N, "n": n, "T": 200, "seed": MISSED_FROM + number}
            for number in range(400)
            for kind, N, n in FEW
            if number < _missed_fits(kind, N)
        ],
        missed,
        {"missed": missed_table},
    ),
    "coverage": Section(
        [
            {"kind": kind, "N": N, "n": n, "T": 50, "seed": COVERED_FROM + number}
            for number in range(max(FITS.values()))
            for kind, N, n in COVERED
            if number < FITS[N]
        ],
        coverage,
        {"coverage": coverage_table, "squared errors": bound_table},
    ),
    "verdicts": Section(
        [
            {"recipe": recipe, "N": N, "T": 300, "weight": weight, "seed": seed}
            for seed in range(31_000, 31_030)
            for recipe in ("tuned", "transfer")
            for N in (3, 5, 10)
            for weight in (0.0, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1)
            if weight == 0 or seed < 31_012
        ],
        verdicts,
    ),
    "times": Section(
        [
            {"N": N, "n": n, "data": data, "transition": transition, "seed": TIMED_FROM + seed}
            for N, n in ((20, 100_000), (100, 150_000))
            for seed in range(10)
            for data in ("shared", "per_lag")
            for transition in ("shared", "per_lag")
        ],
        times,
    ),
}

if __name__ == "__main__":
    main(__doc__, KEPT, "explanation/recovery.md", SECTIONS)
