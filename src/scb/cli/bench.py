"""``scb bench``: our code against what one would otherwise write."""

from __future__ import annotations


def bench(repeats: int = 9) -> None:
    """Time our code against what one would otherwise write.

    One gradient from 64 fresh samples: plain NumPy against the compiled source, side by side in one process; medians and
    their ratio. The first call of each, which compiles, is not counted.

    Args:
        repeats: Timed calls of each, taken in turns.
    """
    from time import perf_counter

    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from scb.gradients.fresh import Fresh
    from scb.gradients.reference import Reference
    from scb.recipes.paper import uniform_start
    from scb.task import Task

    table = Table(title="one gradient, B = 64, median ms", title_justify="left")
    for name in ("N", "T", "NumPy", "scb", "ratio"):
        table.add_column(name, justify="right")
    for N, T in ((3, 5000), (10, 5000), (20, 5000)):
        task = Task.random(N, T, 2)
        V, A = uniform_start(task.mu, T)
        sources = Reference(task), Fresh(task)
        times = np.empty((repeats + 1, len(sources)))
        for i in range(repeats + 1):
            for j, source in enumerate(sources):
                start = perf_counter()
                source(V, A, 64, np.random.default_rng(i))
                times[i, j] = perf_counter() - start
        plain, ours = np.median(times[1:], axis=0) * 1e3  # the first call compiles
        table.add_row(str(N), f"{T:,}", f"{plain:.2f}", f"{ours:.2f}", f"{plain / ours:.1f}")
    Console().print(table)
