"""``python -m scb.kernels`` compiles every kernel, so that the first run need not do so; Numba
keeps the kernels on disk.
"""

import sys
from time import perf_counter

from scb.sequences.estimator import SparseContextualBigram
from scb.task import Task
from scb.task.sampling import generate
from scb.training.loop import train
from scb.training.recipes.algorithm1 import paper
from scb.training.sources.sampled import Fresh
from scb.training.warm_up import SECONDS, compile_kernels

if __name__ == "__main__":
    start = perf_counter()
    for N in (3, 300):  # tokens of one and of two bytes
        for family in SECONDS:
            compile_kernels(family, N)
        task = Task.random(N, 40, 2)
        train(task, paper(task, steps=(2, 0, 0)), source=Fresh(task))
    sequence = generate(Task.random(3, 5, 2), 300)
    for transition in ("shared", "per_lag"):
        model = SparseContextualBigram(5, transition=transition).fit(sequence)
        model.sample(10)
        str(model.summary())  # the evidence is found when it is asked for
    print(f"kernels are ready ({perf_counter() - start:.0f} s)", file=sys.stderr)
