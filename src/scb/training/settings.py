"""A training run as a few words: which task, which recipe, which seed. Read from TOML or built from options."""

import json
import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from scb.files import write_atomically
from scb.task import Task
from scb.training.options import build_recipe, recipe_options
from scb.training.recipes import Recipe

FILE = "config.json"


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that determines a training run.

    Attributes
    ----------
    N, T, sparsity, task_seed : of ``Task.random``
    recipe : name of one of ``recipes.RECIPES``
    options : keyword arguments of the recipe. A recipe that transfers has three more: ``overlap`` and ``related_seed`` make the
        pretrained P̂ by ``task.related``, or ``pretrained`` names the directory of a run whose V it is
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
        recipe_options(self.recipe, self.options)  # refuses what does not fit; the file keeps what was written
        if self.every < 1:
            raise ValueError(f"every = {self.every}: it must be at least 1")

    @classmethod
    def read(cls, path: str | Path) -> "TrainingSettings":
        """From a TOML file with the names of the attributes; ``options`` is a table."""
        try:
            values = tomllib.loads(Path(path).read_text())
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path} is not TOML: {error}") from None
        return cls.of(values, str(path))

    @classmethod
    def of(cls, values: dict[str, Any], origin: str) -> "TrainingSettings":
        """From a mapping; a name that means nothing is refused."""
        for name, value in values.items():
            if name not in cls.__dataclass_fields__:
                raise ValueError(f"{origin} has {name!r}, which means nothing: it may have {', '.join(cls.__dataclass_fields__)}")
            expected = {"recipe": str, "options": dict}.get(name, int)
            if type(value) is not expected:
                raise ValueError(f"{name} = {value!r} in {origin}: it must be of type {expected.__name__}")
        return cls(**values)

    def build(self) -> tuple[Task, Recipe]:
        """The task and the recipe."""
        task = Task.random(self.N, self.T, self.sparsity, self.task_seed)
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
        return cls.of(json.loads(path.read_text()), str(path))
