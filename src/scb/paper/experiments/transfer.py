"""How many samples it takes to know P and Q to ε, against T: from scratch, transferred, and by the paper's letter."""

from dataclasses import dataclass
from math import ceil, log
from typing import ClassVar

import numpy as np

from scb.jobs.job import Job, Rows, random_task, seed_of
from scb.theory.noise import residual_variance
from scb.training.loop import train
from scb.training.recipes import sgd, transfer, tuned
from scb.training.simulation import simulate


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
        return (16_000 if self.overlap else 45_000) * self.T * 1.3e-9 + 0.1

    def run(self) -> Rows:
        """One row: samples until both distances are ε, until A normalised is within 0.1 of Q, all samples, distances at the end."""
        task = random_task(self.N, self.T, 2, self.replicate)
        if self.overlap:
            related = task.related(self.overlap, seed_of(use="related", T=self.T, replicate=self.replicate))
            recipe = transfer(task, related.P, overlap=self.overlap, accuracy=0.04, eta=1 / 3)
            history = train(task, recipe, self.seed, every=1).history
        else:
            history = train(task, tuned(task, accuracy=0.04), self.seed, every=10).history
        samples = history["samples"]
        good = (history["dist_V"] <= self.epsilon) & (history["dist_A"] <= self.epsilon)
        known = np.flatnonzero(history["dist_A_star"] > 0.1)[-1] + 1  # from here on, A normalised has the support of Q
        return {
            "reached": samples[np.argmax(good)] if good.any() else np.inf,
            "found": samples[known] if known < len(samples) else np.inf,
            "samples": samples[-1],
            "dist_V": history["dist_V"][-1],
            "dist_A": history["dist_A"][-1],
        }


@dataclass(frozen=True)
class DriftJob(Job):
    """Stage 1 as the paper has it: the drift η/(T·K_Q) has to decide the sign. Simulated, with the batch that this should need.

    α_V + α_A grows by the factor 1 + η a step from a drift η/(T K_Q) and noise of variance η² ρ/(B T K_P K_Q²). After 1/η steps
    or so its mean is 1/(T K_Q) and its variance ηρ/(2 B T K_P K_Q²), so a sign that is right with probability Φ(z) asks for
    B = z² η ρ T/(2 K_P): samples grow like T log T.
    """

    label: ClassVar = {"experiment": "transfer", "job": "DriftJob"}
    seconds: ClassVar = 0.1

    T: int
    replicate: int
    N: int = 3
    eta: float = 0.01
    z: float = 1.645

    def run(self) -> Rows:
        """One row: samples until |α_A| is 0.1 and its sign there; if it never is, ∞ and the sign at the end."""
        task = random_task(self.N, self.T, 2, self.replicate)
        steps = ceil(2 * log(self.T) / self.eta)
        rho = residual_variance(1 - float(task.mu @ task.mu), task.N)
        batch_size = ceil(self.z**2 * self.eta * rho * self.T / (2 * task.K_P))
        recipe = sgd(task, eta=(self.eta, self.eta), steps=(steps, 0), batch_size=batch_size, resolve_sign=False)
        history = simulate(task, recipe, self.seed)
        large = np.flatnonzero(np.abs(history["alpha_A"]) >= 0.1)
        if large.size == 0:
            return {"reached": np.inf, "right": history["alpha_A"][-1] > 0}
        return {"reached": history["samples"][large[0]], "right": history["alpha_A"][large[0]] > 0}
