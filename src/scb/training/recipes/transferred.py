"""Transfer: a pretrained transition matrix replaces Stage 1."""

from math import ceil

import numpy as np

from scb.geometry import Array, trivial_V
from scb.task import Seed, Task
from scb.training.recipes.knowledge import Knowledge
from scb.training.roundings import ThresholdNormalize, ThresholdProject
from scb.training.stages import MeasuredNoise, Recipe, UniformAttention


def transfer(
    task: Task,
    V_hat: Array,
    *,
    theta: float = 0.5,
    first_batch: int = 8000,
    eta: float = 0.2,
    batch_size: int = 2500,
    multiple: float = 2.0,
    known: bool = True,
    seed: Seed = 0,
) -> Recipe:
    """One step on A from V = θP̂ + (1 − θ)μ1ᵀ and uniform attention; then Algorithm 1 from Stage 2 on.

    Nothing depends on T: neither batch sizes nor step counts.

    Parameters
    ----------
    V_hat : (N, N), the pretrained P̂, which shares the task's μ
    theta : how much of it is used
    first_batch : samples of the one step on A, at η = 1
    eta, batch_size : of Stage 2; large batches and large steps, so that λ can stand above the noise and the bias λ/η stay small
    multiple : λ in standard deviations of one coordinate's noise, as it is in each step
    """
    V_hat = np.asarray(V_hat, dtype=float)
    if V_hat.shape != task.P.shape:
        raise ValueError(f"V_hat has shape {V_hat.shape}: it must be {task.P.shape}, as the task's P")
    if not 0 < theta <= 1:
        raise ValueError(f"theta = {theta}: it must lie in (0, 1]")
    k = Knowledge.of(task, known, seed)
    length = ceil(1 / eta)
    lam = MeasuredNoise(multiple)
    normalize = ThresholdNormalize(task.weight_threshold)
    stages = (
        k.stage("first", 1, 1.0, batch_size=first_batch, eta_V=0.0),
        k.stage("2", 6 * length, eta, batch_size=batch_size, lam=lam, centred=True, enter=(ThresholdProject(),)),
        k.stage("3", 4 * length, eta, batch_size=batch_size, eta_A=0.0, enter=(normalize,)),
    )
    start = UniformAttention(theta * V_hat + (1 - theta) * trivial_V(k.mu), task.T)
    return Recipe("transfer", start, k.mu, stages=stages, samples=k.samples)
