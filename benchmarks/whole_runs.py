"""Whole runs beside the time of their kernels, on the CPU or on a GPU; and many runs at once.

    python benchmarks/whole_runs.py [--device cuda] [--out FILE] [--seconds S] [--only NAME ...]

The kernels' time of a run is that of its steps, taken again without anything between them but the roundings, and of the gradients
of its held-out samples. A line of JSON for each case goes to FILE.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from scb.task import Task
from scb.task.sampling import step_keys
from scb.training.loop import advanced, asked, choose_engine, first, train
from scb.training.many import train_many
from scb.training.recipes import RECIPES
from scb.training.recipes.recipe import Recipe
from scb.training.run import Run
from scb.training.sources.sampled import Fresh
from scb.training.verdict import HELD_OUT, HeldOut

CASES = {
    "cpu": {
        "paper, N = 3": ("paper", 3, 5000),
        "paper, N = 20": ("paper", 20, 5000),
        "paper, N = 100": ("paper", 100, 5000),
        "tuned, N = 3": ("tuned", 3, 5000),
        "tuned, N = 20": ("tuned", 20, 5000),
    },
    "cuda": {
        "paper, N = 3": ("paper", 3, 5000),
        "paper, N = 20": ("paper", 20, 5000),
        "paper, N = 100": ("paper", 100, 5000),
        "tuned, N = 10": ("tuned", 10, 100_000),
        "tuned, N = 50": ("tuned", 50, 100_000),
        "tuned, N = 100": ("tuned", 100, 100_000),
    },
}
MANY = 64


def fixed(recipe: Recipe, run: Run) -> Recipe:
    """The recipe with stages as long as they were in a run, and nothing to stop them."""
    stages = []
    for number, stage in enumerate(recipe.stages, start=1):
        before = run.history["step"][run.history["stage"] < number].max(initial=0)
        after = run.history["step"][run.history["stage"] <= number].max(initial=0)
        stages.append(replace(stage, steps=int(after - before), stop=None))
    return replace(recipe, stages=tuple(stages))


def kernel_time(task: Task, recipe: Recipe, seed: int, device: Any) -> tuple[float, int, int]:
    """Seconds of the steps of a recipe and of its held-out samples, the steps, and their tokens."""
    engine = choose_engine(task, recipe, device, None)
    run = first(recipe, seed, None, {})
    seconds = 0.0
    tokens = 0
    while not run.finished:
        run, request = asked(run, recipe, 1 << 30, 1 << 30)
        begin = time.perf_counter()
        taken = engine.take(*request)
        seconds += time.perf_counter() - begin
        if request.stage.eta_A:
            tokens += len(request.steps) * request.stage.batch_size * task.T
        run = advanced(run, recipe, request.steps, taken)
    A = run.parameters
    source = Fresh(task) if isinstance(A, np.ndarray) else A.source
    A = A if isinstance(A, np.ndarray) else A.there
    size = HeldOut.sized(task.mu, task.K_P, task.sparsity).batch_size
    begin = time.perf_counter()
    for key in step_keys(seed, range(HELD_OUT, HELD_OUT + 2)):
        source(run.V, A, size, key)
    return seconds + time.perf_counter() - begin, run.step, tokens + 2 * size * task.T


def one(name: str, device: Any, repeats: int) -> dict[str, Any]:
    """A run and its kernels: the medians of ``repeats`` of each, side by side."""
    recipe_name, N, T = CASES[device][name]
    task = Task.random(N, T, 2, seed=0)
    recipe = RECIPES[recipe_name](task)
    run = train(task, recipe, 1, device=device, judge=True)  # compiles what is not compiled
    kernel_time(task, fixed(recipe, run), 1, device)
    tokens = 0
    whole, kernels = [], []
    for _ in range(repeats):
        begin = time.perf_counter()
        run = train(task, recipe, 1, device=device, judge=True)
        whole.append(time.perf_counter() - begin)
        seconds, steps, tokens = kernel_time(task, fixed(recipe, run), 1, device)
        kernels.append(seconds)
        assert steps == run.step
    ratios = np.divide(whole, kernels)
    return {
        "what": "run", "case": name, "device": device, "N": N, "T": T, "steps": run.step, "verdict": run.verdict,
        "whole": float(np.median(whole)), "kernels": float(np.median(kernels)), "ratio": float(np.median(ratios)),
        "low": float(ratios.min()), "high": float(ratios.max()), "n": repeats,
        "ns_per_token": 1e9 * float(np.median(kernels)) / tokens,
    }  # fmt: skip


def many(device: Any) -> dict[str, Any]:
    """64 runs of the paper's size at once, beside one of them."""
    tasks = [Task.random(3, 5000, 2, seed=seed) for seed in range(MANY)]
    recipes = [RECIPES["paper"](task) for task in tasks]
    alone = train(tasks[-1], recipes[-1], MANY - 1, device=device)
    train_many(tasks[:2], recipes[:2], [0, 1], device=device)
    runs: list[Run] = []
    single, together = [], []
    for _ in range(3):
        begin = time.perf_counter()
        train(tasks[-1], recipes[-1], MANY - 1, device=device)
        single.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        runs = train_many(tasks, recipes, range(MANY), device=device)
        together.append(time.perf_counter() - begin)
    same = all(np.array_equal(getattr(runs[-1], name), getattr(alone, name)) for name in ("V", "A"))
    same = same and all(np.array_equal(runs[-1].history[x], alone.history[x], equal_nan=True) for x in alone.history)
    ratios = np.divide(together, single)
    return {
        "what": "many", "device": device, "runs": MANY, "one": float(np.median(single)), "together": float(np.median(together)),
        "ratio": float(np.median(ratios)), "low": float(ratios.min()), "high": float(ratios.max()), "n": 3, "same_bits": same,
    }  # fmt: skip


def main() -> None:
    """Time it all, and print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=Path, default=Path("whole_runs.jsonl"))
    parser.add_argument("--seconds", type=float, default=1e9, help="no case begins after so many")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=None, help="names of cases; 'many' is one of them")
    options = parser.parse_args()
    names = [*CASES[options.device], "many"] if options.only is None else options.only
    begun = time.monotonic()
    with options.out.open("a") as file:
        for name in names:
            if time.monotonic() - begun > options.seconds:
                print(f"{name}: left out, there is no time")
                continue
            row = many(options.device) if name == "many" else one(name, options.device, options.repeats)
            print(row, flush=True)
            file.write(json.dumps(row) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
