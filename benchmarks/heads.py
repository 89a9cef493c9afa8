"""Several heads: `tuned` and `recover` on held-out tasks, the estimator on sequences, the kernel; F33 has the rest.

Rows go to FOLDER/PART.jsonl as they come; rows that are there are not made again. One thread for each process:

    python benchmarks/heads.py benchmarks/heads --parts kernel saddle small tuned sequences --seconds 3600
    python benchmarks/heads.py benchmarks/heads --parts recover --seconds 3600

Criteria, fixed before the runs. Tasks have singular values of at least a fifth of the first, 20 for each size (N, H, T):

- `tuned`: the function within 0.05 (`dist`) in 18 of 20, and every head within 0.1 (`dist_V`, `dist_A`) in 16 of 20. The verdict
  is "learned" only where both hold; `small`, with batches of a twelfth, and `saddle`, with equal heads, ask this where runs fail.
- `recover`: the number of heads, all positions and all heads (within 0.1) in 18 of 20, from a tenth of the samples that the run of
  `tuned` on the same task took; rows of `tuned` come first.
- `sequences`: with transition "auto", the number of matrices that lags share in 18 of 20, for N = 3 and 5 and H = 2 and 3. Each of
  2H lags up to 10 belongs to one head, and two are in force after each symbol; 20,000 symbols.
- `kernel`: a step of H heads takes at most 1.2·H times that of one.
"""

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np

import scb
from scb.geometry import function_distance
from scb.theory.heads import least_loss
from scb.training.engine import Fused


def held_out_task(N: int, H: int, T: int, number: int) -> scb.Task:
    """Task ``number`` of those whose singular values are at least a fifth of the first; seeds that nothing was tuned to."""
    seed = 70_000
    while True:
        task = scb.Task.random(N, T, 2, seed=seed, heads=H)
        number -= task.check()["e"].holds
        if number < 0:
            return task
        seed += 1


def trained(task: scb.Task, recipe: scb.Recipe, seed: int) -> dict[str, Any]:
    """A run: its verdict, the true distances, and what it cost."""
    begin = time.perf_counter()
    run = scb.train(task, recipe, seed=seed, every=1000)
    match = scb.metrics.match_heads(run.V, run.A, task)
    dist = function_distance((run.V, run.A), (task.P, task.Q), task.mu)
    heads_right = bool(max(match.dist_V.max(), match.dist_A.max()) <= 0.1)
    learned = run.verdict == "learned"
    return {
        "verdict": run.verdict,
        "learned": learned,
        "false_learned": learned and not (dist <= 0.05 and heads_right),
        "heads_right": heads_right,
        "sigma_2": float(run.history["sigma_2"][-1]),
        "dist": dist,
        "dist_V": match.dist_V.max(),
        "dist_A": match.dist_A.max(),
        "overlap": match.overlap.min(),
        "loss_above_one_head": float(run.history["loss"][-1]) - least_loss(task, heads=1),
        "sigma": [float(run.history[name][-1]) for name in run.history if name.startswith("sigma_")],
        "samples": run.samples,
        "steps": run.step,
        "seconds": time.perf_counter() - begin,
    }


def kernel(N: int, T: int) -> dict[str, Any]:
    """Seconds of a step with 1, 2 and 3 heads, the median of many."""
    seconds = {}
    for H in (1, 2, 3):
        task = scb.Task.random(N, T, 2, heads=H)
        V, A = task.P, task.Q
        stage = scb.Stage("2", 50, eta_V=0.01, eta_A=0.01, lam=1e-4, batch_size=64)
        engine = Fused(task)
        engine.take(V, A, task.mu, stage, 0, range(5))
        taken = []
        for repeat in range(15):
            begin = time.perf_counter()
            engine.take(V, A, task.mu, stage, repeat, range(50))
            taken.append((time.perf_counter() - begin) / 50)
        seconds[H] = float(np.median(taken))
    return {"seconds": seconds}


def recovered(task: scb.Task, n: int, seed: int) -> dict[str, Any]:
    """Whether `recover` finds the number of heads, all positions and the heads."""
    begin = time.perf_counter()
    found = scb.recover(scb.sample(task, n, seed, compiled=True), N=task.N, heads="auto")
    right = len(found.V) == task.heads if found.V.ndim == 3 else task.heads == 1
    positions = all(np.array_equal(a, b) for a, b in zip(found.support, task.support, strict=True))
    row = {"heads": 1 if found.V.ndim == 2 else len(found.V), "positions": positions, "n": n}
    row |= {"dist_V": np.inf, "dist_A": np.inf, "overlap": 0.0}
    if right and task.heads > 1:
        match = scb.metrics.match_heads(found.V, found.A, task)
        row |= {"dist_V": match.dist_V.max(), "dist_A": match.dist_A.max(), "overlap": match.overlap.min()}
    good = bool(right and positions and max(row["dist_V"], row["dist_A"]) <= 0.1)
    return row | {"right": good, "seconds": time.perf_counter() - begin}


