"""SIGKILL a command at a call of its file layer, or at any moment, again and again; the end is that of an unbroken run."""

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

from scb.jobs.table import read_table

HOOK = """
import os, signal, sys, tempfile
at, before = int(sys.argv[1]), sys.argv[2] == "before"
count, process = 0, os.getpid()
def deadly(call):
    def killed(*arguments, **options):
        global count
        count += os.getpid() == process
        if count == at and before: os.kill(process, signal.SIGKILL)
        answer = call(*arguments, **options)
        if count == at: os.kill(process, signal.SIGKILL)
        return answer
    return killed
for module, name in ((os, "write"), (os, "fsync"), (os, "replace"), (os, "fchmod"), (tempfile, "mkstemp")):
    setattr(module, name, deadly(getattr(module, name)))
from scb.cli import main
main(sys.argv[3:])
print(f"calls: {count}", file=sys.stderr)
"""
SWEEP = 'kind = "recover"\nseeds = 4\n[fixed]\nT = 12\nsamples = 60\n[grid]\nN = [2, 3, 4]\n'
MARK = "SCB_TORTURE"


class Command(NamedTuple):
    """A command, how it is gone on with, and the files by which ends are compared."""

    begin: tuple[str, ...]
    go_on: tuple[str, ...]
    compared: tuple[str, ...]


TRAIN = ("train", "--recipe", "paper", "--T", "30", "--set", "steps=[300,200,20]", "--every", "20", "--out", "out")
FIT = ("fit", "text.txt", "--max-lag", "3", "--lags", "1", "--split", "0", "--out", "out")
REPRODUCE = ("reproduce", "--quick", "--only", "F11", "--seeds", "1", "--jobs", "1", "--out", "out")
HERE = ("sweep", "sweep.toml", "--jobs", "1", "--out", "out")
LOCAL = ("sweep", "sweep.toml", "--jobs", "2", "--out", "out")
COMMANDS = {
    "train": Command(TRAIN, ("train", "--out", "out", "--resume"), ("run.safetensors", "config.json", "task.npz")),
    "fit": Command(FIT, FIT, ("model.safetensors", "summary.json", "lags.csv", "attention.png")),
    "sweep": Command(HERE, HERE, ("table.parquet",)),
    "sweep on workers": Command(LOCAL, LOCAL, ("table.parquet",)),
    "reproduce": Command(REPRODUCE, REPRODUCE, ("tables/*.parquet", "figures/*.png", "claims.md")),
}


def start(arguments: tuple[str, ...], folder: Path, at: int = 0, before: bool = False) -> subprocess.Popen[str]:
    """The command in a folder, with a SIGKILL at a call of its file layer."""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1", "COLUMNS": "80", MARK: str(folder)}
    line = [sys.executable, "-c", HOOK, str(at), "before" if before else "after", *arguments]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(line, cwd=folder, env=environment, text=True, **pipes)


def furnished() -> Path:
    """A new folder with what the commands read."""
    folder = Path(tempfile.mkdtemp(prefix="scb-kills-"))
    (folder / "sweep.toml").write_text(SWEEP)
    (folder / "text.txt").write_text("abacabadabacaba" * 20)
    return folder


def end(folder: Path, command: Command) -> dict[str, bytes]:
    """The files by which ends are compared."""
    found = {str(path.relative_to(folder)): path for glob in command.compared for path in sorted((folder / "out").glob(glob))}
    return {name: path.read_bytes() for name, path in found.items()}


@cache
def unbroken(name: str) -> tuple[dict[str, bytes], int, float]:
    """The end of a run that nothing breaks, how often it calls its file layer, and the seconds it takes."""
    folder = furnished()
    try:
        begin = time.monotonic()
        process = start(COMMANDS[name].begin, folder)
        said = process.communicate()[1]
        assert process.returncode == 0, said
        calls = int(said.rpartition("calls: ")[2])
        return end(folder, COMMANDS[name]), calls, time.monotonic() - begin
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def case(seed: int, names: tuple[str, ...] = tuple(COMMANDS)) -> str:
    """A command that is killed one to three times, at a write or at any moment, and then left alone: "same" is fine."""
    rng = random.Random(f"kills {seed}")
    name = rng.choice(names)
    command = COMMANDS[name]
    truth, calls, seconds = unbroken(name)
    folder = furnished()
    words = [name]
    try:
        killed = 0
        for _ in range(rng.randint(1, 3)):
            begun = (folder / "out" / "config.json").exists()
            arguments = command.go_on if begun else command.begin
            if rng.random() < 0.7:
                at, before = rng.randint(1, calls), rng.random() < 0.5
                words.append(f"{'before' if before else 'after'} call {at}")
                process = start(arguments, folder, at, before)
            else:
                process = start(arguments, folder)
                moment = rng.uniform(0, seconds)
                words.append(f"after {moment:.2f} s")
                time.sleep(moment)
                process.kill()
            said = process.communicate()[1]
            killed += process.returncode == -signal.SIGKILL
            if process.returncode not in (0, -signal.SIGKILL):
                return f"FAILED {process.returncode}: {', '.join(words)}: {said[-300:]}"
        arguments = command.go_on if (folder / "out" / "config.json").exists() else command.begin
        process = start(arguments, folder)
        said = process.communicate()[1]
        if process.returncode != 0:
            return f"DOES NOT GO ON: {', '.join(words)}: {said[-300:]}"
        return _verdict(name, folder, truth, ", ".join(words)) + f", {killed} kills"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _verdict(name: str, folder: Path, truth: dict[str, bytes], words: str) -> str:
    found = end(folder, COMMANDS[name])
    different = [file for file in truth if found.get(file) != truth[file]]
    if different:
        return f"ANOTHER END ({', '.join(different)}): {words}"
    if (folder / "out" / "rows").exists():
        keys = [key for path in (folder / "out" / "rows").glob("*.parquet") for key in read_table(path)[0]["key"]]
        if len(keys) != 12 or len(set(keys)) != 12:
            return f"ROWS LOST OR DOUBLED ({len(keys)} rows, {len(set(keys))} keys): {words}"
    if list((folder / "out").rglob("*.partial")):
        return f"LEFT-OVERS: {words}"
    left = _wait_for_processes(folder)
    return f"PROCESSES LEFT ({left}): {words}" if left else "same"


def _wait_for_processes(folder: Path, seconds: float = 10) -> list[int]:
    """Processes that a killed command has left behind, after so many seconds."""
    deadline = time.monotonic() + seconds
    while (left := _processes(folder)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def _processes(folder: Path) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={folder}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # it has gone, or is none of ours
            continue
    return found
