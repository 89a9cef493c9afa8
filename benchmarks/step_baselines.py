"""One training step of the benchmark in PyTorch and in JAX, written as one would with each library.

``scb bench --baselines benchmarks/step_baselines.py`` takes them from here where they are installed:
"pip install '.[bench]'" in the clone brings JAX; PyTorch is up to you.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scb.task import Task
from scb.training.benchmark import BATCH, LAM, Baseline, Step, stage_of, start


def torch_step(task: Task) -> Step:
    """PyTorch: draws by searchsorted, mass by scatter_add, scores by gather, gradient by index_add."""
    import torch

    torch.set_num_threads(2)
    stage, N, T = stage_of(task), task.N, task.T
    V, A = (torch.tensor(np.ascontiguousarray(x)) for x in start(task))
    A = A.T.contiguous()  # (N, T)
    mu, q, P = (torch.tensor(np.array(x)) for x in (task.mu, task.weights, task.P))
    positions = torch.tensor(np.ascontiguousarray(task.positions.T))
    edges, q_edges, P_edges = mu.cumsum(0)[:-1], q.cumsum(0).T.contiguous(), P.cumsum(0).T.contiguous()
    rows = torch.arange(BATCH)
    state = [V, A]

    def choose(edges: Any, u: Any) -> Any:
        return torch.searchsorted(edges, u[:, None], right=True)[:, 0].clamp(max=edges.shape[1] - 1)

    def step(seed: int) -> float:
        V, A = state
        random = torch.Generator().manual_seed(seed)
        uniform = lambda *shape: torch.rand(*shape, dtype=torch.float64, generator=random)  # noqa: E731
        last = torch.bucketize(uniform(BATCH), edges, right=True)
        x = torch.bucketize(uniform(BATCH, T), edges, right=True)
        source = x[rows, positions[last, choose(q_edges[last], uniform(BATCH))]]
        label = choose(P_edges[source], uniform(BATCH))
        mass = torch.zeros(BATCH, N, dtype=torch.float64).scatter_add_(1, x, A[last])
        r = mass @ V.T
        r[rows, label] -= 1
        gV, gA = r.T @ mass / BATCH, torch.zeros_like(A).index_add_(0, last, (r @ V).gather(1, x)) / BATCH
        G = (gV - gV.mean(0)) / mu
        a = A - stage.eta_A * gA / mu[:, None]
        a = torch.sign(a) * torch.clamp(a.abs() - LAM, min=0)
        state[:] = V - stage.eta_V * (G - torch.outer(G @ mu, mu) / (mu @ mu)), a + (1 - a.sum(1, keepdim=True)) / T
        return float(0.5 * (r * r).sum() / BATCH)

    return step


def jax_step(task: Task) -> Step:
    """JAX, jitted: draws by searchsorted, mass and gradient by indexed additions."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    stage, N, T = stage_of(task), task.N, task.T
    V0, A0 = start(task)
    mu, positions = jnp.array(task.mu), jnp.array(task.positions.T)
    edges, q_edges, P_edges = (jnp.cumsum(jnp.array(x), axis=0) for x in (task.mu, task.weights, task.P))
    rows = jnp.arange(BATCH)

    @jax.jit
    def advance(V: Any, A: Any, seed: Any) -> Any:
        keys = jax.random.split(jax.random.key(seed), 4)
        last = jnp.searchsorted(edges[:-1], jax.random.uniform(keys[0], (BATCH,)), side="right")
        x = jnp.searchsorted(edges[:-1], jax.random.uniform(keys[1], (BATCH, T)), side="right")
        slot = (jax.random.uniform(keys[2], (BATCH,)) >= q_edges[:-1, last]).sum(axis=0)
        source = x[rows, positions[last, slot]]
        label = (jax.random.uniform(keys[3], (BATCH,)) >= P_edges[:-1, source]).sum(axis=0)
        mass = jnp.zeros((BATCH, N)).at[rows[:, None], x].add(A[last])
        r = mass @ V.T - jax.nn.one_hot(label, N)
        gV, gA = r.T @ mass / BATCH, jnp.zeros_like(A).at[last].add(jnp.take_along_axis(r @ V, x, axis=1)) / BATCH
        G = (gV - gV.mean(0)) / mu
        a = A - stage.eta_A * gA / mu[:, None]
        a = jnp.sign(a) * jnp.maximum(jnp.abs(a) - LAM, 0)
        V = V - stage.eta_V * (G - jnp.outer(G @ mu, mu) / (mu @ mu))
        return V, a + (1 - a.sum(1, keepdims=True)) / T, 0.5 * (r * r).sum() / BATCH

    state = [jnp.array(V0), jnp.array(np.ascontiguousarray(A0.T))]

    def step(seed: int) -> float:
        *state[:], loss = advance(*state, seed)
        return float(loss)

    return step


BASELINES = {
    "PyTorch": Baseline(torch_step, needs="torch"),
    "JAX": Baseline(jax_step, needs="jax"),
}
