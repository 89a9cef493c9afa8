"""How the engine scales, what the first call costs, and what was weighed and not built: screening, and numbers of 32 bits.

    python benchmarks/engine.py [scaling frozen first_call screening precision neighbours large]

Each part prints a line for each of its rows and keeps them in benchmarks/engine.jsonl, in the place of those of its last run;
docs/explanation/engine.md takes its numbers from there.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from study import keep

import scb
from scb.contexts import token_mass
from scb.geometry import centred_square, line_A, line_V, threshold_normalize
from scb.provenance import machine
from scb.training.engine import Fused
from scb.training.schedules import MeasuredNoise
from scb.training.stages import Stage

KEPT = Path(__file__).with_suffix(".jsonl")
Row = dict[str, Any]
TRAIN = "import scb; task = scb.Task.random(3, 100, 2); scb.train(task, scb.recipes.paper(task, steps=(10, 10, 10)), seed=0)"


def seconds(engine: Fused, V: np.ndarray, A: np.ndarray, stage: Stage, steps: int) -> float:
    """Median time of one step over nine rounds."""
    times = []
    for i in range(10):
        start = perf_counter()
        engine.take(V, A, engine.task.mu, stage, i, range(steps))
        times.append((perf_counter() - start) / steps)
    return float(np.median(times[1:]))


def scaling() -> list[Row]:
    """Stages 1 and 2: time a step against B·T."""
    rows = []
    for lam in (0.0, 1e-4):
        work, times = [], []
        for T, B in ((5000, 64), (5000, 256), (20_000, 64), (20_000, 256), (80_000, 64), (80_000, 256), (5000, 4096)):
            task = scb.Task.random(3, T, 2)
            stage = Stage("2", 1, 0.01, 0.01, lam, B)
            work.append(B * T)
            times.append(seconds(Fused(task), line_V(task, 0.3), line_A(task, 0.3), stage, 10))
        slope = float(np.polyfit(np.log(work), np.log(times), 1)[0])
        rows.append({"N": 3, "lam": lam, "slope": slope, "nanoseconds_a_token": (np.array(times) / work * 1e9).tolist()})
    return rows


def frozen() -> list[Row]:
    """Stage 3: time a step against T."""
    rows = []
    for T in (5000, 50_000, 500_000, 1_000_000):
        task = scb.Task.random(3, T, 2)
        A = threshold_normalize(line_A(task, 0.8), 0.05)
        engine, stage = Fused(task), Stage("3", 1, 0.01, 0.0, 0.0, 64)
        engine.take(task.P, A, task.mu, stage, 0, range(1))  # the columns are looked at once a stage
        rows.append({"T": T, "microseconds": seconds(engine, task.P, A, stage, 100) * 1e6})
    return rows


def large() -> list[Row]:
    """N = 500, T = 100,000, B = 64, λ > 0: 1,000 steps with real gradients."""
    task = scb.Task.random(500, 100_000, 2)
    recipe = scb.recipes.paper(task, eta=(2e-4, 1e-4, 0.0), steps=(400, 600, 0), lam=1e-5)  # 64 samples bear no larger steps
    start = perf_counter()
    run = scb.train(task, recipe, every=100)
    assert run.diverged is None
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    delta = float(run.history["delta_A"][-1])
    return [{"steps": run.step, "seconds": perf_counter() - start, "megabytes": memory, "delta_A": delta}]


def first_call() -> list[Row]:
    """Seconds of CPU of a short training run in a process that compiles its kernels, and in one that finds them on disk."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kernels in ("compiled", "found on disk"):
            before = os.times()
            subprocess.run([sys.executable, "-c", TRAIN], env=os.environ | {"NUMBA_CACHE_DIR": folder}, check=True)
            after = os.times()
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            rows.append({"kernels": kernels, "cpu_seconds": cpu})
    return rows


def neighbours() -> list[Row]:
    """The paper's run on one thread alone, and on all threads beside a busy process on each core."""
    import numba

    from scb.training.benchmark import busy_neighbours

    task = scb.Task.random(3, 5000, 2)
    recipe = scb.recipes.paper(task)
    threads = numba.get_num_threads()

    def median(threads: int) -> float:
        numba.set_num_threads(threads)
        times = []
        for seed in range(10):
            start = perf_counter()
            scb.train(task, recipe, seed=seed)
            times.append(perf_counter() - start)
        return float(np.median(times[1:]))

    alone, together = median(1), median(threads)
    with busy_neighbours():
        busy, busy_one = median(threads), median(1)
    return [
        {"beside": "nothing", "one_thread": alone, "all_threads": together, "threads": threads},
        {"beside": "a busy process on each core", "one_thread": busy_one, "all_threads": busy, "threads": threads},
    ]


