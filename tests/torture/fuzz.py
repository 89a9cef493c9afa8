"""Calls of the API and of the commands with right, odd and absurd arguments: each ends right, or with an error of ours, in time."""

import contextlib
import faulthandler
import io
import os
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from numba.core.event import install_timer

from scb.cli import main
from scb.inputs import InputError
from torture.command_lines import command_lines, furnish
from torture.targets import TARGETS, calls

SECONDS = 10
HANGS = 300  # seconds after which the process is ended, wherever it is
LAST = os.environ.get("TORTURE_LAST")  # names the file that says what is being called, for whoever finds this process dead


class Clock:
    """Seconds of a call, compilation apart: of the wall, or, while others keep the machine busy, of this process."""

    def __init__(self) -> None:
        self._wall = time.monotonic()
        self._cpu = time.process_time()
        self.compiled = 0.0

    def seconds(self) -> float:
        """How long it has taken so far."""
        wall = time.monotonic() - self._wall - self.compiled
        busy = os.getloadavg()[0] > (os.cpu_count() or 1)
        return min(wall, time.process_time() - self._cpu) if busy else wall


def judge(name: str, call: Callable[[], Any], holds: Callable[[Any], bool]) -> None:
    """Raise AssertionError unless the call ends right, or with an error of ours, in time."""
    if LAST:
        Path(LAST).write_text(name, errors="backslashreplace")
    faulthandler.dump_traceback_later(HANGS, exit=True)
    clock = Clock()

    def note(seconds: float) -> None:
        clock.compiled += seconds

    try:
        with warnings.catch_warnings(), install_timer("numba:compile", note):
            warnings.simplefilter("ignore")
            answer = call()
        assert holds(answer), f"{name}: a wrong answer"
    except (InputError, OSError, MemoryError):
        pass
    except AssertionError:
        raise
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise AssertionError(f"{name}: FOREIGN {type(error).__name__}: {error} ({where.filename}:{where.lineno})") from error
    finally:
        faulthandler.cancel_dump_traceback_later()
    assert clock.seconds() < SECONDS, f"{name}: {clock.seconds():.0f} s"


def run_command(line: list[str]) -> None:
    """Run a command in this process: its status is 0 or 2, and 2 has a message but no traceback."""
    out = io.StringIO()
    err = io.StringIO()
    status = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(line)
        except SystemExit as ended:
            status = ended.code or 0
    assert status in (0, 2), f"{line}: status {status}"
    assert "Traceback" not in err.getvalue(), f"{line}: {err.getvalue()}"
    assert status == 0 or err.getvalue().strip(), f"{line}: no word"


QUIET = {
    "database": None,
    "deadline": None,
    "phases": (Phase.generate, Phase.shrink),
    "suppress_health_check": list(HealthCheck),
    "report_multiple_bugs": False,
}


def case(number: int, examples: int = 100) -> str:
    """A hundred calls, ninety of functions and ten of commands, from a seed: "fine" or the smallest call that is not."""
    made = 0

    @seed(number)
    @settings(max_examples=max(1, examples * 9 // 10), **QUIET)
    @given(calls())
    def functions(call: tuple[str, dict[str, Any]]) -> None:
        nonlocal made
        made += 1
        name, arguments = call
        judge(f"{name} {arguments!r:.300}", lambda: TARGETS[name].call(**arguments), TARGETS[name].holds)

    @seed(number)
    @settings(max_examples=max(1, examples // 10), **QUIET)
    @given(command_lines())
    def commands(line: list[str]) -> None:
        nonlocal made
        made += 1
        judge(f"scb {line}", lambda: run_command(line), lambda _: True)

    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="scb-fuzz-") as folder:
        furnish(Path(folder))
        os.chdir(folder)
        try:
            functions()
            commands()
        except AssertionError as error:
            return f"FOUND in {number}: {' '.join(str(error).split())[:600]}"
        finally:
            os.chdir(before)
    return f"fine, {made} calls"
