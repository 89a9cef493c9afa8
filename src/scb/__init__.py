"""scb: the library and laboratory for Sparse Contextual Bigrams."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scb import metrics, theory
    from scb.inputs import DamagedFileError, InputError
    from scb.metrics import measure, star
    from scb.mixture.recovery import Recovery, recover
    from scb.model import LinearTransformer, SoftmaxTransformer
    from scb.sequences.comparison import compare
    from scb.sequences.estimator import SparseContextualBigram
    from scb.sequences.reading import read_sequences
    from scb.sequences.sparsity import sparsity_path
    from scb.task import Task
    from scb.task.sampling import Batch, generate, sample
    from scb.task.stream import stream
    from scb.theory.planner import plan
    from scb.training import recipes
    from scb.training.loop import train
    from scb.training.run import Run
    from scb.training.stages import Recipe, Stage

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "DamagedFileError",
    "InputError",
    "LinearTransformer",
    "Recipe",
    "Recovery",
    "Run",
    "SoftmaxTransformer",
    "SparseContextualBigram",
    "Stage",
    "Task",
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
    "Recipe": "scb.training.stages",
    "Recovery": "scb.mixture.recovery",
    "Run": "scb.training.run",
    "SoftmaxTransformer": "scb.model",
    "SparseContextualBigram": "scb.sequences.estimator",
    "Stage": "scb.training.stages",
    "Task": "scb.task",
    "compare": "scb.sequences.comparison",
    "generate": "scb.task.sampling",
    "measure": "scb.metrics",
    "plan": "scb.theory.planner",
    "read_sequences": "scb.sequences.reading",
    "recover": "scb.mixture.recovery",
    "sample": "scb.task.sampling",
    "sparsity_path": "scb.sequences.sparsity",
    "star": "scb.metrics",
    "stream": "scb.task.stream",
    "train": "scb.training.loop",
}
_MODULES = {"metrics": "scb.metrics", "recipes": "scb.training.recipes", "theory": "scb.theory"}


def __getattr__(name: str) -> Any:
    """Load a public name when it is asked for: ``import scb`` alone loads nothing, and nobody waits for what she does not use."""
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = import_module(_MODULES[name])
    else:
        raise AttributeError(f"module 'scb' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
