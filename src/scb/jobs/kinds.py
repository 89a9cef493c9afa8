"""The kinds of sweep: which parameters a run has, which values they take, and what is measured.

A kind is a function ``complete`` that checks parameters and fills in those not given, and a function ``measure`` that does one run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any, Literal

import numpy as np

from scb import metrics
from scb.jobs.job import seed_of, task_seed
from scb.jobs.table import Table
from scb.task import Task
from scb.training.options import fitted, recipe_hints
from scb.training.recipes import RECIPES
from scb.training.settings import TrainingSettings

Parameters = dict[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of run.

    Attributes
    ----------
    metrics : what ``measure`` returns, and what success may ask for; the types are bool, int or float
    success : what counts as success unless the sweep says otherwise
    complete : checks the parameters of a run and returns all of them, those not given by their defaults; ValueError
    measure : (parameters, replicate, seed) → metrics
    """

    name: str
    metrics: Mapping[str, type]
    success: Mapping[str, Any]
    complete: Callable[[Parameters], Parameters]
    measure: Callable[[Parameters, int, int], Row]


def senses(asked: Mapping[str, Any]) -> dict[str, str]:
    """How each metric is compared: truth values exactly, α and similarities from below, other numbers from above."""
    return {
        name: "=" if isinstance(level, bool) else "≥" if name.startswith(("alpha", "sim")) else "≤"
        for name, level in asked.items()
    }


def succeeded(table: Table, asked: Mapping[str, Any]) -> np.ndarray:
    """Which rows reach what is asked; NaN does not."""
    compare = {"=": np.equal, "≥": np.greater_equal, "≤": np.less_equal}
    reached = [compare[sense](table[name], asked[name]) for name, sense in senses(asked).items()]
    return np.logical_and.reduce(reached)


def in_words(asked: Mapping[str, Any]) -> str:
    """What is asked, for people."""
    return ", ".join(f"{name} {sense} {json.dumps(asked[name])}" for name, sense in senses(asked).items())


# ------------------------------------------------------------------------------------------------- parameters


RANGES: dict[str, tuple[float, float]] = {
    "N": (2, 4096),
    "T": (1, inf),
    "sparsity": (1, inf),
    "samples": (1, inf),
    "overlap": (0, 1),
    "start_samples": (1, inf),
    "accuracy": (1e-4, 1),
}
"""Least and largest value."""


def _checked(given: Parameters, hints: Mapping[str, Any], kind: str) -> Parameters:
    """Names, types and ranges."""
    values = {}
    for name, value in given.items():
        if name not in hints:
            raise ValueError(f"{name!r} means nothing to {kind}: it has {', '.join(sorted(hints))}")
        values[name] = fitted(name, value, hints[name])
        low, high = RANGES.get(name, (-inf, inf))
        if not low <= values[name] <= high if isinstance(values[name], int | float) else False:
            within = f"at least {low:g}" if high == inf else f"between {low:g} and {high:g}"
            raise ValueError(f"{name} = {value}: it must be {within}")
    if values.get("sparsity", 1) > values.get("T", inf):
        raise ValueError(f"sparsity = {values['sparsity']}: it must be at most T = {values['T']}")
    return values


SIZES = {"N": 3, "T": 1000, "sparsity": 2}
SIZE_HINTS = dict.fromkeys(SIZES, int)


# ------------------------------------------------------------------------------------------------- recover


RECOVER_HINTS = SIZE_HINTS | {"samples": int, "method": Literal["likelihood", "spectral"], "false_positions": float}
RECOVER_DEFAULTS = SIZES | {"samples": 1000, "method": "likelihood", "false_positions": 0.05}


def complete_recover(given: Parameters) -> Parameters:
    """Sizes, samples, method, and how many false positions may pass."""
    values = _checked(RECOVER_DEFAULTS | given, RECOVER_HINTS, "kind = 'recover'")
    if not 0 < values["false_positions"] < 1:
        raise ValueError(f"false_positions = {values['false_positions']}: it must lie between 0 and 1")
    return values


def measure_recover(parameters: Parameters, replicate: int, seed: int) -> Row:
    """Draw samples of a random task and recover it."""
    from scb.mixture.recovery import recover
    from scb.task.sampling import sample

    p = parameters
    task = Task.random(p["N"], p["T"], p["sparsity"], task_seed(p["N"], p["T"], p["sparsity"], replicate))
    batch = sample(task, p["samples"], seed, compiled=True)
    fit = recover(batch, N=p["N"], method=p["method"], false_positions=p["false_positions"])
    pairs = list(zip(task.support, fit.support, strict=True))
    missed, false = (sum(np.setdiff1d(*pair).size for pair in some) for some in (pairs, [(b, a) for a, b in pairs]))
    return {
        "exact": missed + false == 0,
        "missed": missed,
        "false": false,
        "dist_V": metrics.distance_V(task, fit.V),
        "dist_A": metrics.distance_A(task, fit.A),
    }


# ------------------------------------------------------------------------------------------------- train


OURS = ("seed", "related_seed", "pretrained")  # options of recipes that the sweep gives, or does not take


def swept_hints(recipe: str) -> dict[str, Any]:
    """The options of a recipe that a sweep may set, and their types."""
    return {name: hint for name, hint in recipe_hints(recipe).items() if name not in OURS}


def complete_train(given: Parameters) -> Parameters:
    """Sizes, recipe, and options of the recipe; those not given are the recipe's own."""
    recipe = fitted("recipe", given.get("recipe", "paper"), Literal[tuple(RECIPES)])  # pyright: ignore[reportInvalidTypeForm]
    hints = SIZE_HINTS | {"recipe": str} | swept_hints(recipe)
    values = _checked(SIZES | {"recipe": recipe} | given, hints, f"kind = 'train' with recipe = {recipe!r}")
    _rehearse(recipe, json.dumps({name: v for name, v in values.items() if name in swept_hints(recipe)}))
    return values


@cache
def _rehearse(recipe: str, options: str) -> None:
    """Make the recipe for a tiny task: it refuses what is out of range."""
    cheap = {name: v for name, v in json.loads(options).items() if name not in ("known", "start")}
    try:
        TrainingSettings(N=3, T=8, recipe=recipe, options=cheap).build()
    except ArithmeticError as error:
        raise ValueError(f"recipe {recipe!r} with {options}: {error}") from None


def measure_train(parameters: Parameters, replicate: int, seed: int) -> Row:
    """Train on a random task and measure where it ends."""
    from scb.training.loop import train

    p = dict(parameters)
    sizes, recipe = {name: p.pop(name) for name in SIZES}, p.pop("recipe")
    own = {"related_seed": seed_of(use="related", seed=seed)} if recipe == "transfer" else {}
    options = p | {"seed": seed_of(use="recipe", seed=seed)} | own
    settings = TrainingSettings(
        **sizes, task_seed=task_seed(**sizes, replicate=replicate), recipe=recipe, options=options
    )
    run = train(*settings.build(), seed, every=100)
    last = {name: float(run.history[name][-1]) for name in metrics.COLUMNS}
    return {"step": run.step, "samples": run.samples, "diverged": run.diverged is not None, **last}


KINDS = {
    "recover": Kind(
        "recover",
        {"exact": bool, "missed": int, "false": int, "dist_V": float, "dist_A": float},
        {"exact": True},
        complete_recover,
        measure_recover,
    ),
    "train": Kind(
        "train",
        {"step": int, "samples": int, "diverged": bool} | dict.fromkeys(metrics.COLUMNS, float),
        {"dist_A_star": 0.05, "diverged": False},
        complete_train,
        measure_train,
    ),
}
