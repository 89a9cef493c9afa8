"""Commands in processes forked from one that has loaded everything: a start costs milliseconds, and a SIGKILL hits a real process.

A child has a session of its own, by which all that it has started is found again. Between two calls of a command the clock may be
set, the time zone and the locale changed: that is ``Weather``, and must not matter.
"""

import atexit
import gc
import io
import locale
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

HOOKED = ((os, "write"), (os, "fsync"), (os, "replace"), (os, "fchmod"), (tempfile, "mkstemp"))
NEVER = 0  # the number of no call
SAID = "said.txt"  # what the command wrote to stderr
PRINTED = "printed.txt"  # and to stdout
MARK = "TORTURE_CHILD"  # names the command to all that it starts, in whatever session
COUNTED = "calls.txt"
A_YEAR = 3.2e7
PATIENT_TURNS = 20  # how often the clock is asked before it is set


class Weather(NamedTuple):
    """What may differ between two calls of a command."""

    clock: float = 0.0  # seconds by which the clock is set while the command runs, when it has been asked some times
    zone: str = "UTC"
    plain: bool = False  # the locale C, in which text is ASCII


SWEEP = 'kind = "recover"\nseeds = 4\n[fixed]\nT = 12\nsamples = 60\n[grid]\nN = [2, 3, 4]\n'
WARMING = (
    ("train", "--recipe", "paper", "--T", "12", "--set", "steps=[2,2,0]", "--out", "run"),
    ("fit", "text.txt", "--max-lag", "3", "--out", "fit"),
    ("show", "fit"),
    ("sweep", "sweep.toml", "--jobs", "1", "--out", "sweep"),
    ("sample", "fit"),
)


def furnish(folder: Path) -> None:
    """What commands read."""
    (folder / "sweep.toml").write_text(SWEEP)
    (folder / "text.txt").write_text("abacabadabacaba" * 20)


@cache
def warm() -> None:
    """Load what commands load, and run some, so that children find libraries, kernels and fonts in memory."""
    import distributed  # noqa: F401

    import scb.jobs.pool
    import scb.paper.registry
    import scb.paper.report  # noqa: F401
    from scb.cli import main

    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="scb-warm-") as folder, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        furnish(Path(folder))
        os.chdir(folder)
        for line in WARMING:
            main(list(line))
        os.chdir(before)
    gc.freeze()  # otherwise the first collection of a child copies all memory
    assert threading.active_count() == 1, "a process that has threads cannot be forked safely"


