"""The settings of a training run: its task, recipe, options and seed, from TOML, JSON or the
command line.

The options of a recipe are the arguments of its function, so a new recipe or argument needs no
second list.
"""

import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_type_hints

from scb.extensions import Registry
from scb.files import make_directory, read_json, read_regular, write_json
from scb.inputs import InputError, coerced, file_path, integer, one_of, unreadable
from scb.task import Ensemble, Task
from scb.training.fingerprint import fingerprints, identity
from scb.training.recipe_options import all_options, build_recipe, recipe_options
from scb.training.recipes import Recipe
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
    """Return the tables of a TOML file; raise an InputError if the file is not TOML."""
    try:
        return tomllib.loads(read_regular(path).decode())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not TOML: {unreadable(error)}") from None


def parse_option(text: str) -> tuple[str, Any]:
    """Read an option of a recipe from text.

    Parameters
    ----------
    text : str
        name=value, where the value is TOML, True or False, or a bare word.

    Returns
    -------
    tuple of str and Any

    Examples
    --------
    >>> from scb.training.settings import parse_option
    >>> parse_option("steps=[10, 20, 0]"), parse_option("projector=mu")
    (('steps', [10, 20, 0]), ('projector', 'mu'))
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
        raise InputError(f"--set {name}: {value!r} is not a single value")
    return name, parsed["x"]


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that determines a training run.

    Attributes
    ----------
    N, T, sparsity, task_seed : int
        The sizes and the seed of the task, for ``Task.random``.
    ensemble : str
        The distribution of P.
    K_P : float or None
        The value of K_P to which P is adjusted.
    recipe : str
        The name of a recipe.
    options : dict
        Options of the recipe by name.
    source : str
        The name of a source of gradients.
    seed : int
        The seed of the run.
    every : int
        The number of steps between two rows of the history.
    device : {"cpu", "cuda"}
        The device on which steps are taken.

    Examples
    --------
    >>> from scb.training.settings import TrainingSettings
    >>> settings = TrainingSettings(T=50, recipe="paper", options={"lam": 1e-4})
    >>> task, recipe = settings.build()
    >>> settings.build_source(task) is None
    True
    >>> settings.save("run")
    >>> TrainingSettings.load("run") == TrainingSettings.read("run/config.json") == settings
    True
    >>> settings.differences(TrainingSettings(T=60, recipe="paper", options={"lam": 1e-4}))
    {'T': (50, 60)}
    """

    N: int = 3
    T: int = 5000
    sparsity: int = 2
    task_seed: int = 0
    ensemble: Ensemble = "strong"
    K_P: float | None = None
    recipe: str = "tuned"
    options: dict[str, Any] = field(default_factory=dict)
    source: str = "fresh"
    seed: int = 0
    every: int = 10
    device: Literal["cpu", "cuda"] = "cpu"

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self)) | {"options": dict}
        for name, hint in hints.items():
            object.__setattr__(self, name, coerced(name, getattr(self, name), hint))
        # Refuses what does not fit; the file keeps what was written
        recipe_options(self.recipe, self.options)
        one_of("source", self.source, SOURCES)
        integer("every", self.every, low=1)
        integer("seed", self.seed, low=0)

    @classmethod
    def read(cls, path: str | Path) -> "TrainingSettings":
        """Read settings from a TOML file, or from the JSON file of a run.

        Parameters
        ----------
        path : str or Path
            A file that sets any of the fields by name.

        Returns
        -------
        TrainingSettings
        """
        values = _read_kept(Path(path))[0] if Path(path).name == FILE else read_toml(Path(path))
        hints = get_type_hints(cls) | {"options": dict}
        for name, value in values.items():
            if name not in cls.__dataclass_fields__:
                raise InputError(
                    f"{path} has {name!r}, which means nothing: it may have"
                    f" {', '.join(cls.__dataclass_fields__)}"
                )
            coerced(f"{path} has {name}", value, hints[name])
        return cls(**values)

    def build(self) -> tuple[Task, Recipe]:
        """Return the task and the recipe.

        Returns
        -------
        tuple of Task and Recipe
        """
        task = Task.random(
            self.N, self.T, self.sparsity, self.task_seed, ensemble=self.ensemble, K_P=self.K_P
        )
        return task, build_recipe(self.recipe, task, self.options)

    def build_source(self, task: Task) -> GradientSource | None:
        """Return the source of gradients.

        Parameters
        ----------
        task : Task
            The task that the source draws from.

        Returns
        -------
        GradientSource or None
            None for fresh samples, for which ``train`` has its own engine.
        """
        return None if self.source == "fresh" else SOURCES[self.source](task)

    def differences(self, other: "TrainingSettings") -> dict[str, tuple[Any, Any]]:
        """Return the differences between these settings and others.

        Parameters
        ----------
        other : TrainingSettings
            The other settings. An option that is not given has its default value.

        Returns
        -------
        dict of tuple
            The two values of each field or option that differs, first in these settings and then in
            the others.
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
        """Write the settings as JSON to the directory of a run.

        Parameters
        ----------
        directory : str or Path
            The directory of the run.
        run : str, optional
            The identity of the run, by which the file is recognised as part of this run.
        """
        make_directory(Path(directory))
        write_json(Path(directory) / FILE, asdict(self) | {_RUN: run})

    @classmethod
    def load(cls, directory: str | Path) -> "TrainingSettings":
        """Read the settings of the run in a directory.

        Parameters
        ----------
        directory : str or Path
            The directory.

        Returns
        -------
        TrainingSettings
        """
        path = file_path("directory", directory) / FILE
        if not path.exists():
            raise FileNotFoundError(f"{directory} holds no run: there is no {FILE} in it")
        return cls.read(path)


def _read_kept(path: Path) -> tuple[dict[str, Any], str]:
    """The settings that ``save`` wrote, and the identity of their run."""
    values = read_json(path)
    return values, coerced(f"{path} has {_RUN}", values.pop(_RUN, ""), str)


def load_run(directory: Path) -> tuple[Run, TrainingSettings]:
    """Load a run and its settings from a directory that ``scb train`` wrote.

    Raise an InputError if the files in the directory do not belong to one run.

    Parameters
    ----------
    directory : Path
        The directory.

    Returns
    -------
    tuple of Run and TrainingSettings

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.folders import opened
    >>> from scb.training.directory import prepared, train_in
    >>> from scb.training.settings import TrainingSettings, load_run
    >>> short = prepared(TrainingSettings(T=50, recipe="paper", options={"steps": 5}))
    >>> with opened(Path("run"), "training") as folder:
    ...     _ = train_in(folder, short)
    >>> run, settings = load_run(Path("run"))
    >>> run.step, settings.T
    (15, 50)
    """
    run = Run.load(directory)
    settings = TrainingSettings.load(directory)
    task = directory / TASK
    others = [FILE] if _read_kept(directory / FILE)[1] != identity(run.made_by) else []
    if task.exists() and fingerprints(task=Task.load(task))["task"] != run.made_by.get("task"):
        others.append(TASK)
    if others:
        files = " and ".join(str(directory / name) for name in others)
        raise InputError(
            f"{directory / RUN_FILE} belongs to another run than {files}: restore the files that "
            "belong together"
        )
    return run, settings
