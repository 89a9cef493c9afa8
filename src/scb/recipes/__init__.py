"""Recipes: an initial point and a list of stages. Each file reads as the algorithm that it is."""

from scb.recipes.knowledge import Knowledge
from scb.recipes.paper import paper
from scb.recipes.sgd import sgd
from scb.recipes.stages import Recipe, Stage

__all__ = ["Knowledge", "Recipe", "Stage", "paper", "sgd"]
