"""Theorem 4.1, on transfer, followed to the letter: its θ, a fixed λ, and only its stages, on pairs
of tasks on both sides of its condition ⟨P̂, P⟩_μ ≥ 2‖μ‖².
"""

from dataclasses import dataclass, replace
from functools import partial
from math import ceil, log, sqrt
from typing import ClassVar, Literal

import numpy as np

from scb.arrays import Array
from scb.geometry import mu_inner, trivial_V
from scb.geometry.lines import signal_V
from scb.jobs.job import Job, Rows, random_task, seed_of
from scb.jobs.table import Table
from scb.paper.experiments import Gradients, history_of, shortened
from scb.paper.experiments.rates import MeanSignalReaches
from scb.task import Task
from scb.task.chains import CONTRAST, random_transition
from scb.training.recipes import Knowledge, Recipe
from scb.training.roundings import ThresholdNormalize, ThresholdProject
from scb.training.starts import UniformAttention

Chain = Literal["strong", "raised", "sharp"]
BATCHES = {3: 1 << 16, 10: 1 << 18}
"""N → the batch size of all stages, whatever T is."""


def chain_task(N: int, T: int, chain: Chain, replicate: int) -> Task:
    """A random task that meets (c). It is from the ensemble "strong"; or "sharp", with the same μ
    and a larger K_P; or "raised", from the ensemble "uniform" with P moved towards the identity
    until K_P = 1.4‖μ‖², if μ allows this (otherwise the next task is drawn)."""
    if chain != "raised":
        task = random_task(N, T, 2, replicate)
        P = task.P if chain == "strong" else sharp_transition(task.mu, replicate, "P")
        return Task.sparse(P, task.positions, task.weights, T)
    number = replicate
    mu = random_task(N, T, 2, number, "uniform").mu
    while (1 + CONTRAST) * float(mu @ mu) >= 1:  # K_P is at most 1 − ‖μ‖²
        number += 1000
        mu = random_task(N, T, 2, number, "uniform").mu
    return random_task(N, T, 2, number, "uniform", CONTRAST * float(mu @ mu))


def sharp_transition(mu: Array, replicate: int, use: str) -> Array:
    """A random P with K_P ≥ 0.6(1 − ‖μ‖²), where 1 − ‖μ‖² is the largest possible value, that meets
    (c) with the constant 1.4.
    """
    square = float(mu @ mu)
    rng = np.random.default_rng(seed_of(use=f"sharp {use}", N=len(mu), replicate=replicate))
    return random_transition(mu, max(CONTRAST, 0.6 * (1 - square) / square), rng)


def partner(task: Task, chain: Chain, overlap: float, replicate: int) -> Array:
    """A P̂ with the μ of the task and this overlap with P.

    The P̂ of ``Task.related`` is blunter than P. For a sharp P, P̂ is a mixture of P with another
    sharp matrix, so pairs with a smaller overlap meet the condition too.
    """
    if chain != "sharp":
        seed = seed_of(use="letter", N=task.N, overlap=overlap, replicate=replicate)
        return task.related(overlap, seed).P
    other = task.P
    for attempt in range(100):  # where none is that far from P, the overlap is larger
        other = sharp_transition(task.mu, replicate, f"P̂ {attempt}")
        if cosine(task, other) <= overlap:
            break
    mixtures = ((1 - share) * other + share * task.P for share in np.linspace(0, 1, 1001))
    return next(P_hat for P_hat in mixtures if cosine(task, P_hat) >= overlap - 1e-9)


def cosine(task: Task, P_hat: Array) -> float:
    """The μ-cosine of P̂ − μ1ᵀ and P − μ1ᵀ."""
    alpha, _, delta = signal_V(task, P_hat)
    along = alpha * sqrt(task.K_P)
    return along / float(np.hypot(along, delta))


