"""Algorithm 1: projected preconditioned ℓ1-proximal gradient descent in three stages."""

from __future__ import annotations

import numpy as np

from scb.norms import Array
from scb.recipes.knowledge import Knowledge
from scb.recipes.stages import Recipe, ResolveSign, SignalAbove, Stage, ThresholdNormalize, ThresholdProject
from scb.task import Seed, Task


def uniform_start(mu: Array, T: int) -> tuple[Array, Array]:
    """V₀ = μ1ᵀ and A₀ = 11ᵀ/T."""
    N = len(mu)
    return np.repeat(mu[:, None], N, axis=1), np.full((T, N), 1 / T, order="F")


def paper(
    task: Task,
    *,
    eta: tuple[float, float, float] = (0.01, 0.005, 0.005),
    steps: tuple[int, int, int] = (400, 600, 0),
    batch_size: int = 64,
    lam: float = 1e-5,
    threshold: float | None = None,
    normalize_at: float | None = None,
    resolve_sign: bool = True,
    signal: tuple[float | None, float | None] = (None, None),
    known: bool = True,
    seed: Seed = 0,
) -> Recipe:
    """Algorithm 1 with the settings of the paper's experiment.

    Parameters
    ----------
    eta, steps : of Stages 1, 2 and 3; η_V = η/K_Q and η_A = η/K_P. The experiment has no Stage 3 of its own
    lam : λ of Stage 2
    threshold : of the thresholding-projection after Stage 1; None skips it, as the experiment does
    normalize_at : of the thresholding-normalisation before Stage 3; 1/(6Q) unless given
    resolve_sign : go over to the mirror image after Stage 1 where A is skewed to the left; False is the literal paper
    signal : end Stage 1 (2) early, once the *estimated* signal reaches this
    known : whether μ, K_P and K_Q are taken from the task; if not, they are estimated from 4,000 samples
    """
    k = Knowledge.of(task) if known else Knowledge.estimated(task, seed=seed)
    V, A = uniform_start(k.mu, task.T)
    rounding = (ResolveSign(),) * resolve_sign + (ThresholdProject(threshold),) * (threshold is not None)
    normalize = ThresholdNormalize(1 / (6 * task.sparsity) if normalize_at is None else normalize_at)
    rates = [(e / k.K_Q, e / k.K_P) for e in eta]
    stops = [None if level is None else SignalAbove(level) for level in signal]
    stages = (
        Stage("1", steps[0], *rates[0], 0.0, batch_size, stop=stops[0]),
        Stage("2", steps[1], *rates[1], lam, batch_size, enter=rounding, stop=stops[1]),
        Stage("3", steps[2], rates[2][0], 0.0, 0.0, batch_size, enter=(normalize,)),
    )
    return Recipe("paper", V, A, k.mu, stages, k.samples)
