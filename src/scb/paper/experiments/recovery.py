"""Recovery from few samples: the support against T, the error against the Cramér–Rao bound, and sequences against their length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scb.jobs import job as jobs
from scb.jobs.job import random_task
from scb.jobs.table import Table
from scb.mixture.recovery import Recovery
from scb.task import Task

LADDER = tuple(int(round(100 * 1.25**i, -1)) for i in range(13))  # 100 … 1,460 samples


def exact(task: Task, fit: Recovery) -> bool:
    """Whether the support is exactly right."""
    return all(np.array_equal(a, b) for a, b in zip(task.support, fit.support, strict=True))


@dataclass(frozen=True)
class SupportJob(jobs.Job):
    """The fewest samples, of nested ones, that give the exact support."""

    T: int
    replicate: int
    N: int = 3

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.05 + 2e-5 * self.T

    def run(self) -> Table:
        """One row: n by the likelihood and by the moments alone, by bisection on a ladder of steps of a quarter."""
        from scb.mixture.recovery import recover
        from scb.task.sampling import sample

        task = random_task(self.N, self.T, 2, self.replicate)
        most = len(LADDER) - 1
        batch = sample(task, LADDER[most], self.seed, compiled=True)

        def least(method) -> float:
            right = lambda i: exact(task, recover(batch[: LADDER[i]], N=self.N, method=method))  # noqa: E731
            low, high = -1, most + 1  # LADDER[low] is too few, LADDER[high] is enough
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if right(middle) else (middle, high)
            return float(LADDER[high]) if high <= most else np.inf

        return {"likelihood": np.array([least("likelihood")]), "moments": np.array([least("spectral")])}


@dataclass(frozen=True)
class BoundJob(jobs.Job):
    """One fit by likelihood, beside the bound."""

    N: int
    n: int
    replicate: int
    T: int = 50

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.15

    def run(self) -> Table:
        """One row: squared errors of P and of Q on its support, their bounds, how many 95 % intervals cover, of how many."""
        from scb.mixture.recovery import recover
        from scb.task.sampling import sample
        from scb.theory.information import cramer_rao

        task = random_task(self.N, self.T, 2, self.replicate)
        fit, bound = recover(sample(task, self.n, self.seed), N=self.N), cramer_rao(task, self.n)
        columns = np.arange(self.N)
        error_P, error_Q = fit.V - task.P, fit.A[task.positions, columns] - task.weights
        covered = [
            np.abs(error) <= 1.96 * stderr
            for error, stderr in ((error_P, fit.stderr.V), (error_Q, fit.stderr.A[task.positions, columns]))
        ]
        facts = {
            "square_P": np.square(error_P).sum(),
            "square_Q": np.square(error_Q).sum(),
            "bound_P": bound.total_P,
            "bound_Q": bound.total_Q,
            "covered": sum(int(c.sum()) for c in covered),
            "intervals": sum(c.size for c in covered),
            "exact": exact(task, fit),
        }
        return {name: np.array([value]) for name, value in facts.items()}


@dataclass(frozen=True)
class SequenceJob(jobs.Job):
    """One long sequence, by likelihood and by the moments, which do not hold there."""

    length: int
    replicate: int
    N: int = 4
    T: int = 50

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.2 + 8e-6 * self.length

    def run(self) -> Table:
        """One row: whether the support is exactly right, by both, and how many positions a column the moments mark."""
        from scb.mixture.recovery import recover
        from scb.task.sampling import generate

        task = random_task(self.N, self.T, 2, self.replicate)
        tokens = generate(task, self.length, self.seed)
        fits = [recover(tokens, N=self.N, max_lag=self.T, method=method) for method in ("likelihood", "spectral")]
        marked = np.mean([len(s) for s in fits[1].support])
        return {
            "likelihood": np.array([exact(task, fits[0])]),
            "moments": np.array([exact(task, fits[1])]),
            "marked": np.array([marked]),
        }


@dataclass(frozen=True)
class Config:
    """Which part: "support", "bound" or "sequences"."""

    part: str
    T: tuple[int, ...] = (500, 5000, 50_000)
    bound: tuple[tuple[int, int], ...] = ((3, 1000), (3, 5000), (3, 20_000), (10, 1000), (10, 5000), (10, 20_000))
    lengths: tuple[int, ...] = (250, 500, 1000, 4000, 16_000)
    seeds: int = 10

    def jobs(self) -> list[jobs.Job]:
        """The jobs of this part."""
        if self.part == "support":
            return [SupportJob(T, i) for T in self.T for i in range(self.seeds)]
        if self.part == "bound":
            return [BoundJob(N, n, i) for N, n in self.bound for i in range(self.seeds)]
        return [SequenceJob(length, i) for length in self.lengths for i in range(self.seeds)]
