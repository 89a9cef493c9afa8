"""Stochastic gradient descent without a regulariser: the paper's baseline, and the softmax
transformer.
"""

from functools import partial

import numpy as np

from scb.geometry import Projector, trivial_V
from scb.geometry.heads import one_head
from scb.inputs import typed
from scb.model import SoftmaxTransformer
from scb.task import Seed, Task
from scb.training.recipes.heads import HeadStart, first_point, head_count, sign_or_gauge
from scb.training.recipes.knowledge import Knowledge, Rate
from scb.training.recipes.recipe import Recipe
from scb.training.stages import Rule, Stage
from scb.training.starts import GivenStart


@typed
def sgd(
    task: Task,
    *,
    eta: tuple[Rate, Rate] = (0.01, 0.005),
    steps: tuple[int, int] = (400, 600),
    batch_size: int = 64,
    preconditioned: bool = True,
    projector: Projector = "euclidean",
    resolve_sign: bool = True,
    rule: str | Rule | None = None,
    known: bool = True,
    seed: Seed = 0,
    heads: int | None = None,
    start: HeadStart = "random",
) -> Recipe:
    """Make a recipe for SGD on V and A from the uniform start, without a regulariser.

    This recipe is the paper's baseline. The step sizes are η_V = η/K_Q and η_A = η/K_P.

    Parameters
    ----------
    task : Task
        The task to learn.
    eta : float, callable or two of them, default (0.01, 0.005)
        The η before and after the end of Stage 1. Each may be a function of the step. (The paper's
        η₂ is 0.005 and its η₂' is 0.001.)
    steps : int or two of them, default (400, 600)
        The numbers of steps before and after the end of Stage 1.
    batch_size : int, default 64
        The number of samples per step.
    preconditioned : bool, default True
        Whether to use the paper's preconditioned and projected gradients, with λ = 0. If not, plain
        gradients are used, with which steps of this size diverge.
    projector : {"euclidean", "mu"}, default "euclidean"
        The projector with which preconditioned steps on V keep Vμ = μ: the paper's projector, or
        the μ-projector, which has less noise.
    resolve_sign : bool, default True
        Whether to resolve the sign as ``paper`` does, so that the two recipes can be compared; with
        several heads, whether to fix their gauge.
    rule : str or callable, optional
        An update rule, by name or as a function, to use in place of these updates; see ``Stage``.
    known : bool, default True
        Whether μ, K_P and K_Q are taken from the task. If not, these constants are estimated from
        4,000 samples.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        The source of randomness of these samples, and of the start of several heads.
    heads : int, optional
        The number of heads to train. The default is the task's number; any further heads are spare.
    start : {"random", "equal"}, default "random"
        The start of several heads. With "random", they start at uniform attention with a small
        random V in each head, drawn with ``seed``. With "equal", they start alike and stay alike.

    Returns
    -------
    Recipe
        The recipe, with two stages.

    Examples
    --------
    Without the regulariser, more noise remains in the attention:

    >>> import scb
    >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
    >>> for recipe in (scb.recipes.sgd(task), scb.recipes.paper(task, lam=1e-3)):
    ...     run = scb.train(task, recipe, seed=0)
    ...     print(recipe.name, round(float(run.history["delta_A"][-1]), 3))
    sgd 0.045
    paper 0.015
    """
    k = Knowledge.from_task(task, known, seed)
    if rule is None:
        rule = "proximal" if preconditioned else "vanilla"
    H = head_count(task, heads)
    sign = (sign_or_gauge(k, H),) if resolve_sign else ()
    stage = partial(k.stage, batch_size=batch_size, rule=rule, projector=projector)
    stages = (
        stage("1", steps[0], eta[0]),
        stage("2", steps[1], eta[1], enter=sign, leave=sign),
    )
    point = first_point(k, task.T, H, start, seed)
    return Recipe("sgd", point, k.mu, stages=stages, samples=k.samples)


@typed
def softmax(
    task: Task,
    *,
    eta_V: float = 0.2,
    eta_W: float = 0.04,
    steps: int = 2000,
    batch_size: int = 256,
    known: bool = True,
    seed: Seed = 0,
) -> Recipe:
    """Make a recipe for SGD on the softmax transformer.

    Training starts from V = μ1ᵀ and uniform attention.

    Near uniform attention, a step on the logits W changes the attention as much as a step on A
    itself that is smaller by a factor of T². Moreover, each column is updated by only one sample in
    N. The step sizes are therefore N·η_V for V and N·T·η_W for W.

    Parameters
    ----------
    task : Task
        The task to learn.
    eta_V, eta_W : float, default 0.2 and 0.04
        The step sizes of V and of the logits W before this scaling.
    steps : int, default 2000
        The number of steps.
    batch_size : int, default 256
        The number of samples per step.
    known : bool, default True
        Whether μ is taken from the task. If not, μ is estimated from 4,000 samples.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        The source of randomness of these samples.

    Returns
    -------
    Recipe
        The recipe, with one stage.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=20, sparsity=2, seed=0)
    >>> run = scb.train(task, scb.recipes.softmax(task, steps=500), seed=0, every=500)
    >>> type(run.model).__name__, round(float(run.history["sim_A"][-1]), 2)
    ('SoftmaxTransformer', 0.99)
    """
    one_head(task, "softmax")
    k = Knowledge.from_task(task, known, seed)
    N, T = task.N, task.T
    stage = Stage(
        "softmax",
        steps,
        eta_V=eta_V * N,
        eta_A=eta_W * N * T,
        batch_size=batch_size,
        rule="vanilla",
    )
    start = GivenStart(V=trivial_V(k.mu), A=np.zeros((T, N), order="F"))
    return Recipe(
        "softmax", start, k.mu, stages=(stage,), samples=k.samples, transformer=SoftmaxTransformer
    )
