"""scb: the library and laboratory for Sparse Contextual Bigrams."""

from scb import recipes
from scb.metrics import measure, star
from scb.model import LinearTransformer, SoftmaxTransformer
from scb.recipes import Recipe, Stage
from scb.recovery import Recovery, recover
from scb.sampling import Batch, generate, sample
from scb.task import Task
from scb.theory.bounds import plan
from scb.training import Run, train

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "LinearTransformer",
    "Recipe",
    "Recovery",
    "Run",
    "SoftmaxTransformer",
    "Stage",
    "Task",
    "generate",
    "measure",
    "plan",
    "recipes",
    "recover",
    "sample",
    "star",
    "train",
]
