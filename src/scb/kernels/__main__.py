"""``python -m scb.kernels`` compiles the kernels, so that the first run need not do so; Numba keeps
them on disk. Only a fit of more than 256 symbols compiles two more, in about a second.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from time import perf_counter

from scb.kernels.threads import thread_count
from scb.sequences.estimator import SparseContextualBigram
from scb.task import Task
from scb.task.sampling import generate
from scb.training.warm_up import compile_kernels

# Families of kernels, for tokens of one and of two bytes
PORTIONS = [(family, N) for N in (3, 300) for family in ("training", "mixture", "sampling")]


def compile_portion(family: str, N: int) -> None:
    """Compile a family of kernels for N tokens; estimators are among those of the mixture."""
    compile_kernels(family, N)
    if (family, N) == ("mixture", 3):
        for transition in ("shared", "per_lag"):
            model = SparseContextualBigram(5, transition=transition)
            model.fit(generate(Task.random(3, 5, 2), 300)).sample(10)
            str(model.summary())  # the evidence is found when it is asked for


def main() -> None:
    """Compile everything, in as many processes as there are threads."""
    start = perf_counter()
    processes = min(thread_count(), len(PORTIONS))
    if processes == 1:
        list(map(compile_portion, *zip(*PORTIONS, strict=True)))
    else:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            list(pool.map(compile_portion, *zip(*PORTIONS, strict=True)))
    print(f"kernels are ready ({perf_counter() - start:.0f} s)", file=sys.stderr)


if __name__ == "__main__":
    # Other processes find a function by its module, which must have its own name for that
    import_module("scb.kernels.__main__").main()
