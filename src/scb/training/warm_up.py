"""Compilation ahead of time: the least work that uses each family of kernels, which Numba then
keeps on disk.
"""

from scb.inputs import one_of
from scb.kernels.compiler import functions_compiled
from scb.mixture.recovery import recover
from scb.task import Task
from scb.task.sampling import generate, sample
from scb.training.loop import train
from scb.training.recipes.algorithm1 import paper
from scb.training.roundings import estimated_signal

SECONDS = {"sampling": 0.6, "training": 25.0, "mixture": 3.6}
"""Families of kernels, and how long each takes to compile on one core."""


def compile_kernels(family: str, N: int = 3) -> bool:
    """Compile a family of kernels now, so that the first run does not have to compile it.

    Parameters
    ----------
    family : {"sampling", "training", "mixture"}
        The kernels that draw sequences, those that train, or those that fit.
    N : int, default 3
        The number of tokens; from 257 on, the kernels for larger tokens are compiled.

    Returns
    -------
    bool
        Whether anything had to be compiled; otherwise the kernels were loaded from disk.

    Examples
    --------
    >>> from scb.training.warm_up import compile_kernels
    >>> _ = compile_kernels("sampling")
    >>> compile_kernels("sampling")
    False
    """
    before = functions_compiled()
    task = Task.random(N, 40, 2)
    if one_of("family", family, SECONDS) == "sampling":
        generate(task, 60)
    elif family == "training":
        train(task, paper(task, steps=(2, 2, 2)))
        estimated_signal(task.Q, task.mu)
    else:
        # A whole fit of so many tokens takes longer than the kernels that only it uses
        recover(sample(task, 200), N=N, method="likelihood" if N <= 256 else "spectral")
        recover(generate(Task.random(3, 5, 2), 300), max_lag=5)
    return functions_compiled() > before
