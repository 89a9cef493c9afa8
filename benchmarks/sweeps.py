"""What does a sweep cost over its runs? 2,000 short ones, bare in two processes and as a sweep on two workers; and its bytes.

    python benchmarks/sweeps.py [overhead network]

About seven minutes on two cores. Contenders take turns second by second; medians. Progress goes to stderr.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from scb.jobs.grid import Sweep
from scb.jobs.kinds import KINDS
from scb.jobs.pool import run_batch
from scb.jobs.store import SweepStore
from scb.provenance import machine

SCB, DASK = (Path(sys.executable).with_name(name) for name in ("scb", "dask"))
TEXT = """
kind = "recover"
seeds = 500
[fixed]
N = 3
[grid]
T = [50, 100]
samples = [200, 400]
"""
BARE = """
import sys
from scb.jobs.grid import Sweep
from scb.jobs.kinds import KINDS
from scb.jobs.pool import run_batch
jobs = Sweep.read(sys.argv[1], KINDS).jobs()[int(sys.argv[2])::2]
assert len(run_batch(jobs, threads=1).results) == len(jobs)
"""
SLICE = 1.0  # seconds


def bare(file: Path) -> list[list[str]]:
    """Half of the runs in each of two processes, nothing kept."""
    return [[sys.executable, "-c", BARE, str(file), str(i)] for i in range(2)]


def swept(file: Path, out: Path) -> list[list[str]]:
    """The command, from start to end: grid, cluster, rows on disk, table, report."""
    return [[str(SCB), "sweep", str(file), "--out", str(out), "--jobs", "2"]]


def side_by_side(*contenders: list[list[str]]) -> list[float]:
    """The seconds of each contender, a few commands at once, where one is stopped while the other runs: a second each, in turn.

    So both have the same machine, whose speed drifts. A clock does not stop: Dask's own, and that by which batches are made, see
    twice the time.
    """
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    started: list[list[subprocess.Popen[Any]]] = [[] for _ in contenders]
    seconds = [0.0 for _ in contenders]
    running = set(range(len(contenders)))
    try:
        while running:
            for i in sorted(running):
                begin = time.perf_counter()
                if not started[i]:
                    started[i] = [subprocess.Popen(command, **quiet) for command in contenders[i]]
                send(started[i], signal.SIGCONT)
                while time.perf_counter() - begin < SLICE and any(one.poll() is None for one in started[i]):
                    time.sleep(0.002)
                send(started[i], signal.SIGSTOP)
                seconds[i] += time.perf_counter() - begin
                if all(one.poll() is not None for one in started[i]):
                    running.remove(i)
    finally:
        for processes in started:
            send(processes, signal.SIGKILL)
    assert all(one.returncode == 0 for processes in started for one in processes)
    return seconds


def send(processes: list[subprocess.Popen[Any]], number: signal.Signals) -> None:
    """A signal to the processes that are still there, and to their children."""
    for one in processes:
        if one.poll() is None:
            os.killpg(one.pid, number)


def overhead(rounds: int = 5) -> None:
    """The comparison; and with one run for each point, which is start-up and end."""
    times: dict[int, list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        for i in range(rounds):
            for text in (TEXT, TEXT.replace("seeds = 500", "seeds = 1")):
                file, out = Path(name) / "sweep.toml", Path(name) / f"out{i}"
                file.write_text(text)
                count = len(Sweep.read(file, KINDS).jobs())
                both = [bare(file), swept(file, out)]
                order = 1 if i % 2 == 0 else -1
                seconds = side_by_side(*both[::order])[::order]
                assert len(SweepStore(out).done()) == count
                times.setdefault(count, []).append(seconds)
                parts = len(list((out / "rows").iterdir()))
                shown = f"{seconds[0]:.1f} s bare, {seconds[1]:.1f} s as a sweep, {parts} files of rows"
                print(f"round {i + 1} of {rounds}, {count:,} runs: {shown}", file=sys.stderr)
                shutil.rmtree(out)
    middle = {count: [median(column) for column in zip(*found, strict=True)] for count, found in times.items()}
    for count, (one, other) in middle.items():
        more = sorted(100 * (b / a - 1) for a, b in times[count])
        print(
            f"{count:,} runs: {one:.1f} s bare, {other:.1f} s as a sweep: {median(more):+.1f} %"
            f" ({more[0]:+.1f} to {more[-1]:+.1f} in {rounds} rounds)"
        )
    (one, other), (few, few_swept) = middle.values()
    print(
        f"without start-up: {100 * ((other - few_swept) / (one - few) - 1):+.1f} %;"
        f" one run takes {1e3 * 2 * (one - few) / max(middle):.0f} ms; {machine()}"
    )


def network() -> None:
    """Bytes through the loopback device, with a scheduler and two workers as processes of their own."""
    with tempfile.TemporaryDirectory() as name:
        where, file = Path(name) / "scheduler.json", Path(name) / "sweep.toml"
        file.write_text(TEXT)
        here = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(where)]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started = [subprocess.Popen([DASK, "scheduler", "--port", "0", *here], **quiet)]
        try:
            started += [subprocess.Popen([DASK, "worker", *here, "--nthreads", "1"], **quiet) for _ in range(2)]
            while not where.exists():
                time.sleep(0.1)
            address = json.loads(where.read_text())["address"]
            time.sleep(5)
            before = loopback()
            time.sleep(10)
            idle, begin, before = (loopback() - before) / 10, time.perf_counter(), loopback()
            command = [SCB, "sweep", file, "--out", Path(name) / "out", "--scheduler", address]
            subprocess.run(command, check=True, capture_output=True)
            seconds, moved = time.perf_counter() - begin, loopback() - before
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()
        jobs = Sweep.read(file, KINDS).jobs()
        table = (Path(name) / "out" / "table.parquet").stat().st_size
        batch = [replace(job, parameters=dict(job.parameters)) for job in jobs[::100]]  # every one at another point
        out = len(pickle.dumps(batch)) / 20
        back = len(pickle.dumps(run_batch(batch))) / 20
        print(
            f"{len(jobs):,} runs in {seconds:.0f} s: {moved / 1e6:.2f} MB crossed the network, {moved / len(jobs):.0f} bytes a run"
            f" (a run as it goes out {out:.0f}, what comes back {back:.0f}; the rest is Dask's);"
            f" two idle workers: {idle / 1e3:.2f} kB a second; the table has {table / 1e3:.0f} kB"
        )


def loopback() -> int:
    """Bytes received on lo since the machine started."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split()[1])


if __name__ == "__main__":
    for what in sys.argv[1:] or ["overhead", "network"]:
        {"overhead": overhead, "network": network}[what]()
