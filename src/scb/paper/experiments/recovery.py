"""Recovery from few samples: the samples that the support needs against T, the error compared with
the Cramér–Rao bound, and fits to sequences of different lengths."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from scb.jobs.job import Job, Rows
from scb.mixture.recovery import Recovery, recover
from scb.paper.experiments import task_of
from scb.task import Task
from scb.task.sampling import Batch, generate, sample
from scb.theory.information import cramer_rao

LADDER = tuple(int(round(100 * 1.25**i, -1)) for i in range(13))  # 100 … 1,460 samples


def exact(task: Task, fit: Recovery) -> bool:
    """Whether the support is exactly right."""
    return all(np.array_equal(a, b) for a, b in zip(task.support, fit.support, strict=True))


@dataclass(frozen=True)
class SupportJob(Job):
    """The fewest samples, from nested sets, that yield the exact support."""

    label: ClassVar = {"experiment": "recovery", "job": "SupportJob"}

    T: int
    replicate: int
    N: int = 3

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.15 + 2e-5 * self.T

    def run(self) -> Rows:
        """One row: the number of samples with the likelihood, and with the moments alone."""
        task = task_of(self)
        # Its beginnings are the smaller samples
        batch = sample(task, LADDER[-1], self.seed, compiled=True)
        return {
            "likelihood": self._fewest(task, batch, "likelihood"),
            "moments": self._fewest(task, batch, "spectral"),
        }

    def _fewest(self, task: Task, batch: Batch, method: Literal["likelihood", "spectral"]) -> float:
        """The least n that is enough, by bisection on a ladder of steps of a quarter; ∞ if all
        samples are too few."""
        low = -1  # LADDER[low] is too few
        high = len(LADDER)  # LADDER[high] is enough
        while high - low > 1:
            middle = (low + high) // 2
            if exact(task, recover(batch[: LADDER[middle]], N=self.N, method=method)):
                high = middle
            else:
                low = middle
        return float(LADDER[high]) if high < len(LADDER) else np.inf


@dataclass(frozen=True)
class BoundJob(Job):
    """One fit by likelihood, compared with the bound."""

    label: ClassVar = {"experiment": "recovery", "job": "BoundJob"}
    seconds: ClassVar = 0.05

    N: int
    n: int
    replicate: int
    T: int = 50

    def run(self) -> Rows:
        """One row: the squared errors of P and of Q on its support, their bounds, the number of 95
        % intervals, and how many of them cover the true value.
        """
        task = task_of(self)
        fit = recover(sample(task, self.n, self.seed), N=self.N)
        bound = cramer_rao(task, self.n)
        support = task.positions, np.arange(self.N)
        error_P = fit.V - task.P
        error_Q = fit.A[support] - task.weights
        covered_P = np.abs(error_P) <= 1.96 * fit.stderr.V
        covered_Q = np.abs(error_Q) <= 1.96 * fit.stderr.A[support]
        return {
            "square_P": np.square(error_P).sum(),
            "square_Q": np.square(error_Q).sum(),
            "bound_P": float(bound.P.sum()),
            "bound_Q": float(bound.Q.sum()),
            "covered": covered_P.sum() + covered_Q.sum(),
            "intervals": covered_P.size + covered_Q.size,
            "exact": exact(task, fit),
        }


@dataclass(frozen=True)
class SequenceJob(Job):
    """One long sequence, fitted by likelihood and by the moments, which are not valid for
    sequences."""

    label: ClassVar = {"experiment": "recovery", "job": "SequenceJob"}

    length: int
    replicate: int
    N: int = 4
    T: int = 50

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.13 + 5e-6 * self.length

    def run(self) -> Rows:
        """One row: whether the support is exactly right with each method, and how many positions
        per column the moments mark."""
        task = task_of(self)
        tokens = generate(task, self.length, self.seed)
        likelihood = recover(tokens, N=self.N, max_lag=self.T, method="likelihood")
        moments = recover(tokens, N=self.N, max_lag=self.T, method="spectral")
        return {
            "likelihood": exact(task, likelihood),
            "moments": exact(task, moments),
            "marked": np.mean([len(positions) for positions in moments.support]),
        }
