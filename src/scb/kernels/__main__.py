"""``python -m scb.kernels``: compile every kernel, so that the first run need not; Numba keeps them on disk."""

from __future__ import annotations

import sys
from time import perf_counter


def warm_up() -> float:
    """Train for a few steps in each way there is and recover, with tokens of one and of two bytes; the seconds that took."""
    import scb
    from scb.training.sources.fresh import Fresh

    start = perf_counter()
    for N in (3, 300):
        task = scb.Task.random(N, 40, 2)
        recipe = scb.recipes.paper(task, steps=(2, 2, 2))
        scb.train(task, recipe)
        scb.train(task, scb.recipes.paper(task, steps=(2, 0, 0)), source=Fresh(task))
        scb.generate(task, 60)
        scb.recover(scb.sample(task, 200), N=N)
    sequence = scb.generate(scb.Task.random(3, 5, 2), 300)
    scb.recover(sequence, max_lag=5)
    for transition in ("shared", "per_lag"):
        scb.SparseContextualBigram(5, transition=transition).fit(sequence).sample(10)
    return perf_counter() - start


if __name__ == "__main__":
    print("compiling kernels, a minute or two ...", file=sys.stderr, flush=True)
    print(f"kernels are ready ({warm_up():.0f} s)", file=sys.stderr)