class Child:
    """A command that runs in a folder."""

    def __init__(self, pid: int, folder: Path) -> None:
        self.pid = pid
        self.folder = folder
        self.status: int | None = None  # exit status, or minus the signal that ended it
        self.cpu = 0.0  # seconds of computing that it has been seen to use: a measure of how far it is on a busy machine too

    def ended(self) -> bool:
        """Whether it has ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def wait(self, seconds: float, cpu: float = inf) -> bool:
        """Wait until it has ended or used so much of a CPU, for so many seconds at most; whether it has ended."""
        deadline = time.monotonic() + seconds
        while not self.ended() and time.monotonic() < deadline:
            self.cpu = _cpu(self.pid) or self.cpu
            if self.cpu >= cpu:
                break
            time.sleep(0.002)
        return self.ended()

    def kill(self) -> None:
        """SIGKILL to the command itself, as from the kernel when memory runs out."""
        if not self.ended():
            os.kill(self.pid, signal.SIGKILL)
            self.wait(60)

    def said(self) -> str:
        """What it wrote to stderr."""
        path = self.folder / SAID
        return path.read_text(errors="replace") if path.exists() else ""  # it may have been killed before its first word

    def errors(self) -> list[str]:
        """The lines of stderr that are no warning, each without the name of the program."""
        return re.findall(r"^scb: (?!warning: )(.*)", self.said(), re.MULTILINE)

    def printed(self) -> str:
        """What it wrote to stdout."""
        return (self.folder / PRINTED).read_text(errors="replace")

    def calls(self) -> int:
        """How often it has called its file layer, if it came to its end."""
        return int((self.folder / COUNTED).read_text())

    def workers(self) -> list[int]:
        """Worker processes that it has started."""
        return [pid for pid in session(self.pid) if pid != self.pid and b"resource_tracker" not in _line(pid)]


def nothing() -> None:
    """What is done before a command that nobody prepares."""


def start(
    work: tuple[str, ...] | Callable[[], Any],
    folder: Path,
    *,
    at: int = NEVER,
    before: bool = False,
    weather: Weather = Weather(),  # noqa: B008
    forking: bool = False,
    prepare: Callable[[], None] = nothing,
) -> Child:
    """Run ``scb ARGUMENTS`` in a folder, with a SIGKILL before or after call ``at`` of its file layer.

    Its workers load everything anew, as a user's do, or are forked from it (``forking``), which takes a tenth of the time.
    Instead of arguments, ``work`` may be a function: an error of ours ends it as it would end a command. ``prepare`` is called
    in the new process, before the work.
    """
    warm()
    pid = os.fork()
    if pid:
        return Child(pid, folder)
    status = 1
    try:
        os.setsid()
        _detach(folder)
        _expose(weather)
        if forking:
            _fork_workers()
        count = _hook(at, before)
        prepare()
        status = _run(work)
        (folder / COUNTED).write_text(str(count()))
    except KeyboardInterrupt as stop:
        status = 128 + signal.SIGINT
        if any("scb" in Path(frame.filename).parts for frame in traceback.extract_tb(stop.__traceback__)):
            traceback.print_exc()  # otherwise it came before the command, or after it
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _detach(folder: Path) -> None:
    """A process as the shell starts it: in its folder, with its own streams, and with nothing of ours in ``__main__``."""
    os.chdir(folder)
    os.environ |= {"COLUMNS": "80", MARK: str(os.getpid())}
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(os.open(folder / PRINTED, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(os.open(folder / SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    sys.modules["__main__"] = ModuleType("__main__")  # workers would import it


def _fork_workers() -> None:
    """Have pools fork their workers where they would spawn them."""
    context = multiprocessing.get_context
    multiprocessing.get_context = lambda method=None: context("fork" if method == "spawn" else method)


def _expose(weather: Weather) -> None:
    now = time.time
    turns = iter(range(sys.maxsize))
    time.time = lambda: now() + weather.clock * (next(turns) >= PATIENT_TURNS)
    os.environ["TZ"] = weather.zone
    time.tzset()
    encoding = "utf-8"
    if weather.plain:
        os.environ |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        locale.setlocale(locale.LC_ALL, "C")
        encoding = "ascii"
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding=encoding, closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", encoding=encoding, errors="backslashreplace", closefd=False)


def _hook(at: int, before: bool) -> Callable[[], int]:
    """Count the calls of the file layer, and end the process at one of them; gives the function that tells the number."""
    process = os.getpid()
    count = 0

    def deadly(call: Callable[..., Any]) -> Callable[..., Any]:
        def killed(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            if os.getpid() != process:  # a worker that was forked
                return call(*arguments, **options)
            count += 1
            if count == at and before:
                os.kill(process, signal.SIGKILL)
            answer = call(*arguments, **options)
            if count == at:
                os.kill(process, signal.SIGKILL)
            return answer

        return killed

    for module, name in HOOKED:
        setattr(module, name, deadly(getattr(module, name)))
    return lambda: count


def _run(work: tuple[str, ...] | Callable[[], Any]) -> int:
    """The command, or the call, and all that Python does after it; its status."""
    from scb.cli import main
    from scb.inputs import InputError

    status = 0
    try:
        if callable(work):
            work()
        else:
            sys.argv = ["scb", *work]
            main(list(work))
    except (InputError, OSError) as error:
        print(f"scb: {error}", file=sys.stderr)
        status = 2
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def session(leader: int) -> list[int]:
    """Processes that a command has started and that are still there, itself included.

    They are known by its session, which outlives it, or, in a session of their own, by the mark that it has given them.
    """
    mark = f"{MARK}={leader}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of, *_ = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has gone
            continue
        if state != "Z" and (int(of) == leader or mark in _environment(path.parent)):
            found.append(int(path.parent.name))
    return found


def _cpu(pid: int) -> float:
    """Seconds that all threads of a process have been running, or 0 where it has gone."""
    try:
        return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
    except (OSError, IndexError):
        return 0.0


def _line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []
