"""The settings of a training run: its task, recipe, options and seed, from TOML, JSON or the
command line.

The options of a recipe are the arguments of its function, so that a new recipe or argument needs no
second list.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any, Literal, get_type_hints

from scb.arrays import Array
from scb.extensions import Registry
from scb.files import make_directory, read_json, read_regular, write_json
from scb.inputs import InputError, file_path, fitted, integer, one_of, unreadable
from scb.task import Ensemble, Task
from scb.training.fingerprint import fingerprints, identity
from scb.training.recipes import RECIPES, Recipe
from scb.training.run import FILE as RUN_FILE
from scb.training.run import Run
from scb.training.sources import GradientSource

FILE = "config.json"
TASK = "task.npz"
_RUN = "run"  # the identity of the run to which a file of settings belongs
SOURCES = Registry(
    "source",
    {
        "fresh": "scb.training.sources.sampled:Fresh",
        "reference": "scb.training.sources.sampled:Reference",
        "population": "scb.training.sources.population:Population",
        "gaussian": "scb.training.sources.population:Gaussian",
    },
)
"""Sources of gradients by name, including those of other packages; each is made from a task."""


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; an InputError if it is none."""
    try:
        return tomllib.loads(read_regular(path).decode())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not TOML: {unreadable(error)}") from None


def parse_option(text: str) -> tuple[str, Any]:
    """name=value, where the value is TOML, True or False, or a bare word; ``recipe_options`` then
    fits it to the recipe.
    """
    name, separator, value = text.partition("=")
    if not separator:
        raise InputError(f"--set {text}: it must be name=value")
    try:
        plain = {"True": "true", "False": "false"}.get(value.strip(), value)
        parsed = tomllib.loads(f"x = {plain}")
    except (ValueError, RecursionError):
        return name, value  # a bare word, which fits where text does
    if set(parsed) != {"x"}:  # it goes on after a line break
        raise InputError(f"--set {name}: {value!r} is no single value")
    return name, parsed["x"]


def arguments(function: Any) -> dict[str, Any]:
    """The arguments of a function other than the task, and their types."""
    hints = get_type_hints(function)
    names = [name for name in signature(function).parameters if name != "task"]
    for name in names:
        if name not in hints:
            raise InputError(
                f"{function.__module__}:{function.__qualname__} has an argument {name!r} "
                "without a type: give it one"
            )
    return {name: hints[name] for name in names}


def pretrained_value(
    task: Task, *, overlap: float = 0.6, related_seed: int = 1, pretrained: str | None = None
) -> Array:
    """The V_hat of a recipe that transfers: the P̂ of a related task, or the V of the run saved in
    ``pretrained``.
    """
    if pretrained is not None:
        return Run.load(pretrained).V
    return task.related(overlap, related_seed).P


@cache
def recipe_hints(recipe: str) -> dict[str, Any]:
    """The options of a recipe and their types; in place of the matrix V_hat, those
    of ``pretrained_value``.
    """
    hints = arguments(RECIPES[recipe])
    if "V_hat" in hints:
        del hints["V_hat"]
        hints |= arguments(pretrained_value)
    return hints


