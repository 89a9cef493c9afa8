"""How well does recovery work? Many random tasks, another one in each repetition; one line for each figure.

    python benchmarks/recovery.py [support500 support5000 support50000 curve n10 n20 bound3 bound10 sequences speed large]

All of them take about half an hour on one core. Progress goes to stderr.
"""

from __future__ import annotations

import os

os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import resource
import sys
import time
from collections.abc import Callable, Iterable

import numpy as np

import scb
from scb.theory.information import cramer_rao


def wrong(task: scb.Task, fit: scb.Recovery) -> tuple[int, int]:
    """Positions missed, and false ones."""
    pairs = list(zip(task.support, fit.support, strict=True))
    return sum(np.setdiff1d(a, b).size for a, b in pairs), sum(np.setdiff1d(b, a).size for a, b in pairs)


def progress(what: str, repetitions: int) -> Iterable[int]:
    """The numbers of the repetitions, with a line on stderr that says how far it is."""
    start = time.perf_counter()
    for i in range(repetitions):
        print(f"\r{what}: {i} of {repetitions}, {time.perf_counter() - start:.0f} s ", end="", file=sys.stderr, flush=True)
        yield i
    print(f"\r{what}: {repetitions} in {time.perf_counter() - start:.0f} s        ", file=sys.stderr, flush=True)


def interval(right: int, of: int) -> str:
    """Wilson's 95 % interval for a share."""
    p, z = right / of, 1.96
    middle, half = (p + z * z / (2 * of)), z * np.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    scale = 1 + z * z / of
    return f"{right} of {of} (95 %: {(middle - half) / scale:.1%} to {(middle + half) / scale:.1%})"


def support(N: int, T: int, n: int, repetitions: int) -> None:
    """The likelihood's support; and that of the moments alone, where it is cheap."""
    rows, both = [], T <= 5000 and N < 20
    for seed in progress(f"N = {N}, T = {T}", repetitions):
        task = scb.Task.random(N, T, 2, seed=seed)
        batch = scb.sample(task, n, seed, compiled=True)
        fits = [scb.recover(batch, N=N)] + ([scb.recover(batch, N=N, method="spectral")] if both else [])
        rows.append([x for fit in fits for x in wrong(task, fit)])
    a = np.array(rows)
    right = int(np.sum(a[:, 0] + a[:, 1] == 0))
    line = f"N = {N}, T = {T:,}, n = {n:,}: support right in {interval(right, repetitions)};"
    line += f" missed {a[:, 0].sum()}, false {a[:, 1].sum()}"
    if both:
        line += f". Moments alone: {np.sum(a[:, 2] + a[:, 3] == 0)} of {repetitions}; missed {a[:, 2].sum()}, false {a[:, 3].sum()}"
    print(line, flush=True)


def curve(repetitions: int = 30) -> None:
    """Success against n; each task's samples are nested."""
    sizes, found = (200, 250, 300, 350, 400, 500, 600, 800), {}
    for T in (500, 5000, 50_000, 500_000):
        right = np.zeros(len(sizes), int)
        R = repetitions if T < 500_000 else repetitions // 2  # the longest take half of the time
        for seed in progress(f"curve, T = {T}", R):
            task = scb.Task.random(3, T, 2, seed=10_000 + seed)
            batch = scb.sample(task, max(sizes), 10_000 + seed, compiled=True)
            right += [wrong(task, scb.recover(batch[:n], N=3)) == (0, 0) for n in sizes]
        found[T] = [_crossing(sizes, right / R, level) for level in (0.5, 0.9)]
        shares = ", ".join(f"{n}: {r / R:.0%}" for n, r in zip(sizes, right, strict=True))
        print(
            f"N = 3, T = {T:,}: {shares} ({R} tasks); half at n = {found[T][0]:.0f}, 90 % at {found[T][1]:.0f}",
            flush=True,
        )
    factors = [max(f[i] for f in found.values()) / min(f[i] for f in found.values()) for i in (0, 1)]
    print(
        f"from T = 500 to 500,000 the curve moves by a factor {factors[0]:.2f} (half) and {factors[1]:.2f} (90 %)",
        flush=True,
    )


def _crossing(sizes: tuple[int, ...], share: np.ndarray, level: float) -> float:
    """n at which the share first reaches the level, linear in log n; NaN if it does not, the smallest n if it starts there."""
    above = np.flatnonzero(share >= level)
    if above.size == 0:
        return np.nan
    i = int(above[0])
    if i == 0:
        return float(sizes[0])
    a = (level - share[i - 1]) / (share[i] - share[i - 1])
    return float(np.exp((1 - a) * np.log(sizes[i - 1]) + a * np.log(sizes[i])))


