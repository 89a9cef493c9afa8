"""What a recipe is made of: an initial point, and stages; and the updates of Algorithm 1 as pure functions, each one line of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from scb.extensions import Registry
from scb.geometry import (
    Array,
    Projection,
    Projector,
    centred_square,
    keep_mu,
    population_projection,
    project,
    projection_by_norms,
    projector_row,
    signal_V,
)
from scb.inputs import InputError, InputTypeError, fitted, integer, number, one_of, real_array
from scb.model import LinearTransformer, Transformer
from scb.task import Task
from scb.theory.noise import residual_variance
from scb.training.roundings import Rounding, Stop

if TYPE_CHECKING:
    from scb.training.verdict import HeldOut


@dataclass(frozen=True)
class MeasuredNoise:
    """λ as ``multiple`` standard deviations of one coordinate's noise in one step, η_A √(K_V ρ / (B μ_k)), for each column k.

    K_V is that of the current V, and ρ ≤ (1 − ‖μ‖²)/(N − 1) its largest value, from the start of training.
    """

    multiple: float


Schedule = float | Callable[[int], float] | Sequence[float] | Array
"""A step size or a λ: a number, a function of the step of a stage (from 0 on), or one value for each step."""

State = Mapping[str, Array]
"""What a rule keeps from step to step: arrays of float64 by name."""


@runtime_checkable
class StatefulRule(Protocol):
    """A rule that remembers, as momentum does. What it remembers begins anew in each stage, and is saved with a run."""

    def start(self, V: Array, A: Array) -> State:
        """What it remembers before the first step of a stage, from V (N, N) and A (T, N)."""
        ...

    def __call__(
        self, V: Array, A: Array, gV: Array, gA: Array, mu: Array, stage: "Stage", state: State
    ) -> tuple[Array, Array, State]:
        """V and A after a step with the plain gradients gV (N, N) and gA (T, N), and what it remembers then."""
        ...


Rule = Callable[..., Any]
"""(V, A, gV, gA, mu, stage) → (V, A), or a ``StatefulRule``."""


@dataclass(frozen=True)
class Stage:
    """A number of steps of one rule.

    Attributes
    ----------
    name : for the progress bar and the history
    steps : at most this many
    eta_V, eta_A : step sizes, numbers or schedules; 0 freezes that layer
    lam : λ of each proximal step: a number, a schedule, or a ``MeasuredNoise`` that gives it
    batch_size : samples a step
    rule : "proximal" (preconditioned, proximal, projected: the paper's), "vanilla" (plain gradients), the name of a rule of
        another package, or a rule itself: any function (V, A, gV, gA, mu, stage) → (V, A), or a ``StatefulRule``. The stage that
        a rule sees has numbers in place of schedules
    centred : take the common part out of each column's gradient before the proximal step instead of after it
    projector : how proximal steps keep Vμ = μ: "euclidean" is the paper's, "mu" has far less noise (see ``precondition_V``)
    enter, leave : what is done to (V, A) before the first step and after the last, in this order
    stop : end the stage early, asked every ``check_every`` steps
    """

    name: str
    steps: int
    eta_V: Any  # a Schedule; here and below, a number or an array (steps,) once the stage is made
    eta_A: Any
    lam: Any = 0.0  # or a MeasuredNoise
    batch_size: int = 64
    rule: str | Rule = "proximal"
    centred: bool = False
    projector: Projector = "euclidean"
    enter: tuple[Rounding, ...] = ()
    leave: tuple[Rounding, ...] = ()
    stop: Stop | None = None
    check_every: int = 10

    def __post_init__(self) -> None:
        # Types are made to be what they are declared to be: to Numba an int is not a float, and it would compile everything anew.
        where = f" in stage {self.name!r}"
        for name, low in (("steps", 0), ("batch_size", 1), ("check_every", 1)):
            object.__setattr__(self, name, integer(name, getattr(self, name), low=low, where=where))
        for name in ("eta_V", "eta_A", "lam"):
            value = getattr(self, name)
            if isinstance(value, MeasuredNoise) and name == "lam":
                number("lam", value.multiple, low=0, where=where)
            else:
                object.__setattr__(self, name, tabulated(name, value, self.steps, where))
        if not callable(self.rule):
            object.__setattr__(self, "rule", one_of("rule", self.rule, RULES))
            RULES[self.rule]  # one of another package is loaded here, where it can still be refused
        projector_row(np.ones(1), self.projector)  # refuses a name that it does not know

    @property
    def scheduled(self) -> bool:
        """Whether a step size or λ changes from step to step."""
        return any(isinstance(value, np.ndarray) for value in (self.eta_V, self.eta_A, self.lam))

    def at(self, step: int) -> "Stage":
        """The stage with numbers in place of schedules, as they are in its step number ``step``."""
        if not self.scheduled:
            return self
        values = {name: getattr(self, name) for name in ("eta_V", "eta_A", "lam")}
        return replace(self, **{name: float(v[step]) for name, v in values.items() if isinstance(v, np.ndarray)})

    @property
    def update(self) -> Rule:
        """The rule as a function, or as a ``StatefulRule``."""
        return RULES[self.rule] if isinstance(self.rule, str) else self.rule

    def levels(self, K_V: float, mu: Array) -> Array:
        """(N,): λ of each column in a step from a V with ‖V − μ1ᵀ‖_μ² = K_V."""
        if isinstance(self.lam, MeasuredNoise):
            rho = residual_variance(1 - float(mu @ mu), len(mu))
            return self.lam.multiple * self.eta_A * np.sqrt(K_V * rho / (self.batch_size * mu))
        return np.full(len(mu), self.lam)

    def affine_levels(self, mu: Array) -> tuple[float, float, Array]:
        """(c, s, w) with levels (c + s·√K_V)·w, all that a compiled step has to know; w is (N,)."""
        if isinstance(self.lam, MeasuredNoise):
            return 0.0, 1.0, self.levels(1.0, mu)
        return float(self.lam), 0.0, np.ones(len(mu))

    def ahead(self, step: int) -> int:
        """How many steps can be taken after ``step`` before ``over`` must be asked, or a step size or λ changes."""
        if self.scheduled:
            return 1
        left = self.steps - step
        if self.stop is None:
            return left
        return min(left, self.check_every - step % self.check_every)

    def over(self, step: int, V: Array, A: Array, mu: Array) -> bool:
        """Whether the stage ends after its step number ``step``."""
        return step >= self.steps or (self.stop is not None and step % self.check_every == 0 and self.stop(V, A, mu))


def tabulated(name: str, value: Any, steps: int, where: str = "") -> float | Array:
    """A schedule as a number, or as the values (steps,) that it has: no one changes it then, and a resume can compare it."""
    if callable(value) and not isinstance(value, type):
        value = [value(step) for step in range(steps)]
    elif not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        return number(name, value, low=0, where=where)
    values = real_array(name, value)
    if values.shape != (steps,):
        raise InputError(f"{name} has shape {values.shape}{where}: a schedule must have one value for each of the {steps} steps")
    for step, one in enumerate(values):
        number(f"{name} of step {step}", float(one), low=0, where=where)
    values.flags.writeable = False
    return values


# ------------------------------------------------------------------------------------------------------ updates


def precondition_V(gradient: Array, mu: Array, projector: Projector = "euclidean") -> Array:
    """∇̂_V = (I − 11ᵀ/N) ∇_V diag(1/μ) (I − μwᵀ), which keeps 1ᵀV = 1ᵀ and Vμ = μ. Shape (N, N).

    w = μ/‖μ‖² is the paper's, the Euclidean projector; w = 1 that of the μ-inner product. Expected gradients are the same with
    both, since they meet (E∇_V)1 = 0 where V and A meet the constraints. A sample's gradient does not: near the start it is
    r·1ᵀdiag(μ), of which the paper's leaves r(1 − μ/‖μ‖²)ᵀ, noise that no length T makes smaller, and the other nothing.
    """
    return keep_mu((gradient - gradient.mean(axis=0)) / mu, mu, projector)


def precondition_A(gradient: Array, mu: Array) -> Array:
    """∇̂_{a^(k)} = (I − 11ᵀ/T) ∇_{a^(k)} / μ_k, which keeps 1ᵀA = 1ᵀ. Shape (T, N)."""
    return (gradient - gradient.mean(axis=0)) / mu


def soft_threshold(a: Array, lam: float | Array) -> Array:
    """sign(a)·max(|a| − λ, 0), entry by entry: argmin_z ½(z − a)² + λ|z|. The paper writes the branch a ≥ −λ only."""
    return np.sign(a) * np.maximum(np.abs(a) - lam, 0.0)


def proximal_step(V: Array, A: Array, gV: Array, gA: Array, mu: Array, stage: Stage) -> tuple[Array, Array]:
    """One step of the paper's equations for V and a: precondition, descend, soft-threshold, project."""
    lam = stage.levels(centred_square(V, mu), mu)  # of the V before the step
    if stage.eta_V:
        V = V - stage.eta_V * precondition_V(gV, mu, stage.projector)
    if stage.eta_A:
        direction = precondition_A(gA, mu) if stage.centred else gA / mu
        A = project(soft_threshold(A - stage.eta_A * direction, lam))
    return V, A


def vanilla_step(V: Array, A: Array, gV: Array, gA: Array, mu: Array, stage: Stage) -> tuple[Array, Array]:
    """One step of plain gradient descent."""
    return V - stage.eta_V * gV, A - stage.eta_A * gA


RULES = Registry("rule", {"proximal": proximal_step, "vanilla": vanilla_step})
"""All rules by name, those of other packages among them."""


@dataclass(frozen=True)
class GivenStart:
    """An initial point with any V (N, N) and A (T, N); A are the logits of a softmax transformer."""

    V: Array
    A: Array

    def projection(self, task: Task) -> Projection:
        """α, K and ‖Δ‖ of (V, A)."""
        return population_projection(task, self.V, self.A)


@dataclass(frozen=True)
class UniformAttention:
    """An initial point with any V (N, N) and A = 11ᵀ/T, which is never written out."""

    V: Array
    T: int

    @property
    def A(self) -> Array:
        """11ᵀ/T: one number seen as a read-only (T, N) array."""
        return np.broadcast_to(1 / self.T, (self.T, len(self.V)))

    def projection(self, task: Task) -> Projection:
        """α_V and ‖Δ_V‖ of V; those of A are 0."""
        alpha, _, delta = signal_V(task, self.V)
        return projection_by_norms(task, alpha, delta, K_A=0.0, K_AQ=0.0)


@dataclass(frozen=True)
class Recipe:
    """An initial point, what is taken as known, and the stages.

    Attributes
    ----------
    start : the initial point
    mu : (N,), the stationary law that the preconditioner uses
    stages : those without steps are left out, with their roundings
    samples : spent before the first step, on estimating what is not known
    transformer : whose parameters (V, A) are trained
    check : how held-out samples are asked at the end whether the task has been learned, where that is a part of the recipe: its
        samples count, and a run that has failed is a warning. Other runs are judged by ``HeldOut.of``
    remedy : settings (recipe, and options of it) that would do where a run has not learned its task
    """

    name: str
    start: GivenStart | UniformAttention
    mu: Array
    stages: tuple[Stage, ...]
    samples: int = 0
    transformer: type[Transformer] = LinearTransformer
    check: "HeldOut | None" = None
    remedy: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fitted("name", self.name, str)
        object.__setattr__(self, "samples", integer("samples", self.samples, low=0))
        if not isinstance(self.stages, list | tuple) or not all(isinstance(stage, Stage) for stage in self.stages):
            raise InputTypeError(f"stages = {self.stages!r} of a recipe: it must be a tuple of Stage")
        object.__setattr__(self, "stages", tuple(stage for stage in self.stages if stage.steps))
        mu = real_array("mu", self.mu)
        if mu.ndim != 1 or not (mu > 0).all() or not abs(mu.sum() - 1) <= 1e-6:
            raise InputError(f"mu = {mu} of a recipe: it must be a law with positive probabilities, one for each token")
        V = np.asarray(self.start.V)
        A = np.asarray(self.start.A)
        if V.shape != (len(mu), len(mu)) or A.ndim != 2 or A.shape[1] != len(mu):
            raise InputError(f"the start of a recipe has V {V.shape} and A {A.shape}: with {len(mu)} tokens, (N, N) and (T, N) go")
        if not np.isfinite(V).all() or (isinstance(self.start, GivenStart) and not np.isfinite(A).all()):
            raise InputError("the start of a recipe holds NaN or infinity: V and A must be finite")

    def check_fits(self, task: Task) -> None:
        """InputError unless the recipe is for a task of this size."""
        if self.start.A.shape != (task.T, task.N):
            T, N = self.start.A.shape
            raise InputError(f"the recipe is for N = {N} tokens and T = {T} positions, the task has N = {task.N} and T = {task.T}")

    @property
    def steps(self) -> int:
        """Steps in all stages, if none ends early."""
        return sum(stage.steps for stage in self.stages)
