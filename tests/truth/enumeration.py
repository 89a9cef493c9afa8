"""Every outcome of a tiny task with its probability, by plain loops over the definition; and random points to test at."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from scb.geometry.heads import per_head
from scb.task import Task
from scb.task.chains import sinkhorn


@dataclass(frozen=True)
class World:
    """All N^(T+2) outcomes (context, last, label) of a task and their probabilities."""

    task: Task
    context: np.ndarray
    last: np.ndarray
    label: np.ndarray
    probability: np.ndarray

    @classmethod
    def of(cls, task: Task) -> World:
        mu, N, T = task.mu, task.N, task.T
        P, Q = per_head(task.P), per_head(task.Q)
        rows = []
        for x in product(range(N), repeat=T):
            for k, o in product(range(N), repeat=2):
                p = (
                    np.prod([mu[token] for token in x])
                    * mu[k]
                    * sum(Q[h, t, k] * P[h, o, x[t]] for h in range(len(P)) for t in range(T))
                )
                rows.append((x, k, o, p))
        x, k, o, p = zip(*rows, strict=True)
        return cls(task, np.array(x), np.array(k), np.array(o), np.array(p))

    def __len__(self) -> int:
        return len(self.probability)

    def mean(self, values: np.ndarray, where: np.ndarray | None = None) -> np.ndarray:
        """E[values], or E[values | where]."""
        p = self.probability if where is None else self.probability * where
        return np.tensordot(p, values, axes=1) / p.sum()

    def chance(self, event: np.ndarray, given: np.ndarray) -> float:
        return float(self.probability @ (event & given) / (self.probability @ given))

    def one_hot(self, i: int) -> np.ndarray:
        """X of outcome i: (N, T)."""
        X = np.zeros((self.task.N, self.task.T))
        X[self.context[i], np.arange(self.task.T)] = 1
        return X

    def losses(self, V: np.ndarray, A: np.ndarray) -> np.ndarray:
        """½‖e_o − Σ_h V_h X A_h e_k‖² of every outcome."""
        return np.array([0.5 * np.sum(self.residual(i, V, A) ** 2) for i in range(len(self))])

    def residual(self, i: int, V: np.ndarray, A: np.ndarray) -> np.ndarray:
        """Σ_h V_h X A_h e_k − e_o of outcome i."""
        X, k = self.one_hot(i), self.last[i]
        return sum(v @ X @ a[:, k] for v, a in zip(per_head(V), per_head(A), strict=True)) - np.eye(self.task.N)[self.label[i]]

    def gradients(self, V: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∇_V l and ∇_A l of every outcome, as the paper's lemma writes them: (M, N, N) and (M, T, N); (M, H, …) with heads."""
        gV, gA = np.zeros((len(self), *V.shape)), np.zeros((len(self), *A.shape))
        for i in range(len(self)):
            X, k = self.one_hot(i), self.last[i]
            r = self.residual(i, V, A)
            for g_V, g_A, v, a in zip(per_head(gV[i]), per_head(gA[i]), per_head(V), per_head(A), strict=True):
                g_V[:] = np.outer(r, X @ a[:, k])
                g_A[:, k] = (v @ X).T @ r
        return gV, gA


def precondition(task: Task, gV: np.ndarray, gA: np.ndarray, projector: str = "euclidean") -> tuple[np.ndarray, np.ndarray]:
    """The preconditioned gradients with their matrices written out: the paper's, or those with the projector of ⟨·, ·⟩_μ."""
    N, T, mu = task.N, task.T, task.mu
    left = np.eye(N) - np.ones((N, N)) / N
    if gV.ndim == 3:  # heads: V each by itself, the columns of A over all heads
        H = len(gV)
        columns = (np.eye(H * T) - np.ones((H * T, H * T)) / (H * T)) @ gA.reshape(H * T, N) @ np.diag(1 / mu)
        return np.stack([precondition(task, g, np.zeros((T, N)), projector)[0] for g in gV]), columns.reshape(gA.shape)
    right = np.eye(N) - {"euclidean": np.outer(mu, mu) / (mu @ mu), "mu": np.outer(mu, np.ones(N))}[projector]
    return left @ gV @ np.diag(1 / mu) @ right, (np.eye(T) - np.ones((T, T)) / T) @ gA @ np.diag(1 / mu)


def tiny_heads(N: int, T: int, heads: int, seed: int) -> Task:
    """A random task with heads: dense P_h with one μ, and dense Q_h that sum to 1 together."""
    rng = np.random.default_rng([N, T, heads, seed])
    mu = rng.dirichlet(np.full(N, 5.0))
    P = np.stack([sinkhorn(rng.exponential(size=(N, N)) + 0.1, mu) / mu for _ in range(heads)])
    return Task(P, rng.dirichlet(np.ones(heads * T), N).T.reshape(heads, T, N))


def tiny_task(N: int, T: int, seed: int) -> Task:
    """A random task with dense P and columns of Q that use one to T positions."""
    rng = np.random.default_rng([N, T, seed])
    Q = rng.dirichlet(np.ones(T), N).T * (rng.random((T, N)) < 0.7)
    Q[rng.integers(T, size=N), np.arange(N)] += 0.3
    return Task(rng.dirichlet(np.ones(N), N).T, Q / Q.sum(axis=0))


TASKS = [tiny_task(N, T, seed) for N in (2, 3) for T in (2, 3, 4) for seed in (0, 1)]
WORLDS = [World.of(task) for task in TASKS]
SHORT = [World.of(tiny_task(N, 1, 0)) for N in (2, 3)]  # one position: K_Q = 0, so that most lemmas say nothing


def constrained_point(task: Task, rng: np.random.Generator, scale: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Random (V, A) with 1ᵀV = 1ᵀ, Vμ = μ and 1ᵀA = 1ᵀ."""
    hV, hA = constrained_direction(task, rng)
    return task.mu[:, None] + scale * hV, 1 / (task.heads * task.T) + scale * hA


def constrained_direction(task: Task, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random (h_V, h_A) with 1ᵀh_V = 0, h_V μ = 0 and 1ᵀh_A = 0."""
    return precondition(task, *free_point(task, rng))


def free_point(task: Task, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random (V, A) without constraints."""
    return rng.normal(size=task.P.shape), rng.normal(size=task.Q.shape)
