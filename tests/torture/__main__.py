"""Run the attacks long: python -m torture --flips 20000 --faults 2000 --calls 20000 --kills 1000 --jobs 2 --out torture.csv

Each case is made from its number alone, so that a finding can be repeated: python -m torture --part flips --from 17 --to 18.
Verdicts are written as they come, and a run that is called again goes on behind them. Cases run in batches, each in a process of
its own; if that dies, the case at which it died is a finding.
"""

import argparse
import csv
import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import import_module
from pathlib import Path

PARTS = {"flips": 500, "faults": 50, "fuzz": 5, "kills": 10}  # cases a batch
A_HUNDRED = 100  # calls in a case of the fuzzer
KILLS = 1.5  # of a case, at least, on average
FINE = re.compile(r"right|refused|old|new|fine|same")


def run_here(part: str, first: int, last: int) -> None:
    """Run cases in this process, a line of JSON each."""
    module = import_module(f"torture.{part}")
    for number in range(first, last):
        print(f"{number}\t{' '.join(module.case(number).split())}", flush=True)


def run_batch(part: str, first: int, last: int) -> list[tuple[int, str]]:
    """Verdicts of cases that are run in a process of their own."""
    line = [sys.executable, "-m", "torture", "--part", part, "--from", str(first), "--to", str(last)]
    environment = os.environ | {"NUMBA_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(line, capture_output=True, text=True, env=environment)
    lines = [text.split("\t", 1) for text in done.stdout.splitlines() if re.match(r"\d+\t", text)]
    found = [(int(number), verdict) for number, verdict in lines]
    if done.returncode:
        found.append((first + len(found), f"CRASH {done.returncode}: {' '.join(done.stderr[-300:].split())}"))
    return found


def batches(part: str, cases: int, done: set[int]) -> list[tuple[str, int, int]]:
    """What is still to do."""
    size = PARTS[part]
    return [(part, i, min(i + size, cases)) for i in range(0, cases, size) if not set(range(i, min(i + size, cases))) <= done]


def main() -> int:
    """Entry point; the status is 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__.partition("\n")[0])
    for name, count in (("flips", 20000), ("faults", 2000), ("calls", 20000), ("kills", 1000)):
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("results/torture.csv"))
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int, default=1)
    asked = parser.parse_args()
    if asked.part:
        run_here(asked.part, asked.first, asked.last)
        return 0
    cases = {"flips": asked.flips, "faults": asked.faults, "fuzz": asked.calls // A_HUNDRED, "kills": round(asked.kills / KILLS)}
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    before = list(csv.reader(asked.out.open())) if asked.out.exists() else []
    done = {part: {int(row[1]) for row in before if row[0] == part} for part in PARTS}
    todo = [batch for part, count in cases.items() for batch in batches(part, count, done[part])]
    with ThreadPoolExecutor(asked.jobs) as pool, asked.out.open("a", newline="") as file:
        futures = {pool.submit(run_batch, *batch): batch for batch in todo}
        for number, future in enumerate(as_completed(futures), 1):
            part = futures[future][0]
            rows = [(part, i, verdict) for i, verdict in future.result() if i not in done[part]]
            csv.writer(file).writerows(rows)
            file.flush()
            for row in rows:
                if not FINE.match(row[2]):
                    print(*row, flush=True)
            print(f"{number} of {len(todo)} batches", file=sys.stderr)
    return summarise(asked.out)


def summarise(path: Path) -> int:
    """Print how often each verdict was given, by part; whether anything was found."""
    rows = list(csv.reader(path.open()))
    counts = Counter((part, re.split(r"[:,(]", verdict)[0].strip()) for part, _, verdict in rows)
    for (part, verdict), count in sorted(counts.items()):
        print(f"{part:8}{count:8,}  {verdict}")
    killed = sum(int(found.group(1)) for _, _, verdict in rows if (found := re.search(r"(\d+) kills", verdict)))
    print(f"SIGKILLs: {killed:,}")
    return int(any(not FINE.match(verdict) for _, _, verdict in rows))


if __name__ == "__main__":
    sys.exit(main())
