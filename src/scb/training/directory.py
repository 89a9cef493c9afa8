"""A run in a directory, as ``scb train`` keeps it: settings, task and last checkpoint."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from scb.folders import Folder
from scb.task import Task
from scb.training.fingerprint import identity, made_by
from scb.training.loop import choose_engine, train
from scb.training.recipes import Recipe
from scb.training.run import FILE as RUN
from scb.training.run import Run
from scb.training.settings import FILE, TASK, TrainingSettings, load_run


class PreparedRun(NamedTuple):
    """A run that can be started; ``scb.training.directory.prepared`` returns it.

    Attributes
    ----------
    settings : TrainingSettings
        Everything that determines the run.
    task, recipe : Task and Recipe
        The task and the recipe of these settings.
    source : callable or None
        The source of gradients; None for fresh samples, which ``scb.train`` draws without a source.

    Examples
    --------
    >>> from scb.training.directory import prepared
    >>> from scb.training.settings import TrainingSettings
    >>> prepared(TrainingSettings(T=50, source="population")).source.task.T
    50
    """

    settings: TrainingSettings
    task: Task
    recipe: Recipe
    source: Any


def prepared(settings: TrainingSettings) -> PreparedRun:
    """Build everything that a run needs, and check that its device can be used.

    Parameters
    ----------
    settings : TrainingSettings
        Everything that determines the run.

    Returns
    -------
    PreparedRun
        The settings with their task, recipe and source.

    Examples
    --------
    >>> from scb.training.directory import prepared
    >>> from scb.training.settings import TrainingSettings
    >>> run = prepared(TrainingSettings(T=50, recipe="paper"))
    >>> run.task.T, run.recipe.name, run.source
    (50, 'paper', None)
    """
    task, recipe = settings.build()
    source = settings.build_source(task)
    choose_engine(task, recipe, settings.device, source)
    return PreparedRun(settings, task, recipe, source)


def train_in(
    folder: Folder,
    asked: PreparedRun,
    resume: bool = False,
    callbacks: Sequence[Callable[[Run], None]] = (),
    judge_samples: int | None = None,
) -> Run:
    """Train, and save the run, its settings and its task in a folder.

    Parameters
    ----------
    folder : Folder
        The folder, opened for writing.
    asked : PreparedRun
        The run, as ``prepared`` returns it for some settings.
    resume : bool, default False
        Whether to continue the run in the folder; otherwise, that run is replaced.
    callbacks : list of callable
        Functions that are called with the run at each row of its history.
    judge_samples : int, optional
        The number of held-out samples that decide the verdict.

    Returns
    -------
    Run

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.folders import opened
    >>> from scb.training.directory import prepared, train_in
    >>> from scb.training.settings import TrainingSettings, load_run
    >>> settings = TrainingSettings(T=50, recipe="paper", options={"steps": 5})
    >>> with opened(Path("run"), "training") as folder:
    ...     run = train_in(folder, prepared(settings))
    >>> load_run(Path("run"))[1] == settings
    True
    """
    settings, task, recipe, source = asked
    about = {"every": settings.every, "source": source, "device": settings.device}
    if resume and (folder.path / RUN).exists():
        load_run(folder.path)  # refuses files that do not belong together
        folder.claim(FILE, TASK, RUN, overwrite=True)
    folder.claim(FILE, TASK, RUN)
    if not resume:
        # First: after a kill it does not stand beside another run's settings
        (folder.path / RUN).unlink(missing_ok=True)
        made = made_by(task, recipe, settings.seed, start=None, **about)
        settings.save(folder.path, identity(made))
    task.save(folder.file(TASK), overwrite=True)
    return train(
        task,
        recipe,
        settings.seed,
        **about,
        callbacks=callbacks,
        checkpoint=folder,
        resume=resume,
        judge_samples=judge_samples,
    )
