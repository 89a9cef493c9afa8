"""What does a sweep cost over its runs? 2,000 short ones, bare in two processes and as a sweep on two workers; and its bytes.

    python benchmarks/sweeps.py [overhead network]

About eight minutes on two cores. All contenders take turns; medians. Progress goes to stderr.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from scb.record import machine
from scb.sweeps.dask import local
from scb.sweeps.grid import Sweep
from scb.sweeps.runner import run_all, run_batch
from scb.sweeps.store import Results

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
import sys, time
from scb.sweeps.grid import Sweep
from scb.sweeps.runner import run_batch
sweep = Sweep.read(sys.argv[1])
runs = sweep.runs()[int(sys.argv[2])::2]
run_batch(sweep.kind.measure, runs[:2], threads=1)
begin = time.perf_counter()
assert len(run_batch(sweep.kind.measure, runs[2:], threads=1).measured) == len(runs) - 2
print((time.perf_counter() - begin) * len(runs) / (len(runs) - 2))
"""


def bare(file: Path) -> tuple[float, float]:
    """Half of the runs in each of two processes, nothing kept: seconds in all, and without start-up."""
    begin = time.perf_counter()
    command = [sys.executable, "-c", BARE, file]
    halves = [subprocess.Popen([*command, str(i)], stdout=subprocess.PIPE, text=True) for i in range(2)]
    loops = [float(half.communicate()[0]) for half in halves]
    return time.perf_counter() - begin, max(loops)


def swept(file: Path, out: Path) -> float:
    """The command, from start to end: grid, cluster, rows on disk, table, report."""
    begin = time.perf_counter()
    subprocess.run([SCB, "sweep", file, "--out", out, "--jobs", "2"], check=True, capture_output=True)
    seconds = time.perf_counter() - begin
    assert len(Results(out).done()) == len(Sweep.read(file).runs())
    return seconds


def swept_warm(file: Path, out: Path) -> float:
    """The same on workers that are there and have loaded the kernels: batches, network, rows on disk."""
    sweep, results = Sweep.read(file), Results(out)
    results.begin(sweep, sweep.runs())
    with local(2, sweep.kind.measure, print) as pool:
        pool.submit(sweep.runs()[:2])
        pool.submit(sweep.runs()[2:4])
        answers: list[object] = []
        while len(answers) < 2:
            answers += pool.collect()
        begin = time.perf_counter()
        run_all(sweep.runs(), pool, results)
        return time.perf_counter() - begin


def overhead(rounds: int = 6) -> None:
    """The comparison: contenders take turns, and every other round the other way round, since the machine's speed drifts."""
    times: dict[str, list[float]] = {"bare": [], "bare, warm": [], "sweep": [], "sweep, warm": []}
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "sweep.toml"
        file.write_text(TEXT)
        count = len(Sweep.read(file).runs())
        for i in range(rounds):
            for turn in (0, 1, 2)[:: -1 if i % 2 else 1]:
                if turn == 0:
                    for key, seconds in zip(("bare", "bare, warm"), bare(file), strict=True):
                        times[key].append(seconds)
                elif turn == 1:
                    times["sweep"].append(swept(file, Path(name) / f"out{i}"))
                else:
                    times["sweep, warm"].append(swept_warm(file, Path(name) / f"warm{i}"))
            print(
                f"round {i + 1} of {rounds}: { ({key: round(s[-1], 1) for key, s in times.items()}) }", file=sys.stderr
            )
        parts = len(list((Path(name) / "out0" / "rows").iterdir()))
    for what, one, other in (("everything", "bare", "sweep"), ("without start-up", "bare, warm", "sweep, warm")):
        more = [100 * (b / a - 1) for a, b in zip(times[one], times[other], strict=True)]
        print(
            f"{count:,} runs, {what}: {median(times[one]):.1f} s bare, {median(times[other]):.1f} s as a sweep:"
            f" {100 * (median(times[other]) / median(times[one]) - 1):+.1f} % between the medians;"
            f" in the rounds {', '.join(f'{one:+.0f}' for one in sorted(more))} %"
        )
    print(f"one run takes {1e3 * 2 * median(times['bare, warm']) / count:.0f} ms; {parts} files of rows; {machine()}")


def network() -> None:
    """Bytes through the loopback device, with a scheduler and two workers as processes of their own."""
    with tempfile.TemporaryDirectory() as name:
        where, file = Path(name) / "scheduler.json", Path(name) / "sweep.toml"
        file.write_text(TEXT)
        here = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(where)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
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
        sweep = Sweep.read(file)
        runs, table = sweep.runs(), (Path(name) / "out" / "table.parquet").stat().st_size
        batch = [run._replace(parameters=dict(run.parameters)) for run in runs[::100]]  # every one at another point
        out, back = len(pickle.dumps(batch)) / 20, len(pickle.dumps(run_batch(sweep.kind.measure, batch))) / 20
        print(
            f"{len(runs):,} runs in {seconds:.0f} s: {moved / 1e6:.2f} MB crossed the network, {moved / len(runs):.0f} bytes a run"
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
