"""Algorithm 1 on the windows of one long sequence (the extension of Section 2.1), whose tokens are
not independent."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from scb.geometry import trivial_V
from scb.jobs.job import Job, Rows, seed_of
from scb.mixture.recovery import recover
from scb.paper.experiments import task_of
from scb.paper.experiments.recovery import exact
from scb.task.sampling import Batch, Tokens, generate, sample
from scb.training.loop import train
from scb.training.recipes import tuned
from scb.training.sources.sampled import Dataset
from scb.training.starts import UniformAttention


def windows(tokens: Tokens, T: int) -> Batch:
    """Every window of T + 2 tokens as a sample (context, last token and label), without copies."""
    all_windows = sliding_window_view(tokens, T + 2)
    return Batch(all_windows[:, :T], all_windows[:, T], all_windows[:, T + 1])


@dataclass(frozen=True)
class WindowsJob(Job):
    """One run of ``tuned`` on mini-batches from a data set: the windows of one sequence, or as many
    independent samples.

    Algorithm 1 has to know μ. It receives the μ of the task, or the frequencies of the tokens in
    the data, which are all that a learner would know.
    """

    label: ClassVar = {"experiment": "windows", "job": "WindowsJob"}

    length: int
    data: Literal["sequence", "independent"]
    law: Literal["of the task", "frequencies"]
    replicate: int
    N: int = 3
    T: int = 30

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.5 + (8e-5 if self.data == "sequence" else 2e-5) * self.length

    def run(self) -> Rows:
        """One row: the signals and distances at the end, whether A has the right support, and
        whether the likelihood finds the right support."""
        task = task_of(self)
        seed = seed_of(
            use="windows", N=self.N, T=self.T, length=self.length, replicate=self.replicate
        )
        if self.data == "sequence":
            data = windows(generate(task, self.length, seed), self.T)
        else:
            data = sample(task, self.length - self.T - 1, seed, compiled=True)
        recipe = tuned(task)
        if self.law == "frequencies":
            mu = np.bincount(data.last, minlength=self.N) / len(data)
            recipe = replace(recipe, mu=mu, start=UniformAttention(trivial_V(mu), self.T))
        run = train(task, recipe, self.seed, source=Dataset(data), every=20, judge=False)
        ends = {name: run.history[name][-1] for name in ("alpha_V", "alpha_A", "dist_V", "dist_A")}
        return ends | {
            "exact": all(
                np.array_equal(np.flatnonzero(run.A[:, k]), support)
                for k, support in enumerate(task.support)
            ),
            "diverged": run.diverged is not None,
            "likelihood": exact(task, recover(data, N=self.N)),
        }


@dataclass(frozen=True)
class MarginalJob(Job):
    """How often each token occurs in one long sequence, compared with μ."""

    label: ClassVar = {"experiment": "windows", "job": "MarginalJob"}
    seconds: ClassVar = 3.0

    replicate: int
    T: int = 30
    N: int = 3
    length: int = 4_000_000
    parts: int = 40

    def run(self) -> Rows:
        """One row: Σ|frequency − μ|/2; the value that chance alone would produce, from the spread
        of 40 parts; and the largest ratio of difference to error."""
        task = task_of(self)
        # The beginning is drawn from μ
        tokens = generate(task, self.length, self.seed)[10 * self.T :]
        size = len(tokens) // self.parts
        parts = tokens[: size * self.parts].reshape(self.parts, size)
        counts = [np.bincount(part, minlength=self.N) for part in parts]
        shares = np.stack(counts) / size  # (parts, N)
        difference = shares.mean(axis=0) - task.mu
        error = shares.std(axis=0, ddof=1) / np.sqrt(self.parts)
        return {
            "distance": np.abs(difference).sum() / 2,
            "error": float(np.sqrt(2 / np.pi) * error.sum() / 2),  # E|N(0, s²)| = s√(2/π)
            "largest": np.abs(difference / error).max(),
        }
