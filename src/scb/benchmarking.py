"""The contenders of ``scb bench``: the same training step, written as one would with each library."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter, sleep
from typing import Any

import numpy as np

from scb.geometry import Array
from scb.provenance import machine, versions
from scb.task import Task
from scb.training.engine import Fused
from scb.training.stages import Stage, proximal_step

BATCH, LAM = 64, 1e-4
Step = Callable[[int], Any]


def start(task: Task) -> tuple[Array, Array]:
    """A point part of the way: α_V = α_A = 0.3."""
    A = np.full((task.T, task.N), 0.7 / task.T, order="F")
    A[task.positions, np.arange(task.N)] += 0.3 * task.weights
    return np.ascontiguousarray(0.3 * task.P + 0.7 * task.mu[:, None]), A


def stage_of(task: Task) -> Stage:
    """η = 0.005, as in Stage 2 of the paper's experiment; smaller for large N, where 64 samples a step would diverge."""
    eta = 0.005 if task.N <= 20 else 1e-4
    return Stage("2", 1, eta / task.K_Q, eta / task.K_P, LAM, BATCH)


def numpy_step(task: Task) -> Step:
    """A batch as a (B, T) array; mass by one bincount, scores by one look-up, columns grouped by the last token."""
    from scb.training.sources.reference import Reference

    stage, source = stage_of(task), Reference(task)
    state = list(start(task))

    def step(seed: int) -> float:
        g = source(*state, BATCH, np.uint64(seed))
        state[:] = proximal_step(*state, g.V, g.A, task.mu, stage)
        return g.loss

    return step


def torch_step(task: Task) -> Step:
    """The same in PyTorch: draws by searchsorted, mass by scatter_add, scores by gather, gradient by index_add."""
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
    """The same in JAX, jitted."""
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


def engine_step(task: Task, threads: int) -> Step:
    """Ours: fifty steps at a time, as between two evaluations of a training run."""
    import numba

    engine, stage = Fused(task), stage_of(task)
    state = list(start(task))

    def step(seed: int) -> float:
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
        taken = engine.take(*state, task.mu, stage, seed, range(50))
        state[:] = taken.V, taken.A
        return taken.loss

    return step


CONTENDERS: dict[str, tuple[Callable[[Task], Step], int, str | None]] = {
    "NumPy": (numpy_step, 1, None),
    "PyTorch": (torch_step, 1, "torch"),
    "JAX": (jax_step, 1, "jax"),
    "scb, 1 thread": (lambda task: engine_step(task, 1), 50, None),
    "scb, 2 threads": (lambda task: engine_step(task, 2), 50, None),
}  # how its step is made, how many steps one call takes, what must be installed


def serve(name: str, N: int, T: int) -> None:
    """One contender in a process of its own: its first loss; milliseconds a step for each seed on stdin; at the end its memory."""
    make, count, _ = CONTENDERS[name]
    step = make(Task.random(N, T, 2))
    print(step(0), flush=True)  # compiles
    calls = max(1, 50_000 // T) if count == 1 else 1  # several steps where they are short, so that all are timed warm
    for line in sys.stdin:
        begin = perf_counter()
        for call in range(calls):
            step(int(line) * calls + call)
        print((perf_counter() - begin) / (calls * count) * 1e3, flush=True)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, flush=True)


class _Contender:
    """A process that runs ``serve``."""

    def __init__(self, name: str, N: int, T: int) -> None:
        command = [sys.executable, "-m", "scb.benchmarking", name, str(N), str(T)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.name, self.loss = name, self._read()

    def _read(self) -> float:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise ValueError(f"the contender {self.name!r} failed; its message is above")
        return float(line)

    def step(self, seed: int) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seed}\n")
        self.process.stdin.flush()
        return self._read()

    def leave(self) -> float:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self._read()


def compare(N: int, T: int, repeats: int) -> dict[str, Any]:
    """Median milliseconds a step and peak memory of each contender, each in its own process, taking turns."""
    steps = [
        _Contender(name, N, T) for name, (_, _, module) in CONTENDERS.items() if module is None or find_spec(module)
    ]
    losses = {c.name: c.loss for c in steps}
    if max(losses.values()) > 2 * min(losses.values()):
        raise ValueError(f"the contenders do not compute the same: losses {losses}")
    times: dict[str, list[float]] = {c.name: [] for c in steps}
    budget = perf_counter() + 60
    for i in range(repeats):
        for contender in steps:
            sleep(0.02)  # lets the others' threads, which wait actively, go to sleep
            times[contender.name].append(contender.step(i + 1))
        if perf_counter() > budget and i >= 2:
            break
    return {
        "N": N,
        "T": T,
        "ms": {name: float(np.median(values)) for name, values in times.items()},
        "mb": {c.name: c.leave() for c in steps},
        "machine": machine(),
        "versions": versions(),
    }


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
