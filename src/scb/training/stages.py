"""The stages of a recipe, and two update rules: that of Algorithm 1 and that of plain descent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from scb.arrays import Array
from scb.extensions import Registry
from scb.geometry import Projector, centred_square, project, projector_row
from scb.geometry.heads import per_head
from scb.inputs import integer, number, one_of
from scb.theory.gaussian import residual_variance
from scb.training.answers import functions, stopped
from scb.training.roundings import Rounding, SignalAbove, Stop
from scb.training.schedules import MeasuredNoise, tabulated
from scb.training.updates import precondition_A, precondition_V, soft_threshold

State = Mapping[str, Array]
"""What a rule keeps from step to step: arrays of float64 by name."""


@runtime_checkable
class StatefulRule(Protocol):
    """An update rule with a state, such as momentum. The state is reset at the start of each stage
    and saved with the run.
    """

    def start(self, V: Array, A: Array) -> State:
        """Return the state before the first step of a stage, given V (N, N) and A (T, N)."""
        ...

    def __call__(
        self, V: Array, A: Array, gV: Array, gA: Array, mu: Array, stage: "Stage", state: State
    ) -> tuple[Array, Array, State]:
        """Return V, A and the state after a step with plain gradients gV (N, N) and gA (T, N)."""
        ...


Rule = Callable[..., Any]
"""(V, A, gV, gA, mu, stage) → (V, A), or a ``StatefulRule``."""


@dataclass(frozen=True)
class Stage:
    """A stage of a recipe: steps with one update rule, and the roundings before and after them.

    Attributes
    ----------
    name : str
        The name of the stage.
    steps : int
        The maximum number of steps.
    eta_V, eta_A : float, callable or (steps,) array
        The step sizes for V and A: a number, a function of the step within the stage (counted from
        0), or one value for each step. A step size of 0 keeps V or A fixed.
    lam : float, callable, (steps,) array or MeasuredNoise, default 0
        The threshold λ of each proximal step, in one of the same forms or proportional to the noise
        (``recipes.MeasuredNoise``).
    batch_size : int, default 64
        The number of samples per step.
    rule : str or callable, default "proximal"
        The update rule: "proximal", the preconditioned, proximal and projected step of the paper;
        "vanilla", a plain gradient step; the name of a rule that another package has registered; or
        a rule itself. A rule is a function (V, A, gV, gA, mu, stage) → (V, A) or, if it needs
        memory, a ``training.stages.StatefulRule``. The stage passed to the rule has numbers in
        place of schedules.
    centred : bool, default False
        Whether to subtract the mean of each column of A's gradient before the proximal step instead
        of after it.
    projector : {"euclidean", "mu"}, default "euclidean"
        The projector with which proximal steps keep Vμ = μ: the paper's projector, or the
        μ-projector, which has far less noise.
    enter, leave : tuple of callables, default ()
        Functions (V, A, mu) → (V, A) that are applied in the given order: those of ``enter`` before
        the first step, and those of ``leave`` after the last step.
    stop : callable, optional
        A function (V, A, mu) → bool that decides whether to end the stage early. By default, all
        steps are taken.
    check_every : int, default 10
        The number of steps between two calls to ``stop``.

    Examples
    --------
    In this stage, the step size of V decreases linearly:

    >>> import numpy as np, scb
    >>> falling = lambda step: 0.1 * (1 - step / 4)
    >>> stage = scb.Stage("2", steps=4, eta_V=falling, eta_A=0.2, lam=1e-4)
    >>> stage.scheduled, stage.at(2).eta_V, stage.update.__name__
    (True, 0.05, 'proximal_step')
    >>> stage.levels(K_V=0.5, mu=np.array([0.5, 0.5]))
    array([0.0001, 0.0001])
    >>> stage.ahead(0), stage.over(4, V=None, A=None, mu=None)
    (1, True)
    """

    name: str
    steps: int
    # a Schedule; here and below, a number or an array (steps,) once the stage is made
    eta_V: Any
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
        # Convert to the declared types: to Numba an int is not a float, and it would compile
        # everything again.
        where = f" in stage {self.name!r}"
        for name, low in (("steps", 0), ("batch_size", 1), ("check_every", 1)):
            object.__setattr__(self, name, integer(name, getattr(self, name), low=low, where=where))
        for name in ("eta_V", "eta_A", "lam"):
            value = getattr(self, name)
            if isinstance(value, MeasuredNoise) and name == "lam":
                number("lam", value.multiple, low=0, where=where)
            else:
                object.__setattr__(self, name, tabulated(name, value, self.steps, where))
        for name in ("enter", "leave"):
            object.__setattr__(self, name, functions(name, getattr(self, name), where))
        if not callable(self.rule):
            # One of another package is loaded here, where it can still be refused
            RULES[one_of("rule", self.rule, RULES)]
        projector_row(np.ones(1), self.projector)  # refuses a name that it does not know

    @property
    def scheduled(self) -> bool:
        """Whether a step size or λ is a schedule, with a value for each step."""
        return any(isinstance(value, np.ndarray) for value in (self.eta_V, self.eta_A, self.lam))

    def at(self, step: int) -> "Stage":
        """Return the stage with schedules replaced by their values in one step.

        Parameters
        ----------
        step : int
            The step within the stage, counted from 0.

        Returns
        -------
        Stage
        """
        if not self.scheduled:
            return self
        values = {name: getattr(self, name) for name in ("eta_V", "eta_A", "lam")}
        return replace(
            self,
            **{name: float(v[step]) for name, v in values.items() if isinstance(v, np.ndarray)},
        )

    @property
    def update(self) -> Rule:
        """The update rule as a function or ``StatefulRule``, even if ``rule`` is a name."""
        return RULES[self.rule] if isinstance(self.rule, str) else self.rule

    def levels(self, K_V: float, mu: Array) -> Array:
        """Compute λ for each column in one step.

        Parameters
        ----------
        K_V : float
            The value of ‖V − μ1ᵀ‖_μ² before the step.
        mu : (N,) array
            The distribution of the tokens.

        Returns
        -------
        (N,) array
        """
        if isinstance(self.lam, MeasuredNoise):
            rho = residual_variance(1 - float(mu @ mu), len(mu))
            return self.lam.multiple * self.eta_A * np.sqrt(K_V * rho / (self.batch_size * mu))
        return np.full(len(mu), self.lam)

    def affine_levels(self, mu: Array) -> tuple[float, float, Array]:
        """Return λ for all columns in the form (c + s·√K_V)·w that compiled steps use.

        Parameters
        ----------
        mu : (N,) array
            The distribution of the tokens.

        Returns
        -------
        c, s : float
            The constant part, and the factor of √K_V.
        w : (N,) array
            The weight of each column.

        Examples
        --------
        >>> import numpy as np, scb
        >>> stage = scb.Stage("2", steps=4, eta_V=0.1, eta_A=0.1, lam=1e-4)
        >>> stage.affine_levels(np.array([0.5, 0.5]))
        (0.0001, 0.0, array([1., 1.]))
        """
        if isinstance(self.lam, MeasuredNoise):
            return 0.0, 1.0, self.levels(1.0, mu)
        return float(self.lam), 0.0, np.ones(len(mu))

    def ahead(self, step: int) -> int:
        """Return how many steps may be taken before ``over`` is called or a setting changes.

        Parameters
        ----------
        step : int
            The number of steps of the stage so far.

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
        """Decide whether the stage ends now, because all steps have been taken or ``stop`` says so.

        Parameters
        ----------
        step : int
            The number of steps of the stage so far.
        V, A, mu : (N, N), (T, N) and (N,) arrays
            The arguments of ``stop``.

        Returns
        -------
        bool
        """
        if step >= self.steps or self.stop is None or step % self.check_every:
            return step >= self.steps
        if not isinstance(self.stop, SignalAbove):
            A = np.asarray(A)  # which may be on a GPU
        return stopped(self.stop, V, A, mu, self.name)


