"""Another user of the machine: who connects to what a command opens, writes where it writes, plants links.

Only root can be two users, so for others these cases are skipped. The other one is nobody.
"""

import os
import random
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from torture import kills
from torture.foreign import USERS, names, state
from torture.forks import Child, furnish, session, start, warm

NOBODY = 65534
LISTENS = "0A"  # as /proc/net/tcp has it
PATIENCE = 240
# Commands whose workers load everything anew, as a user's do.
LOCAL = {
    "sweep": ("sweep", "sweep.toml", "--jobs", "2", "--out", "out"),
    "reproduce": (*kills.REPRODUCE[:-3], "2", "--out", "out"),
}
WRITERS = {"train": 4, "fit": 4, "sweep": 4, "reproduce": 1}
clean = kills.clean


def case(seed: int) -> str:
    """What another user can do: "refused" and "fine" are fine, anything else is a finding."""
    rng = random.Random(f"users {seed}")
    if os.geteuid() != 0:
        print("torture: other users are skipped, since only root can be two", file=sys.stderr)
        return "skipped: only root can be two users"
    attack = rng.choices((connects, writes, plants), (2, 4, 8))[0]
    folder = Path(tempfile.mkdtemp(prefix="scb-users-"))
    folder.chmod(0o755)
    try:
        return f"{attack(rng, folder)} [{attack.__name__}]"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def as_nobody(work: Callable[[], Any]) -> int:
    """Fork a process of the other user; its number. Its status is 1 if the work has done harm."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        os._exit(int(bool(work())))
    except BaseException:
        os._exit(2)


def harmed(work: Callable[[], Any]) -> bool:
    """Whether the other user could do it."""
    return os.waitstatus_to_exitcode(os.waitpid(as_nobody(work), 0)[1]) == 1


# ---------------------------------------------------------------------------------------- connects


def listening(processes: list[int]) -> set[Any]:
    """Addresses at which these processes wait for somebody: ports, and names of local sockets."""
    mine = set()
    for pid in processes:
        for handle in Path(f"/proc/{pid}/fd").glob("*"):
            with suppress(OSError):
                mine.add(os.readlink(handle))
    found: set[Any] = set()
    for kind in ("tcp", "tcp6"):
        for line in Path("/proc/net", kind).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENS and f"socket:[{words[9]}]" in mine:
                found.add(int(words[1].rpartition(":")[2], 16))
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        words = line.split()
        if len(words) == 8 and words[3] == "00010000" and f"socket:[{words[6]}]" in mine:
            found.add(words[7].replace("@", "\0", 1) if words[7].startswith("@") else words[7])
    return found


def connects(rng: random.Random, folder: Path) -> str:
    """The other user connects to whatever a command listens at while it runs."""
    name = rng.choice((*LOCAL, "fit", "lab"))
    furnish(folder)
    (folder / "out").mkdir()
    child = start(LOCAL.get(name) or kills.COMMANDS[name].begin, folder)
    return f"{attempt_to_connect(child)} {name}"


def attempt_to_connect(child: Child) -> str:
    """Try every address of a command until it has ended."""
    tried: set[Any] = set()
    deadline = time.monotonic() + PATIENCE
    try:
        while not child.ended() and time.monotonic() < deadline:
            for address in listening(session(child.pid)) - tried:
                tried.add(address)
                if harmed(lambda address=address: _reach(address)):
                    return f"ANOTHER USER CONNECTS to {address!r}:"
            time.sleep(0.02)
    finally:
        child.kill()
    return f"fine, {len(tried)} addresses:" if child.status == 0 else f"FAILED {child.status}:"


def _reach(address: Any) -> bool:
    with suppress(OSError):
        if isinstance(address, str):
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(address)
            return True
        with socket.create_connection(("localhost", address), timeout=5):
            return True
    return False


# ---------------------------------------------------------------------------------------- writes


def writes(rng: random.Random, folder: Path) -> str:
    """The other user writes to what a command has made, in its folder or beside it, at any moment."""
    name = rng.choices(list(WRITERS), list(WRITERS.values()))[0]
    furnish(folder)
    temporary = folder / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)

    def prepare() -> None:
        os.umask(0o022)
        tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)

    forking = kills.COMMANDS[name].forking
    child = start(kills.COMMANDS[name].begin, folder, forking=forking, prepare=prepare)
    found = set()
    while not child.ended():
        found |= _open_to_all(folder) - {str(temporary)}
        time.sleep(0.01)
    found |= _open_to_all(folder) - {str(temporary)}
    if child.status != 0:
        return f"FAILED {child.status}: {name}: {child.said()[-300:]}"
    return f"ANOTHER USER WRITES {sorted(found)[0]}: {name}" if found else f"fine: {name}"


def _open_to_all(folder: Path) -> set[str]:
    """What anybody may write to."""
    found = set()
    for path in folder.rglob("*"):
        with suppress(OSError):
            mode = path.lstat().st_mode
            if mode & stat.S_IWOTH and not stat.S_ISLNK(mode) and not stat.S_ISSOCK(mode):
                found.add(str(path))
    return found


# ---------------------------------------------------------------------------------------- plants


def plants(rng: random.Random, folder: Path) -> str:
    """A directory that belongs to the other one, who puts links there before and while scb writes."""
    name = rng.choices(list(WRITERS), list(WRITERS.values()))[0]
    home = folder / "home"
    home.mkdir(0o700)
    thesis = home / "thesis.tex"
    thesis.write_text(USERS)
    work = folder / "work"
    work.mkdir()
    furnish(work)
    out = work / "out"
    out.mkdir()
    os.chown(out, NOBODY, NOBODY)
    warm()
    wanted = [*names(name), *(f".{one}" for one in names(name))]
    targets = [str(thesis), str(home / "not-there")]
    seed = rng.random()
    before = state(home)
    pid = as_nobody(lambda: _plant(random.Random(seed), out, wanted, targets))
    child = start(kills.COMMANDS[name].begin, work, forking=kills.COMMANDS[name].forking)
    ended = child.wait(PATIENCE)
    child.kill()
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    if state(home) != before:
        return f"WROTE THROUGH A LINK of another user: {name}"
    if not ended:
        return f"HANGS: {name}"
    said = " ".join(child.said()[-300:].split())
    if "Traceback" in said or child.status not in (0, 2):
        return f"FAILED {child.status}: {name}: {said}"
    return f"{'fine' if child.status == 0 else 'refused'}: {name}: {said}"


def _plant(rng: random.Random, out: Path, wanted: list[str], targets: list[str]) -> None:
    """Have links in the way, again and again."""
    while True:
        path = out / rng.choice(wanted)
        with suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            path.symlink_to(rng.choice(targets))
        time.sleep(rng.choice((0, 0.001, 0.02)))
