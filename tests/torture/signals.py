"""HUP, INT, TERM and QUIT as a terminal or a shell sends them, at any moment, and what is there afterwards.

Nothing that a command has started outlives it, its files are the old or the new ones, and the same
command goes on to the end of an unbroken run. A signal goes to the command alone, or to its whole
group, as when a terminal is closed; an impatient user sends it twice.
"""

import os
import random
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

from torture import kills
from torture.forks import Child, session, start
from torture.kills import COMMANDS, PATIENCE, forked, furnished, next_call

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)
BENCH = ("bench", "--sizes", "3x50", "--repeats", "1", "--out", "out/bench.md")
NO_FILES = {
    "bench": BENCH,
    "sample": ("sample", "fit", "--length", "20000"),
    "plan": ("plan", "3", "100", "2"),
}
WEIGHTS = {"train": 30, "fit": 20, "sweep": 20, "reproduce": 8, "show a run": 6, "show a fit": 6}
WEIGHTS |= {"lab": 4, "sample": 4, "plan": 3, "bench": 6, kills.ON_DASK: 4}
clean = kills.clean


def case(seed: int, names: tuple[str, ...] = tuple(WEIGHTS)) -> str:
    """One or two signals, and the same command again: "same" is fine, all else a finding."""
    rng = random.Random(f"signals {seed}")
    name = rng.choices(names, [WEIGHTS[name] for name in names])[0]
    folder = _folder(name)
    children: list[Child] = []
    try:
        words = f"{name}, {_attack(rng, name, folder, children)}"
        finding = _complaint(children[0]) or kills.processes_left(children)
        if not finding and name not in NO_FILES:
            finding = _goes_on(name, folder, children)
        said = children[-1].said()[-300:]
        return f"{finding}: {words}: {said}" if finding else f"same: {words}"
    finally:
        for child in children:
            for pid in session(child.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def _folder(name: str) -> Path:
    """What a command begins with."""
    if name not in NO_FILES:
        return furnished(name)
    folder = furnished("train")
    if name == "sample":
        shutil.copytree(forked("fit").folder / "out", folder / "fit")
    return folder


def _attack(rng: random.Random, name: str, folder: Path, children: list[Child]) -> str:
    """Start a command and send it a signal; in words."""
    number = rng.choice((*SIGNALS, signal.SIGKILL) if name == "bench" else SIGNALS)
    times = rng.choice((1, 1, 2))
    group = rng.random() < 0.5
    forking = name in COMMANDS and COMMANDS[name].forking
    child = start(NO_FILES.get(name) or COMMANDS[name].begin, folder, forking=forking)
    children.append(child)
    if name in ("bench", kills.ON_DASK):
        moment = rng.uniform(0, 12)
        child.wait(moment)
    else:
        moment = rng.uniform(0, forked(name).cpu if name in COMMANDS else 0.3)
        child.wait(PATIENCE, moment)
    for _ in range(times):
        _send(child, number, group)
        child.wait(rng.choice((0.0, 0.01, 0.1)))
    child.wait(PATIENCE)
    whom = "group" if group else "itself"
    return f"{times} times {number.name} to {whom} after {moment:.2f} s"


def _send(child: Child, number: signal.Signals, group: bool) -> None:
    if not child.ended():
        with suppress(ProcessLookupError):  # its own group is not there yet in its first moment
            os.killpg(child.pid, number) if group else os.kill(child.pid, number)


def _complaint(child: Child) -> str:
    """What is wrong with how a command ended: it may be through, be dead, or say in one line why."""
    if child.status is None:
        return "HANGS"
    if "Traceback" in child.said():
        return "TRACEBACK"
    dead = child.status < 0 and -child.status in (*SIGNALS, signal.SIGKILL)
    one_line = child.status in (2, 128 + signal.SIGINT) and len(child.errors()) <= 1
    return "" if child.status == 0 or dead or one_line else f"FAILED {child.status}"


def _goes_on(name: str, folder: Path, children: list[Child]) -> str:
    """What is wrong with the next call of the same command; empty if it comes to the right end."""
    through = children[0].status == 0
    arguments = COMMANDS[name].go_on if through else next_call(name, folder)
    begin = time.monotonic()
    child = start(arguments, folder, forking=COMMANDS[name].forking)
    children.append(child)
    if not child.wait(PATIENCE) or child.status != 0:
        return f"DOES NOT GO ON ({child.status}, {time.monotonic() - begin:.0f} s)"
    return kills.other_end(name, folder, forked(name)) or kills.processes_left(children)
