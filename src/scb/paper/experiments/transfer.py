"""The number of samples needed to learn P and Q to within ε, from scratch, with transfer, and
exactly as in the paper; and the limits of transfer.
"""

import warnings
from dataclasses import dataclass
from math import ceil, log
from typing import ClassVar, Literal

import numpy as np

from scb.jobs.job import Job, Rows, random_task, seed_of
from scb.metrics import distance_V
from scb.paper.experiments import history_of, task_of
from scb.paper.experiments.letter import cosine
from scb.paper.experiments.projector import sign_batch
from scb.task import Task
from scb.task.chains import random_transition
from scb.training.loop import train
from scb.training.recipes import sgd, transfer, tuned

CLOSE = 0.05
"""The distance of both layers that counts as learned."""


@dataclass(frozen=True)
class TransferJob(Job):
    """One run, from scratch (overlap 0) or from the P̂ of a related task."""

    label: ClassVar = {"experiment": "transfer", "job": "Job"}

    T: int
    overlap: float = 0.0
    replicate: int = 0
    epsilon: float = 0.1
    N: int = 3

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return (40_000 if self.overlap else 45_000) * self.T * 7e-10 + 0.05

    def run(self) -> Rows:
        """One row: the samples until both distances are ε, the samples until A normalised is within
        0.1 of Q, the total number of samples, and the distances at the end."""
        task = task_of(self)
        if self.overlap:
            related = task.related(
                self.overlap, seed_of(use="related", T=self.T, replicate=self.replicate)
            )
            recipe = transfer(task, related.P, least_overlap=self.overlap, accuracy=0.04, eta=1 / 3)
            with warnings.catch_warnings():
                # That it has failed: the distances say it too
                warnings.simplefilter("ignore", UserWarning)
                history = train(task, recipe, self.seed, every=1).history
        else:
            history = history_of(task, tuned(task, accuracy=0.04), self.seed, every=10)
        samples = history["samples"]
        good = (history["dist_V"] <= self.epsilon) & (history["dist_A"] <= self.epsilon)
        # From here on, A normalised has the support of Q
        known = np.flatnonzero(history["dist_A_star"] > 0.1)[-1] + 1
        return {
            "reached": samples[np.argmax(good)] if good.any() else np.inf,
            "found": samples[known] if known < len(samples) else np.inf,
            "samples": samples[-1],
            "dist_V": history["dist_V"][-1],
            "dist_A": history["dist_A"][-1],
        }


END_TO_END = (  # N, T, sparsity, family
    *((N, 1000, 2, "strong") for N in (3, 10, 20, 50)),
    *((3, 1000, sparsity, "strong") for sparsity in (1, 3, 5)),
    *((10, 1000, 2, family) for family in ("zipf", "flat")),
    (3, 1000, 2, "flat"),
    *((3, T, 2, "strong") for T in (100, 10_000, 50_000)),
)
"""Sizes and distributions of P on which transfer is tried from end to end; in the last ones only T
differs."""


def family_task(family: str, N: int, T: int, sparsity: int, replicate: int) -> Task:
    """A random task: "strong" meets the assumptions, "zipf" has a μ like 1/n, and "flat" has a P
    nearer to μ1ᵀ, with an eighth of K_P.
    """
    task = random_task(N, T, sparsity, replicate)
    if family == "strong":
        return task
    if family == "flat":
        return Task.sparse(0.35 * task.P + 0.65 * task.mu[:, None], task.positions, task.weights, T)
    mu = 1 / np.arange(1, N + 1)
    rng = np.random.default_rng(seed_of(use="zipf", N=N, replicate=replicate))
    return Task.sparse(
        random_transition(mu / mu.sum(), contrast=1.0, rng=rng), task.positions, task.weights, T
    )


@dataclass(frozen=True)
class PretrainedJob(Job):
    """Transfer from end to end: V̂ is trained by ``tuned`` on a related task and then used on this
    task."""

    label: ClassVar = {"experiment": "transfer", "job": "PretrainedJob"}

    N: int = 3
    T: int = 1000
    sparsity: int = 2
    family: Literal["strong", "zipf", "flat"] = "strong"
    overlap: float = 0.6
    theta: float = 0.5
    replicate: int = 0

    @property
    def cost(self) -> float:
        """Seconds, roughly."""
        samples = 60_000 * self.N * self.sparsity**2 / 4 * (6 if self.family == "flat" else 1)
        return 0.2 + samples * self.T * (1.5e-9 if self.N == 3 else 3e-9)

    def run(self) -> Rows:
        """One row: measures of V̂, the result of the run, and the verdict of the run on itself."""
        task = family_task(self.family, self.N, self.T, self.sparsity, self.replicate)
        seed = seed_of(
            use="related", N=self.N, T=self.T, overlap=self.overlap, replicate=self.replicate
        )
        first = task.related(self.overlap, seed)
        V_hat = train(first, tuned(first), seed, every=1000, judge=False).V
        with warnings.catch_warnings():
            # That it has failed: the verdict says it too
            warnings.simplefilter("ignore", UserWarning)
            run = train(task, transfer(task, V_hat, theta=self.theta), self.seed, every=1)
        last = {name: column[-1] for name, column in run.history.items()}
        return {
            "dist_hat": distance_V(first, V_hat),
            "cosine": cosine(task, V_hat),
            "bound": (task.mu @ task.mu) / task.K_P,  # the paper's least overlap
            "alpha_V": run.history["alpha_V"][0],
            "alpha_A": run.history["alpha_A"][1],  # after the first step
            "dist_V": last["dist_V"],
            "dist_A": last["dist_A"],
            "learned": bool(last["dist_V"] <= CLOSE and last["dist_A"] <= CLOSE),
            "says": run.verdict == "learned",
            "samples": run.samples,
        }


@dataclass(frozen=True)
class DriftJob(Job):
    """A simulated Stage 1 as in the paper, where the drift η/(T·K_Q) has to decide the sign, with
    the batch that this should require.

    The batch is ``sign_batch`` of ``experiments.projector``, which grows like T² with the paper's
    projector and like T with the μ-projector.
    """

    label: ClassVar = {"experiment": "transfer", "job": "DriftJob"}
    seconds: ClassVar = 0.15

    T: int
    replicate: int
    N: int = 3
    eta: float = 0.01
    goal: float = 0.95  # probability of the right sign

    def run(self) -> Rows:
        """One row: the samples until |α_A| is 0.1, and the sign of α_A then; if |α_A| never reaches
        0.1, ∞ and the sign at the end."""
        task = task_of(self)
        steps = ceil(2 * log(self.T) / self.eta)
        batch_size = ceil(sign_batch(task, self.eta, "euclidean", self.goal))
        recipe = sgd(
            task,
            eta=(self.eta, self.eta),
            steps=(steps, 0),
            batch_size=batch_size,
            resolve_sign=False,
        )
        history = history_of(task, recipe, self.seed, 10, "simulated")
        large = np.flatnonzero(np.abs(history["alpha_A"]) >= 0.1)
        if large.size == 0:
            return {"reached": np.inf, "right": history["alpha_A"][-1] > 0}
        return {"reached": history["samples"][large[0]], "right": history["alpha_A"][large[0]] > 0}
