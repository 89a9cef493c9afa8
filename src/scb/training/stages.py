"""What a recipe is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from scb.geometry import Array, mu_inner, project, threshold_normalize, threshold_project
from scb.theory.noise import noise_quantile, residual_variance
from scb.training.updates import precondition_A, precondition_V, resolve_sign, soft_threshold

Rounding = Callable[[Array, Array, Array], tuple[Array, Array]]
"""(V, A, μ) → (V, A): what is done on entering or leaving a stage."""
Stop = Callable[[Array, Array, Array], bool]
"""(V, A, μ) → whether a stage may end early; it sees what the learner sees, never the task."""
Rule = Literal["proximal", "vanilla", "softmax"]


@dataclass(frozen=True)
class MeasuredNoise:
    """λ as a multiple of the standard deviation of one coordinate's noise in one step, η_A √(K_V ρ / (B μ_k)), for each column k.

    K_V is that of the current V, and ρ ≤ (1 − ‖μ‖²)/(N − 1) its largest value, from the start of training.
    """

    multiple: float

    def __call__(self, V: Array, mu: Array, stage: Stage) -> Array:
        """(N,): λ of each column at V."""
        centred = V - mu[:, None]
        return self.at(mu_inner(centred, centred, mu), mu, stage)

    def at(self, K_V: float, mu: Array, stage: Stage) -> Array:
        """(N,): λ of each column at a V with this K_V."""
        rho = residual_variance(1 - float(mu @ mu), len(mu))
        return self.multiple * stage.eta_A * np.sqrt(K_V * rho / (stage.batch_size * mu))


@dataclass(frozen=True)
class Stage:
    """A number of steps of one rule with constant hyperparameters.

    Attributes
    ----------
    name : for the progress bar and the history
    steps : at most this many
    eta_V, eta_A : step sizes; 0 freezes that layer
    lam : the threshold λ of each proximal step, or a rule that measures it
    batch_size : samples a step
    rule : "proximal" (preconditioned, proximal, projected: the paper's), "vanilla" (plain gradients), or "softmax"
        (plain gradients of the softmax transformer, whose parameters W take the place of A)
    centred : take the common part out of each column's gradient before the proximal step instead of after it
    enter, leave : what is done to (V, A) before the first step and after the last, in this order
    stop : end the stage early, asked every ``check_every`` steps
    """

    name: str
    steps: int
    eta_V: float
    eta_A: float
    lam: float | MeasuredNoise = 0.0
    batch_size: int = 64
    rule: Rule = "proximal"
    centred: bool = False
    enter: tuple[Rounding, ...] = ()
    leave: tuple[Rounding, ...] = ()
    stop: Stop | None = None
    check_every: int = 10

    def __post_init__(self) -> None:
        for name, low in (("steps", 0), ("eta_V", 0), ("eta_A", 0), ("lam", 0), ("batch_size", 1), ("check_every", 1)):
            value = getattr(self, name)
            if not isinstance(value, MeasuredNoise) and not value >= low:
                raise ValueError(f"{name} = {value} in stage {self.name!r}: it must be at least {low}")

    def ahead(self, step: int) -> int:
        """How many steps can be taken after ``step`` before ``over`` must be asked."""
        left = self.steps - step
        return left if self.stop is None else min(left, self.check_every - step % self.check_every)

    def over(self, step: int, V: Array, A: Array, mu: Array) -> bool:
        """Whether the stage ends after its step number ``step``."""
        return step >= self.steps or (self.stop is not None and step % self.check_every == 0 and self.stop(V, A, mu))


@dataclass(frozen=True)
class Recipe:
    """An initial point, what is taken as known, and the stages.

    Attributes
    ----------
    V : (N, N)
    A : (T, N); the logits W where the rule is "softmax"
    mu : (N,), the stationary law that the preconditioner uses
    stages : those without steps are left out, with their roundings
    samples : spent before the first step, on estimating what is not known
    """

    name: str
    V: Array
    A: Array
    mu: Array
    stages: tuple[Stage, ...]
    samples: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(stage for stage in self.stages if stage.steps))

    @property
    def softmax(self) -> bool:
        """Whether A holds logits."""
        return any(stage.rule == "softmax" for stage in self.stages)

    @property
    def steps(self) -> int:
        """Steps in all stages, if none ends early."""
        return sum(stage.steps for stage in self.stages)


def proximal_step(V: Array, A: Array, gV: Array, gA: Array, mu: Array, stage: Stage) -> tuple[Array, Array]:
    """One step of the paper's equations for V and a: precondition, descend, soft-threshold, project."""
    lam = stage.lam(V, mu, stage) if isinstance(stage.lam, MeasuredNoise) else stage.lam
    if stage.eta_V:
        V = V - stage.eta_V * precondition_V(gV, mu)
    if stage.eta_A:
        direction = precondition_A(gA, mu) if stage.centred else gA / mu
        A = project(soft_threshold(A - stage.eta_A * direction, lam))
    return V, A


def vanilla_step(V: Array, A: Array, gV: Array, gA: Array, mu: Array, stage: Stage) -> tuple[Array, Array]:
    """One step of plain gradient descent."""
    return V - stage.eta_V * gV, A - stage.eta_A * gA


STEPS = {"proximal": proximal_step, "vanilla": vanilla_step, "softmax": vanilla_step}


def noise_threshold(A: Array, false_positions: float = 0.01) -> Array:
    """(N,): above this, an entry of a column of A − 11ᵀ/T is hardly noise.

    Most entries of a column are nothing but noise; 1.4826·MAD is its standard deviation, and ``false_positions`` of N·T Gaussians
    exceed the threshold on average.
    """
    spread = 1.4826 * np.median(np.abs(A - np.median(A, axis=0)), axis=0)
    return spread * noise_quantile(A.size, false_positions) + 1e-12


def estimated_signal(A: Array, mu: Array) -> float:
    """An estimate of |α_A| without the truth: the μ-weighted mean, over columns, of the mass above the noise."""
    centred = A - np.median(A, axis=0)
    threshold = noise_threshold(A)
    mass = np.where(np.abs(centred) > threshold, centred, 0.0).sum(axis=0)
    return abs(float(mu @ mass))


# ---------------------------------------------------------------------------------------- roundings and stops


@dataclass(frozen=True)
class ResolveSign:
    """Take the mirror image if A is skewed to the left."""

    def __call__(self, V: Array, A: Array, mu: Array) -> tuple[Array, Array]:
        """(V, A) or its mirror."""
        return resolve_sign(V, A, mu)[:2]


@dataclass(frozen=True)
class ThresholdProject:
    """Thresholding-projection at ``threshold``, or at what is measured as noise if that is None."""

    threshold: float | None = None

    def __call__(self, V: Array, A: Array, mu: Array) -> tuple[Array, Array]:
        """Only entries that stand out keep their value."""
        level = noise_threshold(A) + 1 / len(A) if self.threshold is None else self.threshold
        return V, threshold_project(A, level)


@dataclass(frozen=True)
class ThresholdNormalize:
    """Thresholding-normalisation at ``threshold``, the Ω(1/Q) of the paper."""

    threshold: float

    def __call__(self, V: Array, A: Array, mu: Array) -> tuple[Array, Array]:
        """Columns become distributions over the entries that stand out."""
        return V, threshold_normalize(A, self.threshold)


@dataclass(frozen=True)
class SignalAbove:
    """Stop once the estimated signal reaches ``level``."""

    level: float

    def __call__(self, V: Array, A: Array, mu: Array) -> bool:
        """Whether it has."""
        return estimated_signal(A, mu) >= self.level