def screening() -> list[Row]:
    """Is λ ever above the largest step that an entry outside the support could take, whatever its tokens?

    The step is (η_A/(μ_k B)) Σ_i u_i[x_it], so the certain bound is (η_A/(μ_k B)) Σ_i max_m |u_i[m] − ū_i|, taken here with
    hindsight, after the batch is known. Beside it, the expected step on a true position of weight 1/2, which λ must stay below
    to learn.
    """
    task = scb.Task.random(3, 5000, 2)
    regimes = (
        ("the paper's, λ = 10⁻⁵", Stage("2", 1, 0.0, 0.005 / task.K_P, 1e-5, 64)),
        ("the paper's, λ = 3·10⁻⁴, which kills slow seeds", Stage("2", 1, 0.0, 0.005 / task.K_P, 3e-4, 64)),
        ("`tuned`", scb.recipes.tuned(task).stages[1]),
        ("`transfer`, its own λ", scb.recipes.transfer(task, task.P).stages[1]),
        ("`transfer`, λ of 5 standard deviations", Stage("2", 1, 0.0, 0.2 / task.K_P, MeasuredNoise(5.0), 2500)),
        ("the same with B = 100,000", Stage("2", 1, 0.0, 0.2 / task.K_P, MeasuredNoise(5.0), 100_000)),
    )
    found = []
    for alpha in (0.2, 0.9):
        V, A = line_V(task, alpha), line_A(task, alpha)
        for name, stage in regimes:
            rows = []
            for seed in range(3 if stage.batch_size > 10_000 else 10):
                batch = scb.sample(task, min(stage.batch_size, 2500), seed)
                r = token_mass(A, batch) @ V.T
                r[np.arange(len(batch)), batch.label] -= 1
                u = r @ V
                worst = np.abs(u - (u * task.mu).sum(axis=1, keepdims=True)).max(axis=1)
                lam = stage.levels(centred_square(V, task.mu), task.mu)
                bound = [stage.eta_A / (task.mu[k] * len(batch)) * worst[batch.last == k].sum() for k in range(3)]
                rows += list(zip(lam, bound, strict=True))
            lam, bound = np.array(rows).T
            found.append(
                {
                    "regime": name,
                    "alpha": alpha,
                    "lam": float(np.median(lam)),
                    "bound": float(np.median(bound)),
                    "useful": stage.eta_A * alpha * task.K_P * 0.5 * (1 - alpha**2),
                    "certain": float(np.mean(lam >= bound)),
                }
            )
    return found


def precision() -> list[Row]:
    """What float32 would save: the look-up loop, the heart of a step, in both, taking turns."""
    import numba

    @numba.njit(fastmath={"reassoc", "contract", "nsz"})
    def loop(g, tokens, u, times):
        for _ in range(times):
            for t in range(g.size):
                g[t] += u[tokens[t]]

    rng, rows = np.random.default_rng(0), []
    for N in (3, 10, 20, 100):
        tokens = rng.integers(0, N, 5000).astype(np.uint8)
        scores = rng.random(N)
        arrays = {kind.__name__: (np.zeros(5000, kind), tokens, scores.astype(kind)) for kind in (np.float64, np.float32)}
        times: dict[str, list[float]] = {name: [] for name in arrays}
        for _ in range(41):
            for name, given in arrays.items():
                start = perf_counter()
                loop(*given, 200)
                times[name].append((perf_counter() - start) / 200 / 5000 * 1e9)
        medians = {name: float(np.median(found[1:])) for name, found in times.items()}  # the first call compiles
        rows.append({"N": N, **medians, "gain": medians["float64"] / medians["float32"]})
    return rows


PARTS = {
    part.__name__: part for part in (scaling, frozen, first_call, screening, precision, neighbours, large)
}  # in the order of their cost


if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        facts = {"what": name, "machine": machine()}
        rows = [facts | row for row in PARTS[name]()]
        for row in rows:
            print(row)
        keep(KEPT, name, rows)
