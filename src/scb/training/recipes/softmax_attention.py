"""The softmax transformer, trained by its exact mini-batch gradient."""

import numpy as np

from scb.geometry import trivial_V
from scb.model import SoftmaxTransformer
from scb.task import Seed, Task
from scb.training.recipes.knowledge import Knowledge
from scb.training.stages import GivenStart, Recipe, Stage


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
    return Recipe("softmax", start, k.mu, stages=(stage,), samples=k.samples, transformer=SoftmaxTransformer)
