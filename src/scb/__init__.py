"""scb: the library and laboratory for Sparse Contextual Bigrams."""

from typing import TYPE_CHECKING, Any

from scb import recipes
from scb.metrics import measure, star
from scb.model import LinearTransformer, SoftmaxTransformer
from scb.recipes import Recipe, Stage
from scb.recovery import Recovery, recover
from scb.sampling import Batch, generate, sample
from scb.task import Task
from scb.theory.bounds import plan
from scb.training import Run, train

if TYPE_CHECKING:
    from scb.estimator import SparseContextualBigram

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "LinearTransformer",
    "Recipe",
    "Recovery",
    "Run",
    "SoftmaxTransformer",
    "SparseContextualBigram",
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


def __getattr__(name: str) -> Any:
    """The estimator is loaded when it is asked for: scikit-learn takes a second."""
    if name == "SparseContextualBigram":
        from scb.estimator import SparseContextualBigram

        return SparseContextualBigram
    raise AttributeError(f"module 'scb' has no attribute {name!r}")
