"""A recipe consists of an initial point and a sequence of stages."""

from dataclasses import dataclass

import numpy as np

from scb.arrays import Array
from scb.geometry.heads import per_head
from scb.inputs import InputError, InputTypeError, coerced, integer, real_array
from scb.model import LinearTransformer, OneLayerTransformer
from scb.task import Task
from scb.training.head_verdict import HeadsHeldOut
from scb.training.stages import Stage
from scb.training.starts import GivenStart, UniformAttention
from scb.training.verdict import HeldOut


@dataclass(frozen=True)
class Recipe:
    """A recipe for training: an initial point and a sequence of stages.

    Parameters
    ----------
    name : str
        The name of the recipe, which is kept with a run.
    start : GivenStart or UniformAttention
        The initial point, which is an object of a class in ``scb.training.starts``.
    mu : (N,) array
        The stationary distribution that preconditioning uses.
    stages : tuple of Stage
        The stages, in order. Stages with 0 steps are left out, together with their ``enter`` and
        ``leave``; at least one stage must remain.
    samples : int, default 0
        The number of samples used before the first step, to estimate quantities that are not known.
    transformer : type, default LinearTransformer
        The class of the transformer that is trained.
    check : HeldOut, optional
        A test on held-out samples, of class ``scb.training.verdict.HeldOut``, that is part of the
        recipe: its samples are counted, and a failed run gives a warning. By default, ``train``
        decides whether a run is tested.

    Examples
    --------
    This custom recipe is plain gradient descent from the uniform start:

    >>> import scb
    >>> from scb.geometry import trivial_V
    >>> from scb.training.starts import UniformAttention
    >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
    >>> stage = scb.Stage("plain", steps=200, eta_V=0.5, eta_A=0.5, batch_size=256, rule="vanilla")
    >>> start = UniformAttention(trivial_V(task.mu), task.T)
    >>> recipe = scb.Recipe("mine", start, task.mu, stages=(stage,))
    >>> recipe.check_fits(task)
    >>> recipe.steps, scb.train(task, recipe, every=200, judge=False).samples
    (200, 51200)
    """

    name: str
    start: GivenStart | UniformAttention
    mu: Array
    stages: tuple[Stage, ...]
    samples: int = 0
    transformer: type[OneLayerTransformer] = LinearTransformer
    check: HeldOut | HeadsHeldOut | None = None

    def __post_init__(self) -> None:
        coerced("name", self.name, str)
        object.__setattr__(self, "samples", integer("samples", self.samples, low=0))
        if not isinstance(self.stages, list | tuple) or not all(
            isinstance(stage, Stage) for stage in self.stages
        ):
            raise InputTypeError(
                f"stages = {self.stages!r} of a recipe: it must be a tuple of Stage"
            )
        object.__setattr__(self, "stages", tuple(stage for stage in self.stages if stage.steps))
        if not self.stages:
            raise InputError(
                f"recipe {self.name!r} has 0 steps in all stages: "
                "at least one stage must have steps"
            )
        mu = real_array("mu", self.mu)
        if mu.ndim != 1 or not (mu > 0).all() or not abs(mu.sum() - 1) <= 1e-6:
            raise InputError(
                f"mu = {mu} of a recipe: it must be a distribution with positive probabilities, "
                "one for each token"
            )
        _check_start(self.start, len(mu))

    def check_fits(self, task: Task) -> None:
        """Raise an ``InputError`` unless the recipe was made for a task of this size.

        Parameters
        ----------
        task : Task
            The task to learn.
        """
        if self.start.A.shape[-2:] != (task.T, task.N):
            T, N = self.start.A.shape[-2:]
            raise InputError(
                f"the recipe is for N = {N} tokens and T = {T} positions, but the task has N = "
                f"{task.N} and T = {task.T}"
            )
        heads = len(per_head(self.start.V))
        if heads < task.heads:
            raise InputError(
                f"the recipe trains {heads} head(s), but the task has {task.heads}: each needs one"
            )

    @property
    def steps(self) -> int:
        """The number of steps in all stages, if no stage ends early."""
        return sum(stage.steps for stage in self.stages)


def _check_start(start: GivenStart | UniformAttention, N: int) -> None:
    """Raise an InputError unless the initial point is finite and has N tokens."""
    V, A = np.asarray(start.V), np.asarray(start.A)
    if (
        V.shape[-2:] != (N, N)
        or V.ndim not in (2, 3)
        or A.shape[:-2] + A.shape[-1:] != V.shape[:-1]
    ):
        raise InputError(
            f"the start of a recipe has V {V.shape} and A {A.shape}: with {N} tokens, they must "
            "be (N, N) and (T, N), or (H, N, N) and (H, T, N)"
        )
    # A uniform attention is finite, and need not be looked at entry by entry.
    given = isinstance(start, GivenStart)
    if not np.isfinite(V).all() or (given and not np.isfinite(A).all()):
        raise InputError("the start of a recipe holds NaN or infinity: V and A must be finite")
