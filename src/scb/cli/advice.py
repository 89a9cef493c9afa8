"""The advice of ``scb train`` after a run that has not learned its task: settings that were seen to
learn it.
"""

import shlex
from dataclasses import replace
from textwrap import wrap
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from scb.training.run import Run
    from scb.training.settings import TrainingSettings


def advise(
    console: Console, verdict: str | None, settings: "TrainingSettings", patience: float = 30
) -> None:
    """Unless the verdict of a run is that it has learned its task, or that more samples are needed,
    try recipe 'tuned' on the task, for ``patience`` seconds at most, and say whether the recipe
    learns the task.
    """
    from scb.training.loop import train as run_training
    from scb.training.progress import ProgressBar
    from scb.training.verdict import GOOD, UNDECIDED

    if verdict in (None, GOOD) or verdict.startswith(UNDECIDED):
        return
    usual = replace(settings, recipe="tuned", options={}, source="fresh")
    if not settings.differences(usual):
        console.print("no settings are known that learn this task")
        return
    console.print(f"trying recipe 'tuned' on this task, for up to {patience:g} s …")
    end = monotonic() + patience
    task, recipe = usual.build()

    def give_up(_: "Run") -> None:
        if monotonic() > end:
            raise TimeoutError

    try:
        tried = run_training(
            task,
            recipe,
            usual.seed,
            device=usual.device,
            callbacks=[ProgressBar(recipe.steps), give_up],
        )
    except TimeoutError:
        console.print(
            f"recipe 'tuned' was tried for {patience:g} s, which is too short to say whether it"
            " learns this task"
        )
        return
    if tried.verdict == GOOD:
        console.print("tried on this task, these settings learn it:")
        console.print(_command(usual), soft_wrap=True)
    else:
        console.print(
            "no settings are known that learn this task: recipe 'tuned' was tried as well"
        )


def _command(settings: "TrainingSettings") -> str:
    """The command that trains with the usual options of a recipe, in lines that a shell takes for
    one.
    """
    from scb.training.settings import TrainingSettings

    usual = TrainingSettings()
    words = ["scb", "train", "--recipe", settings.recipe]
    for name in ("N", "T", "sparsity", "ensemble", "K_P", "task_seed", "seed", "device"):
        if getattr(settings, name) != getattr(usual, name):
            words += [f"--{name.replace('_', '-')}", str(getattr(settings, name))]
    return " \\\n".join(
        wrap(
            shlex.join(words),
            76,
            initial_indent="  ",
            subsequent_indent="    ",
            break_long_words=False,
        )
    )
