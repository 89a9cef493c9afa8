"""The Gaussian simulation, collapsed: the laws of the signals and errors themselves, without (T, N) arrays.

With noise that is isotropic in ⟨·, ·⟩_μ (``sources.gaussian``), a step acts on V through α_V and ‖Δ_V‖² alone. For λ = 0 the same
holds for A, and a step costs O(1). For λ > 0, a column of A is one common value plus the entries that a proximal step has left
above it: the support of Q and a few survivors of the noise. How many of the others pass ±λ is binomial, and by how much they
pass it is a tail of the normal law, so a step costs O(N·Q + survivors).
"""

import numpy as np

from scb.geometry import Array
from scb.model import LinearTransformer
from scb.task import Task
from scb.theory.dynamics import StepNoise, error_step, signal_step
from scb.theory.noise import noise_scales, residual_square
from scb.training.collapsed import Collapsed
from scb.training.roundings import round_collapsed
from scb.training.stages import Recipe, Stage

COLUMNS = (
    *("step", "stage", "samples", "loss"),
    *(f"{name}_{layer}" for name in ("alpha", "delta", "dist") for layer in "VA"),
    "explicit",
)
"""Columns of a history; ``explicit`` is how many survivors of the noise A has outside the support."""


def simulate(task: Task, recipe: Recipe, seed: int = 0, every: int = 10) -> dict[str, Array]:
    """The history of a run of ``recipe`` with Gaussian gradients: columns of ``COLUMNS``.

    The law is that of ``train(task, recipe, source=Gaussian(task))``. The sign, which is settled by skewness there, is settled by
    that of α_A here; a stage's ``stop`` is not asked.
    """
    _check(recipe)
    state = Collapsed(task, np.random.default_rng(seed), recipe.start.projection(task))
    step = 0
    samples = recipe.samples
    rows = [_row(state, step, 1, samples)]
    for number, stage in enumerate(recipe.stages, start=1):
        for rounding in stage.enter:
            round_collapsed(rounding, state)
        if stage.eta_A and stage.penalty.size > 0:
            state.entries()  # from here on, A is followed entry by entry
        for i in range(stage.steps):
            _step(state, stage)
            step += 1
            samples += stage.batch_size
            if i + 1 == stage.steps:
                for rounding in stage.leave:
                    round_collapsed(rounding, state)
            if step % every == 0 or step == recipe.steps:
                rows.append(_row(state, step, number, samples))
    return {name: np.array(values) for name, values in zip(COLUMNS, zip(*rows, strict=True), strict=True)}


def _check(recipe: Recipe) -> None:
    """Whether a recipe can be simulated: the theory of the dynamics is that of the paper's steps."""
    only = "only 'proximal' stages of the linear transformer can be simulated"
    if recipe.transformer is not LinearTransformer:
        raise ValueError(f"recipe {recipe.name!r} trains a {recipe.transformer.__name__}: {only}")
    for stage in recipe.stages:
        if stage.rule != "proximal":
            raise ValueError(f"rule = {stage.rule!r} in stage {stage.name!r}: {only}")


def _step(state: Collapsed, stage: Stage) -> None:
    """One step: V, and A where it is collapsed, by the lemmas on the dynamics; a sparse A entry by entry."""
    task, p, columns = state.task, state.p, state.columns
    scale_V, scale_A = noise_scales(task, p, stage.batch_size)
    noise = _draw_noise(state, scale_V, scale_A)
    alpha_V, alpha_A = signal_step(task, p, stage.eta_V, stage.eta_A, noise)
    delta_V2, delta_A2 = error_step(task, p, stage.eta_V, stage.eta_A, noise)
    if columns is None:
        K_A = alpha_A**2 * task.K_Q + delta_A2
        K_AQ = alpha_A * task.K_Q
    else:
        if stage.eta_A:
            columns.descend(
                shrink=1 - stage.eta_A * p.K_V,
                pull=stage.eta_A * p.K_VP,
                noise=stage.eta_A * scale_A / np.sqrt(task.mu),
                lam=stage.penalty.levels(p.K_V, task.mu, stage),
            )
        K_A, K_AQ = columns.constants()
    state.place(alpha_V, np.sqrt(max(delta_V2, 0.0)), K_A, K_AQ)


def _draw_noise(state: Collapsed, scale_V: float, scale_A: float) -> StepNoise:
    """The parts of isotropic noise along the line and along Δ, which are normal, and its square, whose other parts are χ²."""
    task, p, rng = state.task, state.p, state.rng
    x, y = rng.normal(size=(2, 2))  # along the line and along Δ, for V and A
    rest_V = _chi2((task.N - 1) ** 2 - 2, rng)
    square_V = scale_V**2 * (x[0] ** 2 + y[0] ** 2 + rest_V)
    rest_A = _chi2(task.N * (task.T - 1) - 2, rng)
    square_A = scale_A**2 * (x[1] ** 2 + y[1] ** 2 + rest_A)
    return StepNoise(
        along_P=scale_V * np.sqrt(task.K_P) * x[0],
        along_Q=scale_A * np.sqrt(task.K_Q) * x[1],
        along_V=scale_V * p.delta_V * y[0],
        along_A=scale_A * p.delta_A * y[1],
        square_V=square_V,
        square_A=square_A,
    )


def _chi2(degrees: int, rng: np.random.Generator) -> float:
    """A draw of χ²; 0 where there are no dimensions left."""
    return rng.chisquare(degrees) if degrees > 0 else 0.0


def _row(state: Collapsed, step: int, stage: int, samples: int) -> tuple:
    """One row of the history, in the order of ``COLUMNS``."""
    task, p = state.task, state.p
    loss = 0.5 * residual_square(task, p)
    dist_V = np.hypot((1 - p.alpha_V) * np.sqrt(task.K_P), p.delta_V)
    dist_A = np.hypot((1 - p.alpha_A) * np.sqrt(task.K_Q), p.delta_A)
    explicit = 0 if state.columns is None else state.columns.value.size
    return step, stage, samples, loss, p.alpha_V, p.alpha_A, p.delta_V, p.delta_A, dist_V, dist_A, explicit
