"""Files with a right digest that somebody made to harm: they are read, or refused in one line.

Each case changes something in a file that scb wrote (``crafts``), seals it again, so that the digest
does not give it away, and has commands read it, with little memory and little time.
"""

import os
import random
import re
import resource
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import scb
from torture import kills
from torture.crafts import change
from torture.forks import Child, furnish, start

MEMORY = 2 << 30  # bytes beyond what is there before
SECONDS = 10  # of computing
PATIENCE = 30
ESCAPE = "\x1b"
Work = tuple[str, ...] | Callable[[], Any]


class Crafted(NamedTuple):
    """A file (a glob) in the folder of a command, and what reads it."""

    command: str
    file: str
    readers: tuple[Work, ...]


def _use_model() -> None:
    model = scb.SparseContextualBigram.load("out/model.safetensors")
    str(model.summary())
    symbols = model.sample(5)
    model.predict_proba(symbols)
    model.score([*symbols, *symbols])


def _use_run() -> None:
    str(scb.Run.load("out").summary())


def _use_task() -> None:
    scb.sample(scb.Task.load("out/task.npz"), 3)


SHOW = ("show", "out")
RESUME = ("train", "--out", "out", "--resume")
STATUS = ("sweep", "--status", "out")
FILES = {
    "run": Crafted("train", "run.safetensors", (SHOW, _use_run, RESUME)),
    "settings": Crafted("train", "config.json", (SHOW,)),
    "task": Crafted("train", "task.npz", (_use_task,)),
    "model": Crafted("fit", "model.safetensors", (SHOW, ("sample", "out"), _use_model)),
    "background": Crafted("ngram", "model.safetensors", (SHOW, ("sample", "out"), _use_model)),
    "summary": Crafted("fit", "summary.json", (SHOW, ("sample", "out", "--length", "5"))),
    "rows": Crafted("sweep", "rows/*.parquet", (STATUS, kills.HERE)),
    "table": Crafted("sweep", "table.parquet", (STATUS,)),
    "facts": Crafted("sweep", "facts.json", (STATUS, kills.HERE)),
    "sweep": Crafted("sweep", "sweep.toml", (STATUS,)),
}


@cache
def base(command: str) -> Path:
    """A folder with what a command wrote."""
    if command != "ngram":
        return kills.forked(command).folder
    folder = Path(tempfile.mkdtemp(prefix="scb-crafted-"))
    (folder / "out").mkdir()
    model = scb.SparseContextualBigram(3, background="ngram").fit(list("abacabad" * 20))
    model.save(folder / "out" / "model.safetensors")
    return folder


def clean() -> None:
    """Remove what earlier cases made."""
    shutil.rmtree(base("ngram"), ignore_errors=True)
    base.cache_clear()
    kills.clean()


def case(seed: int, names: tuple[str, ...] = tuple(FILES)) -> str:
    """A crafted file: "right" and "refused" are fine, anything else is a finding."""
    rng = random.Random(f"crafted {seed}")
    name = rng.choice(names)
    crafted = FILES[name]
    folder = Path(tempfile.mkdtemp(prefix="scb-crafted-"))
    try:
        furnish(folder)
        shutil.copytree(base(crafted.command) / "out", folder / "out")
        file = min((folder / "out").glob(crafted.file))
        words = _craft(rng, file)
        reader = rng.choice(crafted.readers)
        verdict = attempt(reader, folder)
        shown = reader.__name__ if callable(reader) else " ".join(reader)
        return f"{verdict} [{name}, {words}, {shown}]"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _craft(rng: random.Random, file: Path) -> str:
    """Change a file, or put something else in its place; in words."""
    if rng.random() < 0.03:
        file.unlink()
        os.mkfifo(file)
        return "FIFO"
    content, words = change(rng, file.suffix, file.read_bytes())
    file.write_bytes(content)
    return words


def limit() -> None:
    """Little memory beyond what this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def attempt(reader: Work, folder: Path) -> str:
    """Read with limits, and judge."""
    child = start(reader, folder, prepare=limit)
    ended = child.wait(PATIENCE, SECONDS)
    if not ended:
        child.kill()
        return f"HANGS: not done after {child.cpu:.0f} s of computing"
    return _judged(child, free=callable(reader) or reader[0] == "sample")


def _judged(child: Child, free: bool) -> str:
    """The verdict on how it ended; ``free`` says whether symbols are printed as they are."""
    said = " ".join(child.said()[-300:].split())
    if re.search("out of memory|MemoryError|nable to allocate|realloc of size", child.said()):
        return f"GIGABYTES: {said}"
    if "Traceback" in child.said():
        return f"TRACEBACK: {said}"
    if "encountered in" in child.said():
        return f"RAW WARNING: {said}"
    if ESCAPE in child.said() or (ESCAPE in child.printed() and not free):
        return f"ESCAPE CODES on the terminal: {said!r}"
    if child.status == 0:
        return "right"
    if child.status == 2 and len(child.errors()) == 1:
        return f"refused: {said[:200]}"
    return f"FAILED {child.status}: {said}"
