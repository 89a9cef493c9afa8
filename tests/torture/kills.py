"""SIGKILL a command at a call of its file layer, or at any moment, again and again; the end is that of an unbroken run.

Commands are forked (``forks``). The end that counts is that of a real process that nobody forked and nothing broke. Between two
calls the clock, the time zone, the locale and the dates of all files change.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

from scb.jobs.table_file import read_table
from torture.forks import A_YEAR, Child, Weather, furnish, session, start

ROWS = 12  # of the sweep
PATIENCE = 240  # seconds for one call; minutes where the machine is busy
GRACE = 10  # seconds after which nothing that a command has started may be left


class Command(NamedTuple):
    """A command, how it is gone on with, and the files by which ends are compared."""

    begin: tuple[str, ...]
    go_on: tuple[str, ...]
    compared: tuple[str, ...]
    weight: int  # how often it is attacked; those that start processes take ten times as long
    after: str = ""  # the command whose end it begins with
    forking: bool = False  # whether its workers are forked


TRAIN = ("train", "--recipe", "paper", "--T", "30", "--set", "steps=[300,200,20]", "--every", "20", "--out", "out")
FIT = ("fit", "text.txt", "--max-lag", "3", "--lags", "1", "--split", "0", "--out", "out")
REPRODUCE = ("reproduce", "--quick", "--only", "F11", "--seeds", "1", "--jobs", "1", "--out", "out")
HERE = ("sweep", "sweep.toml", "--jobs", "1", "--out", "out")
LOCAL = ("sweep", "sweep.toml", "--jobs", "2", "--out", "out")
SHOW = ("show", "out")
LAB = ("lab", "--out", "out/lab.html")
ON_DASK = "sweep on workers"
TRAINED = ("run.safetensors", "config.json", "task.npz", "curves.png")
FITTED = ("model.safetensors", "summary.json", "lags.csv", "attention.png", "influence.png")
REPRODUCED = ("tables/*.parquet", "figures/*.png", "claims.md")
COMMANDS = {
    "train": Command(TRAIN, ("train", "--out", "out", "--resume"), TRAINED, 30),
    "fit": Command(FIT, FIT, FITTED, 18),
    "sweep": Command(HERE, HERE, ("table.parquet",), 20),
    ON_DASK: Command(LOCAL, LOCAL, ("table.parquet",), 2),
    "reproduce": Command(REPRODUCE, REPRODUCE, REPRODUCED, 14, forking=True),
    "reproduce as users do": Command(REPRODUCE, REPRODUCE, REPRODUCED, 2),
    "show a run": Command(SHOW, SHOW, TRAINED, 5, after="train"),
    "show a fit": Command(SHOW, SHOW, FITTED, 5, after="fit"),
    "lab": Command(LAB, LAB, ("lab.html",), 2),
}


class Unbroken(NamedTuple):
    """A run that nothing broke: its folder, the content of the files that are compared, and what it took."""

    folder: Path
    end: dict[str, bytes]
    calls: int  # of its file layer
    cpu: float  # seconds


def furnished(name: str) -> Path:
    """A new folder with what a command reads."""
    folder = Path(tempfile.mkdtemp(prefix="scb-kills-"))
    furnish(folder)
    (folder / "out").mkdir()
    if COMMANDS[name].after:
        shutil.copytree(forked(COMMANDS[name].after).folder / "out", folder / "out", dirs_exist_ok=True)
    return folder


def compared(folder: Path, name: str) -> dict[str, bytes]:
    """The files by which ends are compared."""
    globs = COMMANDS[name].compared
    found = {str(path.relative_to(folder)): path for glob in globs for path in sorted((folder / "out").glob(glob))}
    return {file: path.read_bytes() for file, path in found.items()}


_folders: list[Path] = []  # of ``forked``


@cache
def forked(name: str) -> Unbroken:
    """The command by itself, in a forked process."""
    folder = furnished(name)
    _folders.append(folder)
    child = start(COMMANDS[name].begin, folder, forking=COMMANDS[name].forking)
    assert child.wait(PATIENCE), name
    assert child.status == 0, child.said()
    end = compared(folder, name)
    assert end, name
    return Unbroken(folder, end, child.calls(), child.cpu)


@cache
def unbroken(name: str) -> Unbroken:
    """The command by itself, in a process as a user starts it; a forked one must end in the same way."""
    folder = furnished(name)
    _folders.append(folder)
    line = [sys.executable, "-m", "scb", *COMMANDS[name].begin]
    done = subprocess.run(line, cwd=folder, env={**os.environ, "COLUMNS": "80"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert compared(folder, name) == forked(name).end, name
    return forked(name)


def clean() -> None:
    """Remove what ``forked`` and ``unbroken`` made."""
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)
    forked.cache_clear()
    unbroken.cache_clear()


def case(seed: int, names: tuple[str, ...] = tuple(COMMANDS)) -> str:
    """A command that is killed up to five times and then left alone: "same" is fine, anything else is a finding."""
    rng = random.Random(f"kills {seed}")
    name = rng.choices(names, [COMMANDS[name].weight for name in names])[0]
    truth = unbroken(name)
    folder = furnished(name)
    words = [name]
    children = []
    kills = 0
    try:
        for _ in range(rng.randint(1, 5)):
            child, killed = _attack(rng, name, folder, truth, words)
            children.append(child)
            kills += killed
            if found := _complaint(child, killed):
                return f"{found}: {', '.join(words)}: {child.said()[-300:]}"
            if child.status == 0:  # it was through: there is nothing left to break
                shutil.rmtree(folder)
                folder = furnished(name)
                words.append("through, again")
            _set_dates(rng, folder)
        child = start(next_call(name, folder), folder, weather=_weather(rng, name), forking=COMMANDS[name].forking)
        children.append(child)
        if not child.wait(PATIENCE) or child.status != 0:
            child.kill()
            return f"DOES NOT GO ON ({child.status}): {', '.join(words)}: {child.said()[-300:]}"
        verdict = other_end(name, folder, truth) or processes_left(children) or "same"
        return f"{verdict}: {', '.join(words)}, {kills} kills"
    finally:
        for child in children:
            for pid in session(child.pid):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def next_call(name: str, folder: Path) -> tuple[str, ...]:
    """How a user would call it now: to go on, if it has begun."""
    begun = (folder / "out" / "config.json").exists()
    return COMMANDS[name].go_on if begun else COMMANDS[name].begin


def _weather(rng: random.Random, name: str) -> Weather:
    clock = rng.choice((0.0, 0.0, -50 * A_YEAR, -3600.0, 3600.0, 80 * A_YEAR))
    if name == ON_DASK:
        clock = abs(clock)  # Tornado, on which Dask stands, waits until a clock that was set back is where it was
    return Weather(clock, rng.choice(("UTC", "Pacific/Kiritimati", "Etc/GMT+12")), plain=rng.random() < 0.3)


def _set_dates(rng: random.Random, folder: Path) -> None:
    """Files as they look after the clock has been set."""
    for path in sorted((folder / "out").rglob("*")):
        moment = rng.uniform(0, 130 * A_YEAR)
        os.utime(path, (moment, moment))


def _attack(rng: random.Random, name: str, folder: Path, truth: Unbroken, words: list[str]) -> tuple[Child, bool]:
    """Start the command and kill it: itself, one of its workers, or all its processes at once. Whether there was time to."""
    arguments = next_call(name, folder)
    if rng.random() < 0.6:
        at = rng.randint(1, truth.calls)
        before = rng.random() < 0.5
        words.append(f"{'before' if before else 'after'} call {at}")
        child = start(arguments, folder, at=at, before=before, weather=_weather(rng, name), forking=COMMANDS[name].forking)
        child.wait(PATIENCE)
        return child, child.status == -signal.SIGKILL
    moment = rng.uniform(0, 0.95 * truth.cpu)
    whom = rng.choice(("itself", "all", "a worker", "a worker"))
    child = start(arguments, folder, weather=_weather(rng, name), forking=COMMANDS[name].forking)
    if child.wait(PATIENCE, moment):
        return child, False
    workers = child.workers()
    if whom == "a worker" and workers:
        words.append(f"a worker after {moment:.2f} s of CPU")
        os.kill(rng.choice(workers), signal.SIGKILL)
        child.wait(PATIENCE)
        return child, True
    words.append(f"{'all' if whom == 'all' else 'itself'} after {moment:.2f} s of CPU")
    if whom == "all":
        for pid in session(child.pid):
            os.kill(pid, signal.SIGKILL)
    child.kill()
    return child, child.status == -signal.SIGKILL


def _complaint(child: Child, killed: bool) -> str:
    """What is wrong with how a command ended: it may be dead, through, or, where a worker was killed, say so in one line."""
    said = child.said()
    if child.status is None:
        child.kill()
        return "HANGS"
    if "Traceback" in said:
        return "TRACEBACK"
    one_line = killed and child.status == 2 and said.count("scb: ") == 1
    if child.status in (0, -signal.SIGKILL) or one_line:
        return ""
    return f"FAILED {child.status}"


def other_end(name: str, folder: Path, truth: Unbroken) -> str:
    """How the files differ from those of an unbroken run; empty if they do not."""
    found = compared(folder, name)
    different = [file for file in truth.end if found.get(file) != truth.end[file]]
    if different:
        return f"ANOTHER END ({', '.join(different)})"
    if (folder / "out" / "rows").exists():
        keys = [key for path in (folder / "out" / "rows").glob("*.parquet") for key in read_table(path)[0]["key"]]
        if len(keys) != ROWS or len(set(keys)) != ROWS:
            return f"ROWS LOST OR DOUBLED ({len(keys)} rows, {len(set(keys))} keys)"
    if left := list((folder / "out").rglob("*.partial")):
        return f"LEFT-OVERS ({left[0].name})"
    return ""


def processes_left(children: list[Child]) -> str:
    """Processes that are left after some seconds."""
    deadline = time.monotonic() + GRACE
    while left := [pid for child in children for pid in session(child.pid)]:
        if time.monotonic() > deadline:
            return f"PROCESSES LEFT ({left})"
        time.sleep(0.2)
    return ""
