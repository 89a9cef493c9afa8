"""The training loop: nothing else trains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from scb import metrics
from scb.task import Task
from scb.training.engine import Composed, Engine, Fused
from scb.training.run import COLUMNS, FILE, Run
from scb.training.sources import GradientSource
from scb.training.stages import Recipe


def train(
    task: Task,
    recipe: Recipe,
    seed: int = 0,
    *,
    source: GradientSource | None = None,
    start: Run | None = None,
    every: int = 10,
    callbacks: Sequence[Callable[[Run], None]] = (),
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 100,
    resume: bool = False,
) -> Run:
    """Train on a task by a recipe.

    Parameters
    ----------
    source : where gradients come from; unless given, fresh samples of the task through the compiled engine
    start : go on from this run, which has been through the first stages of the recipe, instead of from the recipe's initial point
    every : evaluate and call the callbacks every so many steps, at stage ends and at the end
    checkpoint : directory to which the run is saved, at the first evaluation after ``checkpoint_every`` steps and at the end
    resume : go on from ``checkpoint`` if there is one. The result is the same to the last bit as without the break,
        because what is random in step i depends on (seed, i) alone
    """
    engine = Fused(task) if source is None else Composed(source)
    if checkpoint is not None and resume and Path(checkpoint, FILE).exists():
        run = Run.load(checkpoint)
    elif start is not None:
        run = replace(
            start, recipe=recipe.name, finished=start.diverged is not None or start.stage >= len(recipe.stages)
        )
    else:
        run = Run(recipe.V, recipe.A, recipe.name, recipe.softmax, seed, samples=recipe.samples)
        run = evaluate(task, run, np.nan)
    saved = run.step
    while not run.finished:
        run, loss = advance(run, recipe, engine, every)
        if run.step % every == 0 or run.finished or run.stage_step == 0:
            run = evaluate(task, run, loss)
            for callback in callbacks:
                callback(run)
            if checkpoint is not None and (run.step >= saved + checkpoint_every or run.finished):
                run.save(checkpoint)
                saved = run.step
    return run


def advance(run: Run, recipe: Recipe, engine: Engine, every: int) -> tuple[Run, float]:
    """Steps up to the next evaluation, stage end or question whether to stop; and what follows from them."""
    stage, V, parameters = recipe.stages[run.stage], run.V, run.parameters
    for rounding in stage.enter if run.stage_step == 0 else ():
        V, parameters = rounding(V, parameters, recipe.mu)
    ahead = min(every - run.step % every, stage.ahead(run.stage_step))
    V, parameters, done, loss, samples = engine.take(
        V, parameters, recipe.mu, stage, run.seed, range(run.step, run.step + ahead)
    )
    diverged = done < ahead
    step, stage_step = run.step + done + diverged, run.stage_step + done + diverged
    over = not diverged and stage.over(stage_step, V, parameters, recipe.mu)
    for rounding in stage.leave if over else ():
        V, parameters = rounding(V, parameters, recipe.mu)
    after = replace(
        run,
        V=V,
        parameters=parameters,
        step=step,
        stage=run.stage + over,
        stage_step=0 if over else stage_step,
        samples=run.samples + samples,
        diverged=step if diverged else None,
        finished=diverged or (over and run.stage + 1 == len(recipe.stages)),
    )
    return after, loss


def evaluate(task: Task, run: Run, batch_loss: float) -> Run:
    """Append one row to the history."""
    row = {
        "step": run.step,
        "stage": run.stage + (run.stage_step > 0 or run.step == 0),
        "samples": run.samples,
        "batch_loss": batch_loss,
        **metrics.measure(task, run.V, run.A),
    }
    return replace(run, history={name: np.append(run.history[name], row[name]) for name in COLUMNS})
