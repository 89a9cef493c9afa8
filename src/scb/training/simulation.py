"""A fast simulation of training with Gaussian gradients, which follows signals and errors instead
of (T, N) arrays.

The noise is that of the source ``Gaussian``. A step costs O(N) operations while λ = 0, and O(N·Q +
survivors of the threshold) otherwise.
"""

import numpy as np

from scb.arrays import Array
from scb.geometry.heads import one_head
from scb.geometry.products import root
from scb.inputs import InputError
from scb.model import LinearTransformer
from scb.task import Task
from scb.theory.dynamics import StepNoise, error_step, signal_step
from scb.theory.gaussian import common_noise, noise_scales, residual_square
from scb.training.collapsed import Collapsed
from scb.training.recipes.recipe import Recipe
from scb.training.roundings import Rounding
from scb.training.stages import Stage


def simulate(task: Task, recipe: Recipe, seed: int = 0, every: int = 10) -> dict[str, Array]:
    """Simulate a run with Gaussian gradients.

    The history has the same distribution as that of ``train(task, recipe, source=Gaussian(task))``,
    except for two differences: the sign is resolved by the sign of α_A instead of by skewness, and
    the ``stop`` of a stage is ignored.

    Parameters
    ----------
    task : Task
        The task.
    recipe : Recipe
        A recipe with proximal stages for the linear transformer.
    seed : int, default 0
        The seed.
    every : int, default 10
        The number of steps between two rows of the history.

    Returns
    -------
    dict of (rows,) arrays
        The history: step, stage, samples, signals and errors. The column ``explicit`` is the number
        of entries of A outside the support that have survived the threshold.

    Examples
    --------
    >>> import scb
    >>> from scb.training.simulation import simulate
    >>> task = scb.Task.random(N=3, T=100, sparsity=2, seed=0)
    >>> history = simulate(task, scb.recipes.tuned(task), seed=1)
    >>> bool(history["alpha_A"][-1] > 0.9)
    True
    """
    one_head(task, "simulate")
    # The theory of the dynamics is that of their steps
    only = "only 'proximal' stages of the linear transformer can be simulated"
    if recipe.transformer is not LinearTransformer:
        raise InputError(f"recipe {recipe.name!r} trains a {recipe.transformer.__name__}: {only}")
    for stage in recipe.stages:
        if stage.rule != "proximal":
            raise InputError(f"rule = {stage.rule!r} in stage {stage.name!r}: {only}")
    state = Collapsed.at_start(task, recipe.start, seed)
    step = 0
    samples = recipe.samples
    rows = [_row(state, step, 1, samples)]
    for number, stage in enumerate(recipe.stages, start=1):
        _round(state, stage.enter)
        for i in range(stage.steps):
            now = stage.at(i)
            if now.eta_A and now.levels(1.0, task.mu).any():
                state.entries()  # from here on, A is followed entry by entry
            _step(state, now)
            step += 1
            samples += stage.batch_size
            if i + 1 == stage.steps:
                _round(state, stage.leave)
            if step % every == 0 or step == recipe.steps:
                rows.append(_row(state, step, number, samples))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _round(state: Collapsed, roundings: tuple[Rounding, ...]) -> None:
    """Apply to the state what roundings do to (V, A)."""
    for rounding in roundings:
        on_collapsed = getattr(rounding, "on_collapsed", None)
        if on_collapsed is None:
            raise InputError(
                f"{rounding} cannot be simulated: only roundings that have on_collapsed can"
            )
        on_collapsed(state)


def _step(state: Collapsed, stage: Stage) -> None:
    """One step: V, and A where it is collapsed, by the lemmas on the dynamics; a sparse A entry by
    entry.
    """
    task, p, columns = state.task, state.p, state.columns
    scale_V, scale_A = noise_scales(task, p, stage.batch_size)
    h_along, noise = _draw_noise(state, stage, scale_V, scale_A)
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
                lam=stage.levels(p.K_V, task.mu),
            )
        K_A, K_AQ = columns.constants()
    # V − μ1ᵀ ← (1 − η_V‖A‖_μ²)(V − μ1ᵀ) + η_V⟨A, Q⟩_μ (P − μ1ᵀ) − η_V h_V, seen along û.
    pull = (p.K_AQ + 1 / task.T) * state.truth_along - h_along
    state.along = state.along + stage.eta_V * (pull - (p.K_A + 1 / task.T) * state.along)
    state.place(alpha_V, np.sqrt(max(delta_V2, 0.0)), K_A, K_AQ)


def _draw_noise(
    state: Collapsed, stage: Stage, scale_V: float, scale_A: float
) -> tuple[Array, StepNoise]:
    """Draw the noise of V along û, (N,), and the numbers through which all noise enters a step.

    Across û, and on A, the noise is isotropic: its parts along the truth and along the error are
    normal, and the square of the rest is χ².
    """
    task, p, rng, along, truth = state.task, state.p, state.rng, state.along, state.truth_along
    normal = rng.normal(size=task.N)
    h_along = scale_V * (normal - normal.mean())
    if stage.projector == "euclidean":
        h_along += state.leak * common_noise(task, p, stage.batch_size, rng)
    signal, K_across, error = _across(state)
    # Standard normals: [0] is for V across û, [1] for A
    on_truth, on_error = rng.normal(size=(2, 2))
    dimensions = ((task.N - 1) * (task.N - 2), task.N * (task.T - 1))
    # Two dimensions are taken by the truth and the error
    rest_V, rest_A = (rng.chisquare(left - 2) if left > 2 else 0.0 for left in dimensions)
    if dimensions[0] == 0:  # N = 2: nothing lies across û
        on_truth[0] = on_error[0] = 0.0
    along_truth = scale_V * np.sqrt(K_across) * on_truth[0]
    noise = StepNoise(
        along_P=h_along @ truth + along_truth,
        along_Q=scale_A * np.sqrt(task.K_Q) * on_truth[1],
        along_V=h_along @ (along - p.alpha_V * truth)
        + (signal - p.alpha_V) * along_truth
        + scale_V * error * on_error[0],
        along_A=scale_A * p.delta_A * on_error[1],
        square_V=h_along @ h_along + scale_V**2 * (on_truth[0] ** 2 + on_error[0] ** 2 + rest_V),
        square_A=scale_A**2 * (on_truth[1] ** 2 + on_error[1] ** 2 + rest_A),
    )
    return h_along, noise


def _across(state: Collapsed) -> tuple[float, float, float]:
    """Across û: the signal of V, the K_P of P, and the norm of what else V has."""
    p, along, truth = state.p, state.along, state.truth_along
    K_across = max(state.task.K_P - float(truth @ truth), 0.0)
    signal = (p.K_VP - float(along @ truth)) / K_across if K_across > 1e-12 else 0.0
    return signal, K_across, root(float(p.K_V - along @ along - signal**2 * K_across))


def _row(state: Collapsed, step: int, stage: int, samples: int) -> dict[str, float]:
    """One row of the history."""
    task, p = state.task, state.p
    return {
        "step": step,
        "stage": stage,
        "samples": samples,
        "loss": 0.5 * residual_square(task, p),
        "alpha_V": p.alpha_V,
        "alpha_A": p.alpha_A,
        "delta_V": p.delta_V,
        "delta_A": p.delta_A,
        "dist_V": np.hypot((1 - p.alpha_V) * np.sqrt(task.K_P), p.delta_V),
        "dist_A": np.hypot((1 - p.alpha_A) * np.sqrt(task.K_Q), p.delta_A),
        "explicit": 0 if state.columns is None else state.columns.value.size,
    }
