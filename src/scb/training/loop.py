"""The training loop, which all training goes through."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from scb.arrays import Array
from scb.folders import Folder, opened
from scb.geometry.heads import per_head
from scb.inputs import InputError, file_path, integer
from scb.kernels.compiler import plain_interrupts
from scb.model import LinearTransformer
from scb.task import Task
from scb.training.answers import functions, rounded
from scb.training.arguments import Device, check_judge, check_kinds
from scb.training.cuda import Cuda, OnGpu
from scb.training.engine import Composed, Fused, Request, Taken, step_keys
from scb.training.evaluations import Evaluations, attention_of
from scb.training.fingerprint import made_by
from scb.training.head_verdict import HeadsHeldOut
from scb.training.recipes.recipe import Recipe
from scb.training.roundings import ON_GPU, ResolveSign, Rounding
from scb.training.run import FILE, Run
from scb.training.sources import GradientSource
from scb.training.sources.sampled import Dataset, Fresh
from scb.training.verdict import GOOD, HELD_OUT, HeldOut


@plain_interrupts()
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
    checkpoint: str | Path | Folder | None = None,
    checkpoint_every: int = 100,
    resume: bool = False,
    judge: bool | None = None,
    judge_samples: int | None = None,
    overwrite: bool = False,
    lock: bool = True,
) -> Run:
    """Train a one-layer transformer on a task according to a recipe.

    Parameters
    ----------
    task : Task
        The task to learn.
    recipe : Recipe
        The initial point and the stages of training, for instance ``scb.recipes.tuned(task)``.
    seed : int, default 0
        The seed of the run. The random numbers of step i depend only on the seed and on i.
    device : {"cpu", "cuda"}, default "cpu"
        The device on which to compute. "cuda" is an NVIDIA GPU, used through CuPy. The GPU draws
        the same samples as the CPU but rounds differently, so results are not equal bit for bit.
    source : callable, optional
        The source of the gradients. The default draws fresh samples of the task with the compiled
        engine. ``scb.training.sources`` has other sources: exact expectations, exact expectations
        with Gaussian noise, and a fixed data set.
    start : Run, optional
        An earlier run to continue from, which has completed the first stages of the recipe. By
        default, training starts at the recipe's initial point.
    every : int, default 10
        The number of steps between two evaluations. The run is also evaluated at the end of each
        stage.
    callbacks : sequence of callables, default ()
        Functions that are called with the run at every evaluation, for instance a ``ProgressBar``.
    checkpoint : str or path, optional
        A directory in which the run is saved at the first evaluation after ``checkpoint_every``
        steps and at the end. By default, the run is not saved. While the directory is in use, no
        other process can train there. A run that is already there is kept unless ``resume`` or
        ``overwrite`` is given.
    checkpoint_every : int, default 100
        The number of steps between two checkpoints.
    resume : bool, default False
        Whether to continue from ``checkpoint`` if it holds a run. The result is the same, bit for
        bit, as that of an uninterrupted run. If the checkpoint was made with another task, recipe,
        seed, source, start or ``every``, an ``InputError`` says what differs.
    judge : bool, optional
        Whether to test the result on held-out samples at the end. ``run.verdict`` then says
        "learned" or what is wrong. By default, the result is tested if A has at most 10,000,000
        entries, because the test needs memory for a few copies of A. Recipes that include such a
        test are always judged. The held-out samples are further samples of the source, or of the
        task if the source is a data set.
    judge_samples : int, optional
        The number of held-out samples. The default is large enough to tell whether distances exceed
        0.05; if the verdict is "undecided", more samples can decide it.
    overwrite : bool, default False
        Whether to replace a run, or a file of the same name, that is in ``checkpoint``.
    lock : bool, default True
        Whether to keep other processes out of ``checkpoint``. Some file systems do not support
        this.

    Returns
    -------
    Run
        The run with the trained V (N, N) and A (T, N), the history of all evaluations, and the
        verdict.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
    >>> run = scb.train(task, scb.recipes.tuned(task), seed=0)
    >>> run.verdict
    'learned'
    >>> round(float(run.history["dist_V"][-1]), 2), round(float(run.history["dist_A"][-1]), 2)
    (0.01, 0.01)
    """
    every = integer("every", every, low=1)
    checkpoint_every = integer("checkpoint_every", checkpoint_every, low=1)
    seed = integer("seed", seed, low=0)
    judge_samples = check_judge(judge, judge_samples)
    callbacks = functions("callbacks", callbacks)
    check_kinds(task, recipe, source, device)
    made = made_by(task, recipe, seed, every=every, source=source, start=start, device=device)
    engine = choose_engine(task, recipe, device, source)
    evaluations = Evaluations(task)
    with _opened(checkpoint, resume=resume, overwrite=overwrite, lock=lock) as folder:
        if not resume or (run := _resumed(folder, made)) is None:
            run = first(recipe, seed, start, made, evaluations)
            if folder is not None:
                # A run that is replaced must not be mistaken for this one.
                folder.file(FILE).unlink(missing_ok=True)
        saved = run.step
        while not run.finished:
            run, request, taken = _taken(engine, run, recipe, every, bool(callbacks or folder))
            evaluations.note_on_the_way(run, request.stage.batch_size, taken.looks)
            run = advanced(run, recipe, request.steps, taken)
            run = judged(task, run, recipe, source, judge, judge_samples)
            if not evaluations.noted(run, taken, every):
                continue
            due = folder is not None and (run.finished or run.step >= saved + checkpoint_every)
            if callbacks or due:
                run = evaluations.written(run)
            for callback in callbacks:
                callback(run)
            if folder is not None and due:
                run.save(folder.file(FILE).parent, overwrite=True)
                saved = run.step
    return evaluations.written(run)


@contextmanager
def _opened(
    checkpoint: str | Path | Folder | None, *, resume: bool, overwrite: bool, lock: bool
) -> Iterator[Folder | None]:
    """The folder of checkpoints, which is already open if a command trains. Raises an InputError
    if it holds a run that is to be kept.
    """
    if checkpoint is None or isinstance(checkpoint, Folder):
        yield checkpoint
        return
    path = file_path("checkpoint", checkpoint)
    with opened(path, "training", lock=lock, overwrite=overwrite) as folder:
        if (folder.path / FILE).exists() and not (resume or overwrite):
            raise InputError(
                f"{folder.path} holds a run, which is kept: continue it with resume=True, pass "
                f"another directory as checkpoint, or replace {FILE} with overwrite=True"
            )
        yield folder


def _resumed(folder: Folder | None, made: dict[str, str]) -> Run | None:
    """The run in a folder, if there is one. Raises an InputError unless it was made by the same
    task, recipe, and so on.
    """
    if folder is None or not (folder.path / FILE).exists():
        return None
    run = Run.load(folder.path)
    other = [name for name in made | run.made_by if run.made_by.get(name) != made.get(name)]
    if other:
        raise InputError(
            f"the run in {folder.path} was made with a different {', '.join(other)}: resume it "
            "with the same, or start again"
        )
    folder.claim(FILE, overwrite=True)  # whoever put it here, it is this run
    return run


def first(
    recipe: Recipe,
    seed: int,
    start: Run | None,
    made: dict[str, str],
    evaluations: Evaluations | None = None,
) -> Run:
    """Return the run before its first step, evaluated unless it continues another run."""
    if start is not None:
        over = start.diverged is not None or start.stage >= len(recipe.stages)
        return replace(start, recipe=recipe.name, finished=over, made_by=made)
    V, A = recipe.start.V, recipe.start.A  # (N, N), (T, N)
    facts = {
        "recipe": recipe.name,
        "transformer": recipe.transformer,
        "seed": seed,
        "samples": recipe.samples,
    }
    run = Run(V, A, **facts, made_by=made)
    if evaluations is not None:
        evaluations.note(run)
    return run


def choose_engine(
    task: Task, recipe: Recipe, device: Device, source: GradientSource | None
) -> Composed | Fused | Cuda:
    """Return the fastest engine for these arguments; raise an InputError for an unusable device."""
    if source is None and recipe.transformer is LinearTransformer:
        if device == "cpu":
            return Fused(task)
        if len(per_head(recipe.start.V)) > 1 or task.heads > 1:
            raise InputError("device = 'cuda' trains one head: leave device out for several heads")
        return Cuda(task)
    if device != "cpu":
        raise InputError(
            f"device = {device!r} trains the linear transformer on fresh samples: leave device "
            "out for everything else"
        )
    return Composed(Fresh(task) if source is None else source, recipe.transformer)


def asked(run: Run, recipe: Recipe, every: int, far: int) -> tuple[Run, Request]:
    """Return the steps of a run up to its next evaluation, end of a stage or check of ``stop``, at
    most ``far`` (a multiple of ``every``), and the run before these steps.
    """
    stage = recipe.stages[run.stage]
    if run.stage_step == 0:
        run = _rounded(run, recipe.mu, stage.enter, stage.name)
    ahead = min(far - run.step % every, stage.ahead(run.stage_step))
    return run, Request(
        run.V,
        run.parameters,
        recipe.mu,
        stage.at(run.stage_step),
        run.seed,
        range(run.step, run.step + ahead),
        run.state if run.stage_step else None,
    )


def _taken(
    engine: Composed | Fused | Cuda, run: Run, recipe: Recipe, every: int, watched: bool
) -> tuple[Run, Request, Taken]:
    """A run, its next steps up to an evaluation, and what they gave; steps beyond evaluations, if
    it is not watched and the engine looks at it on the way.
    """
    if watched or isinstance(engine, Composed) or run.V.ndim == 3:
        run, request = asked(run, recipe, every, every)
        return run, request, engine.take(*request)
    run, request = asked(run, recipe, every, engine.far(recipe.stages[run.stage], every))
    return run, request, engine.take_looking(request, every)


def advanced(run: Run, recipe: Recipe, steps: range, taken: Taken) -> Run:
    """Return the run after those of its requested steps that have been taken."""
    stage = recipe.stages[run.stage]
    diverged = taken.steps < len(steps)
    # A step that diverges counts, although (V, A) is the point before it.
    tried = taken.steps + diverged
    run = replace(
        run,
        V=taken.V,
        parameters=taken.A,
        step=run.step + tried,
        stage_step=run.stage_step + tried,
        samples=run.samples + taken.samples,
        state=dict(taken.state),
    )
    if diverged:
        return replace(run, diverged=run.step, finished=True)
    if not stage.over(run.stage_step, run.V, run.parameters, recipe.mu):
        return run
    last = run.stage + 1 == len(recipe.stages)
    run = _rounded(run, recipe.mu, stage.leave, stage.name)
    return replace(run, stage=run.stage + 1, stage_step=0, state={}, finished=last)


def _rounded(run: Run, mu: Array, roundings: Sequence[Rounding], stage: str) -> Run:
    """The run after these roundings of its (V, A). It is noted if one takes the mirror image."""
    for rounding in roundings:
        A = run.parameters
        if isinstance(A, OnGpu) and A.large and isinstance(rounding, ON_GPU):
            V, there = rounding(run.V, A.there, mu)
            mirrored = isinstance(rounding, ResolveSign) and V is not run.V
            run = replace(run, V=V, parameters=A.like(there))
        else:
            V, new_A = rounded(rounding, run.V, np.asarray(A), mu, stage)
            mirrored = isinstance(rounding, ResolveSign) and not np.array_equal(A, new_A)
            run = replace(run, V=V, parameters=A.like(new_A) if isinstance(A, OnGpu) else new_A)
        if mirrored:
            run = replace(run, mirrored=run.step)
    return run


def judged(
    task: Task,
    run: Run,
    recipe: Recipe,
    source: GradientSource | None,
    judge: bool | None,
    judge_samples: int | None,
) -> Run:
    """Return the run, with its verdict if it has finished. The verdict is based on further samples
    of its source, or of the task if the source is a data set.
    """
    if not run.finished:
        return run
    if source is None or isinstance(source, Dataset):
        source = Fresh(task)
    if judge is None:  # a judge takes a few copies of A
        judge = run.parameters.shape[0] * run.parameters.shape[1] <= 10_000_000
    samples = 0
    if run.diverged is not None:
        word = f"diverged at step {run.diverged}: smaller step sizes or larger batches are needed"
    elif judge or recipe.check is not None:
        check = recipe.check or _judge(task, recipe, run.V.ndim == 3)
        if judge_samples is not None:
            check = replace(check, batch_size=-(-judge_samples // 2))
        keys = step_keys(run.seed, range(HELD_OUT, HELD_OUT + 2))
        A = attention_of(run)
        if isinstance(A, OnGpu):
            source = A.source
            A = A.there if A.large else np.asarray(A)
        word, _, _, samples = check(run.V, A, recipe.mu, source, keys)
    else:
        return run
    if recipe.check is None:
        samples = 0  # only samples that a recipe asks for count
    elif word != GOOD:
        warnings.warn(f"the run of recipe {run.recipe!r} has failed. {word}", stacklevel=3)
    return replace(run, verdict=word, samples=run.samples + samples)


def _judge(task: Task, recipe: Recipe, heads: bool) -> HeldOut | HeadsHeldOut:
    """The judge of a recipe that brings none."""
    if heads:
        return HeadsHeldOut.sized(recipe.mu, task.singular_values, task.sparsity)
    return HeldOut.sized(recipe.mu, task.K_P, task.sparsity)
