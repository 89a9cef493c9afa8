"""Tokens a second on a GPU: our whole steps, beside PyTorch's and JAX's in the same run; and from which size on the GPU wins.

    python benchmarks/gpu.py [--out FILE] [--ours-only]

A step draws a mini-batch, differentiates and updates V and A with λ > 0. PyTorch and JAX (``gpu_baselines.py``) take parts of the
batch that fit into memory, at T = 5,000 for every N. Each of them has a process of its own: all compile side by side, then they
are timed one after the other, alone on the GPU.
"""

import argparse
import json
import multiprocessing
import os
import time
from pathlib import Path
from queue import Empty
from typing import Any

import numba
import numpy as np
from gpu_baselines import BASELINES, profile, stage_of, timed

from scb.geometry import line_A, line_V
from scb.kernels.cuda.device import Gpu
from scb.task import Task
from scb.task.sampling import step_keys
from scb.training.cuda import Cuda
from scb.training.engine import Fused, hyperparameters

SIZES = (
    (3, 5000, 1 << 20),
    (10, 5000, 1 << 20),
    (20, 5000, 1 << 20),
    (3, 100_000, 1 << 17),
    (10, 100_000, 1 << 17),
    (20, 100_000, 1 << 17),
    (100, 100_000, 1 << 17),
    (500, 100_000, 1 << 17),
    (500, 100_000, 1 << 20),
)
PART = 1 << 27  # tokens that PyTorch and JAX have in memory at a time
COMPILING = 150.0  # seconds that a baseline may take to compile


def ours(task: Task, batch_size: int, repeats: int) -> float:
    """Seconds a step."""
    engine = Cuda(task)
    steps = engine._steps
    steps.put(0, line_V(task, 0.3), line_A(task, 0.3))
    steps.set_rates(0, hyperparameters(stage_of(task, batch_size), task.mu), plain=False)
    times = []
    for i in range(4):
        keys = step_keys(i, range(repeats))[:, None]
        begin = time.perf_counter()
        done, *_ = steps.take([0], keys, batch_size)  # waits for the GPU
        times.append((time.perf_counter() - begin) / repeats)
        assert done[0] == repeats
    return float(np.median(times[1:]))


def processor(task: Task, batch_size: int, repeats: int) -> float:
    """Seconds a step of the engine on the processor."""
    numba.set_num_threads(min(4, numba.get_num_threads()))
    engine = Fused(task)
    V, A = line_V(task, 0.3), line_A(task, 0.3)
    times = []
    for i in range(3):
        begin = time.perf_counter()
        engine.take(V, A, task.mu, stage_of(task, batch_size), i, range(repeats))
        times.append((time.perf_counter() - begin) / repeats)
    return float(np.median(times[1:]))


def contend(name: str, N: int, compiled: Any, alone: Any, results: Any) -> None:
    """In a process of its own: compile a baseline's step, wait for the others, be timed; 10⁹ tokens per second, or NaN and why."""
    task = Task.random(N, 5000, 2, seed=0)
    rows = PART // task.T
    found: dict[str, Any] = {"what": "rival", "name": name, "N": N, "T": task.T, "B": rows}
    step = None
    try:
        step = BASELINES[name](task, rows)
        timed(*step, repeats=1)
    except Exception as error:  # out of memory, or it cannot be compiled: a result, too
        found |= {"rate": float("nan"), "failed": f"{type(error).__name__}: {str(error)[:200]}"}
    compiled.wait(COMPILING)
    with alone:
        if step is not None and "rate" not in found:
            found["rate"] = rows * task.T / timed(*step) / 1e9
            if name.startswith("PyTorch"):
                found["kernels"] = profile(*step)
        results.put(found)


def baselines(names: list[str]) -> list[dict[str, Any]]:
    """What each baseline reaches at each N."""
    os.environ |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    context = multiprocessing.get_context("spawn")
    cases = [(name, N) for name in names for N in (3, 10, 20, 100, 500)]
    compiled = context.Barrier(len(cases))
    alone = context.Lock()
    results = context.Queue()
    processes = [context.Process(target=contend, args=(*case, compiled, alone, results)) for case in cases]
    for process in processes:
        process.start()
    found = []
    while len(found) < len(cases) and any(process.is_alive() for process in processes):
        try:
            found.append(results.get(timeout=1.0))
        except Empty:
            continue
        print(found[-1], flush=True)
    for process in processes:
        process.join(10.0)
        process.terminate()
    return found


def main() -> None:
    """Run it all; a line of JSON for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("gpu.jsonl"))
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--crossover-only", action="store_true", help="only from which size on the GPU wins")
    parser.add_argument("--baselines", default=";".join(BASELINES), help="names, with ; between them")
    options = parser.parse_args()
    gpu = Gpu()
    with options.out.open("a") as file:

        def note(**row: Any) -> None:
            file.write(json.dumps({"gpu": gpu.name} | row) + "\n")
            file.flush()

        if not (options.ours_only or options.crossover_only):
            for row in baselines(options.baselines.split(";")):
                note(**row)
        for N, T, B in () if options.crossover_only else SIZES:
            task = Task.random(N, T, 2, seed=0)
            row = {"what": "step", "N": N, "T": T, "B": B, "ours": B * T / ours(task, B, 5 if B * T < 5e10 else 3) / 1e9}
            gpu.xp.get_default_memory_pool().free_all_blocks()
            print(row, flush=True)
            note(**row)
        for N, T in ((3, 5000), (20, 5000)):
            task = Task.random(N, T, 2, seed=0)
            for B in (12, 16, 64, 256, 1024, 4096):
                repeats = max(2, min(50, 400_000_000 // (B * T * 8)))
                row = {"what": "crossover", "N": N, "T": T, "B": B, "cuda": ours(task, B, 100), "cpu": processor(task, B, repeats)}
                print(row, flush=True)
                note(**row)


if __name__ == "__main__":
    main()
