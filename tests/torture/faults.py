"""I/O faults under the file layer: the disk says no, writes a part, the machine stops. What can be read then is old or new."""

import errno
import os
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from scb.inputs import InputError
from torture import power
from torture.things import THINGS

CALLS = ("open", "write", "fsync", "replace", "close")
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
            if name == "close":  # neither a process that has ended nor a close that fails leaves a handle, or its lock
                call(*arguments, **options)
            if self.stopped:
                raise Stop
            self.count += 1
            if self.count != self.at:
                return None if name == "close" else call(*arguments, **options)
            if self.fault == "short write" and name == "write":
                handle, data = arguments
                return call(handle, data[: max(1, len(data) // 3)])
            if self.fault == "stop":
                self.stopped = True
                raise Stop
            if self.fault == "stop after":
                if name != "close":
                    call(*arguments, **options)
                self.stopped = True
                raise Stop
            raise OSError(self.code, os.strerror(self.code))

        return faulty

    @contextmanager
    def under(self) -> Iterator[None]:
        """While this lasts, scb writes to this disk."""
        faulty = {name: self.wrap(name, getattr(os, name)) for name in CALLS} | {"unlink": self._unlink(os.unlink)}
        with mock.patch.multiple(os, **faulty):
            yield

    def _unlink(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def unlink(*arguments: Any, **options: Any) -> Any:
            if self.stopped:
                raise Stop
            return call(*arguments, **options)

        return unlink


def case(seed: int) -> str:
    """One fault in the writing of version 1 over version 0: "old" and "new" are fine, anything else is a finding.

    On a disk whose fsync lies, "refused" is fine too: a damaged file is seen.
    """
    rng = random.Random(f"faults {seed}")
    name = rng.choice(list(THINGS))
    thing = THINGS[name]
    with tempfile.TemporaryDirectory(prefix="scb-faults-") as text, tempfile.TemporaryDirectory(prefix="scb-faults-") as other:
        folder = Path(text)
        thing.write(folder, 0)
        old = thing.read(folder)
        new = _new(name)
        if rng.random() < 0.4:
            return _power_failure(rng, name, folder, Path(other), old, new)
        return _fault(rng, name, folder, old, new)


@cache
def _new(name: str) -> str:
    """What is read when version 1 was written over version 0 without a fault."""
    with tempfile.TemporaryDirectory(prefix="scb-faults-") as text:
        for version in (0, 1):
            THINGS[name].write(Path(text), version)
        return THINGS[name].read(Path(text))


def _fault(rng: random.Random, name: str, folder: Path, old: str, new: str) -> str:
    """A call that fails, writes a part, or never comes back."""
    thing = THINGS[name]
    with tempfile.TemporaryDirectory(prefix="scb-faults-") as other:
        thing.write(Path(other), 0)
        counter = Disk(0, "", 0)
        with counter.under():
            thing.write(Path(other), 1)
    fault = rng.choice(FAULTS)
    code = rng.choice((errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS))
    disk = Disk(rng.randint(1, counter.count), fault, code)
    words = f"{name}, {fault} ({errno.errorcode[code]}) at call {disk.at} of {counter.count}"
    try:
        with disk.under():
            thing.write(folder, 1)
        ended = True
    except (OSError, Stop):
        ended = False
    except Exception as error:
        return f"FOREIGN {type(error).__name__}: {words}: {error}"
    if not disk.stopped and list(folder.rglob("*.partial")):
        return f"LEFT-OVERS: {words}"
    return _verdict(thing, folder, old, new, ended, words)


def _power_failure(rng: random.Random, name: str, folder: Path, after: Path, old: str, new: str) -> str:
    """What has not been synced is lost, or not; see ``power``."""
    thing = THINGS[name]
    lies = rng.random() < 0.5
    disk = power.Disk(folder, at=rng.randint(1, 30), lies=lies)
    words = f"{name}, power fails at call {disk.at}{', fsync lies' if lies else ''}"
    try:
        with disk.under():
            thing.write(folder, 1)
        ended = not lies
    except power.PowerFailure:
        ended = False
    disk.rebuild(after, rng)
    if not lies:
        return _verdict(thing, after, old, new, ended, words)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = thing.read(after)
    except (InputError, FileNotFoundError):
        return "refused"
    except Exception as error:
        return f"FOREIGN {type(error).__name__}: {words}: {error}"
    if found in (old, new):
        return "new" if found == new else "old"
    with suppress(OSError):
        thing.write(after, 1)
    # Rows of a sweep lie in several files, of which some may be older: the next call makes what is missing.
    return "old" if name.startswith("sweep") and thing.read(after) == new else f"SILENTLY WRONG: {words}"


def _verdict(thing: Any, folder: Path, old: str, new: str, ended: bool, words: str) -> str:
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
    with suppress(OSError):
        thing.write(folder, 1)  # whoever comes next goes on
    if thing.read(folder) != new:
        return f"DOES NOT GO ON: {words}"
    return "new" if found == new else "old"
