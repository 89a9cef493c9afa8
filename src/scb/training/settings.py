"""A training run as a few words: which task, which recipe with which options, which seed; from TOML, JSON or the command line.

The options of a recipe are the arguments of its function, so that a new recipe or argument needs no second list.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from inspect import signature
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from scb.files import write_atomically
from scb.geometry import Array
from scb.task import Ensemble, Task
from scb.training.recipes import RECIPES, Recipe
from scb.training.run import Run

FILE = "config.json"
_WORDS = {int: "an integer", float: "a number", bool: "true or false", str: "text", type(None): "", dict: "a table"}


def fitted(name: str, value: Any, hint: Any) -> Any:
    """The value, as the type has it (1 is 1.0 where a number is wanted), or a ValueError that says what is allowed."""
    found = _fits(value, hint)
    if not found:
        raise ValueError(f"{name} = {json.dumps(value, default=str)}: it must be {_words(hint)}")
    return found[0]


def _fits(value: Any, hint: Any) -> list[Any]:
    """The value as the type has it, or none if it does not fit. Truth values are no numbers, and nothing is infinite."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return [found for part in parts for found in _fits(value, part)][:1]
    if origin is Literal:
        return [part for part in parts if type(value) is type(part) and value == part]
    if origin is tuple:
        if type(value) not in (list, tuple):
            return []
        if parts[-1] is Ellipsis:  # as many as there are
            parts = parts[:1] * len(value)
        found = [fit for v, part in zip(value, parts, strict=False) for fit in _fits(v, part)]
        return [found] if len(found) == len(value) == len(parts) else []
    if hint is float:
        return [float(value)] if type(value) in (int, float) and isfinite(value) else []
    return [value] if type(value) is hint else []


def _words(hint: Any) -> str:
    """What a type allows, for people; objects that nobody can write down are passed over."""
    parts = get_args(hint)
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(json.dumps(part) for part in parts)
    if get_origin(hint) is tuple:
        count = "" if parts[-1] is Ellipsis else f"{len(parts)} "
        return f"a list of {count}values, each {_words(parts[0])}"
    if parts:
        return " or ".join(filter(None, map(_words, parts)))
    return _WORDS.get(hint, "")


def arguments(function: Any) -> dict[str, Any]:
    """The arguments of a function other than the task, and their types."""
    hints = get_type_hints(function)
    return {name: hints[name] for name in signature(function).parameters if name != "task"}


def pretrained_value(task: Task, *, overlap: float = 0.6, related_seed: int = 1, pretrained: str | None = None) -> Array:
    """The V_hat of a recipe that transfers: the P̂ of a related task, or the V of the run saved in ``pretrained``."""
    if pretrained is not None:
        return Run.load(pretrained).V
    return task.related(overlap, related_seed).P


@cache
def recipe_hints(recipe: str) -> dict[str, Any]:
    """The options of a recipe and their types; in place of a V_hat, which nobody writes down, those of ``pretrained_value``."""
    hints = arguments(RECIPES[recipe])
    if "V_hat" in hints:
        del hints["V_hat"]
        hints |= arguments(pretrained_value)
    return hints


def recipe_options(recipe: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a recipe, checked and as its types have them; ValueError for a name or value that it does not take."""
    if recipe not in RECIPES:
        raise ValueError(f"recipe = {recipe!r}: it must be one of {', '.join(RECIPES)}")
    hints = recipe_hints(recipe)
    for name in options:
        if name not in hints:
            raise ValueError(f"recipe {recipe!r} has no option {name!r}: it has {', '.join(sorted(hints))}")
    return {name: fitted(name, value, hints[name]) for name, value in options.items()}


def build_recipe(recipe: str, task: Task, options: Mapping[str, Any]) -> Recipe:
    """The recipe with these options, which ``recipe_options`` has checked, for a task."""
    make = RECIPES[recipe]
    given = dict(options)
    if "V_hat" in arguments(make):
        of_V_hat = {name: given.pop(name) for name in arguments(pretrained_value) if name in given}
        given["V_hat"] = pretrained_value(task, **of_V_hat)
    return make(task, **given)


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that determines a training run."""

    # The task, by ``Task.random``
    N: int = 3
    T: int = 5000
    sparsity: int = 2
    task_seed: int = 0
    ensemble: Ensemble = "strong"  # the law of P
    K_P: float | None = None  # of P, if it is to be moved there
    recipe: str = "paper"  # name of one of ``recipes.RECIPES``
    options: dict[str, Any] = field(default_factory=dict)  # of the recipe, by the names of ``recipe_hints``
    seed: int = 0  # of the training run
    every: int = 10  # steps between two rows of the history

    def __post_init__(self) -> None:
        recipe_options(self.recipe, self.options)  # refuses what does not fit; the file keeps what was written
        fitted("ensemble", self.ensemble, Ensemble)
        fitted("K_P", self.K_P, float | None)
        if self.every < 1:
            raise ValueError(f"every = {self.every}: it must be at least 1")

    @classmethod
    def read(cls, path: str | Path) -> "TrainingSettings":
        """From a TOML file, or the JSON file of a run, with the names of the fields; a name that means nothing is refused."""
        text = Path(path).read_text()
        try:
            values = json.loads(text) if Path(path).name == FILE else tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path} is not TOML: {error}") from None
        hints = get_type_hints(cls) | {"options": dict}
        for name, value in values.items():
            if name not in cls.__dataclass_fields__:
                raise ValueError(f"{path} has {name!r}, which means nothing: it may have {', '.join(cls.__dataclass_fields__)}")
            fitted(f"{path} has {name}", value, hints[name])
        return cls(**values)

    def build(self) -> tuple[Task, Recipe]:
        """The task and the recipe."""
        task = Task.random(self.N, self.T, self.sparsity, self.task_seed, ensemble=self.ensemble, K_P=self.K_P)
        return task, build_recipe(self.recipe, task, self.options)

    def save(self, directory: str | Path) -> None:
        """Write the settings as JSON beside the run."""
        Path(directory).mkdir(parents=True, exist_ok=True)
        write_atomically(Path(directory) / FILE, (json.dumps(asdict(self), indent=2) + "\n").encode())

    @classmethod
    def load(cls, directory: str | Path) -> "TrainingSettings":
        """Read what ``save`` wrote."""
        path = Path(directory) / FILE
        if not path.exists():
            raise FileNotFoundError(f"{directory} holds no run: there is no {FILE} in it")
        return cls.read(path)
