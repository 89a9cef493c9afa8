"""Recipes: an initial point and a list of stages. Each file reads as the algorithm that it is."""

from scb.recipes.knowledge import Knowledge
from scb.recipes.paper import paper, tuned
from scb.recipes.sgd import sgd
from scb.recipes.softmax import softmax
from scb.recipes.stages import MeasuredNoise, Recipe, Stage
from scb.recipes.transfer import transfer

__all__ = ["Knowledge", "MeasuredNoise", "Recipe", "Stage", "paper", "sgd", "softmax", "transfer", "tuned"]