def proximal_step(
    V: Array, A: Array, gV: Array, gA: Array, mu: Array, stage: Stage
) -> tuple[Array, Array]:
    """Take one step: precondition, descend, soft-threshold, project.

    The step follows the paper's equations for V and a.

    Parameters
    ----------
    V, A, gV, gA, mu : (N, N), (T, N), (N, N), (T, N) and (N,) array
        The value matrix and the attention, the gradients with respect to them, and the stationary
        distribution.
    stage : Stage
        The step sizes, λ and the projector.

    Returns
    -------
    V, A : (N, N) and (T, N) array

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> g = scb.model.batch_gradient(task.P, task.Q, scb.sample(task, 100, seed=0))
    >>> stage = scb.Stage("2", 1, eta_V=0.1, eta_A=0.1)
    >>> step = scb.training.stages.proximal_step
    >>> V, A = step(task.P, task.Q, g.V, g.A, task.mu, stage)
    """
    # Of the V before the step; with several heads, the largest
    lam = stage.levels(max(centred_square(one, mu) for one in per_head(V)), mu)
    if stage.eta_V:
        V = V - stage.eta_V * precondition_V(gV, mu, stage.projector)
    if stage.eta_A:
        direction = precondition_A(gA, mu) if stage.centred else gA / mu
        A = project(soft_threshold(A - stage.eta_A * direction, lam))
    return V, A


def vanilla_step(
    V: Array, A: Array, gV: Array, gA: Array, mu: Array, stage: Stage
) -> tuple[Array, Array]:
    """Take one step of plain gradient descent."""
    return V - stage.eta_V * gV, A - stage.eta_A * gA


RULES = Registry("rule", {"proximal": proximal_step, "vanilla": vanilla_step})
"""All rules by name, those of other packages among them."""
