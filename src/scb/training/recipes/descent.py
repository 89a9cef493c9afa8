"""Stochastic gradient descent without a regulariser: the paper's baseline, and the softmax transformer."""

import numpy as np

from scb.geometry import Projector, trivial_V
from scb.inputs import typed
from scb.model import SoftmaxTransformer
from scb.task import Seed, Task
from scb.training.recipes.algorithm1 import Knowledge, Rate
from scb.training.roundings import ResolveSign
from scb.training.stages import Recipe, Rule, Stage
from scb.training.starts import GivenStart, UniformAttention


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
) -> Recipe:
    """SGD on V and A from the uniform start, with step sizes η/K_Q and η/K_P.

    Parameters
    ----------
    task : Task
        The one that is to be learned.
    eta : float, callable or two of them, default (0.01, 0.005)
        η before and after the end of Stage 1; the paper's η₂ is 0.005 and its η₂' is 0.001. Each may be a function of the step.
    steps : int or two of them, default (400, 600)
        Before and after the end of Stage 1.
    batch_size : int, default 64
        Samples a step.
    preconditioned : bool, default True
        The paper's preconditioned and projected gradients with λ = 0. False takes plain gradients, with which steps of this size
        diverge.
    projector : {"euclidean", "mu"}, default "euclidean"
        How preconditioned steps on V keep Vμ = μ; "euclidean" is the paper's, "mu" the one with less noise.
    resolve_sign : bool, default True
        Go over to the mirror image where A is skewed to the left, so that SGD can be compared with ``paper``.
    rule : str or callable, optional
        Another update in place of these, by its name or as a function: see ``Stage``.
    known : bool, default True
        Whether μ, K_P and K_Q are taken from the task; if not, they are estimated from 4,000 samples.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        Of these samples.

    Returns
    -------
    Recipe

    Examples
    --------
    Without the regulariser, more noise stays in the attention:

    >>> import scb
    >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
    >>> for recipe in (scb.recipes.sgd(task), scb.recipes.paper(task, lam=1e-3)):
    ...     print(recipe.name, round(float(scb.train(task, recipe, seed=0).history["delta_A"][-1]), 3))
    sgd 0.045
    paper 0.015
    """
    k = Knowledge.of(task, known, seed)
    if rule is None:
        rule = "proximal" if preconditioned else "vanilla"
    sign = (ResolveSign(),) if resolve_sign else ()
    stages = (
        k.stage("1", steps[0], eta[0], batch_size=batch_size, rule=rule, projector=projector),
        k.stage("2", steps[1], eta[1], batch_size=batch_size, rule=rule, projector=projector, enter=sign, leave=sign),
    )
    start = UniformAttention(trivial_V(k.mu), task.T)
    return Recipe("sgd", start, k.mu, stages=stages, samples=k.samples, remedy={"recipe": "tuned"})


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
    """SGD on f_σ = V·X·σ(w^(k)) from V = μ1ᵀ and W = 0, uniform attention.

    Near uniform attention, a step on w moves the attention as a step on a would with the step size divided by T²; and a
    token's column is seen once in N samples. Step sizes are therefore N·η_V and N·T·η_W.

    Parameters
    ----------
    task : Task
        The one that is to be learned.
    eta_V, eta_W : float, default 0.2 and 0.04
        Step sizes of V and of the logits W, before they are scaled.
    steps : int, default 2000
        How many.
    batch_size : int, default 256
        Samples a step.
    known : bool, default True
        Whether μ is taken from the task; if not, it is estimated from 4,000 samples.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        Of these samples.

    Returns
    -------
    Recipe

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=20, sparsity=2, seed=0)
    >>> run = scb.train(task, scb.recipes.softmax(task, steps=500), seed=0, every=500)
    >>> type(run.model).__name__, round(float(run.history["sim_A"][-1]), 2)
    ('SoftmaxTransformer', 0.99)
    """
    k = Knowledge.of(task, known, seed)
    N, T = task.N, task.T
    stage = Stage("softmax", steps, eta_V=eta_V * N, eta_A=eta_W * N * T, batch_size=batch_size, rule="vanilla")
    start = GivenStart(V=trivial_V(k.mu), A=np.zeros((T, N), order="F"))
    remedy = {"recipe": "tuned"}
    return Recipe("softmax", start, k.mu, stages=(stage,), samples=k.samples, transformer=SoftmaxTransformer, remedy=remedy)
