"""The options of a recipe are the arguments of its function, so a new recipe or argument needs no
second list.
"""

from collections.abc import Mapping
from functools import cache
from inspect import signature
from typing import Any, get_type_hints

from scb.arrays import Array
from scb.inputs import InputError, coerced, one_of
from scb.task import Task
from scb.training.recipes import RECIPES, Recipe
from scb.training.run import Run


def arguments(function: Any) -> dict[str, Any]:
    """Return the arguments of a function other than the task, and their types."""
    hints = get_type_hints(function)
    names = [name for name in signature(function).parameters if name != "task"]
    for name in names:
        if name not in hints:
            raise InputError(
                f"{function.__module__}:{function.__qualname__} has an argument {name!r} without "
                "a type: annotate it"
            )
    return {name: hints[name] for name in names}


def pretrained_value(
    task: Task, *, overlap: float = 0.6, related_seed: int = 1, pretrained: str | None = None
) -> Array:
    """Return the V_hat of a recipe for transfer: the P̂ of a related task, or the V of the run
    saved in ``pretrained``.
    """
    if pretrained is not None:
        return Run.load(pretrained).V
    return task.related(overlap, related_seed).P


@cache
def recipe_hints(recipe: str) -> dict[str, Any]:
    """Return the options of a recipe and their types; the options of ``pretrained_value`` take the
    place of V_hat, which nobody writes down.
    """
    hints = arguments(RECIPES[recipe])
    if "V_hat" in hints:
        del hints["V_hat"]
        hints |= arguments(pretrained_value)
    return hints


def all_options(recipe: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a recipe, including those that were not given, as its types."""
    functions = (
        [RECIPES[recipe], pretrained_value]
        if "V_hat" in arguments(RECIPES[recipe])
        else [RECIPES[recipe]]
    )
    parameters = {
        name: parameter
        for function in functions
        for name, parameter in signature(function).parameters.items()
    }
    defaults = {
        name: one.default for name, one in parameters.items() if one.default is not one.empty
    }
    return recipe_options(recipe, defaults) | recipe_options(recipe, options)


def recipe_options(recipe: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a recipe, checked and converted to its types; raise a ValueError for a
    name or value that the recipe does not accept.
    """
    one_of("recipe", recipe, RECIPES)
    hints = recipe_hints(recipe)
    for name in options:
        if name not in hints:
            raise InputError(
                f"recipe {recipe!r} has no option {name!r}: it has {', '.join(sorted(hints))}"
            )
    return {name: coerced(name, value, hints[name]) for name, value in options.items()}


def build_recipe(recipe: str, task: Task, options: Mapping[str, Any]) -> Recipe:
    """Return the recipe with these options for a task."""
    make = RECIPES[recipe]
    given = recipe_options(recipe, options)
    if "V_hat" in arguments(make):
        of_V_hat = {name: given.pop(name) for name in arguments(pretrained_value) if name in given}
        given["V_hat"] = pretrained_value(task, **of_V_hat)
    made = make(task, **given)
    if not isinstance(made, Recipe):
        raise InputError(
            f"recipe = {recipe!r} returns a {type(made).__name__}: it must return a scb.Recipe"
        )
    return made
