"""Run the jobs of the full run on a machine that has NumPy and Numba and nothing else of what scb uses, and bring the rows back.

    python benchmarks/full_run.py list jobs.json                      # here: which jobs there are
    python benchmarks/full_run.py run jobs.json rows.jsonl --jobs 16  # there, with PYTHONPATH=src; the same command goes on
    python benchmarks/full_run.py tables rows.jsonl docs/tables       # here: the tables that docs ship
    python benchmarks/full_run.py page docs/tables docs/paper/rates.md      # here: numbers and figures of that page

Tables that ask for a GPU are listed by name: ``list jobs.json --tables "long signs,large rates"``; --jobs 4 shares one GPU.

Every job runs on one thread, the longest first. A row is one line of text, written as soon as it is there: whatever ends the
run, what is there stays. ``scb reproduce --full`` makes the same tables where all of scb is installed.
"""

import argparse
import json
import os
import platform
import re
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from importlib import import_module
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import numba
import numpy as np

from scb.provenance import machine


def list_jobs(path: Path, only: str) -> None:
    """Write down the jobs of all tables that the full run makes on a processor, or of those that are named."""
    from scb.paper.registry import tables

    names = [name.strip() for name in only.split(",") if name.strip()]
    chosen = {name: one for name, one in tables(full=True, gpu=True).items() if (name in names if names else one.full_only)}
    found = {}
    for name, experiment in chosen.items():
        for job in experiment.jobs():
            place = {"module": type(job).__module__, "job": type(job).__name__, "fields": job.parameters}
            found[job.key] = {"key": job.key, "table": name, "cost": job.cost, **place}
    path.write_text("\n".join(json.dumps(entry) for entry in found.values()) + "\n")
    for name in chosen:
        costs = [entry["cost"] for entry in found.values() if entry["table"] == name]
        minutes = sum(costs) / 60
        print(f"{name:24s} {len(costs):5d} jobs {minutes:8.1f} core-minutes expected, the longest {max(costs, default=0):.0f} s")


def build(entry: dict[str, Any]) -> Any:
    """The job that an entry of the list describes."""
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in entry["fields"].items()}
    return getattr(import_module(entry["module"]), entry["job"])(**fields)


def do(entry: dict[str, Any]) -> dict[str, Any]:
    """In a worker: one job, and the seconds that it took; or how it failed."""
    begin = time.perf_counter()
    try:
        rows = {name: np.atleast_1d(values).tolist() for name, values in build(entry).run().items()}
    except Exception as error:
        return {"key": entry["key"], "failed": repr(error), "entry": entry}
    return {"key": entry["key"], "table": entry["table"], "seconds": time.perf_counter() - begin, "rows": rows}


def read_lines(path: Path) -> dict[str, dict[str, Any]]:
    """Key → row of what is done, with the facts of the run that did it; a line that was cut off is passed over."""
    found = {}
    facts: dict[str, Any] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        facts = entry.get("facts", facts)
        if "rows" in entry:
            found[entry["key"]] = entry | {"facts": facts}
    return found


