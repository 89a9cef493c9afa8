"""Stochastic gradient descent without a regulariser: the paper's baseline, and the softmax transformer."""

import numpy as np

from scb.geometry import Projector, trivial_V
from scb.inputs import typed
from scb.model import SoftmaxTransformer
from scb.task import Seed, Task
from scb.training.recipes.algorithm1 import Knowledge, Rate
from scb.training.roundings import ResolveSign
from scb.training.stages import GivenStart, Recipe, Rule, Stage, UniformAttention


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
    eta, steps : before and after the end of Stage 1; the paper's η₂ is 0.005 and its η₂' is 0.001
    preconditioned : the paper's preconditioned and projected gradients with λ = 0. False takes plain gradients, with
        which steps of this size diverge
    projector : how preconditioned steps on V keep Vμ = μ; "euclidean" is the paper's, "mu" the one with less noise
    resolve_sign : go over to the mirror image where A is skewed to the left, so that SGD can be compared with ``paper``
    rule : another update in place of these, by its name or as a function: see ``Stage``
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
    """
    k = Knowledge.of(task, known, seed)
    N, T = task.N, task.T
    stage = Stage("softmax", steps, eta_V=eta_V * N, eta_A=eta_W * N * T, batch_size=batch_size, rule="vanilla")
    start = GivenStart(V=trivial_V(k.mu), A=np.zeros((T, N), order="F"))
    remedy = {"recipe": "tuned"}
    return Recipe("softmax", start, k.mu, stages=(stage,), samples=k.samples, transformer=SoftmaxTransformer, remedy=remedy)
