"""``python -m scb.kernels`` compiles every kernel, so that the first run need not do so; Numba
keeps the kernels on disk.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter

from scb.kernels.threads import thread_count
from scb.sequences.estimator import SparseContextualBigram
from scb.task import Task
from scb.task.sampling import generate
from scb.training.loop import train
from scb.training.recipes.algorithm1 import paper
from scb.training.sources.sampled import Fresh
from scb.training.warm_up import SECONDS, compile_kernels

# Those that take longest come first
PORTIONS = ("tokens of one byte", "tokens of two bytes", "shared", "per_lag")


def compile_portion(portion: str) -> None:
    """Compile a part of the kernels, those of trained models or those of an estimator's fit."""
    if portion in ("shared", "per_lag"):
        model = SparseContextualBigram(5, transition=portion)
        model.fit(generate(Task.random(3, 5, 2), 300)).sample(10)
        str(model.summary())  # the evidence is found when it is asked for
        return
    N = 3 if portion == "tokens of one byte" else 300
    for family in SECONDS:
        compile_kernels(family, N)
    task = Task.random(N, 40, 2)
    train(task, paper(task, steps=(2, 0, 0)), source=Fresh(task))


if __name__ == "__main__":
    start = perf_counter()
    processes = min(thread_count(), len(PORTIONS))
    if processes == 1:
        list(map(compile_portion, PORTIONS))
    else:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            list(pool.map(compile_portion, PORTIONS))
    print(f"kernels are ready ({perf_counter() - start:.0f} s)", file=sys.stderr)
