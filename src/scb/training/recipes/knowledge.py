"""What the paper takes as known, given or estimated from data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scb.geometry import Array, mu_inner
from scb.task import Seed, Task
from scb.task.sampling import Batch, sample


@dataclass(frozen=True)
class Knowledge:
    """The stationary law μ and the norms K_P and K_Q, which set the preconditioner and the step sizes."""

    mu: Array
    K_P: float
    K_Q: float
    samples: int = 0

    @classmethod
    def of(cls, task: Task, known: bool = True, seed: Seed = 0) -> Knowledge:
        """The truth, or estimates from 4,000 samples if it is not ``known``."""
        return cls(task.mu, task.K_P, task.K_Q) if known else cls.estimated(task, seed=seed)

    @classmethod
    def estimated(cls, task: Task, samples: int = 4000, seed: Seed = 0) -> Knowledge:
        """Estimates from fresh samples of the task; nothing else of it is used."""
        return estimate(sample(task, samples, seed), task.N)


def estimate(data: Batch, N: int) -> Knowledge:
    """μ, K_P and K_Q from samples alone.

    For iid contexts, Cov(e_o, e_{x_t} | k) = q_t^(k) (P − μ1ᵀ) diag(μ) =: q_t^(k) G. Positions where this covariance is
    far above its noise are taken as the support of column k; over them it sums to G, since Σ_t q_t = 1. K_P is the norm
    of G less what noise adds to it, and K_Q that of the projections of each covariance onto G.
    """
    n, T = data.context.shape
    if n == 0:
        raise ValueError("the batch is empty: there must be at least 1 sample to estimate from")
    mu = np.bincount(data.context.ravel(), minlength=N) + np.bincount(data.last, minlength=N).astype(float)
    if (mu == 0).any():
        raise ValueError(f"token {int(np.argmin(mu))} never occurs in {n} samples: more samples are needed")
    mu /= mu.sum()
    found: list[tuple[int, Array, int]] = []
    for k in range(N):
        rows = data.last == k
        if rows.sum() > 1:
            found += [(k, C, int(rows.sum())) for C in _strong_covariances(data[rows], mu)]
    if not found:
        return Knowledge(mu, float(mu @ mu), 1.0, n)  # the least that assumption (c) allows, and sparsity 1
    columns = sorted({k for k, _, _ in found})
    per_column = {k: sum(C for j, C, _ in found if j == k) for k in columns}
    G = sum(mu[k] * per_column[k] for k in columns) / mu[columns].sum()
    noise = (1 - mu @ mu) * (N - 1) / n * len(found) / len(columns)
    K_P = max(_size(G, mu) - noise, float(mu @ mu) / 2)
    q = np.array([mu_inner(C / mu, G / mu, mu) / _size(G, mu) for _, C, _ in found])
    K_Q = sum(mu[k] * w**2 for (k, _, _), w in zip(found, q, strict=True)) / mu[columns].sum() - 1 / T
    return Knowledge(mu, float(K_P), float(np.clip(K_Q, 1 / T, 1.0)), n)


def _size(G: Array, mu: Array) -> float:
    """‖G diag(1/μ)‖_μ²."""
    return mu_inner(G / mu, G / mu, mu)


def _strong_covariances(data: Batch, mu: Array) -> list[Array]:
    """Cov(e_o, e_{x_t}) for the positions t where it exceeds its noise; data share one last token."""
    (n, T), N = data.context.shape, len(mu)
    label = np.eye(N)[data.label] - mu  # (n, N)
    covariances = np.stack([label.T @ (data.context == m) / n for m in range(N)], axis=1)  # (N, N, T)
    covariances -= covariances.mean(axis=2, keepdims=True)
    chi2 = n * (covariances**2 / (mu[:, None, None] * mu[None, :, None])).sum(axis=(0, 1))
    degrees = (N - 1) ** 2
    z = np.sqrt(2 * np.log(T * N / 0.05))
    strong = np.flatnonzero(chi2 > degrees + z * np.sqrt(2 * degrees) + z**2)
    return [covariances[:, :, t] for t in strong]
