"""Run the attacks long: python -m torture --flips 20000 --faults 2000 --calls 20000 --kills 1000 --jobs 2 --out torture.csv

Each case is made from its number alone, so that a finding can be repeated: python -m torture flips --seed 17 --cases 1.
Verdicts are written as they come, and a run that is called again goes on behind them. Cases run in batches, each in a process of
its own; if that dies or hangs, the case at which it did is a finding, and another process goes on behind it.
"""

import argparse
import csv
import faulthandler
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import import_module
from pathlib import Path
from threading import Lock

PARTS = {"kills": 200, "fuzz": 10, "faults": 250, "flips": 1000}  # cases a batch
# The parts whose cases are counted one by one, and how many of each are run: 1,000 together.
COUNTS = {"signals": 120, "interrupts": 220, "foreign": 180, "lockless": 40, "users": 20}
COUNTS |= {"short": 220, "crafted": 200}
PARTS |= dict.fromkeys(COUNTS, 250)
A_HUNDRED = 100  # calls in a case of the fuzzer
KILLS = 2.5  # of a case, on average
LIMIT = 1800  # seconds after which a case hangs, on a machine that is busy with other things
LAST = "TORTURE_LAST"  # names the file in which a case says what it is about to do
FINE = re.compile(r"right|refused|old|new|fine|same|skipped")
# One thread, so that processes can be forked; a locale of UTF-8 that is not Python's own mode, so that it can be changed.
ENVIRONMENT = {
    "NUMBA_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "LC_ALL": "C.UTF-8",
    "PYTHONUTF8": "0",
    "PYTHONPATH": os.pathsep.join(str(Path(__file__).parents[2] / folder) for folder in ("src", "tests")),  # what stands beside it
}
Tell = Callable[[str, int, float, str], None]  # called with part, number, seconds and verdict


def run_here(part: str, first: int, last: int) -> None:
    """Run cases in this process, a line each: number, seconds, verdict."""
    module = import_module(f"torture.{part}")
    for number in range(first, last):
        faulthandler.dump_traceback_later(LIMIT, exit=True)
        begin = time.monotonic()
        verdict = " ".join(module.case(number).split())
        print(f"{number}\t{time.monotonic() - begin:.3f}\t{verdict}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    if hasattr(module, "clean"):
        module.clean()


def run_batch(part: str, first: int, last: int, tell: Tell) -> None:
    """Run cases in a process, and behind one that ends it in another one."""
    at = first
    with tempfile.TemporaryDirectory(prefix="scb-torture-") as folder:
        note = Path(folder, "last.txt")
        words = Path(folder, "stderr.txt")
        while at < last:
            line = [sys.executable, "-m", "torture", part, "--seed", str(at), "--cases", str(last - at)]
            environment = os.environ | ENVIRONMENT | {LAST: str(note)}
            with words.open("w") as errors, subprocess.Popen(line, stdout=-1, stderr=errors, text=True, env=environment) as process:
                for text in process.stdout or ():
                    if found := re.fullmatch(r"(\d+)\t([\d.]+)\t(.*)\n", text):
                        tell(part, int(found[1]), float(found[2]), found[3])
                        at = int(found[1]) + 1
            if at < last:
                doing = note.read_text(errors="replace") if note.exists() else ""
                said = " ".join(words.read_text(errors="replace")[-500:].split())
                tell(part, at, 0.0, f"CRASH {process.returncode}: {doing} {said}")
                at += 1


def batches(part: str, cases: int, done: set[int]) -> list[tuple[str, int, int]]:
    """What is still to do: runs of numbers without a gap, of limited length."""
    found: list[tuple[str, int, int]] = []
    for number in range(cases):
        if number in done:
            continue
        if found and found[-1][2] == number and number - found[-1][1] < PARTS[part]:
            found[-1] = (part, found[-1][1], number + 1)
        else:
            found.append((part, number, number + 1))
    return found


def commit() -> str:
    """Which code is attacked; with a + if it has been changed since."""
    line = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    done = subprocess.run(line, cwd=Path(__file__).parent, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def read(path: Path) -> list[list[str]]:
    """The rows of part, number, seconds, commit and verdict that are there; half of a line is none."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [row for row in csv.reader(file) if len(row) == 5]


def main() -> int:
    """Entry point; the status is 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__.partition("\n")[0])
    usual = {"flips": 20000, "faults": 2000, "calls": 20000, "kills": 1000} | COUNTS
    for name, count in usual.items():
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("results/torture.csv"))
    parser.add_argument("part", nargs="*", help=f"these parts alone: {', '.join(PARTS)}")
    parser.add_argument("--seed", type=int, help="run cases of one part here, this number first")
    parser.add_argument("--cases", type=int, default=1, help="and so many")
    asked = parser.parse_args()
    if unknown := set(asked.part) - PARTS.keys():
        parser.error(f"there is no part {', '.join(unknown)}: there are {', '.join(PARTS)}")
    if asked.seed is not None:
        for part in asked.part:
            run_here(part, asked.seed, asked.seed + asked.cases)
        return 0
    cases = {"kills": round(asked.kills / KILLS), "fuzz": asked.calls // A_HUNDRED, "faults": asked.faults, "flips": asked.flips}
    cases |= {part: getattr(asked, part) for part in COUNTS}
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    done = {part: {int(row[1]) for row in read(asked.out) if row[0] == part} for part in PARTS}
    chosen = {part: count for part, count in cases.items() if not asked.part or part in asked.part}
    todo = [batch for part, count in chosen.items() for batch in batches(part, count, done[part])]
    code = commit()
    one_at_a_time = Lock()
    with ThreadPoolExecutor(asked.jobs) as pool, asked.out.open("a", newline="") as file:

        def tell(part: str, number: int, seconds: float, verdict: str) -> None:
            with one_at_a_time:
                csv.writer(file).writerow((part, number, f"{seconds:.3f}", code, verdict))
                file.flush()
                if not FINE.match(verdict):
                    print(part, number, verdict, flush=True)

        futures = [pool.submit(run_batch, *batch, tell) for batch in todo]
        for number, future in enumerate(as_completed(futures), 1):
            future.result()
            print(f"{number} of {len(todo)} batches", file=sys.stderr)
    return summarise(asked.out)


def summarise(path: Path) -> int:
    """Print how often each verdict was given, and how long it took, by part; whether anything was found."""
    rows = read(path)
    counts: Counter[tuple[str, str]] = Counter()
    times: Counter[tuple[str, str]] = Counter()
    for part, _, seconds, _, verdict in rows:
        kind = part, re.split(r"[:,([]", verdict)[0].strip()
        counts[kind] += 1
        times[kind] += float(seconds)
    for (part, verdict), count in sorted(counts.items()):
        print(f"{part:12}{count:8,}{times[part, verdict]:8,.0f} s  {verdict}")
    for noun in ("kills", "calls"):
        total = sum(int(found[1]) for *_, verdict in rows if (found := re.search(rf"(\d+) {noun}\b", verdict)))
        print(f"{noun}: {total:,}")
    print(f"commits: {', '.join(dict.fromkeys(row[3] for row in rows))}")
    return int(any(not FINE.match(row[4]) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
