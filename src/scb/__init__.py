"""scb: the library and laboratory for Sparse Contextual Bigrams."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scb.lazy import submodules
from scb.namesake import warn_of_namesake

if TYPE_CHECKING:
    from scb import metrics, theory
    from scb.inputs import DamagedFileError, InputError
    from scb.metrics import measure, star
    from scb.mixture.recovery import Recovery, recover
    from scb.model import LinearTransformer, SoftmaxTransformer
    from scb.sequences.analysis import analyse
    from scb.sequences.comparison import compare
    from scb.sequences.estimator import SparseContextualBigram
    from scb.sequences.input_formats import read_sequences
    from scb.sequences.sparsity import sparsity_path
    from scb.task import Task
    from scb.task.sampling import Batch, generate, sample
    from scb.task.stream import stream
    from scb.theory.planner import plan
    from scb.training import recipes
    from scb.training.loop import train
    from scb.training.progress import ProgressBar
    from scb.training.recipes.recipe import Recipe
    from scb.training.run import Run
    from scb.training.stages import Stage

__version__ = "0.1.0"

warn_of_namesake()

__all__ = [
    "Batch",
    "DamagedFileError",
    "InputError",
    "LinearTransformer",
    "ProgressBar",
    "Recipe",
    "Recovery",
    "Run",
    "SoftmaxTransformer",
    "SparseContextualBigram",
    "Stage",
    "Task",
    "analyse",
    "compare",
    "generate",
    "measure",
    "metrics",
    "plan",
    "read_sequences",
    "recipes",
    "recover",
    "sample",
    "sparsity_path",
    "star",
    "stream",
    "theory",
    "train",
]

_HOME = {
    "Batch": "scb.task.sampling",
    "DamagedFileError": "scb.inputs",
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
    "plan": "scb.theory.planner",
    "read_sequences": "scb.sequences.input_formats",
    "recover": "scb.mixture.recovery",
    "sample": "scb.task.sampling",
    "sparsity_path": "scb.sequences.sparsity",
    "star": "scb.metrics",
    "stream": "scb.task.stream",
    "train": "scb.training.loop",
}


def __getattr__(name: str) -> Any:
    """Load a public name or a submodule when it is asked for: nobody waits for what she does not
    use.
    """
    if name == "recipes":  # the one module with a second, shorter address
        value = import_module("scb.training.recipes")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        value = submodules(__name__)(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
