"""Does the algorithm work on every seed? Many runs on many random tasks; prints how often each thing holds.

    python benchmarks/algorithm.py [sign tuned tuned10 tuned20 sgd transfer softmax unknown]

All of them take about half an hour.

Each figure is over 5 random tasks × 20 seeds unless it says otherwise.
"""

from __future__ import annotations

import os

os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # the runs themselves go side by side

import multiprocessing
import sys
from collections.abc import Callable

import numpy as np

import scb
from scb.metrics import similarity_A

TASKS, SEEDS = 5, 20


def last(run: scb.Run, *columns: str) -> list[float]:
    """The last value of some columns of the history."""
    return [float(run.history[name][-1]) for name in columns]


def sign(task_seed: int, seed: int) -> list[float]:
    """The paper's recipe as printed and with the sign settled: α_A and distances at the end."""
    task = scb.Task.random(3, 5000, 2, task_seed)
    literal = scb.train(task, scb.recipes.paper(task, resolve_sign=False), seed)
    resolved = scb.train(task, scb.recipes.paper(task), seed)
    return [*last(literal, "alpha_A", "dist_A_star"), *last(resolved, "alpha_A", "dist_A_star", "dist_V")]


def show_sign(rows: np.ndarray) -> None:
    """How often the sign is right, and the truth found."""
    print(f"  literal: negative α in {np.mean(rows[:, 0] < 0):.0%}; star within 0.05 of Q in {np.mean(rows[:, 1] <= 0.05):.0%}")
    print(f"  resolved: negative α in {np.mean(rows[:, 2] < 0):.0%}; star within 0.05 of Q in {np.mean(rows[:, 3] <= 0.05):.0%}")
    slow = rows[:, 2] < 0.3
    print(
        f"  resolved, α_A at the end: quartiles {np.percentile(rows[:, 2], (25, 50, 75)).round(3)};"
        f" below 0.3 (slow) in {slow.mean():.0%}"
    )


def tuned(task_seed: int, seed: int, N: int = 3) -> list[float]:
    """The tuned recipe at its end and before normalisation, and SGD with as many samples."""
    task = scb.Task.random(N, 5000, 2, task_seed)
    run = scb.train(task, scb.recipes.tuned(task), seed)
    end = np.flatnonzero(run.history["stage"] == 2)[-1]
    before = [float(run.history[name][end]) for name in ("samples", "dist_A", "dist_V")]
    # SGD with the samples that tuned took before its normalisation: the same stages with λ = 0, and no thresholding between
    batch = scb.recipes.tuned(task).stages[0].batch_size
    steps = int(np.max(run.history["step"][run.history["stage"] == 1])), int(run.history["step"][end])
    baseline = scb.train(
        task, scb.recipes.sgd(task, eta=(0.02, 0.02), steps=(steps[0], steps[1] - steps[0]), batch_size=batch), seed
    )
    return [
        *last(run, "dist_A", "dist_V", "samples"),
        *before,
        *last(baseline, "samples", "dist_A", "dist_A_star", "dist_V"),
    ]


def tuned10(task_seed: int, seed: int) -> list[float]:
    """The tuned recipe at N = 10."""
    return tuned(task_seed, seed, 10)


def tuned20(task_seed: int, seed: int) -> list[float]:
    """The tuned recipe at N = 20."""
    return tuned(task_seed, seed, 20)


def show_tuned(rows: np.ndarray) -> None:
    """How often the truth is found, with how many samples, and how SGD fares."""
    good = (rows[:, 0] <= 0.05) & (rows[:, 1] <= 0.05)
    print(
        f"  ‖A−Q‖ and ‖V−P‖ ≤ 0.05 in {good.sum()} of {len(rows)};"
        f" medians {np.median(rows[:, :2], axis=0).round(4)}, largest {rows[:, :2].max(axis=0).round(4)}"
    )
    print(f"  samples: median {np.median(rows[:, 2]):,.0f}, largest {rows[:, 2].max():,.0f}")
    print(
        f"  before normalisation: ‖A−Q‖ median {np.median(rows[:, 4]):.3f}; SGD {np.median(rows[:, 7]):.3f};"
        f" SGD worse in {np.mean(rows[:, 7] > rows[:, 4]):.0%}"
    )
    print(
        f"  after normalisation, SGD: ‖A−Q‖ median {np.median(rows[:, 8]):.4f}, ≤ 0.05 in {np.mean(rows[:, 8] <= 0.05):.0%};"
        f" ‖V−P‖ median {np.median(rows[:, 9]):.3f}"
    )


def sgd(task_seed: int, seed: int) -> list[float]:
    """Four recipes of the paper's experiment on one task."""
    task = scb.Task.random(3, 5000, 2, task_seed)
    rows = []
    for recipe in (
        scb.recipes.paper(task),
        scb.recipes.paper(task, lam=1e-4),
        scb.recipes.sgd(task),
        scb.recipes.sgd(task, eta=(0.01, 0.001)),
    ):
        rows += last(scb.train(task, recipe, seed), "dist_A", "dist_V", "dist_A_star", "alpha_A")
    return rows


