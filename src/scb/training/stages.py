"""What a recipe is made of: an initial point, and stages; and the two rules, made of the updates of Algorithm 1."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from scb.extensions import Registry
from scb.geometry import Array, Projector, centred_square, project, projector_row
from scb.inputs import InputError, InputTypeError, fitted, integer, number, one_of, real_array
from scb.model import LinearTransformer, Transformer
from scb.task import Task
from scb.theory.gaussian import residual_variance
from scb.training.roundings import Rounding, Stop
from scb.training.schedules import MeasuredNoise, tabulated
from scb.training.starts import GivenStart, UniformAttention
from scb.training.updates import precondition_A, precondition_V, soft_threshold

if TYPE_CHECKING:
    from scb.training.verdict import HeldOut


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
    """A number of steps of one rule, and what is done before and after them.

    Attributes
    ----------
    name : str
        For the progress bar and the history.
    steps : int
        At most this many.
    eta_V, eta_A : float, callable or (steps,) array
        Step sizes, numbers or schedules: a function of the step of the stage, or a value for each. 0 freezes that layer.
    lam : float, callable, (steps,) array or MeasuredNoise, default 0
        λ of each proximal step.
    batch_size : int, default 64
        Samples a step.
    rule : str or callable, default "proximal"
        "proximal" (preconditioned, proximal, projected: the paper's), "vanilla" (plain gradients), the name of a rule of
        another package, or a rule itself: any function (V, A, gV, gA, mu, stage) → (V, A), or a ``StatefulRule``. The stage that
        a rule sees has numbers in place of schedules.
    centred : bool, default False
        Take the common part out of each column's gradient before the proximal step instead of after it.
    projector : {"euclidean", "mu"}, default "euclidean"
        How proximal steps keep Vμ = μ: "euclidean" is the paper's, "mu" has far less noise (see ``precondition_V``).
    enter, leave : tuple of callables, default ()
        What is done to (V, A) before the first step and after the last, in this order: functions (V, A, mu) → (V, A).
    stop : callable, optional
        Whether to end the stage early: a function (V, A, mu) → bool.
    check_every : int, default 10
        Steps between two questions to ``stop``.

    Examples
    --------
    Step sizes that fall in a straight line:

    >>> import numpy as np, scb
    >>> stage = scb.Stage("2", steps=4, eta_V=lambda step: 0.1 * (1 - step / 4), eta_A=0.2, lam=1e-4)
    >>> stage.scheduled, stage.at(2).eta_V, stage.update.__name__
    (True, 0.05, 'proximal_step')
    >>> stage.levels(K_V=0.5, mu=np.array([0.5, 0.5])), stage.ahead(0), stage.over(4, V=None, A=None, mu=None)
    (array([0.0001, 0.0001]), 1, True)
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
        """The stage with numbers in place of schedules, as they are in one of its steps.

        Parameters
        ----------
        step : int
            Number of the step in the stage, from 0 on.

        Returns
        -------
        Stage
        """
        if not self.scheduled:
            return self
        values = {name: getattr(self, name) for name in ("eta_V", "eta_A", "lam")}
        return replace(self, **{name: float(v[step]) for name, v in values.items() if isinstance(v, np.ndarray)})

    @property
    def update(self) -> Rule:
        """The rule as a function, or as a ``StatefulRule``."""
        return RULES[self.rule] if isinstance(self.rule, str) else self.rule

    def levels(self, K_V: float, mu: Array) -> Array:
        """λ of each column in one step.

        Parameters
        ----------
        K_V : float
            ‖V − μ1ᵀ‖_μ² before the step.
        mu : (N,) array
            The law of the tokens.

        Returns
        -------
        (N,) array
        """
        if isinstance(self.lam, MeasuredNoise):
            rho = residual_variance(1 - float(mu @ mu), len(mu))
            return self.lam.multiple * self.eta_A * np.sqrt(K_V * rho / (self.batch_size * mu))
        return np.full(len(mu), self.lam)

    def affine_levels(self, mu: Array) -> tuple[float, float, Array]:
        """λ of each column as (c + s·√K_V)·w: all that a compiled step has to know.

        Parameters
        ----------
        mu : (N,) array
            The law of the tokens.

        Returns
        -------
        c, s : float
        w : (N,) array

        Examples
        --------
        >>> import numpy as np, scb
        >>> scb.Stage("2", steps=4, eta_V=0.1, eta_A=0.1, lam=1e-4).affine_levels(np.array([0.5, 0.5]))
        (0.0001, 0.0, array([1., 1.]))
        """
        if isinstance(self.lam, MeasuredNoise):
            return 0.0, 1.0, self.levels(1.0, mu)
        return float(self.lam), 0.0, np.ones(len(mu))

    def ahead(self, step: int) -> int:
        """How many steps can be taken before ``over`` must be asked, or a step size or λ changes.

        Parameters
        ----------
        step : int
            Steps of the stage so far.

        Returns
        -------
        int
        """
        if self.scheduled:
            return 1
        left = self.steps - step
        if self.stop is None:
            return left
        return min(left, self.check_every - step % self.check_every)

    def over(self, step: int, V: Array, A: Array, mu: Array) -> bool:
        """Whether the stage ends now.

        Parameters
        ----------
        step : int
            Steps of the stage so far.
        V, A, mu : (N, N), (T, N) and (N,) arrays
            What ``stop`` is asked about.

        Returns
        -------
        bool
        """
        return step >= self.steps or (self.stop is not None and step % self.check_every == 0 and self.stop(V, A, mu))


# ------------------------------------------------------------------------------------------------------ updates


def proximal_step(V: Array, A: Array, gV: Array, gA: Array, mu: Array, stage: Stage) -> tuple[Array, Array]:
    """One step of the paper's equations for V and a: precondition, descend, soft-threshold, project.

    Parameters
    ----------
    V, A, gV, gA : (N, N), (T, N), (N, N) and (T, N) array
        The point, and the gradient there.
    mu : (N,) array
        The stationary law.
    stage : Stage
        Step sizes, λ and the projector.

    Returns
    -------
    V : (N, N) array
    A : (T, N) array

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> g = scb.model.batch_gradient(task.P, task.Q, scb.sample(task, 100, seed=0))
    >>> stage = scb.Stage("2", steps=1, eta_V=0.1, eta_A=0.1, lam=1e-4)
    >>> V, A = scb.training.stages.proximal_step(task.P, task.Q, g.V, g.A, task.mu, stage)  # columns still sum to 1
    """
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
class Recipe:
    """An initial point, what is taken as known, and the stages.

    Parameters
    ----------
    name : str
        For the history and the file of a run.
    start : GivenStart or UniformAttention
        The initial point.
    mu : (N,) array
        The stationary law that the preconditioner uses.
    stages : tuple of Stage
        In their order; those without steps are left out, with their roundings.
    samples : int, default 0
        Spent before the first step, on estimating what is not known.
    transformer : type, default LinearTransformer
        Whose parameters (V, A) are trained.
    check : HeldOut, optional
        How held-out samples are asked at the end whether the task has been learned, where that is a part of the recipe: its
        samples count, and a run that has failed is a warning. Other runs are judged by ``HeldOut.of``.
    remedy : dict, default {}
        Settings (recipe, and options of it) that would do where a run has not learned its task.

    Examples
    --------
    Plain gradient descent from the uniform start, as a recipe of one's own:

    >>> import scb
    >>> from scb.geometry import trivial_V
    >>> from scb.training.starts import UniformAttention
    >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
    >>> stage = scb.Stage("plain", steps=200, eta_V=0.5, eta_A=0.5, batch_size=256, rule="vanilla")
    >>> recipe = scb.Recipe("mine", UniformAttention(trivial_V(task.mu), task.T), task.mu, stages=(stage,))
    >>> recipe.check_fits(task)
    >>> recipe.steps, scb.train(task, recipe, every=200, judge=False).samples
    (200, 51200)
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
        """An InputError unless the recipe is for a task of this size.

        Parameters
        ----------
        task : Task
            The one that is to be learned.
        """
        if self.start.A.shape != (task.T, task.N):
            T, N = self.start.A.shape
            raise InputError(f"the recipe is for N = {N} tokens and T = {T} positions, the task has N = {task.N} and T = {task.T}")

    @property
    def steps(self) -> int:
        """Steps in all stages, if none ends early."""
        return sum(stage.steps for stage in self.stages)
