"""Checks of the arguments that users pass to ``train`` and ``train_many``."""

from typing import Any, Literal, get_args

from scb.inputs import InputTypeError, coerced, integer, one_of, shown
from scb.task import Task
from scb.training.recipes.recipe import Recipe

Device = Literal["cpu", "cuda"]


def check_kinds(task: Any, recipe: Any, source: Any, device: Any) -> None:
    """Raise an InputError unless ``train`` accepts these arguments and they fit together."""
    one_of("device", device, get_args(Device))
    for name, value, kind in (("task", task, Task), ("recipe", recipe, Recipe)):
        if not isinstance(value, kind):
            raise InputTypeError(
                f"{name} is of type {type(value).__name__}: it must be a {kind.__name__}"
            )
    if source is not None and not callable(source):
        raise InputTypeError(
            f"source = {shown(source)}: it must be a function, or left out for fresh samples"
        )
    recipe.check_fits(task)


def check_judge(judge: Any, judge_samples: Any) -> int | None:
    """Check ``judge`` and the number of held-out samples, and return that number."""
    coerced("judge", judge, bool | None)
    return None if judge_samples is None else integer("judge_samples", judge_samples, low=2)
