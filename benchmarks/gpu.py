"""Tokens a second on a GPU: our whole steps, beside PyTorch's and JAX's in the same process; and from which size on the GPU wins.

    python benchmarks/gpu.py [--out FILE]

A step draws a mini-batch, differentiates and updates V and A with λ > 0. PyTorch (compiled and eager) and JAX take a step as one
would write it there, in parts of the batch that fit into memory, in 32 bits, without a copy to the host, at T = 5,000 for every N.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

from scb.geometry import line_A, line_V
from scb.kernels.cuda.device import Gpu
from scb.task import Task
from scb.task.sampling import step_keys
from scb.training.cuda import Cuda
from scb.training.engine import LIMIT, Fused, hyperparameters
from scb.training.stages import Stage

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


def stage_of(task: Task, batch_size: int) -> Stage:
    """A proximal step with λ > 0."""
    eta = 0.005 if batch_size * 20 > task.N**2 else 1e-4  # small batches of many tokens would diverge
    return Stage("2", steps=1, eta_V=eta / task.K_Q, eta_A=eta / task.K_P, lam=1e-5, batch_size=batch_size)


def ours(task: Task, batch_size: int, repeats: int) -> float:
    """Seconds a step."""
    engine = Cuda(task)
    steps = engine._steps
    steps.put(line_V(task, 0.3), line_A(task, 0.3))
    hyper = hyperparameters(stage_of(task, batch_size), task.mu, LIMIT)
    times = []
    for i in range(3):
        keys = step_keys(i, range(repeats))
        begin = time.perf_counter()
        done, _ = steps.take(keys, hyper, plain=False)  # waits for the GPU
        times.append((time.perf_counter() - begin) / repeats)
        assert done == repeats
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


def torch_part(task: Task, rows: int) -> tuple[Callable[[], None], Callable[[], None], Callable[[], None]]:
    """PyTorch, eager and compiled: one part of a mini-batch, and its share of the update; and what waits for the GPU."""
    import torch

    device = torch.device("cuda")
    N, T = task.N, task.T
    f32 = {"dtype": torch.float32, "device": device}
    V = torch.tensor(np.ascontiguousarray(line_V(task, 0.3)), **f32)
    A = torch.tensor(np.ascontiguousarray(line_A(task, 0.3).T), **f32)  # (N, T)
    mu = torch.tensor(task.mu, **f32)
    edges = mu.cumsum(0)[:-1].contiguous()
    q_edges = torch.tensor(np.cumsum(task.weights, axis=0).T.copy(), **f32)
    P_edges = torch.tensor(np.cumsum(task.P, axis=0).T.copy(), **f32)
    positions = torch.tensor(np.ascontiguousarray(task.positions.T), device=device)
    index = torch.arange(rows, device=device)
    stage = stage_of(task, rows)

    def step(V: Any, A: Any) -> tuple[Any, Any, Any]:
        last = torch.bucketize(torch.rand(rows, device=device), edges).sort().values
        u = torch.rand(rows, T, device=device)
        few = N <= 20  # then comparisons are quicker, when they are compiled
        x: Any = sum((u > edge).to(torch.int32) for edge in edges) if few else torch.bucketize(u, edges, out_int32=True)
        x = x.long()
        slot = (torch.rand(rows, 1, device=device) > q_edges[last]).sum(1).clamp(max=q_edges.shape[1] - 1)
        source = x[index, positions[last, slot]]
        label = (torch.rand(rows, 1, device=device) > P_edges[source]).sum(1).clamp(max=N - 1)
        a = A[last]
        if N <= 20:
            mass = torch.stack([(a * (x == n)).sum(1) for n in range(N)], 1)
        else:
            mass = torch.zeros(rows, N, device=device).scatter_add_(1, x, a)
        r = mass @ V.T - torch.nn.functional.one_hot(label, N)
        gV = r.T @ mass / rows
        gA = torch.zeros_like(A).index_add_(0, last, (r @ V).gather(1, x)) / rows
        G = (gV - gV.mean(0)) / mu
        b = A - stage.eta_A * gA / mu[:, None]
        b = torch.sign(b) * torch.clamp(b.abs() - stage.lam, min=0)
        V = V - stage.eta_V * (G - torch.outer(G @ mu, mu) / (mu @ mu))
        return V, b + (1 - b.sum(1, keepdim=True)) / T, 0.5 * (r * r).sum() / rows

    state = [V, A]

    def run(function: Any) -> Callable[[], None]:
        def once() -> None:
            state[:] = function(*state)[:2]

        return once

    return run(step), run(torch.compile(step)), torch.cuda.synchronize


def jax_part(task: Task, rows: int) -> tuple[Callable[[], Any], Callable[[], None]]:
    """JAX, jitted: one part of a mini-batch, and its share of the update."""
    import jax
    import jax.numpy as jnp

    N, T = task.N, task.T
    stage = stage_of(task, rows)
    mu = jnp.array(task.mu, jnp.float32)
    positions = jnp.array(task.positions.T)
    edges, q_edges, P_edges = (jnp.cumsum(jnp.array(x, jnp.float32), axis=0) for x in (task.mu, task.weights, task.P))
    index = jnp.arange(rows)

    @jax.jit
    def step(V: Any, A: Any, seed: Any) -> Any:
        keys = jax.random.split(jax.random.key(seed, impl="rbg"), 4)  # the fastest generator that it has
        last = jnp.sort(jnp.searchsorted(edges[:-1], jax.random.uniform(keys[0], (rows,))))
        u = jax.random.uniform(keys[1], (rows, T))
        few = N <= 20
        x: Any = sum((u > edges[j]).astype(jnp.int32) for j in range(N - 1)) if few else jnp.searchsorted(edges[:-1], u)
        slot = (jax.random.uniform(keys[2], (rows,)) >= q_edges[:-1, last]).sum(axis=0)
        source = x[index, positions[last, slot]]
        label = (jax.random.uniform(keys[3], (rows,)) >= P_edges[:-1, source]).sum(axis=0)
        a = A[last]
        if N <= 20:
            mass = jnp.stack([(a * (x == n)).sum(1) for n in range(N)], 1)
        else:
            mass = jnp.zeros((rows, N), jnp.float32).at[index[:, None], x].add(a)
        r = mass @ V.T - jax.nn.one_hot(label, N)
        gV = r.T @ mass / rows
        scores = jnp.take_along_axis(r @ V, x, axis=1)
        gA = jax.ops.segment_sum(scores, last, N, indices_are_sorted=True) / rows
        G = (gV - gV.mean(0)) / mu
        b = A - stage.eta_A * gA / mu[:, None]
        b = jnp.sign(b) * jnp.maximum(jnp.abs(b) - stage.lam, 0)
        V = V - stage.eta_V * (G - jnp.outer(G @ mu, mu) / (mu @ mu))
        return V, b + (1 - b.sum(1, keepdims=True)) / T, 0.5 * (r * r).sum() / rows

    state = [jnp.array(line_V(task, 0.3), jnp.float32), jnp.array(np.ascontiguousarray(line_A(task, 0.3).T), jnp.float32)]
    seeds = iter(range(1000))

    def once() -> None:
        state[:] = step(state[0], state[1], next(seeds))[:2]

    return once, lambda: jax.block_until_ready(state[0])


def timed(once: Callable[[], Any], wait: Callable[[], Any], repeats: int = 5) -> float:
    """Seconds of one call, compilation left out."""
    once()
    once()
    wait()
    begin = time.perf_counter()
    for _ in range(repeats):
        once()
    wait()
    return (time.perf_counter() - begin) / repeats


def main() -> None:
    """Run it all; a line of JSON for each size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("gpu.jsonl"))
    parser.add_argument("--ours-only", action="store_true")
    options = parser.parse_args()
    gpu = Gpu()
    name = gpu.xp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    rivals: dict[int, dict[str, float]] = {}
    with options.out.open("a") as file:

        def note(**row: Any) -> None:
            file.write(json.dumps({"gpu": name} | row) + "\n")
            file.flush()
            print(row, flush=True)

        for N, T, B in SIZES:
            task = Task.random(N, T, 2, seed=0)
            row: dict[str, Any] = {"what": "step", "N": N, "T": T, "B": B}
            row["ours"] = B * T / ours(task, B, 5 if B * T < 5e10 else 3) / 1e9
            gpu.xp.get_default_memory_pool().free_all_blocks()
            if not options.ours_only:
                if N not in rivals:
                    rivals[N] = rivals_of(Task.random(N, 5000, 2, seed=0))
                row |= rivals[N]
            note(**row)
        for N, T in ((3, 5000), (20, 5000), (100, 100_000)):
            task = Task.random(N, T, 2, seed=0)
            for B in (16, 64, 256, 1024, 4096):
                seconds = {"cuda": ours(task, B, 20), "cpu": processor(task, B, max(2, min(50, 400_000_000 // (B * T * 8))))}
                note(what="crossover", N=N, T=T, B=B, **seconds)


def rivals_of(task: Task) -> dict[str, float]:
    """10⁹ tokens a second of the others."""
    T = task.T
    rows = PART // T
    found = {}
    eager, compiled, wait = torch_part(task, rows)
    for name, once in (("PyTorch, eager", eager), ("PyTorch, compiled", compiled)):
        try:
            found[name] = rows * T / timed(once, wait) / 1e9
        except Exception as error:
            found[name] = float("nan")
            print(name, type(error).__name__, str(error)[:200])
    import torch

    torch.cuda.empty_cache()
    try:
        found["JAX"] = rows * T / timed(*jax_part(task, rows)) / 1e9
    except Exception as error:
        found["JAX"] = float("nan")
        print("JAX", type(error).__name__, str(error)[:200])
    return found


if __name__ == "__main__":
    main()