def job(folder: Path, part: str, N: int, H: int, T: int, number: int) -> dict[str, Any]:
    """One row."""
    row: dict[str, Any] = {"part": part, "N": N, "H": H, "T": T, "number": number}
    if part == "kernel":
        return row | kernel(N, T)
    if part == "sequences":
        return row | matrices_found(N, H, number)
    task = held_out_task(N, H, T, number)
    if part == "recover":
        return row | recovered(task, samples_of_tuned(folder, N, H, T, number) // 10, number)
    recipe = scb.recipes.tuned(task, seed=number)
    if part == "small":
        recipe = scb.recipes.tuned(task, seed=number, batch_size=recipe.stages[0].batch_size // 12)
    elif part == "saddle":
        steps = recipe.stages[0].steps // 2
        recipe = scb.recipes.sgd(
            task, seed=number, start="equal", eta=(0.02, 0.02), steps=(steps, steps), batch_size=2000, projector="mu"
        )
    return row | trained(task, recipe, number)


def matrices_found(N: int, H: int, number: int) -> dict[str, Any]:
    """How many matrices the estimator finds in a sequence whose lags share H."""
    begin = time.perf_counter()
    rng = np.random.default_rng(80_000 + number)
    while True:
        positions = rng.permutation(9)[: 2 * H]
        which = np.stack([rng.choice(2 * H, 2, replace=False) for _ in range(N)], axis=1)
        weights = rng.dirichlet([9.0, 9.0], N).T
        matrices = scb.Task.random(N, 9, 2, rng, heads=H).P
        task = scb.Task.sparse(matrices, positions[which], weights, 9, which % H)
        if len(np.unique(which % H)) == H and task.check()["e"].holds:
            break
    x = scb.generate(task, 20_000, seed=number)
    model = scb.SparseContextualBigram(10, transition="auto").fit(x)
    found = 1 if isinstance(model.transition_, np.ndarray) else len({P.tobytes() for P in model.transition_.values()})
    lags = [np.sort(10 - task.positions[:, k]) for k in range(N)]
    attention = model.attention_
    same = all(np.array_equal(attention[[k]].indices + 1, lags[k]) for k in range(attention.shape[0]))  # pyright: ignore[reportOptionalSubscript]
    row = {"found": found, "right": found == H, "lags": int(np.unique(which).size), "lags_right": same}
    return row | {"seconds": time.perf_counter() - begin}


KEYS = ("N", "H", "T", "number")


def samples_of_tuned(folder: Path, *key: int) -> int:
    """How many samples the run of `tuned` on a task took."""
    return next(row["samples"] for row in rows_of(folder / "tuned.jsonl") if key == tuple(row[name] for name in KEYS))


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows that are there."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def jobs(part: str) -> list[tuple[Any, ...]]:
    """All rows of a part, the quick sizes first."""
    sizes = [(N, H, T) for T in (500, 5000) for N in (3, 5, 10) for H in (2, 3)]
    if part == "kernel":
        return [(part, N, 0, 5000, 0) for N in (3, 20)]
    if part == "sequences":
        return [(part, N, H, 9, number) for number in range(20) for N in (3, 5) for H in (2, 3)]
    if part in ("tuned", "recover"):
        return [(part, *size, number) for size in sizes for number in range(20)]
    return [(part, 3, H, 500, number) for number in range(15) for H in (2, 3)]


def keep(folder: Path, row: dict[str, Any]) -> None:
    """Add a row to the file of its part."""
    with (folder / f"{row['part']}.jsonl").open("a") as file:
        file.write(json.dumps(row, default=float) + "\n")


def main() -> None:
    """Make the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parts", nargs="+", default=["kernel", "tuned", "small", "saddle", "sequences"])
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--T", type=int, default=None, help="only tasks with this many positions")
    parser.add_argument("--most", type=int, default=None, help="rows of each part, for a trial")
    args = parser.parse_args()
    end = time.time() + args.seconds
    args.folder.mkdir(exist_ok=True)
    rows = [row for part in args.parts for row in rows_of(args.folder / f"{part}.jsonl")]
    done = {tuple(row[name] for name in ("part", *KEYS)) for row in rows}
    wanted = [one for part in args.parts for one in jobs(part)[: args.most] if one not in done]
    wanted = [one for one in wanted if args.T in (None, one[3])]
    # Timings by themselves, and compiled code on disk before there are many processes
    for one in [w for w in wanted if w[0] == "kernel"]:
        keep(args.folder, job(args.folder, *one))
    if set(args.parts) - {"sequences"}:
        kernel(3, 50)
    rest = [w for w in wanted if w[0] != "kernel"]
    pool = ProcessPoolExecutor(args.processes)
    futures = [pool.submit(job, args.folder, *one) for one in rest]
    try:
        for future in as_completed(futures, timeout=max(end - time.time(), 1)):
            keep(args.folder, future.result())
    except TimeoutError:
        print("out of time")
    left = sum(not future.done() for future in futures)
    print(f"{len(rest) - left} of {len(rest)} rows")
    os._exit(0)


if __name__ == "__main__":
    main()
