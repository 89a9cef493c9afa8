"""File systems that cannot lock: a command that needs a lock says so, and how to go on without one.

Mostly ``fcntl.flock`` fails in a forked process; sometimes a library that is loaded before the C
library makes it fail in a real one.
"""

import errno
import fcntl
import os
import random
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from torture import kills
from torture.forks import start
from torture.kills import COMMANDS, PATIENCE, forked, furnished

NONE = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
WRITERS = {"train": 4, "fit": 4, "sweep": 4, "reproduce": 1}
READERS = {"show a run": 2, "show a fit": 2, "lab": 1}
TURNS = 3  # how often an interrupted call is interrupted
SOURCE = """
#include <errno.h>
static int turns = %d;
int flock(int handle, int operation) { if (turns-- > 0) { errno = %d; return -1; } return 0; }
"""


def clean() -> None:
    """Remove what earlier cases made."""
    kills.clean()
    while _libraries:
        shutil.rmtree(_libraries.pop())
    _library.cache_clear()


def case(seed: int) -> str:
    """A command where locks fail: "refused" with advice that helps, or "same", are fine."""
    rng = random.Random(f"lockless {seed}")
    weights = WRITERS | READERS
    name = rng.choices(list(weights), list(weights.values()))[0]
    code = rng.choice((*NONE, *NONE, errno.EINTR))
    real = rng.random() < 0.1 or code == errno.EINTR  # which Python itself calls again
    words = f"{name}, {errno.errorcode[code]}{', real' * real}"
    if real and shutil.which("cc") is None:
        return f"skipped: {words}: there is no C compiler"
    folder = furnished(name)
    try:
        return f"{_judged(name, folder, code, real)} [{words}]"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _judged(name: str, folder: Path, code: int, real: bool) -> str:
    status, said = _run(COMMANDS[name].begin, name, folder, code, real)
    if "Traceback" in said or status not in (0, 2):
        return f"FAILED {status}: {said}"
    if name in READERS or code == errno.EINTR:
        return _end(name, folder, status, said)
    if status == 0:
        return "UNLOCKED: it worked without a lock and without a word"
    if "out" not in said or "--no-lock" not in said or "[Errno" in said or said.count("scb: ") != 1:
        return f"UNCLEAR: it should name out and --no-lock in one line: {said}"
    if left := [path for path in (folder / "out").rglob("*") if path.name != ".lock"]:
        return f"WROTE {left[0].name}, and refused then"
    status, said = _run((*COMMANDS[name].begin, "--no-lock"), name, folder, code, real)
    verdict = _end(name, folder, status, said)
    return "refused, and right with --no-lock" if verdict == "same" else verdict


def _end(name: str, folder: Path, status: int, said: str) -> str:
    if status != 0:
        return f"DOES NOT WORK: {said}"
    return kills.other_end(name, folder, forked(name)) or "same"


def _run(line: tuple[str, ...], name: str, folder: Path, code: int, real: bool) -> tuple[int, str]:
    """Status and stderr of a command where locks fail."""
    if real:
        preload = {"LD_PRELOAD": str(_library(code)), "COLUMNS": "80"}
        words = [sys.executable, "-m", "scb", *line]
        how: dict[str, Any] = {"capture_output": True, "text": True, "timeout": PATIENCE}
        done = subprocess.run(words, cwd=folder, env=os.environ | preload, **how)
        return done.returncode, " ".join(done.stderr[-400:].split())
    child = start(line, folder, forking=COMMANDS[name].forking, prepare=lambda: no_locks(code))
    child.wait(PATIENCE)
    child.kill()
    return child.status or 0, " ".join(child.said()[-400:].split())


def no_locks(code: int) -> None:
    """From now on no file of this process can be locked."""

    def refuse(*_: Any) -> NoReturn:
        raise OSError(code, os.strerror(code))

    fcntl.flock = fcntl.lockf = refuse


_libraries: list[Path] = []


@cache
def _library(code: int) -> Path:
    """A library whose flock fails: always, or some times where a signal interrupts it."""
    folder = Path(tempfile.mkdtemp(prefix="scb-lockless-"))
    _libraries.append(folder)
    turns = TURNS if code == errno.EINTR else 10**9
    (folder / "flock.c").write_text(SOURCE % (turns, code))
    made = folder / "flock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made, folder / "flock.c"], check=True)
    return made
