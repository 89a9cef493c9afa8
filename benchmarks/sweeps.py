"""What does a sweep cost over its runs? 2,000 short ones, bare in two processes and as a sweep on two workers; and its bytes.

    python benchmarks/sweeps.py [network overhead] [--tables]

About seven minutes on two cores. Baselines take turns second by second. Results are kept in benchmarks/sweeps/; what is there is
not run again. The table and the numbers of docs/explanation/scale.md come from there.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from study import Case, Row, Section, group, main, percent, rounded, table_of

from scb.jobs.pool import run_batch
from scb.provenance import machine
from scb.sweeps.grid import Sweep
from scb.sweeps.kinds import KINDS
from scb.sweeps.store import SweepStore

KEPT = Path(__file__).with_suffix("")
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
from scb.sweeps.grid import Sweep
from scb.sweeps.kinds import KINDS
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


def side_by_side(*baselines: list[list[str]]) -> list[float]:
    """The seconds of each baseline, a few commands at once, where one is stopped while the other runs: a second each, in turn.

    So both have the same machine, whose speed drifts. A clock does not stop: Dask's own, and that by which batches are made, see
    twice the time.
    """
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    started: list[list[subprocess.Popen[Any]]] = [[] for _ in baselines]
    seconds = [0.0 for _ in baselines]
    running = set(range(len(baselines)))
    try:
        while running:
            for i in sorted(running):
                begin = time.perf_counter()
                if not started[i]:
                    started[i] = [subprocess.Popen(command, **quiet) for command in baselines[i]]
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


def overhead(case: Case) -> Row:
    """The seconds of both, bare and as a sweep, with so many seeds at each of the four points of the grid."""
    with tempfile.TemporaryDirectory() as name:
        file, out = Path(name) / "sweep.toml", Path(name) / "out"
        file.write_text(TEXT.replace("seeds = 500", f"seeds = {case['seeds']}"))
        count = len(Sweep.read(file, KINDS).jobs())
        both = [bare(file), swept(file, out)]
        order = 1 if case["round"] % 2 == 0 else -1
        seconds = side_by_side(*both[::order])[::order]
        assert len(SweepStore(out).done()) == count
        parts = len(list((out / "rows").iterdir()))
    each = 2000 * seconds[0] / count  # milliseconds of one of two processes
    return {"runs": count, "parts": parts, "machine": machine()} | rounded(bare=seconds[0], swept=seconds[1], each=each)


def overhead_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Medians over the rounds; and what is left without start-up and end, which the sweeps of four runs show."""
    lines = []
    middle = {}
    for (seeds,), some in sorted(group(rows, "seeds").items(), reverse=True):
        one, other = (median(row[name] for row in some) for name in ("bare", "swept"))
        more = sorted(row["swept"] / row["bare"] - 1 for row in some)
        middle[seeds] = (one, other)
        cells = [
            len(some),
            f"{one:.1f}",
            f"{other:.1f}",
            f"{percent(median(more), '+.1f')} ({percent(more[0], '+.1f')} to {percent(more[-1], '+.1f')})",
        ]
        lines.append([f"{some[0]['runs']:,}", *cells])
    if len(middle) == 2:
        one, other = (large - small for large, small in zip(middle[500], middle[1], strict=True))
        lines.append(["the difference", "", f"{one:.1f}", f"{other:.1f}", percent(other / one - 1, "+.1f")])
    return table_of("runs|rounds|bare processes, seconds|sweep, seconds|more", lines)


def network(case: Case) -> Row:
    """Bytes through the loopback device, with a scheduler and two workers as processes of their own.

    Nothing else may use the device: on a machine that others use too, run it under ``unshare --net`` with the device set up.
    """
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
        batch = jobs[::100]
        out = len(pickle.dumps(batch)) / len(batch)
        back = len(pickle.dumps(run_batch(batch))) / len(batch)
    each = {"bytes": moved / len(jobs), "out": out, "back": back}
    return {"runs": len(jobs), "table": table} | rounded(seconds=seconds, idle=idle, megabytes=moved / 1e6, **each)


def loopback() -> int:
    """Bytes received on lo since the machine started."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split()[1])


SECTIONS = {
    "network": Section([{"round": 0}], network),
    "overhead": Section(
        [{"seeds": seeds, "round": i} for i in range(5) for seeds in (1, 500)], overhead, {"overhead": overhead_table}
    ),
}

if __name__ == "__main__":
    main(__doc__, KEPT, "explanation/scale.md", SECTIONS)