def run(listed: Path, out: Path, workers: int, seconds: float, grace: float, only: str) -> None:
    """Do what is not done yet; after ``seconds`` nothing new is begun, and ``grace`` seconds later what still runs is given up."""
    begin = time.monotonic()
    for threads in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[threads] = "1"  # of the processes, which begin afresh
    done = read_lines(out)
    entries = [json.loads(line) for line in listed.read_text().splitlines()]
    names = [name.strip() for name in only.split(",") if name.strip()]
    todo = [entry for entry in entries if entry["key"] not in done and (not names or entry["table"] in names)]
    todo.sort(key=lambda entry: -entry["cost"])
    print(f"{len(done)} done, {len(todo)} to do, {sum(entry['cost'] for entry in todo) / 60:.1f} core-minutes expected", flush=True)
    count = 0
    running: dict[Future[dict[str, Any]], dict[str, Any]] = {}
    with open(out, "a") as file, ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        made_with = {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__}
        there = machine()
        if any(entry["fields"].get("device") == "cuda" for entry in todo):
            from scb.kernels.cuda.device import Gpu

            there += f", {Gpu().name}"
        file.write(json.dumps({"facts": {"machine": there, "versions": made_with}}) + "\n")
        while todo or running:
            while todo and len(running) < workers and time.monotonic() - begin < seconds:
                entry = todo.pop(0)
                running[pool.submit(do, entry)] = entry
            left = seconds + grace - (time.monotonic() - begin)
            if not running or left <= 0:
                break
            through, _ = wait(running, timeout=min(left, 60.0), return_when=FIRST_COMPLETED)
            for future in through:
                del running[future]
                line = future.result()
                file.write(json.dumps(line) + "\n")
                file.flush()
                count += 1
                if "failed" in line:
                    print(f"failed: {line['entry']}: {line['failed']}", flush=True)
                if count % 20 == 0:
                    print(f"{time.monotonic() - begin:6.0f} s  {count} through, {len(todo)} waiting", flush=True)
        for process in active_children():  # all rows are written: nobody waits for a job that does not end
            process.terminate()
    for entry in running.values():
        print(f"given up: {entry['table']} {entry['fields']}", flush=True)
    print(f"{time.monotonic() - begin:.0f} s, {count} through, {len(todo) + len(running)} left", flush=True)


def write_tables(lines: Path, out: Path) -> None:
    """The tables of which all rows are there, as text."""
    from scb.jobs.shipped import write_shipped
    from scb.jobs.table import concatenate
    from scb.paper.registry import tables
    from scb.paper.report import full_run_facts

    done = read_lines(lines)
    for name, experiment in tables(full=True, gpu=True).items():
        jobs = experiment.jobs()
        present = [job for job in jobs if job.key in done]
        if not experiment.shipped or not present:
            continue
        if len(present) < len(jobs):
            print(f"{name}: {len(jobs) - len(present)} of {len(jobs)} jobs are not done; no table")
            continue
        table = concatenate([job.table({column: np.array(v) for column, v in done[job.key]["rows"].items()}) for job in jobs])
        seconds = sum(done[job.key]["seconds"] for job in jobs)
        made_with = [done[job.key]["facts"] for job in jobs]
        machines = Counter(facts["machine"] for facts in made_with).most_common()
        names = [f"{name} ({count} of {len(jobs)} jobs)" for name, count in machines] if len(machines) > 1 else [machines[0][0]]
        facts = full_run_facts(experiment, "; ".join(names)) | {
            "versions": made_with[0]["versions"],
            "minutes": round(seconds / 60, 1),
        }
        print(f"{write_shipped(out, name, table, facts)}: {len(jobs)} jobs, {seconds / 60:.1f} core-minutes")


def write_page(shipped: Path, page: Path) -> None:
    """Make the tables of a page anew, and draw the figures that it shows into the folder beside it."""
    from pages import TABLES
    from study import fill

    from scb.drawing import save
    from scb.jobs.shipped import read_shipped
    from scb.paper.registry import FIGURES

    text = page.read_text()
    for name in re.findall(r"<!-- table (.+?) -->", text):
        fill(page, name, TABLES[name][1]())
    shown = re.findall(r"\(\.\./images/(F\d+)\.png\)", text)
    needs = {need for name in shown for need in FIGURES[name].needs}
    found = {name: read_shipped(shipped, name)[0] for name in sorted(needs)}
    for name in shown:
        save(FIGURES[name].draw(found), page.parents[1] / "images" / name, ("png",))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("list", "run", "tables", "page"))
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing new after so many seconds")
    parser.add_argument("--grace", type=float, default=60.0, help="give up what still runs so many seconds after that")
    parser.add_argument("--tables", default="", help="these tables only, such as rates,regulariser")
    options = parser.parse_args()
    if options.what == "list":
        list_jobs(options.paths[0], options.tables)
    elif options.what == "run":
        run(options.paths[0], options.paths[1], options.jobs, options.seconds, options.grace, options.tables)
    elif options.what == "page":
        write_page(options.paths[0], options.paths[1])
    else:
        write_tables(options.paths[0], options.paths[1])


if __name__ == "__main__":
    sys.exit(main())