def all_options(recipe: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a recipe with those that were not given, as its types have them."""
    make = RECIPES[recipe]
    transfers = "V_hat" in arguments(make)
    defaults = {
        name: parameter.default
        for function in ([make, pretrained_value] if transfers else [make])
        for name, parameter in signature(function).parameters.items()
        if parameter.default is not parameter.empty
    }
    return recipe_options(recipe, defaults) | recipe_options(recipe, options)


def recipe_options(recipe: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a recipe, checked and as its types have them; ValueError for a name or value
    that it does not take.
    """
    one_of("recipe", recipe, RECIPES)
    hints = recipe_hints(recipe)
    for name in options:
        if name not in hints:
            raise InputError(
                f"recipe {recipe!r} has no option {name!r}: it has {', '.join(sorted(hints))}"
            )
    return {name: fitted(name, value, hints[name]) for name, value in options.items()}


def build_recipe(recipe: str, task: Task, options: Mapping[str, Any]) -> Recipe:
    """The recipe with these options for a task."""
    make = RECIPES[recipe]
    given = recipe_options(recipe, options)
    if "V_hat" in arguments(make):
        of_V_hat = {name: given.pop(name) for name in arguments(pretrained_value) if name in given}
        given["V_hat"] = pretrained_value(task, **of_V_hat)
    made = make(task, **given)
    if not isinstance(made, Recipe):
        raise InputError(
            f"recipe = {recipe!r} gives a {type(made).__name__}: it must give a scb.Recipe"
        )
    return made


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that determines a training run."""

    # The task, by ``Task.random``
    N: int = 3
    T: int = 5000
    sparsity: int = 2
    task_seed: int = 0
    ensemble: Ensemble = "strong"  # the distribution of P
    K_P: float | None = None  # of P, if it is to be moved there
    recipe: str = "tuned"  # name of one of ``recipes.RECIPES``
    # Of the recipe, by the names of ``recipe_hints``
    options: dict[str, Any] = field(default_factory=dict)
    # Of gradients, name of one of ``SOURCES``
    source: str = "fresh"
    seed: int = 0  # of the training run
    every: int = 10  # steps between two rows of the history
    device: Literal["cpu", "cuda"] = "cpu"  # where steps are taken

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self)) | {"options": dict}
        for name, hint in hints.items():
            object.__setattr__(self, name, fitted(name, getattr(self, name), hint))
        # Refuses what does not fit; the file keeps what was written
        recipe_options(self.recipe, self.options)
        one_of("source", self.source, SOURCES)
        integer("every", self.every, low=1)
        integer("seed", self.seed, low=0)

    @classmethod
    def read(cls, path: str | Path) -> "TrainingSettings":
        """From a TOML file, or the JSON file of a run, with the names of the fields; a name that
        means nothing is refused.
        """
        values = _read_kept(Path(path))[0] if Path(path).name == FILE else read_toml(Path(path))
        hints = get_type_hints(cls) | {"options": dict}
        for name, value in values.items():
            if name not in cls.__dataclass_fields__:
                raise InputError(
                    f"{path} has {name!r}, which means nothing: "
                    f"it may have {', '.join(cls.__dataclass_fields__)}"
                )
            fitted(f"{path} has {name}", value, hints[name])
        return cls(**values)

    def build(self) -> tuple[Task, Recipe]:
        """The task and the recipe."""
        task = Task.random(
            self.N, self.T, self.sparsity, self.task_seed, ensemble=self.ensemble, K_P=self.K_P
        )
        return task, build_recipe(self.recipe, task, self.options)

    def build_source(self, task: Task) -> GradientSource | None:
        """The source of gradients; None for fresh samples, for which ``train`` has an engine of its
        own.
        """
        return None if self.source == "fresh" else SOURCES[self.source](task)

    def differences(self, other: "TrainingSettings") -> dict[str, tuple[Any, Any]]:
        """What differs between two: name → (here, there). An option that is not given counts as
        what it is then.
        """
        here, there = (settings._flat() for settings in (self, other))
        names = dict.fromkeys((*here, *there))
        return {
            name: (here.get(name), there.get(name))
            for name in names
            if here.get(name) != there.get(name)
        }

    def _flat(self) -> dict[str, Any]:
        """All fields and all options by name; an option that has the name of a field is called one
        of the recipe.
        """
        flat = asdict(self)
        for name, value in all_options(self.recipe, flat.pop("options")).items():
            flat[f"{name} of the recipe" if name in flat else name] = value
        return flat

    def save(self, directory: str | Path, run: str = "") -> None:
        """Write the settings as JSON beside the run, whose identity they carry."""
        make_directory(Path(directory))
        write_json(Path(directory) / FILE, asdict(self) | {_RUN: run})

    @classmethod
    def load(cls, directory: str | Path) -> "TrainingSettings":
        """Read what ``save`` wrote."""
        path = file_path("directory", directory) / FILE
        if not path.exists():
            raise FileNotFoundError(f"{directory} holds no run: there is no {FILE} in it")
        return cls.read(path)


def _read_kept(path: Path) -> tuple[dict[str, Any], str]:
    """The settings that ``save`` wrote, and the identity of their run."""
    values = read_json(path)
    return values, fitted(f"{path} has {_RUN}", values.pop(_RUN, ""), str)


def load_run(directory: Path) -> tuple[Run, TrainingSettings]:
    """A run and its settings; InputError unless the files in the directory are of one run."""
    run = Run.load(directory)
    settings = TrainingSettings.load(directory)
    task = directory / TASK
    others = [FILE] if _read_kept(directory / FILE)[1] != identity(run.made_by) else []
    if task.exists() and fingerprints(task=Task.load(task))["task"] != run.made_by.get("task"):
        others.append(TASK)
    if others:
        files = " and ".join(str(directory / name) for name in others)
        raise InputError(
            f"{directory / RUN_FILE} is of another run than {files}: "
            "put back the files that belong together"
        )
    return run, settings
