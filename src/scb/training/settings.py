"""A training run as a few words: which task, which recipe, which seed. Read from TOML or built from options."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any

from scb.files import write_atomically
from scb.task import Task
from scb.training import recipes
from scb.training.recipes import Recipe
from scb.training.run import Run

RECIPES = ("paper", "tuned", "sgd", "softmax", "transfer")
FILE = "config.json"


@dataclass(frozen=True)
class Config:
    """Everything that determines a run.

    Attributes
    ----------
    N, T, sparsity, task_seed : of ``Task.random``
    recipe : one of ``RECIPES``
    options : keyword arguments of the recipe. For "transfer", ``overlap`` and ``related_seed`` make the pretrained P̂ by
        ``task.related``, or ``pretrained`` names the directory of a run whose V it is
    seed : of the training run
    every : steps between two rows of the history
    """

    N: int = 3
    T: int = 5000
    sparsity: int = 2
    task_seed: int = 0
    recipe: str = "paper"
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    every: int = 10

    def __post_init__(self) -> None:
        if self.recipe not in RECIPES:
            raise ValueError(f"recipe = {self.recipe!r}: it must be one of {', '.join(RECIPES)}")
        known = set(signature(getattr(recipes, self.recipe)).parameters) - {"task", "V_hat"}
        if self.recipe == "transfer":
            known |= {"overlap", "related_seed", "pretrained"}
        for name in self.options:
            if name not in known:
                raise ValueError(f"recipe {self.recipe!r} has no option {name!r}: it has {', '.join(sorted(known))}")
        if self.every < 1:
            raise ValueError(f"every = {self.every}: it must be at least 1")

    @classmethod
    def read(cls, path: str | Path) -> Config:
        """From a TOML file with the names of the attributes; ``options`` is a table."""
        try:
            values = tomllib.loads(Path(path).read_text())
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path} is not TOML: {error}") from None
        return cls.of(values, str(path))

    @classmethod
    def of(cls, values: dict[str, Any], origin: str) -> Config:
        """From a mapping; a name that means nothing is refused."""
        for name, value in values.items():
            if name not in cls.__dataclass_fields__:
                raise ValueError(
                    f"{origin} has {name!r}, which means nothing: it may have {', '.join(cls.__dataclass_fields__)}"
                )
            expected = {"recipe": str, "options": dict}.get(name, int)
            if not isinstance(value, expected) or isinstance(value, bool):
                raise ValueError(f"{name} = {value!r} in {origin}: it must be of type {expected.__name__}")
        return cls(**values)

    def build(self) -> tuple[Task, Recipe]:
        """The task and the recipe."""
        task = Task.random(self.N, self.T, self.sparsity, self.task_seed)
        options = dict[str, Any](self.options)  # a pair in TOML is a list, and does as well as a tuple
        if self.recipe == "transfer":
            overlap, seed = options.pop("overlap", 0.6), options.pop("related_seed", 1)
            pretrained = options.pop("pretrained", None)
            V_hat = task.related(overlap, seed).P if pretrained is None else Run.load(pretrained).V
            return task, recipes.transfer(task, V_hat, **options)
        return task, getattr(recipes, self.recipe)(task, **options)

    def save(self, directory: str | Path) -> None:
        """Write it as JSON beside the run."""
        Path(directory).mkdir(parents=True, exist_ok=True)
        write_atomically(Path(directory) / FILE, (json.dumps(asdict(self), indent=2) + "\n").encode())

    @classmethod
    def load(cls, directory: str | Path) -> Config:
        """Read what ``save`` wrote."""
        path = Path(directory) / FILE
        if not path.exists():
            raise FileNotFoundError(f"{directory} holds no run: there is no {FILE} in it")
        return cls.of(json.loads(path.read_text()), str(path))
