"""The training loop: nothing else trains."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from scb import metrics
from scb.geometry import Array
from scb.inputs import InputError, integer, one_of
from scb.model import LinearTransformer
from scb.task import Task
from scb.training.engine import Composed, Fused, step_keys
from scb.training.fingerprint import fingerprints
from scb.training.run import COLUMNS, FILE, Run
from scb.training.sources import GradientSource
from scb.training.sources.sampled import Fresh
from scb.training.stages import Recipe
from scb.training.verdict import GOOD, HELD_OUT, HeldOut

if TYPE_CHECKING:
    from scb.training.cuda import Cuda

Device = Literal["cpu", "cuda"]


def train(
    task: Task,
    recipe: Recipe,
    seed: int = 0,
    *,
    device: Device = "cpu",
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
    device : "cpu", or "cuda" for an NVIDIA GPU through CuPy, which takes the same samples; its last bits are others
    source : where gradients come from; unless given, fresh samples of the task through the compiled engine
    start : go on from this run, which has been through the first stages of the recipe, instead of from the recipe's initial point
    every : evaluate and call the callbacks every so many steps, at stage ends and at the end
    checkpoint : directory to which the run is saved, at the first evaluation after ``checkpoint_every`` steps and at the end
    resume : go on from ``checkpoint`` if there is one. The result is the same to the last bit as without the break,
        because what is random in step i depends on (seed, i) alone. A checkpoint of another task, recipe, seed, source, start or
        ``every`` is an InputError that names what differs
    """
    every = integer("every", every, low=1)
    checkpoint_every = integer("checkpoint_every", checkpoint_every, low=1)
    seed = integer("seed", seed, low=0)
    recipe.check_fits(task)
    made_by = fingerprints(task=task, recipe=recipe, seed=seed, every=every, source=source, start=start)
    if device != "cpu":
        made_by |= fingerprints(device=device)
    engine = _engine(task, recipe, device, source)
    if checkpoint is not None and resume and Path(checkpoint, FILE).exists():
        run = Run.load(checkpoint)
        _check_resumable(run, made_by, Path(checkpoint))
    elif start is not None:
        over = start.diverged is not None or start.stage >= len(recipe.stages)
        run = replace(start, recipe=recipe.name, finished=over, made_by=made_by)
    else:
        V, A = recipe.start.V, recipe.start.A  # (N, N), (T, N)
        facts = {"recipe": recipe.name, "transformer": recipe.transformer, "seed": seed, "samples": recipe.samples}
        run = Run(V, A, **facts, made_by=made_by)
        run = evaluate(task, run, batch_loss=np.nan)
    saved = run.step
    while not run.finished:
        run, batch_loss = advance(run, recipe, engine, every)
        if run.finished and recipe.check is not None:
            run = judge(run, recipe.check, recipe.mu, engine)
        if run.step % every == 0 or run.finished or run.stage_step == 0:
            run = evaluate(task, run, batch_loss)
            for callback in callbacks:
                callback(run)
            if checkpoint is not None and (run.step >= saved + checkpoint_every or run.finished):
                run.save(checkpoint)
                saved = run.step
    return run


def _engine(task: Task, recipe: Recipe, device: Device, source: GradientSource | None) -> "Composed | Fused | Cuda":
    """The fastest engine for these."""
    one_of("device", device, get_args(Device))
    if source is not None or recipe.transformer is not LinearTransformer:
        if device != "cpu":
            raise InputError(f"device = {device!r} trains the linear transformer on fresh samples: leave it out for all else")
        return Composed(Fresh(task) if source is None else source, recipe.transformer)
    if device == "cuda":
        from scb.training.cuda import Cuda

        return Cuda(task)
    return Fused(task)


def _check_resumable(run: Run, made_by: dict[str, str], checkpoint: Path) -> None:
    """InputError unless the run in the checkpoint was made by the same task, recipe, and so on."""
    if not run.made_by:
        raise InputError(f"the run in {checkpoint} does not say what made it, and cannot be resumed: it is of an older version")
    other = [name for name in made_by | run.made_by if run.made_by.get(name) != made_by.get(name)]
    if other:
        raise InputError(
            f"the run in {checkpoint} was made with another {', '.join(other)}: resume it with the same, or begin anew"
        )


def advance(run: Run, recipe: Recipe, engine: "Composed | Fused | Cuda", every: int) -> tuple[Run, float]:
    """Steps up to the next evaluation, stage end or question whether to stop; the run after them, and the last batch's loss."""
    stage = recipe.stages[run.stage]
    V, A, mu = run.V, run.parameters, recipe.mu  # (N, N), (T, N), (N,)
    if run.stage_step == 0:
        for rounding in stage.enter:
            V, A = rounding(V, A, mu)
    ahead = min(every - run.step % every, stage.ahead(run.stage_step))
    taken = engine.take(V, A, mu, stage, run.seed, range(run.step, run.step + ahead))
    V, A = taken.V, taken.A
    diverged = taken.steps < ahead
    tried = taken.steps + 1 if diverged else taken.steps  # a step that diverges counts, though (V, A) stay before it
    step = run.step + tried
    stage_step = run.stage_step + tried
    after = replace(run, step=step, stage_step=stage_step, samples=run.samples + taken.samples)
    if diverged:
        after = replace(after, diverged=step, finished=True)
    elif stage.over(stage_step, V, A, mu):
        for rounding in stage.leave:
            V, A = rounding(V, A, mu)
        after = replace(after, stage=run.stage + 1, stage_step=0, finished=run.stage + 1 == len(recipe.stages))
    return replace(after, V=V, parameters=A), taken.loss


def judge(run: Run, check: HeldOut, mu: Array, engine: "Composed | Fused | Cuda") -> Run:
    """The run with the verdict of held-out samples; a warning where it is not that the task has been learned."""
    word = f"not learned: diverged at step {run.diverged}"
    samples = 0
    if run.diverged is None:
        source = engine.source if isinstance(engine, Composed) else engine.fresh
        verdict = check(run.V, run.A, mu, source, step_keys(run.seed, range(HELD_OUT, HELD_OUT + 2)))
        word = verdict.word
        samples = verdict.samples
    if word != GOOD:
        warnings.warn(f"the run of recipe {run.recipe!r} has failed. {word}", stacklevel=3)
    return replace(run, verdict=word, samples=run.samples + samples)


def evaluate(task: Task, run: Run, batch_loss: float) -> Run:
    """Append one row to the history."""
    between_stages = run.stage_step == 0 and run.step > 0
    # Stages count from 1 in the history; a row between two of them is the last of the one that has ended.
    stage = run.stage if between_stages else run.stage + 1
    row = {"step": run.step, "stage": stage, "samples": run.samples, "batch_loss": batch_loss}
    row |= metrics.measure(task, run.V, run.A)
    return replace(run, history={name: np.append(run.history[name], row[name]) for name in COLUMNS})
