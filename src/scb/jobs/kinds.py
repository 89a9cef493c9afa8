"""The kinds of sweep that vary the library itself: "recover" fits random tasks, "train" trains on them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any, Literal, get_type_hints

import numpy as np

from scb import metrics
from scb.jobs.grid import Kind, Point
from scb.jobs.job import Rows, random_task, seed_of, task_seed
from scb.jobs.parameters import Parameters, checked, fitted
from scb.mixture.recovery import recover
from scb.task.sampling import sample
from scb.training import recipes
from scb.training.loop import train
from scb.training.settings import RECIPES, Config

SIZES = {"N": 3, "T": 1000, "sparsity": 2}
SIZE_HINTS = dict.fromkeys(SIZES, int)
RECOVER_HINTS = SIZE_HINTS | {"samples": int, "method": Literal["likelihood", "spectral"], "false_positions": float}
RECOVER_DEFAULTS = SIZES | {"samples": 1000, "method": "likelihood", "false_positions": 0.05}
GIVEN = ("task", "V_hat", "seed")  # arguments of recipes that a run gives, not the file


def complete_recover(given: Parameters) -> Parameters:
    """Sizes, samples, method, and how many false positions may pass."""
    found = checked(RECOVER_DEFAULTS | given, RECOVER_HINTS, "kind = 'recover'")
    if not 0 < found["false_positions"] < 1:
        raise ValueError(f"false_positions = {found['false_positions']}: it must lie between 0 and 1")
    return found


@dataclass(frozen=True)
class RecoverPoint(Point):
    """Draw samples of a random task and recover it."""

    def run(self) -> Rows:
        """One row: wrong positions, and distances to the truth."""
        p = self.parameters
        task = random_task(p["N"], p["T"], p["sparsity"], self.replicate)
        batch = sample(task, p["samples"], self.seed, compiled=True)
        fit = recover(batch, N=p["N"], method=p["method"], false_positions=p["false_positions"])
        supports = list(zip(task.support, fit.support, strict=True))
        missed = sum(np.setdiff1d(true, found).size for true, found in supports)
        false = sum(np.setdiff1d(found, true).size for true, found in supports)
        return {
            "exact": missed + false == 0,
            "missed": missed,
            "false": false,
            "dist_V": metrics.distance_V(task, fit.V),
            "dist_A": metrics.distance_A(task, fit.A),
        }


@cache
def recipe_hints(recipe: str) -> dict[str, Any]:
    """The options of a recipe and their types."""
    function = getattr(recipes, recipe)
    hints = get_type_hints(function)
    found = {name: hints[name] for name in signature(function).parameters if name not in GIVEN}
    if recipe == "transfer":
        found["overlap"] = float  # of the task that P̂ is taken from
    return found


def complete_train(given: Parameters) -> Parameters:
    """Sizes, recipe, and options of the recipe; those not given are the recipe's own."""
    recipe = fitted("recipe", given.get("recipe", "paper"), Literal[RECIPES])  # pyright: ignore[reportInvalidTypeForm]
    hints = SIZE_HINTS | {"recipe": str} | recipe_hints(recipe)
    found = checked(SIZES | {"recipe": recipe} | given, hints, f"kind = 'train' with recipe = {recipe!r}")
    _rehearse(recipe, json.dumps({name: v for name, v in found.items() if name in recipe_hints(recipe)}))
    return found


@cache
def _rehearse(recipe: str, options: str) -> None:
    """Make the recipe for a tiny task: it refuses what is out of range."""
    cheap = {name: v for name, v in json.loads(options).items() if name not in ("known", "start")}
    try:
        Config(N=3, T=8, recipe=recipe, options=cheap).build()
    except ArithmeticError as error:
        raise ValueError(f"recipe {recipe!r} with {options}: {error}") from None


@dataclass(frozen=True)
class TrainPoint(Point):
    """Train on a random task and measure where it ends."""

    def run(self) -> Rows:
        """One row: steps, samples, whether it diverged, and the last row of the history."""
        options = dict(self.parameters)
        sizes = {name: options.pop(name) for name in SIZES}
        recipe = options.pop("recipe")
        options["seed"] = seed_of(use="recipe", seed=self.seed)
        if recipe == "transfer":
            options["related_seed"] = seed_of(use="related", seed=self.seed)
        seed = task_seed(**sizes, replicate=self.replicate)
        config = Config(**sizes, task_seed=seed, recipe=recipe, options=options)
        run = train(*config.build(), self.seed, every=100)
        last = {name: float(run.history[name][-1]) for name in metrics.COLUMNS}
        return {"step": run.step, "samples": run.samples, "diverged": run.diverged is not None, **last}


KINDS = {
    "recover": Kind(
        name="recover",
        metrics={"exact": bool, "missed": int, "false": int, "dist_V": float, "dist_A": float},
        success={"exact": True},
        complete=complete_recover,
        point=RecoverPoint,
    ),
    "train": Kind(
        name="train",
        metrics={"step": int, "samples": int, "diverged": bool} | dict.fromkeys(metrics.COLUMNS, float),
        success={"dist_A_star": 0.05, "diverged": False},
        complete=complete_train,
        point=TrainPoint,
    ),
}
