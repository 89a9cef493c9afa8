"""The training loop: nothing else trains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from scb import metrics
from scb.gradients import GradientSource
from scb.model import LinearTransformer, SoftmaxTransformer
from scb.norms import Array
from scb.recipes.stages import STEPS, Recipe
from scb.record import FILE, load_run, save_run
from scb.task import Task
from scb.theory.expectations import population_loss

COLUMNS = ("step", "stage", "samples", "loss", "batch_loss", *metrics.COLUMNS)


@dataclass(frozen=True)
class Run:
    """Where training stands: parameters, history, and how to go on.

    Attributes
    ----------
    V, parameters : (N, N) and (T, N): what is trained; ``parameters`` are the attention A, or its logits for softmax
    history : column name → array, one entry an evaluation
    stage : index of the current one
    diverged : the step at which V or A left 1e6 or became NaN (V and A are then those before it), or None
    """

    V: Array
    parameters: Array
    recipe: str
    softmax: bool
    seed: int
    history: dict[str, Array] = field(default_factory=lambda: {name: np.empty(0) for name in COLUMNS})
    step: int = 0
    stage: int = 0
    stage_step: int = 0
    samples: int = 0
    diverged: int | None = None
    finished: bool = False

    @property
    def A(self) -> Array:
        """The attention, (T, N)."""
        return self.model.attention

    @property
    def model(self) -> LinearTransformer | SoftmaxTransformer:
        """The transformer that has been learned."""
        return (SoftmaxTransformer if self.softmax else LinearTransformer)(self.V, self.parameters)

    def save(self, directory: str | Path) -> None:
        """Write the run to ``directory`` in one atomic step (safetensors)."""
        save_run(self, directory)

    @staticmethod
    def load(directory: str | Path) -> Run:
        """Read a run that ``save`` wrote, finished or not."""
        return Run(**load_run(directory))


def train(
    task: Task,
    recipe: Recipe,
    seed: int = 0,
    *,
    source: GradientSource | None = None,
    every: int = 10,
    callbacks: Sequence[Callable[[Run], None]] = (),
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 100,
    resume: bool = False,
) -> Run:
    """Train on a task by a recipe.

    Parameters
    ----------
    source : where gradients come from; fresh samples of the task unless given
    every : evaluate and call the callbacks every so many steps, at stage ends and at the end
    checkpoint : directory to which the run is saved every ``checkpoint_every`` steps and at the end
    resume : go on from ``checkpoint`` if there is one. The result is the same to the last bit as without the break,
        because step i draws from a generator that is seeded with (seed, i) alone.
    """
    if source is None:
        from scb.gradients.fresh import Fresh

        source = Fresh(task)
    run = Run(recipe.V, recipe.A, recipe.name, recipe.softmax, seed, samples=recipe.samples)
    if checkpoint is not None and resume and Path(checkpoint, FILE).exists():
        run = Run.load(checkpoint)
    else:
        run = evaluate(task, run, np.nan)
    while not run.finished:
        run, loss = advance(run, recipe, source)
        if run.step % every == 0 or run.finished or run.stage_step == 0:
            run = evaluate(task, run, loss)
            for callback in callbacks:
                callback(run)
        if checkpoint is not None and (run.step % checkpoint_every == 0 or run.finished):
            run.save(checkpoint)
    return run


def advance(run: Run, recipe: Recipe, source: GradientSource) -> tuple[Run, float]:
    """One step of the current stage, and what follows from it: stage ends, divergence, the end."""
    stage, V, parameters = recipe.stages[run.stage], run.V, run.parameters
    for rounding in stage.enter if run.stage_step == 0 else ():
        V, parameters = rounding(V, parameters, recipe.mu)
    model = replace(run, V=V, parameters=parameters).model
    gradient = source(V, model.attention, stage.batch_size, np.random.default_rng([run.seed, run.step]))
    V, parameters = STEPS[stage.rule](V, parameters, gradient.V, model.pull_back(gradient.A), recipe.mu, stage)
    step, stage_step = run.step + 1, run.stage_step + 1
    bounded = bool(max(np.abs(V).max(), np.abs(parameters).max()) < 1e6)  # False for NaN too
    over = bounded and stage.over(stage_step, V, parameters, recipe.mu)
    for rounding in stage.leave if over else ():
        V, parameters = rounding(V, parameters, recipe.mu)
    after = replace(
        run,
        V=V if bounded else run.V,
        parameters=parameters if bounded else run.parameters,
        step=step,
        stage=run.stage + over,
        stage_step=0 if over else stage_step,
        samples=run.samples + gradient.samples,
        diverged=None if bounded else step,
        finished=not bounded or (over and run.stage + 1 == len(recipe.stages)),
    )
    return after, gradient.loss


def evaluate(task: Task, run: Run, batch_loss: float) -> Run:
    """Append one row to the history."""
    A = run.A
    row = {
        "step": run.step,
        "stage": run.stage + (run.stage_step > 0 or run.step == 0),
        "samples": run.samples,
        "loss": population_loss(task, run.V, A),
        "batch_loss": batch_loss,
        **metrics.measure(task, run.V, A),
    }
    return replace(run, history={name: np.append(run.history[name], row[name]) for name in COLUMNS})