@dataclass(frozen=True)
class LetterJob(Job):
    """One run of Theorem 4.1 from the P̂ of a related task, with the paper's projector.

    θ = √(c/log(1/ε)). One step on A is taken with η = 1, and entries below λ₀ = θ/(6QNK_P) are
    removed. Stage 2 has λ = η√ε/(2Q) and ends when (α_V + α_A)/2 = 0.95. Then come
    thresholding-normalisation at 1/(6Q) and Stage 3.
    """

    label: ClassVar = {"experiment": "letter", "job": "LetterJob"}
    usual: ClassVar = {}

    N: int
    T: int
    chain: Chain
    gradients: Gradients
    overlap: float
    c: float
    replicate: int
    epsilon: float = 0.0025
    eta: float = 0.1

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        if self.gradients == "simulated":
            return 0.1 + 2e-6 * self.T * self.N / 3
        return BATCHES[self.N] * 130 * self.T * 1.3e-9

    @property
    def theta(self) -> float:
        """The weight of P̂ at the start."""
        return sqrt(self.c / log(1 / self.epsilon))

    def run(self) -> Rows:
        """One row: the pair, the start, the course of Δ_V, and the end."""
        task = chain_task(self.N, self.T, self.chain, self.replicate)
        P_hat = partner(task, self.chain, self.overlap, self.replicate)
        square = float(task.mu @ task.mu)
        history = self._history(task, self._recipe(task, P_hat))
        ends = {name: history[f"dist_{name}"][-1] ** 2 for name in "VA"}
        row = {
            "theta": self.theta,
            "condition": mu_inner(P_hat, task.P, task.mu) / square - 1,
            "norms": mu_inner(P_hat, P_hat, task.mu) / mu_inner(task.P, task.P, task.mu),
            "K_P": task.K_P,
            **_beside_the_line(history, task.K_P),
            "square_V": ends["V"],
            "square_A": ends["A"],
            "learned": max(ends.values()) <= self.epsilon,
            "samples": int(history["samples"][-1]),
        }
        return shortened(row)

    def _recipe(self, task: Task, P_hat: Array) -> Recipe:
        first_threshold = self.theta / (self.N * task.K_P) * task.weight_threshold
        stage = partial(Knowledge.from_task(task).stage, batch_size=BATCHES[self.N])
        first = stage("first", 1, 1.0, eta_V=0.0, leave=(ThresholdProject(first_threshold),))
        second = stage(
            "2",
            # Noise-free growth, from the least signal on, and some more
            ceil((log(2 * self.N / self.theta) + 10) / self.eta),
            self.eta,
            lam=self.eta * sqrt(self.epsilon) / (2 * task.sparsity),
            stop=MeanSignalReaches(task, 0.95),
            check_every=1,
        )
        third = stage(
            "3",
            ceil(log(1 / self.epsilon) / self.eta),
            self.eta,
            eta_A=0.0,
            enter=(ThresholdNormalize(task.weight_threshold),),
        )
        trivial = trivial_V(task.mu)
        start = UniformAttention(trivial + self.theta * (P_hat - trivial), task.T)
        return Recipe("letter", start, task.mu, (first, second, third))

    def _history(self, task: Task, recipe: Recipe) -> Table:
        if self.gradients == "simulated":
            # The simulation ignores ``stop``: the first run tells where Stage 2 ends, the second,
            # which is the same until there, ends it there.
            first, second, third = recipe.stages
            begun = replace(recipe, stages=(first, second))
            whole = history_of(task, begun, self.seed, 1, "simulated")
            there = np.flatnonzero(whole["alpha_V"] + whole["alpha_A"] >= 2 * 0.95)
            steps = int(there[0]) - first.steps if there.size else second.steps
            recipe = replace(recipe, stages=(first, replace(second, steps=steps), third))
        return history_of(task, recipe, self.seed, 1, self.gradients)


def _beside_the_line(history: Table, K_P: float) -> dict[str, float]:
    """Signals and ‖Δ_V‖_μ at the start, after the first step and over Stage 2; and ``influence``:
    what ‖Δ_V‖_μ² takes from a step of α_A, over what the signal gives, as long as α_A < 1/2."""
    alpha_V, alpha_A, delta = (history[name] for name in ("alpha_V", "alpha_A", "delta_V"))
    second = slice(1, int(np.flatnonzero(history["stage"] == 2)[-1]) + 1)
    share = delta[second] ** 2 * alpha_A[second] / (K_P * alpha_V[second])
    early = alpha_A[second] < 0.5
    return {
        "alpha_V_start": alpha_V[0],
        "delta_V_start": delta[0],
        "ratio": delta[0] / (alpha_V[0] * sqrt(K_P)),
        "alpha_A_first": alpha_A[1],
        "growth": delta[second].max() / delta[0],
        "delta_V_end": delta[second][-1],
        "influence": share[early].max() if early.any() else np.nan,
        "influence_first": share[0],
    }


OVERLAPS = {
    3: (0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.98, 0.99),
    10: (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99),
}
"""N → overlaps on both sides of the condition."""
SIMULATED = (*((N, T) for N in OVERLAPS for T in (500, 5000, 50_000)), (3, 500_000))
PAIRS = (
    *(
        (N, T, chain, "simulated", overlap, c)
        for chain in ("strong", "raised", "sharp")
        for N, T in SIMULATED
        if chain != "sharp" or T in (500, 50_000)
        for overlap in OVERLAPS[N]
        for c in (0.1, 1.0)
    ),
    *((3, 500, "strong", "real", overlap, 1.0) for overlap in (0.1, 0.5, 0.95)),
)
"""(N, T, chain, gradients, overlap, c)."""
