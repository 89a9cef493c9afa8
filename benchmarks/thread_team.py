"""What the engine's thread team gains over plain threads that call kernels without Python's global lock.

    python benchmarks/thread_team.py

Steps of one task are taken in three ways, in turns: on one thread, by the team of ``kernels/threads.py``, and with a pool of plain
threads, which is given the shares of each step from Python. All three give the same bits. The rounds are run on the machine as it
is, and again beside a busy process on each core. The rows are kept in benchmarks/thread_team.jsonl, and the table is written into
docs/explanation/engine.md.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

import numba
import numpy as np
from study import keep

import scb
from scb.geometry import line_A, line_V
from scb.kernels.compiler import compiled
from scb.kernels.step.batch import TILE, draw_mini_batch, share_count
from scb.kernels.step.fused import Looks, _conclude, _finish_columns, _prepare, fused_steps, take_share
from scb.kernels.step.lazy_columns import new_columns
from scb.kernels.step.share import new_memory
from scb.kernels.threads import MOST_SHARES
from scb.provenance import machine
from scb.task.sampling import step_keys
from scb.training.benchmark import busy_neighbours
from scb.training.engine import hyperparameters
from scb.training.sources.sampled import Fresh
from scb.training.stages import Stage

KEPT = Path(__file__).with_suffix(".jsonl")
STEPS = 50
ROUNDS = 25
T = 5000


@compiled
def begin_step(step, key, sampler, hyper, V, columns):
    """Draw the mini-batch of a step, and make it ready for its shares."""
    batch = draw_mini_batch(key, sampler.labels.mu, hyper.batch_size, columns.raw.shape[0], True)
    _prepare(step, batch, hyper, V, columns)
    return batch


@compiled
def one_share(share, step, batch, sampler, hyper, V, columns, memory):
    """Take one share of a step."""
    take_share(share, step, batch, sampler, hyper, V, columns, memory)


@compiled
def end_step(step, shares, batch, hyper, V, columns, memory):
    """Update V and the columns after the shares of a step."""
    return _conclude(step, shares, True, batch, hyper, V, columns, memory)


@compiled
def finish(share, shares, columns, positions, looks):
    """Apply the steps that columns have skipped, and look at them."""
    _finish_columns(share, shares, 0, columns, positions, np.inf, looks)


def plain_steps(pool: ThreadPoolExecutor, keys, sampler, hyper, V, A) -> None:
    """Steps as by ``fused_steps``; the caller takes the first share of each, and threads of the pool the others."""
    N = len(V)
    columns = new_columns(A, np.zeros(N), keys.size, hyper.per_column)
    accumulators = min(N, hyper.batch_size // (TILE + 1)) + 2 * (MOST_SHARES - 1)
    memory = new_memory(len(A), N, 1, sampler.tokens.table.dtype, accumulators)
    shares = share_count(hyper.batch_size, len(A))

    def divide(kernel: Callable[..., Any], *arguments: Any) -> None:
        others = [pool.submit(kernel, share, *arguments) for share in range(1, shares)]
        kernel(0, *arguments)
        for other in others:
            other.result()

    for step, key in enumerate(keys):
        batch = begin_step(step, key, sampler, hyper, V, columns)
        divide(one_share, step, batch, sampler, hyper, V, columns, memory)
        end_step(step, shares, batch, hyper, V, columns, memory)
    looks = Looks.room(np.array([len(keys)]), sampler, V)
    divide(finish, shares, columns, sampler.labels.positions, looks)


def ways(N: int, pool: ThreadPoolExecutor) -> dict[str, Callable[[int], tuple[np.ndarray, np.ndarray]]]:
    """The three ways of taking steps of the paper's Stage 2, each a function of the seed."""
    task = scb.Task.random(N, T, 2)
    sampler = Fresh(task).sampler
    eta = 0.005 if N <= 20 else 1e-4
    stage = Stage("2", STEPS, eta / task.K_Q, eta / task.K_P, 1e-4, 64)
    hyper = hyperparameters(stage, task.mu)
    threads = numba.get_num_threads()

    def way(take: Callable[..., Any], count: int) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
        def steps(seed: int) -> tuple[np.ndarray, np.ndarray]:
            V = np.ascontiguousarray(line_V(task, 0.3))
            A = line_A(task, 0.3)
            numba.set_num_threads(count)
            take(step_keys(seed, range(STEPS)), sampler, hyper, V, A)
            numba.set_num_threads(threads)
            return V, A

        return steps

    plain = way(lambda *given: plain_steps(pool, *given), threads)
    return {"one": way(fused_steps, 1), "team": way(fused_steps, threads), "plain": plain}


def spread(values: list[float]) -> dict[str, float]:
    """Median and range."""
    return {"median": float(np.median(values)), "least": min(values), "most": max(values)}


def measure(N: int, busy: bool) -> dict[str, Any]:
    """Microseconds per step of each way, and the ratios of the plain threads' and of one thread's time to the team's, by round."""
    times: dict[str, list[float]] = {"one": [], "team": [], "plain": []}
    with ThreadPoolExecutor(max(numba.get_num_threads() - 1, 1)) as pool, busy_neighbours() if busy else nullcontext():
        steps = ways(N, pool)
        ends = [take(0) for take in steps.values()]  # compiles
        assert all(np.array_equal(V, ends[0][0]) and np.array_equal(A, ends[0][1]) for V, A in ends)
        for seed in range(ROUNDS):
            for name, take in steps.items():
                start = perf_counter()
                take(seed)
                times[name].append((perf_counter() - start) / STEPS * 1e6)
    ratios = {f"{name}/team": spread([a / b for a, b in zip(times[name], times["team"], strict=True)]) for name in ("plain", "one")}
    return {"N": N, "busy": busy, "rounds": ROUNDS, **{name: spread(found) for name, found in times.items()}, **ratios}


if __name__ == "__main__":
    facts = {"what": "threads", "machine": machine(), "threads": numba.get_num_threads(), "load": os.getloadavg()[0]}
    rows = [facts | measure(N, busy) for busy in (False, True) for N in (3, 20, 100)]
    for row in rows:
        print(row)
    keep(KEPT, "threads", rows)
    subprocess.run([sys.executable, Path(__file__).with_name("pages.py"), "threads"], check=True)
