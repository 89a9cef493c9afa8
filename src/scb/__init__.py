"""scb: the library and laboratory for Sparse Contextual Bigrams."""

from typing import TYPE_CHECKING

from scb.lazy import lazily
from scb.namesake import warn_of_namesake

# Aliases mark names as public for type checkers.
if TYPE_CHECKING:
    from scb import metrics as metrics
    from scb import theory as theory
    from scb.geometry import rotate_heads as rotate_heads
    from scb.inputs import DamagedFileError as DamagedFileError
    from scb.inputs import InputError as InputError
    from scb.metrics import measure as measure
    from scb.metrics import star as star
    from scb.mixture.recovery import Recovery as Recovery
    from scb.mixture.recovery import recover as recover
    from scb.model import LinearTransformer as LinearTransformer
    from scb.model import SoftmaxTransformer as SoftmaxTransformer
    from scb.sequences.analysis import analyse as analyse
    from scb.sequences.comparison import compare as compare
    from scb.sequences.estimator import SparseContextualBigram as SparseContextualBigram
    from scb.sequences.experts import Experts as Experts
    from scb.sequences.input_formats import read_sequences as read_sequences
    from scb.sequences.sparsity import sparsity_path as sparsity_path
    from scb.task import Task as Task
    from scb.task.sampling import Batch as Batch
    from scb.task.sampling import generate as generate
    from scb.task.sampling import sample as sample
    from scb.task.stream import stream as stream
    from scb.theory.planner import plan as plan
    from scb.training import recipes as recipes
    from scb.training.loop import train as train
    from scb.training.many import train_many as train_many
    from scb.training.progress import ProgressBar as ProgressBar
    from scb.training.recipes.recipe import Recipe as Recipe
    from scb.training.run import Run as Run
    from scb.training.stages import Stage as Stage

__version__ = "0.1.0"

warn_of_namesake()

_HOME = {
    "Batch": "scb.task.sampling",
    "DamagedFileError": "scb.inputs",
    "Experts": "scb.sequences.experts",
    "InputError": "scb.inputs",
    "LinearTransformer": "scb.model",
    "ProgressBar": "scb.training.progress",
    "Recipe": "scb.training.recipes.recipe",
    "Recovery": "scb.mixture.recovery",
    "Run": "scb.training.run",
    "SoftmaxTransformer": "scb.model",
    "SparseContextualBigram": "scb.sequences.estimator",
    "Stage": "scb.training.stages",
    "Task": "scb.task",
    "analyse": "scb.sequences.analysis",
    "compare": "scb.sequences.comparison",
    "generate": "scb.task.sampling",
    "measure": "scb.metrics",
    "metrics": "scb.metrics",
    "plan": "scb.theory.planner",
    "read_sequences": "scb.sequences.input_formats",
    "recipes": "scb.training.recipes",
    "recover": "scb.mixture.recovery",
    "rotate_heads": "scb.geometry",
    "sample": "scb.task.sampling",
    "sparsity_path": "scb.sequences.sparsity",
    "star": "scb.metrics",
    "stream": "scb.task.stream",
    "theory": "scb.theory",
    "train": "scb.training.loop",
    "train_many": "scb.training.many",
}
"""Public name → the module that it is imported from when it is first used."""

__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__ = lazily(__name__, _HOME)


def __dir__() -> list[str]:
    return __all__
