"""How the engine scales, and whether screening could pay.

python benchmarks/engine.py [scaling frozen large screening precision neighbours]
"""

from __future__ import annotations

import resource
import sys
from time import perf_counter

import numpy as np

import scb
from scb.geometry import centred_square, line_A, line_V, threshold_normalize
from scb.model import token_mass
from scb.training.engine import Fused
from scb.training.stages import MeasuredNoise, Stage


def seconds(engine: Fused, V: np.ndarray, A: np.ndarray, stage: Stage, steps: int) -> float:
    """Median time of one step over nine rounds."""
    times = []
    for i in range(10):
        start = perf_counter()
        engine.take(V, A, engine.task.mu, stage, i, range(steps))
        times.append((perf_counter() - start) / steps)
    return float(np.median(times[1:]))


def scaling() -> None:
    """Stages 1 and 2: time a step against B·T."""
    for lam in (0.0, 1e-4):
        work, times = [], []
        for T, B in ((5000, 64), (5000, 256), (20_000, 64), (20_000, 256), (80_000, 64), (80_000, 256), (5000, 4096)):
            task = scb.Task.random(3, T, 2)
            stage = Stage("2", 1, 0.01, 0.01, lam, B)
            work.append(B * T)
            times.append(seconds(Fused(task), line_V(task, 0.3), line_A(task, 0.3), stage, 10))
        slope = np.polyfit(np.log(work), np.log(times), 1)[0]
        print(f"scaling, N = 3, λ = {lam:g}: slope of log time in log(B·T) {slope:.3f}; {np.array(times) / work * 1e9} ns a token")


def frozen() -> None:
    """Stage 3: time a step against T."""
    for T in (5000, 50_000, 500_000, 1_000_000):
        task = scb.Task.random(3, T, 2)
        A = threshold_normalize(line_A(task, 0.8), 0.05)
        engine, stage = Fused(task), Stage("3", 1, 0.01, 0.0, 0.0, 64)
        engine.take(task.P, A, task.mu, stage, 0, range(1))  # the columns are looked at once a stage
        print(f"frozen, T = {T:>9,}: {seconds(engine, task.P, A, stage, 100) * 1e6:.0f} µs a step")


def large() -> None:
    """N = 500, T = 100,000, B = 64, λ > 0: 1,000 steps with real gradients."""
    task = scb.Task.random(500, 100_000, 2)
    recipe = scb.recipes.paper(task, eta=(2e-4, 1e-4, 0.0), steps=(400, 600, 0), lam=1e-5)  # 64 samples bear no larger steps
    start = perf_counter()
    run = scb.train(task, recipe, every=100)
    assert run.diverged is None
    delta = float(run.history["delta_A"][-1])
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"large: {run.step} steps in {perf_counter() - start:.0f} s, peak {memory:,.0f} MB, ‖Δ_A‖ {delta:.2g}")


def neighbours() -> None:
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
    print(f"the paper's run: {alone:.3f} s on 1 thread, {together:.3f} s on {threads}")
    print(f"beside a busy process on each core: {busy_one:.3f} s on 1 thread, {busy:.3f} s on {threads}")
    print(f"that is {busy / alone:.2f} times one thread alone")


def screening() -> None:
    """Is λ ever above the largest step that an entry outside the support could take, whatever its tokens?

    The step is (η_A/(μ_k B)) Σ_i u_i[x_it], so the certain bound is (η_A/(μ_k B)) Σ_i max_m |u_i[m] − ū_i|, taken here with
    hindsight, after the batch is known. Beside it, the expected step on a true position of weight 1/2, which λ must stay below
    to learn.
    """
    task = scb.Task.random(3, 5000, 2)
    print(f"{'regime':<34}{'λ':>9}{'bound':>9}{'useful':>9}{'certain':>9}")
    regimes = (
        ("paper, λ = 1e-5", Stage("2", 1, 0.0, 0.005 / task.K_P, 1e-5, 64)),
        ("paper, λ = 3e-4 (kills slow seeds)", Stage("2", 1, 0.0, 0.005 / task.K_P, 3e-4, 64)),
        ("tuned", scb.recipes.tuned(task).stages[1]),
        ("transfer, λ = 2 noise", scb.recipes.transfer(task, task.P).stages[1]),
        ("transfer, λ = 5 noise", Stage("2", 1, 0.0, 0.2 / task.K_P, MeasuredNoise(5.0), 2500)),
        ("B = 100,000, λ = 5 noise", Stage("2", 1, 0.0, 0.2 / task.K_P, MeasuredNoise(5.0), 100_000)),
    )
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
            useful = stage.eta_A * alpha * task.K_P * 0.5 * (1 - alpha**2)
            print(
                f"{name + f', α = {alpha}':<44}{np.median(lam):>9.1e}{np.median(bound):>9.1e}{useful:>9.1e}"
                f"{np.mean(lam >= bound):>9.0%}"
            )


def precision() -> None:
    """What float32 would cost and save: the look-up loop, the heart of a step, in both."""
    import numba

    @numba.njit(fastmath={"reassoc", "contract", "nsz"})
    def loop(g, tokens, u, times):
        for _ in range(times):
            for t in range(g.size):
                g[t] += u[tokens[t]]

    rng, medians = np.random.default_rng(0), {}
    for kind in (np.float64, np.float32):
        g, tokens, u = np.zeros(5000, kind), rng.integers(0, 10, 5000).astype(np.uint8), rng.random(10).astype(kind)
        loop(g, tokens, u, 1)
        times = []
        for _ in range(21):
            start = perf_counter()
            loop(g, tokens, u, 200)
            times.append((perf_counter() - start) / 200 / 5000)
        medians[kind.__name__] = np.median(times) * 1e9
    ratio = medians["float64"] / medians["float32"]
    print(f"precision: look-up {medians} ns a token; float32 is {ratio:.2f} times as fast")


if __name__ == "__main__":
    for name in sys.argv[1:] or ("scaling", "frozen", "screening", "precision", "neighbours", "large"):
        globals()[name]()
