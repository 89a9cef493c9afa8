"""Recipes, each of which consists of an initial point and a list of stages. Each file reads like
its algorithm.
"""

from scb.extensions import Registry
from scb.training.recipes.algorithm1 import paper, tuned
from scb.training.recipes.descent import sgd, softmax
from scb.training.recipes.knowledge import Knowledge
from scb.training.recipes.recipe import Recipe
from scb.training.recipes.transfer import transfer
from scb.training.schedules import MeasuredNoise
from scb.training.stages import Stage

RECIPES = Registry(
    "recipe", {recipe.__name__: recipe for recipe in (paper, tuned, sgd, softmax, transfer)}
)
"""All recipes by name, including those of other packages."""

__all__ = [
    "RECIPES",
    "Knowledge",
    "MeasuredNoise",
    "Recipe",
    "Stage",
    "paper",
    "sgd",
    "softmax",
    "transfer",
    "tuned",
]
