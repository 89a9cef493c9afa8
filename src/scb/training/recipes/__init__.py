"""Recipes: an initial point and a list of stages. Each file reads as the algorithm that it is."""

from scb.training.recipes.algorithm1 import paper, tuned
from scb.training.recipes.descent import sgd
from scb.training.recipes.knowledge import Knowledge
from scb.training.recipes.softmax_attention import softmax
from scb.training.recipes.transferred import transfer
from scb.training.stages import MeasuredNoise, Recipe, Stage

__all__ = ["Knowledge", "MeasuredNoise", "Recipe", "Stage", "paper", "sgd", "softmax", "transfer", "tuned"]
