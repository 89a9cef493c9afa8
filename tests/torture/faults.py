"""I/O faults under the file layer: the disk says no, writes a part, or the machine stops. What can be read then is old or new."""

import errno
import os
import random
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from torture.things import THINGS

CALLS = ("write", "fsync", "replace", "close", "fchmod")
FAULTS = ("error", "short write", "stop", "stop after")


class Stop(BaseException):
    """The machine stops: nothing of the program runs any more, not even what cleans up."""


class Disk:
    """Counts the calls of the file layer, and lets the one with a given number fail."""

    def __init__(self, at: int, fault: str, code: int) -> None:
        self.at = at
        self.fault = fault
        self.code = code
        self.count = 0
        self.stopped = False

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def faulty(*arguments: Any, **options: Any) -> Any:
            if self.stopped:
                raise Stop
            self.count += 1
            if self.count != self.at:
                return call(*arguments, **options)
            if self.fault == "short write" and name == "write":
                handle, data = arguments
                return call(handle, data[: max(1, len(data) // 3)])
            if self.fault == "stop":
                self.stopped = True
                raise Stop
            if self.fault == "stop after":
                call(*arguments, **options)
                self.stopped = True
                raise Stop
            raise OSError(self.code, os.strerror(self.code))

        return faulty

    @contextmanager
    def under(self) -> Iterator[None]:
        """While this lasts, scb writes to this disk."""
        faulty = {name: self.wrap(name, getattr(os, name)) for name in CALLS} | {"unlink": self._unlink(os.unlink)}
        made = self.wrap("mkstemp", tempfile.mkstemp)
        with mock.patch.multiple(os, **faulty), mock.patch.object(tempfile, "mkstemp", made):
            yield

    def _unlink(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def unlink(*arguments: Any, **options: Any) -> Any:
            if self.stopped:
                raise Stop
            return call(*arguments, **options)

        return unlink


def case(seed: int) -> str:
    """One fault in the writing of version 1 over version 0: "old" and "new" are fine, anything else is a finding."""
    rng = random.Random(f"faults {seed}")
    name = rng.choice(list(THINGS))
    thing = THINGS[name]
    folder = Path(tempfile.mkdtemp(prefix="scb-faults-"))
    other = Path(tempfile.mkdtemp(prefix="scb-faults-"))
    try:
        thing.write(folder, 0)
        thing.write(other, 0)
        old = thing.read(folder)
        counter = Disk(0, "", 0)
        with counter.under():
            thing.write(other, 1)
        new = thing.read(other)
        disk = Disk(
            rng.randint(1, counter.count), rng.choice(FAULTS), rng.choice((errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS))
        )
        words = f"{name}, {disk.fault} ({errno.errorcode[disk.code]}) at call {disk.at} of {counter.count}"
        try:
            with disk.under():
                thing.write(folder, 1)
            ended = True
        except (OSError, Stop):
            ended = False
        except Exception as error:
            return f"FOREIGN {type(error).__name__}: {words}: {error}"
        return _verdict(thing, folder, old, new, ended, disk.stopped, words)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(other, ignore_errors=True)


def _verdict(thing: Any, folder: Path, old: str, new: str, ended: bool, stopped: bool, words: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = thing.read(folder)
    except Exception as error:
        return f"HALF: {words}: {error}"
    if found not in (old, new):
        return f"NEITHER OLD NOR NEW: {words}"
    if ended and found != new:
        return f"LOST WITHOUT A WORD: {words}"
    if not stopped and list(folder.rglob("*.partial")):
        return f"LEFT-OVERS: {words}"
    with suppress(OSError):
        thing.write(folder, 1)  # whoever comes next goes on
    if thing.read(folder) != new:
        return f"DOES NOT GO ON: {words}"
    return "new" if found == new else "old"
