"""A user's file, link, FIFO or directory stands where a command or a call writes: it stays as it is.

The names are those that an unbroken run leaves behind, and those of locks, caches and half-written
files. The rule: whatever the user had is there afterwards, byte for byte, at the same name, and so
is what links lead to. The command refuses in one line that names it, or has no need of that name.
"""

import os
import random
import shutil
import stat
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import scb
from torture import kills
from torture.forks import Child, furnish, start
from torture.things import fitted, run

PATIENCE = 60
USERS = "a chapter of a thesis, λ\n" * 40
OURS = "partial of ours"  # the one name that a file of ours has: one of a user is taken for it
HIDDEN = (".lock", ".scb", ".thesis.tex.partial", OURS)
COMMANDS = ("train", "fit", "sweep", "reproduce", "show a run", "show a fit", "lab")
WEIGHTS = dict.fromkeys(COMMANDS, 4) | {"reproduce": 1, "lab": 1}
CALLS: dict[str, tuple[str, Callable[[], Any]]] = {
    "Task.save": ("task.npz", lambda: scb.Task.random(3, 9, 2).save("out/task.npz")),
    "model.save": ("model.safetensors", lambda: fitted(1).save("out/model.safetensors")),
    "Run.save": ("run.safetensors", lambda: run(1).save("out")),
    "train(checkpoint)": ("run.safetensors", lambda: _trained()),
}
WEIGHTS |= dict.fromkeys(CALLS, 2)
clean = kills.clean


def _trained() -> None:
    task = scb.Task.random(3, 12, 2)
    scb.train(task, scb.recipes.paper(task, steps=(3, 2, 0)), checkpoint="out")


# ---------------------------------------------------------------------------------------- what is planted


def _file(path: Path, outside: Path) -> None:
    path.write_text(USERS)


def _read_only(path: Path, outside: Path) -> None:
    path.write_text(USERS)
    path.chmod(0o400)


def _directory(path: Path, outside: Path) -> None:
    path.mkdir()
    (path / "chapter.tex").write_text(USERS)


KINDS: dict[str, Callable[[Path, Path], Any]] = {
    "file": _file,
    "read-only file": _read_only,
    "symbolic link": lambda path, outside: path.symlink_to(outside / "thesis.tex"),
    "link to a directory": lambda path, outside: path.symlink_to(outside),
    "dangling link": lambda path, outside: path.symlink_to(outside / "not-there"),
    "hard link": lambda path, outside: path.hardlink_to(outside / "thesis.tex"),
    "FIFO": lambda path, outside: os.mkfifo(path),
    "directory": _directory,
}
REGULAR = ("file", "read-only file", "hard link")


def state(path: Path) -> dict[str, tuple[Any, ...]]:
    """Everything at a path and below it: kind, and content or target."""
    found = {}
    for one in (path, *sorted(path.rglob("*"))) if path.is_dir() else (path,):
        kind = stat.S_IFMT(one.lstat().st_mode) if os.path.lexists(one) else 0
        if kind == stat.S_IFREG:
            found[str(one)] = (kind, one.read_bytes(), stat.S_IMODE(one.lstat().st_mode))
        else:
            found[str(one)] = (kind, os.readlink(one) if kind == stat.S_IFLNK else "")
    return found


@cache
def names(writer: str) -> list[str]:
    """What it writes: files, directories, and the hidden names of its work."""
    if writer in CALLS:
        return [CALLS[writer][0], *HIDDEN]
    out = kills.forked(writer).folder / "out"
    return [*sorted({str(path.relative_to(out)) for path in out.rglob("*")} | set(HIDDEN))]


# ---------------------------------------------------------------------------------------- the case


def case(seed: int, writers: tuple[str, ...] = tuple(WEIGHTS)) -> str:
    """Something of a user's in the way: "refused" and "fine" are fine, all else is a finding."""
    rng = random.Random(f"foreign {seed}")
    writer = rng.choices(writers, [WEIGHTS[name] for name in writers])[0]
    name = rng.choice(names(writer))
    kind = rng.choice([k for k in KINDS if name != OURS or k not in REGULAR])
    if name == OURS:
        visible = [one for one in names(writer) if one not in HIDDEN]
        name = f".{rng.choice(visible).rpartition('/')[2]}.a1b2c3d4.partial"
    over = rng.random() < 0.15 and writer in COMMANDS and kind not in REGULAR[:2]
    as_input = writer == "fit" and kind == "file" and rng.random() < 0.5
    folder = Path(tempfile.mkdtemp(prefix="scb-foreign-"))
    try:
        words = f"{writer}, {kind} {name}{', --overwrite' * over}{', as input' * as_input}"
        verdict = attack(writer, name, kind, folder, over, as_input)
        return f"{verdict} [{words}]"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def attack(writer: str, name: str, kind: str, folder: Path, over: bool = False, as_input: bool = False) -> str:
    """Plant it, run the writer, and judge."""
    outside = folder / "outside"
    outside.mkdir()
    (outside / "thesis.tex").write_text(USERS)
    work = folder / "work"
    work.mkdir()
    planted = _furnish(writer, name, work)
    KINDS[kind](planted, outside)
    kept = [planted, outside, work / "text.txt", work / "sweep.toml"]
    before = [state(path) for path in kept]
    child = start(_line(writer, name, over, as_input), work, forking=writer == "reproduce")
    ended = child.wait(PATIENCE)
    child.kill()
    if kind == "dangling link" and writer in CALLS:  # a call that is given a link's name writes where it leads
        (outside / "not-there").unlink(missing_ok=True)
    if [state(path) for path in kept[1:]] != before[1:]:
        return "WROTE ELSEWHERE: what the user has outside, or the input, was changed"
    if state(planted) != before[0]:
        return f"LOST: what the user had at this name (status {child.status})"
    return _judged(child, ended, name)


def _furnish(writer: str, name: str, work: Path) -> Path:
    """What the writer reads, and a free place with a name that it writes."""
    furnish(work)
    (work / "out").mkdir()
    if writer in COMMANDS and kills.COMMANDS[writer].after:
        before = kills.forked(kills.COMMANDS[writer].after).folder / "out"
        shutil.copytree(before, work / "out", dirs_exist_ok=True)
    planted = work / "out" / name
    planted.parent.mkdir(parents=True, exist_ok=True)
    if planted.is_dir():
        shutil.rmtree(planted)
    planted.unlink(missing_ok=True)
    return planted


def _line(writer: str, name: str, over: bool, as_input: bool) -> tuple[str, ...] | Callable[[], Any]:
    if writer in CALLS:
        return CALLS[writer][1]
    words = list(kills.COMMANDS[writer].begin)
    if as_input:
        words[1] = f"out/{name}"
    return (*words, *(["--overwrite"] if over else []))


def _judged(child: Child, ended: bool, name: str) -> str:
    """Whether the command ended well, apart from what it left alone."""
    said = " ".join(child.said()[-300:].split())
    if not ended:
        return "HANGS"
    if "Traceback" in child.said():
        return f"TRACEBACK: {said}"
    if child.status == 0:
        return "fine"
    if child.status != 2:
        return f"FAILED {child.status}: {said}"
    lines = child.errors()
    if "nrecognized" in child.said():
        return "refused, there is no --overwrite"
    named = len(lines) == 1 and any(part in lines[0] for part in Path(name).parts)
    if not named or "[Errno" in lines[0]:
        return f"UNCLEAR: it should name {name} in one line: {said}"
    return f"refused: {lines[0][:200]}"