def show_sgd(rows: np.ndarray) -> None:
    """Distances of the four recipes, and how often the proximal ones are ahead."""
    names = "prox λ = 1e-5", "prox λ = 1e-4", "SGD η₂", "SGD η₂'"
    for i, name in enumerate(names):
        print(
            f"  {name:<14} median ‖A−Q‖ {np.median(rows[:, 4 * i]):.3f}, ‖V−P‖ {np.median(rows[:, 4 * i + 1]):.3f},"
            f" star ‖A−Q‖ ≤ 0.05 in {np.mean(rows[:, 4 * i + 2] <= 0.05):.0%}"
        )
    for i in (0, 1):
        better = rows[:, 4 * i] < rows[:, 8]
        print(
            f"  {names[i]} better than SGD η₂ in ‖A−Q‖ before normalisation: {better.mean():.0%}"
            f" (among α_A > 0.3 of SGD: {better[rows[:, 11] > 0.3].mean():.0%})"
        )


def transfer(task_seed: int, seed: int) -> list[float]:
    """Transfer at six settings: whether the first step finds the support, distances, samples."""
    rows = []
    for overlap in (0.3, 0.6):
        for T in (500, 5000, 50_000):
            task = scb.Task.random(3, T, 2, task_seed)
            recipe = scb.recipes.transfer(task, task.related(overlap, task_seed + 1000).P)
            found = []

            def look(run: scb.Run, recipe: scb.Recipe = recipe, task: scb.Task = task, found: list = found) -> None:
                if run.step == 1:
                    _, A = recipe.stages[1].enter[0](run.V, run.A, recipe.mu)
                    found.append(float(np.array_equal(A.min(axis=0) + 1e-9 < A, task.Q > 0)))

            run = scb.train(task, recipe, seed, every=1, callbacks=[look])
            rows += [found[0], *last(run, "dist_A", "dist_V", "samples")]
    return rows


def show_transfer(rows: np.ndarray) -> None:
    """Support, distances and samples of each setting."""
    for i, (overlap, T) in enumerate((o, T) for o in (0.3, 0.6) for T in (500, 5000, 50_000)):
        support, dist_A, dist_V, samples = rows[:, 4 * i : 4 * i + 4].T
        both = (dist_A <= 0.05) & (dist_V <= 0.05)
        print(
            f"  overlap {overlap}, T = {T:>6,}: support right after the first step {support.mean():.0%};"
            f" both ≤ 0.05 {both.mean():.0%}; largest {dist_A.max():.3f} {dist_V.max():.3f};"
            f" samples {samples.min():,.0f} to {samples.max():,.0f}"
        )


def softmax(task_seed: int, seed: int) -> list[float]:
    """Softmax and linear attention on one task: similarity with Q, and losses."""
    task = scb.Task.random(10, 50, 2, task_seed)
    one = scb.train(task, scb.recipes.softmax(task), seed, every=100)
    two = scb.train(task, scb.recipes.tuned(task), seed)
    return [similarity_A(task, one.A), similarity_A(task, two.A), *last(one, "loss"), *last(two, "loss")]


def show_softmax(rows: np.ndarray) -> None:
    """The least similarity, and the largest difference of the losses."""
    gap = np.abs(rows[:, 2] / rows[:, 3] - 1)
    print(
        f"  μ-cosine with Q: softmax min {rows[:, 0].min():.3f}, linear min {rows[:, 1].min():.3f};"
        f" losses differ by at most {gap.max():.2%}"
    )


def unknown(task_seed: int, seed: int) -> list[float]:
    """The tuned recipe when μ, K_P and K_Q are estimated."""
    task = scb.Task.random(3, 5000, 2, task_seed)
    recipe = scb.recipes.tuned(task, known=False, seed=seed)
    return last(scb.train(task, recipe, seed), "dist_A", "dist_V", "samples")


def show_unknown(rows: np.ndarray) -> None:
    """How often the truth is found."""
    print(f"  μ, K_P, K_Q estimated: both ≤ 0.05 in {np.sum((rows[:, 0] <= 0.05) & (rows[:, 1] <= 0.05))} of {len(rows)}")


STUDIES: dict[str, tuple[Callable, Callable, int, int]] = {
    "sign": (sign, show_sign, TASKS, SEEDS),
    "tuned": (tuned, show_tuned, TASKS, SEEDS),
    "tuned10": (tuned10, show_tuned, TASKS, 4),
    "tuned20": (tuned20, show_tuned, TASKS, 4),
    "sgd": (sgd, show_sgd, TASKS, SEEDS),
    "transfer": (transfer, show_transfer, TASKS, SEEDS),
    "softmax": (softmax, show_softmax, TASKS, SEEDS),
    "unknown": (unknown, show_unknown, TASKS, SEEDS),
}

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for name in sys.argv[1:] or STUDIES:
            run, show, tasks, seeds = STUDIES[name]
            rows = pool.starmap(run, [(t, s) for t in range(tasks) for s in range(seeds)], chunksize=1)
            print(f"{name}: {tasks} tasks × {seeds} seeds", flush=True)
            show(np.array(rows))
