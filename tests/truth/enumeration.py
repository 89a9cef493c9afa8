"""Every outcome of a tiny task with its probability, by plain loops over the definition; and random points to test at."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from scb.task import Task


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
        P, Q, mu, N, T = task.P, task.Q, task.mu, task.N, task.T
        rows = []
        for x in product(range(N), repeat=T):
            for k, o in product(range(N), repeat=2):
                p = np.prod([mu[token] for token in x]) * mu[k] * sum(Q[t, k] * P[o, x[t]] for t in range(T))
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
        """½‖e_o − VXAe_k‖² of every outcome."""
        eye = np.eye(self.task.N)
        return np.array(
            [0.5 * np.sum((eye[self.label[i]] - V @ self.one_hot(i) @ A[:, self.last[i]]) ** 2) for i in range(len(self))]
        )

    def gradients(self, V: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∇_V l and ∇_A l of every outcome, as the paper's lemma writes them: (M, N, N) and (M, T, N)."""
        N, T = self.task.N, self.task.T
        gV, gA = np.zeros((len(self), N, N)), np.zeros((len(self), T, N))
        for i in range(len(self)):
            X, k = self.one_hot(i), self.last[i]
            r = V @ X @ A[:, k] - np.eye(N)[self.label[i]]
            gV[i] = np.outer(r, X @ A[:, k])
            gA[i, :, k] = (V @ X).T @ r
        return gV, gA


def precondition(task: Task, gV: np.ndarray, gA: np.ndarray, projector: str = "euclidean") -> tuple[np.ndarray, np.ndarray]:
    """The preconditioned gradients with their matrices written out: the paper's, or those with the projector of ⟨·, ·⟩_μ."""
    N, T, mu = task.N, task.T, task.mu
    left = np.eye(N) - np.ones((N, N)) / N
    right = np.eye(N) - {"euclidean": np.outer(mu, mu) / (mu @ mu), "mu": np.outer(mu, np.ones(N))}[projector]
    return left @ gV @ np.diag(1 / mu) @ right, (np.eye(T) - np.ones((T, T)) / T) @ gA @ np.diag(1 / mu)


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
    return task.mu[:, None] + scale * hV, 1 / task.T + scale * hA


def constrained_direction(task: Task, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random (h_V, h_A) with 1ᵀh_V = 0, h_V μ = 0 and 1ᵀh_A = 0."""
    return precondition(task, rng.normal(size=(task.N, task.N)), rng.normal(size=(task.T, task.N)))


def free_point(task: Task, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random (V, A) without constraints."""
    return rng.normal(size=(task.N, task.N)), rng.normal(size=(task.T, task.N))
