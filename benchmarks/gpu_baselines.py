"""A step of Algorithm 1 in PyTorch and in JAX on a GPU, as one would write it there: plainly, and tuned; beside ``gpu.py``.

Both draw one part of a mini-batch, differentiate and update V and A with λ > 0, in 32 bits and without a copy to the host.

- *plain*: tokens are integers of 64 (PyTorch) or 32 bits (JAX); scores are gathered, and added to their columns by index.
- *tuned*: tokens are bytes where they fit; up to ``FEW`` tokens scores are sums of masked terms; columns are added by a product
  with a one-hot matrix, which PyTorch may round to TF32.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from scb.geometry import line_A, line_V
from scb.task import Task
from scb.training.stages import Stage

FEW = 20  # up to here comparisons and masks are quicker than look-ups
Step = tuple[Callable[[], Any], Callable[[], Any]]  # one step, and what waits for it


def stage_of(task: Task, batch_size: int) -> Stage:
    """A proximal step with λ > 0."""
    eta = 0.005 if batch_size * 20 > task.N**2 else 1e-4  # small batches of many tokens would diverge
    return Stage("2", steps=1, eta_V=eta / task.K_Q, eta_A=eta / task.K_P, lam=1e-5, batch_size=batch_size)


def torch_step(task: Task, rows: int, *, tuned: bool, compiled: bool) -> Step:
    """PyTorch: one part of a mini-batch of ``rows`` samples, and its share of the update."""
    import torch

    torch.set_float32_matmul_precision("high" if tuned else "highest")
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
    short = torch.uint8 if N <= 256 else torch.int16

    def draw(u: Any) -> Any:
        if N <= FEW:  # comparisons fuse with what follows, when they are compiled
            x: Any = sum((u > edge).to(short if tuned else torch.int32) for edge in edges)
        else:
            x = torch.bucketize(u, edges, out_int32=True)
        return x.to(short) if tuned else x.long()

    def step(V: Any, A: Any) -> tuple[Any, Any, Any]:
        last = torch.bucketize(torch.rand(rows, device=device), edges).sort().values
        x = draw(torch.rand(rows, T, device=device))
        slot = (torch.rand(rows, 1, device=device) > q_edges[last]).sum(1).clamp(max=q_edges.shape[1] - 1)
        source = x[index, positions[last, slot]].long()
        label = (torch.rand(rows, 1, device=device) > P_edges[source]).sum(1).clamp(max=N - 1)
        a = A[last]
        if N <= FEW:
            mass = torch.stack([(a * (x == n)).sum(1) for n in range(N)], 1)
        else:
            mass = torch.zeros(rows, N, device=device).scatter_add_(1, x.long(), a)
        r = mass @ V.T - torch.nn.functional.one_hot(label, N)
        gV = r.T @ mass / rows
        u = r @ V
        if tuned and N <= FEW:
            scores: Any = sum(u[:, n : n + 1] * (x == n) for n in range(N))
        else:
            scores = u.gather(1, x.long())
        if tuned:
            gA = torch.nn.functional.one_hot(last, N).to(torch.float32).T @ scores / rows
        else:
            gA = torch.zeros_like(A).index_add_(0, last, scores) / rows
        G = (gV - gV.mean(0)) / mu
        b = A - stage.eta_A * gA / mu[:, None]
        b = torch.sign(b) * torch.clamp(b.abs() - stage.lam, min=0)
        V = V - stage.eta_V * (G - torch.outer(G @ mu, mu) / (mu @ mu))
        return V, b + (1 - b.sum(1, keepdim=True)) / T, 0.5 * (r * r).sum() / rows

    function = torch.compile(step) if compiled else step
    state = [V, A]

    def once() -> None:
        state[:] = function(*state)[:2]

    return once, torch.cuda.synchronize


def jax_step(task: Task, rows: int, *, tuned: bool) -> Step:
    """JAX, jitted: one part of a mini-batch, and its share of the update."""
    import jax
    import jax.numpy as jnp

    N, T = task.N, task.T
    stage = stage_of(task, rows)
    mu = jnp.array(task.mu, jnp.float32)
    positions = jnp.array(task.positions.T)
    edges, q_edges, P_edges = (jnp.cumsum(jnp.array(x, jnp.float32), axis=0) for x in (task.mu, task.weights, task.P))
    index = jnp.arange(rows)
    tokens = jnp.arange(N)
    short = jnp.uint8 if N <= 256 else jnp.uint16

    def draw(u: Any) -> Any:
        if N <= FEW:
            return sum((u > edges[j]).astype(short if tuned else jnp.int32) for j in range(N - 1))
        if tuned:
            return jnp.searchsorted(edges[:-1], u, method="compare_all").astype(short)
        return jnp.searchsorted(edges[:-1], u)

    @jax.jit
    def step(V: Any, A: Any, seed: Any) -> Any:
        keys = jax.random.split(jax.random.key(seed, impl="rbg"), 4)  # the fastest generator that it has
        last = jnp.sort(jnp.searchsorted(edges[:-1], jax.random.uniform(keys[0], (rows,))))
        x = draw(jax.random.uniform(keys[1], (rows, T)))
        slot = (jax.random.uniform(keys[2], (rows,)) >= q_edges[:-1, last]).sum(axis=0)
        source = x[index, positions[last, slot]].astype(jnp.int32)
        label = (jax.random.uniform(keys[3], (rows,)) >= P_edges[:-1, source]).sum(axis=0)
        a = A[last]
        if N <= FEW:
            mass = jnp.stack([(a * (x == n)).sum(1) for n in range(N)], 1)
        elif tuned:
            mass = jnp.where(x[:, :, None] == tokens, a[:, :, None], 0.0).sum(axis=1)
        else:
            mass = jnp.zeros((rows, N), jnp.float32).at[index[:, None], x].add(a)
        r = mass @ V.T - jax.nn.one_hot(label, N)
        gV = r.T @ mass / rows
        u = r @ V
        if tuned and N <= FEW:
            scores: Any = sum(u[:, n : n + 1] * (x == n) for n in range(N))
        else:
            scores = jnp.take_along_axis(u, x.astype(jnp.int32), axis=1)
        if tuned:
            gA = jax.nn.one_hot(last, N).T @ scores / rows
        else:
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


def timed(once: Callable[[], Any], wait: Callable[[], Any], repeats: int = 10) -> float:
    """Seconds of one call, compilation left out; the better of two rounds."""
    once()
    once()
    wait()
    times = []
    for _ in range(2):
        begin = time.perf_counter()
        for _ in range(repeats):
            once()
        wait()
        times.append((time.perf_counter() - begin) / repeats)
    return min(times)


BASELINES: dict[str, Callable[[Task, int], Step]] = {
    "PyTorch, eager": lambda task, rows: torch_step(task, rows, tuned=False, compiled=False),
    "PyTorch, compiled": lambda task, rows: torch_step(task, rows, tuned=False, compiled=True),
    "PyTorch, tuned": lambda task, rows: torch_step(task, rows, tuned=True, compiled=True),
    "JAX": lambda task, rows: jax_step(task, rows, tuned=False),
    "JAX, tuned": lambda task, rows: jax_step(task, rows, tuned=True),
}


def profile(once: Callable[[], Any], wait: Callable[[], Any], steps: int = 3) -> dict[str, float]:
    """Milliseconds a step of the kernels of a PyTorch step that take longest."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
        for _ in range(steps):
            once()
        wait()
    totals = {event.key[:90]: event.self_device_time_total / 1000 / steps for event in found.key_averages()}
    return dict(sorted(totals.items(), key=lambda item: -item[1])[:8])