def bound(N: int, repetitions: int = 100) -> None:
    """Squared errors against the Cramér–Rao bound, and coverage of 95 % intervals."""
    for n in (5000, 20_000):
        ratio, inside_P, inside_Q, right = [], [], [], 0
        for seed in progress(f"bound, N = {N}, n = {n}", repetitions):
            task = scb.Task.random(N, 50, 2, seed=20_000 + seed)
            fit, least = scb.recover(scb.sample(task, n, 20_000 + seed, compiled=True), N=N), cramer_rao(task, n)
            on = task.Q > 0
            right += wrong(task, fit) == (0, 0)
            square = np.square(fit.V - task.P).sum(), np.square(fit.A - task.Q)[on].sum()
            ratio.append([square[0] / least.P.sum(), square[1] / least.Q.sum()])
            inside_P.append(np.mean(np.abs(fit.V - task.P) <= 1.96 * fit.stderr.V))
            inside_Q.append(np.mean((np.abs(fit.A - task.Q) <= 1.96 * fit.stderr.A)[on]))
        mean, error = np.mean(ratio, axis=0), np.std(ratio, axis=0) / np.sqrt(repetitions)
        print(
            f"N = {N}, n = {n:,}: squared error / bound: P {mean[0]:.3f} ± {error[0]:.3f}, Q {mean[1]:.3f} ± {error[1]:.3f};"
            f" 95 % intervals cover P {np.mean(inside_P):.1%}, Q {np.mean(inside_Q):.1%};"
            f" support right in {right} of {repetitions}",
            flush=True,
        )


def sequences(repetitions: int = 20) -> None:
    """One long sequence a task, its contexts dependent; and the moments alone."""
    right = moments = 0
    marked, seconds, worst, inside = [], [], 0.0, []
    for seed in progress("sequences", repetitions):
        task = scb.Task.random(4, 50, 2, seed=30_000 + seed)
        tokens = scb.generate(task, 200_000, seed=30_000 + seed)
        start = time.perf_counter()
        fit = scb.recover(tokens, N=4, max_lag=50)
        seconds.append(time.perf_counter() - start)
        right += wrong(task, fit) == (0, 0)
        worst = max(worst, float(np.abs(fit.V - task.P).max()))
        inside += [np.mean(np.abs(fit.V - task.P) <= 1.96 * fit.stderr.V)]
        alone = scb.recover(tokens, N=4, max_lag=50, method="spectral")
        moments += wrong(task, alone) == (0, 0)
        marked += [len(s) for s in alone.support]
    print(
        f"sequences of 200,000 tokens, N = 4, T = 50: support right in {interval(right, repetitions)},"
        f" {np.median(seconds):.1f} s each, largest error in P {worst:.3f}, 95 % intervals cover P {np.mean(inside):.1%}."
        f" Moments alone: {moments} of {repetitions}; {min(marked)} to {max(marked)} positions a column",
        flush=True,
    )


def speed() -> None:
    """Seconds and memory of N = 3, T = 50,000, n = 4,000, in a process that has done nothing else but load the kernels."""
    scb.recover(scb.sample(scb.Task.random(3, 50, 2), 500))
    task = scb.Task.random(3, 50_000, 2, seed=1)
    batch = scb.sample(task, 4000, 1, compiled=True)
    seconds = []
    for _ in progress("speed", 5):
        start = time.perf_counter()
        scb.recover(batch, N=3)
        seconds.append(time.perf_counter() - start)
    print(
        f"N = 3, T = 50,000, n = 4,000: median {np.median(seconds):.2f} s, largest {max(seconds):.2f} s, {_memory():.2f} GB",
        flush=True,
    )


def large(repetitions: int = 4) -> None:
    """N = 100, T = 20,000, n = 50,000: 1 GB of tokens."""
    scb.recover(scb.sample(scb.Task.random(100, 50, 2), 500), N=100)
    right, seconds, off = 0, [], np.zeros(2, int)
    for seed in progress("large", repetitions):
        task = scb.Task.random(100, 20_000, 2, seed=40_000 + seed)
        batch = scb.sample(task, 50_000, 40_000 + seed, compiled=True)
        start = time.perf_counter()
        fit = scb.recover(batch, N=100)
        seconds.append(time.perf_counter() - start)
        off += wrong(task, fit)
        right += wrong(task, fit) == (0, 0)
        del batch
    print(
        f"N = 100, T = 20,000, n = 50,000: support right in {right} of {repetitions},"
        f" missed {off[0]}, false {off[1]} (of 200 positions each);"
        f" median {np.median(seconds):.0f} s, largest {max(seconds):.0f} s, {_memory():.2f} GB",
        flush=True,
    )


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


SECTIONS: dict[str, Callable[[], None]] = {
    "speed": speed,
    "support500": lambda: support(3, 500, 4000, 100),
    "support5000": lambda: support(3, 5000, 4000, 100),
    "support50000": lambda: support(3, 50_000, 4000, 100),
    "n10": lambda: support(10, 5000, 20_000, 40),
    "n20": lambda: support(20, 5000, 20_000, 40),
    "bound3": lambda: bound(3),
    "bound10": lambda: bound(10),
    "sequences": sequences,
    "curve": curve,
    "large": large,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or SECTIONS:
        if name not in SECTIONS:
            raise SystemExit(f"{name} is not a section: there are {', '.join(SECTIONS)}")
        SECTIONS[name]()
