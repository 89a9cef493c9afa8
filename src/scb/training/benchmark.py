"""One training step in plain NumPy, timed in turns with our engine and with other baselines."""

import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, NamedTuple

import numba
import numpy as np

from scb.arrays import Array
from scb.geometry import line_A, line_V
from scb.inputs import InputError
from scb.task import Task
from scb.training.engine import Fused
from scb.training.sources.sampled import Reference
from scb.training.stages import Stage, proximal_step

BATCH = 64
LAM = 1e-4
OURS = ("scb, 1 thread", "scb, 2 threads")
# Busy until the other end of its stdin is closed, which happens however its parent ends.
BUSY = """
import os, threading
threading.Thread(target=lambda: (os.read(0, 1), os._exit(0))).start()
while True: pass
"""
# Takes a seed, goes one call further, and returns the loss of the mini-batch
Step = Callable[[int], float]


class Baseline(NamedTuple):
    """A baseline: its step, the number of steps in one call, and the library that it needs."""

    make: Callable[[Task], Step]
    steps: int = 1
    needs: str | None = None


def start(task: Task) -> tuple[Array, Array]:
    """Return a point part of the way to the truth, with α_V = α_A = 0.3."""
    return np.ascontiguousarray(line_V(task, 0.3)), line_A(task, 0.3)


def stage_of(task: Task) -> Stage:
    """Return a stage with η = 0.005, as in Stage 2 of the paper's experiment; η is smaller for
    large N, where steps with 64 samples would diverge.
    """
    eta = 0.005 if task.N <= 20 else 1e-4
    return Stage(
        "2", steps=1, eta_V=eta / task.K_Q, eta_A=eta / task.K_P, lam=LAM, batch_size=BATCH
    )


def numpy_step(task: Task) -> Step:
    """Take a step in NumPy. The batch is a (B, T) array, the mass is computed by one bincount and
    the scores by one look-up, and columns are grouped by the last token.
    """
    stage = stage_of(task)
    source = Reference(task)
    V, A = start(task)

    def step(seed: int) -> float:
        nonlocal V, A
        g = source(V, A, BATCH, np.uint64(seed))
        V, A = proximal_step(V, A, g.V, g.A, task.mu, stage)
        return g.loss

    return step


def engine_step(task: Task, threads: int) -> Step:
    """Take fifty steps at a time with our engine, as between two evaluations of a training run."""
    numba.set_num_threads(min(threads, numba.get_num_threads()))
    engine = Fused(task)
    stage = stage_of(task)
    V, A = start(task)

    def step(seed: int) -> float:
        nonlocal V, A
        taken = engine.take(V, A, task.mu, stage, seed, range(50))
        V, A = taken.V, taken.A
        return taken.loss

    return step


def baselines(file: Path | None) -> dict[str, Baseline]:
    """Return NumPy, the ``BASELINES`` of the file whose library is installed, and our engine."""
    listed = {"NumPy": Baseline(numpy_step)}
    if file is not None:
        listed |= runpy.run_path(str(file))["BASELINES"]
    for threads, name in enumerate(OURS, start=1):
        listed[name] = Baseline(partial(engine_step, threads=threads), steps=50)
    return {name: one for name, one in listed.items() if one.needs is None or find_spec(one.needs)}


def serve(baseline: Baseline, N: int, T: int) -> None:
    """Run one baseline in its own process: print its first loss, then the milliseconds per step for
    each seed on stdin, and finally its memory.
    """
    step = baseline.make(Task.random(N, T, 2))
    print(step(0), flush=True)  # compiles
    # Several steps where they are short: all are timed warm
    calls = max(1, 50_000 // T) if baseline.steps == 1 else 1
    for line in sys.stdin:
        begin = perf_counter()
        for call in range(calls):
            step(int(line) * calls + call)
        print((perf_counter() - begin) / (calls * baseline.steps) * 1e3, flush=True)
    print(_peak_megabytes(), flush=True)


def _peak_megabytes() -> float:
    """The most memory that this process has had; NaN on Windows, where the count is missing."""
    try:
        import resource
    except ImportError:
        return float("nan")
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _read(name: str, process: Any) -> float:
    line = process.stdout.readline()
    if not line:
        raise InputError(f"the baseline {name!r} failed; its message is above")
    return float(line)


@contextmanager
def busy_neighbours() -> Iterator[None]:
    """Keep one other busy process running on each core for as long as the context lasts."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    command = [sys.executable, "-c", BUSY]
    # In a session of its own: an interrupt from the terminal is for us alone.
    # The command is ours.
    start = partial(subprocess.Popen, command, stdin=subprocess.PIPE, start_new_session=True)
    neighbours = [start() for _ in range(cores)]
    try:
        sleep(0.2)  # until they are busy
        yield
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.communicate()


def _take_turns(processes: dict[str, Any], repeats: int) -> dict[str, float]:
    """Median milliseconds per step of each baseline, by round; after a minute, three are enough."""
    times: dict[str, list[float]] = {name: [] for name in processes}
    deadline = perf_counter() + 60
    for i in range(repeats):
        if perf_counter() > deadline and i >= 3:
            break
        for name, process in processes.items():
            # Lets the others' threads, which may wait actively, go to sleep
            sleep(0.02)
            print(i + 1, file=process.stdin, flush=True)
            times[name].append(_read(name, process))
    return {name: float(np.median(taken)) for name, taken in times.items()}


def compare(N: int, T: int, repeats: int, file: Path | None = None) -> dict[str, Any]:
    """Time one training step of each baseline; the baselines take turns in separate processes.

    Parameters
    ----------
    N, T : int
        The sizes of the task.
    repeats : int
        The number of timed rounds.
    file : Path, optional
        A Python file with further baselines. The file is executed.

    Returns
    -------
    dict
        N, T, and for each baseline, by name, the median milliseconds per step (``ms``), the peak
        memory (``mb``) and, for our engine, the time with another busy process on each core
        (``busy_ms``).

    Examples
    --------
    >>> from scb.training.benchmark import compare
    >>> sorted(compare(N=3, T=50, repeats=1))  # doctest: +SKIP
    ['N', 'T', 'busy_ms', 'mb', 'ms']
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = {}
    losses = {}
    memory = {}
    try:
        for name in baselines(file):
            command = [sys.executable, "-m", __name__, name, str(N), str(T)]
            command += [] if file is None else [str(file)]
            # In a session of its own: an interrupt from the terminal is for us alone.
            start = partial(subprocess.Popen, command, start_new_session=True)
            processes[name] = start(**pipes)
            losses[name] = _read(name, processes[name])
        if max(losses.values()) > 2 * min(losses.values()):
            raise InputError(f"the baselines do not compute the same losses: {losses}")
        quiet = _take_turns(processes, repeats)
        with busy_neighbours():
            busy = _take_turns({name: processes[name] for name in OURS}, repeats)
        for name, process in processes.items():
            process.stdin.close()  # ends the process
            memory[name] = _read(name, process)
    finally:
        for process in processes.values():
            with process:  # waits for its end and closes its pipes
                process.kill()
    return {"N": N, "T": T, "ms": quiet, "busy_ms": busy, "mb": memory}


if __name__ == "__main__":
    name, N, T, *file = sys.argv[1:]
    serve(baselines(Path(file[0]) if file else None)[name], int(N), int(T))
