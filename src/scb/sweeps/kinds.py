"""Kinds of sweep: "recover" estimates a random task from samples, "train" trains on a random task,
and any other job has its fields as parameters.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from math import inf
from typing import Any, ClassVar, Literal, get_type_hints

import numpy as np

from scb import metrics
from scb.extensions import Registry
from scb.inputs import InputError, coerced, one_of
from scb.jobs.job import Job, Rows, random_task, seed_of
from scb.sweeps.grid import Kind, Parameters
from scb.task import Ensemble, Task
from scb.training.recipe_options import build_recipe, recipe_hints
from scb.training.recipes import RECIPES

SIZES = {"N": 3, "T": 1000, "sparsity": 2}
# Of P; what is not given is as ``random_task`` has it
CHAIN = {"ensemble": Ensemble, "K_P": float | None}
GIVEN = ("seed", "related_seed", "pretrained")  # options of recipes that a run gives, not the file
RANGES = {"N": (2, 4096), "overlap": (0, 1), "accuracy": (1e-4, 1)}  # least and largest value
RANGES |= dict.fromkeys(("T", "sparsity", "samples", "start_samples"), (1, inf))


def _checked(given: Parameters, hints: Mapping[str, Any], kind: str) -> Parameters:
    """Return the parameters, converted to their types; an InputError for an unknown name, a wrong
    type or a value out of range.
    """
    found = {}
    for name, value in given.items():
        if name not in hints:
            raise InputError(f"{name!r} means nothing to {kind}: it has {', '.join(sorted(hints))}")
        found[name] = coerced(name, value, hints[name])
        low, high = RANGES.get(name, (-inf, inf))
        if isinstance(found[name], int | float) and not low <= found[name] <= high:
            within = f"at least {low:g}" if high == inf else f"between {low:g} and {high:g}"
            raise InputError(f"{name} = {value}: it must be {within}")
    if found.get("sparsity", 1) > found.get("T", inf):
        raise InputError(f"sparsity = {found['sparsity']}: it must be at most T = {found['T']}")
    return found


def kind_of(
    name: str,
    job: type[Job],
    metrics: Mapping[str, type] | None = None,
    success: Mapping[str, Any] | None = None,
) -> Kind:
    """Make a kind of sweep over the fields of a job.

    Parameters
    ----------
    name : str
        The name of the kind.
    job : type
        A subclass of ``Job``. A field ``replicate`` is not swept over; it numbers the random tasks.
    metrics : dict of type, optional
        The type of each quantity that a run measures, by name.
    success : dict, optional
        The criteria of success that apply unless the sweep sets others.

    Returns
    -------
    Kind

    Examples
    --------
    >>> from scb.sweeps.kinds import RecoverJob, kind_of
    >>> kind_of("mine", RecoverJob).complete({"samples": 50})["samples"]
    50
    """
    parameters = {field.name: field for field in fields(job)}
    is_random = parameters.pop("replicate", None) is not None
    defaults = {
        field.name: field.default for field in parameters.values() if field.default is not MISSING
    }
    types = get_type_hints(job)

    def make(point: Parameters, replicate: int) -> Job:
        # TOML has no tuples
        given = {name: tuple(v) if isinstance(v, list) else v for name, v in point.items()}
        if is_random:
            given["replicate"] = replicate
        return job(**given)

    def complete(given: Parameters) -> Parameters:
        found = _checked(
            defaults | given, {field: types[field] for field in parameters}, f"kind = {name!r}"
        )
        for field in parameters:
            if field not in found:
                raise InputError(
                    f"kind = {name!r} needs {field!r}: it must be in [fixed] or in [grid]"
                )
        make(found, 0)  # it may refuse what is out of range
        return found

    return Kind(name=name, metrics=metrics, success=success or {}, complete=complete, make=make)


@dataclass(frozen=True)
class RecoverJob(Job):
    """A job that draws samples of a random task and estimates the task by ``scb.recover``."""

    label: ClassVar = {"sweep": "recover"}

    N: int = SIZES["N"]
    T: int = SIZES["T"]
    sparsity: int = SIZES["sparsity"]
    samples: int = 1000
    method: Literal["likelihood", "spectral"] = "likelihood"
    false_positions: float = 0.05
    ensemble: Ensemble = "strong"
    K_P: float | None = None
    replicate: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.false_positions < 1:
            raise InputError(
                f"false_positions = {self.false_positions}: it must lie between 0 and 1"
            )

    def run(self) -> Rows:
        """Return one row with the numbers of wrong positions and the distances from the truth."""
        # Imported here and below, because only workers compute
        from scb.mixture.recovery import recover
        from scb.task.sampling import sample

        task = random_task(self.N, self.T, self.sparsity, self.replicate, self.ensemble, self.K_P)
        batch = sample(task, self.samples, self.seed, compiled=True)
        fit = recover(batch, N=self.N, method=self.method, false_positions=self.false_positions)
        supports = list(zip(task.support, fit.support, strict=True))
        missed = sum(np.setdiff1d(true, found).size for true, found in supports)
        false = sum(np.setdiff1d(found, true).size for true, found in supports)
        distances = {
            "dist_V": metrics.distance_V(task, fit.V),
            "dist_A": metrics.distance_A(task, fit.A),
        }
        return {"exact": missed + false == 0, "missed": missed, "false": false} | distances


@dataclass(frozen=True)
class TrainJob(Job):
    """A job that trains on a random task and measures the result; ``options`` holds the sizes, the
    recipe and its options.
    """

    label: ClassVar = {"sweep": "train"}

    options: Parameters
    replicate: int

    @property
    def parameters(self) -> dict[str, Any]:
        """The options, and the number of the random task."""
        return self.options | {"replicate": self.replicate}

    def run(self) -> Rows:
        """Return one row with steps, samples, whether the run diverged, and the last row of its
        history.
        """
        from scb.training.loop import train

        options = dict(self.options)
        sizes = {name: options.pop(name) for name in (*SIZES, *CHAIN) if name in options}
        recipe = options.pop("recipe")
        device = options.pop("device", "cpu")
        task = random_task(**sizes, replicate=self.replicate)
        known = recipe_hints(recipe)
        if "seed" in known:
            # a recipe's own samples are not those of the run
            options["seed"] = seed_of(use="recipe", seed=self.seed)
        if "related_seed" in known:
            options["related_seed"] = seed_of(use="related", seed=self.seed)
        run = train(
            task,
            build_recipe(recipe, task, options),
            self.seed,
            device=device,
            every=100,
            judge=False,
        )
        last = {name: float(run.history[name][-1]) for name in metrics.COLUMNS}
        return {
            "step": run.step,
            "samples": run.samples,
            "diverged": run.diverged is not None,
            **last,
        }


def swept_hints(recipe: str) -> dict[str, Any]:
    """Return the options of a recipe that a sweep may set, with their types."""
    return {name: hint for name, hint in recipe_hints(recipe).items() if name not in GIVEN}


def complete_train(given: Parameters) -> Parameters:
    """Check the sizes, the recipe and its options; options that are not given keep the recipe's
    defaults.
    """
    recipe = one_of("recipe", given.get("recipe", "paper"), RECIPES)
    hints = (
        dict.fromkeys(SIZES, int)
        | CHAIN
        | {"recipe": str, "device": Literal["cpu", "cuda"]}
        | swept_hints(recipe)
    )
    found = _checked(
        SIZES | {"recipe": recipe} | given, hints, f"kind = 'train' with recipe = {recipe!r}"
    )
    _rehearse(
        recipe, json.dumps({name: v for name, v in found.items() if name in swept_hints(recipe)})
    )
    return found


@cache
def _rehearse(recipe: str, options: str) -> None:
    """Make the recipe for a tiny task, which refuses values that are out of range."""
    # These draw samples
    cheap = {name: v for name, v in json.loads(options).items() if name not in ("known", "start")}
    try:
        build_recipe(recipe, Task.random(3, 8, 2), cheap)
    except ArithmeticError as error:
        raise InputError(f"recipe {recipe!r} with {options}: {error}") from None


RECOVERED = {"exact": bool, "missed": int, "false": int, "dist_V": float, "dist_A": float}
TRAINED = {"step": int, "samples": int, "diverged": bool} | dict.fromkeys(metrics.COLUMNS, float)
REACHED = {"dist_A_star": 0.05, "diverged": False}


def as_kind(name: str, loaded: Any) -> Kind:
    """Return the kind of sweep that another package provides: a ``Kind``, or a job class, whose
    fields are the parameters.
    """
    if isinstance(loaded, Kind):
        return loaded
    if isinstance(loaded, type) and issubclass(loaded, Job):
        if not hasattr(loaded, "label"):
            raise InputError(
                f"{loaded.__name__} has no label: one such as {{'sweep': {name!r}}} must enter its"
                " seeds"
            )
        return kind_of(name, loaded)
    raise InputError(
        f"it is of type {type(loaded).__name__}, and must be a subclass of scb.jobs.job.Job or a"
        " scb.sweeps.grid.Kind"
    )


KINDS = Registry(
    "kind",
    {
        "recover": kind_of("recover", RecoverJob, RECOVERED, success={"exact": True}),
        "train": Kind(
            name="train", metrics=TRAINED, success=REACHED, complete=complete_train, make=TrainJob
        ),
    },
    adapt=as_kind,
)
"""All kinds of sweep by name, those of other packages included; the paper has more."""
