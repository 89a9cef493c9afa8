"""The power fails: what had not been synced may be lost, in any order, and what is read afterwards is the old or the new.

A disk keeps the bytes of a file when the file was synced, and names (new files, renames, removals, directories) when their
directory was. All else is on it or not, as the seed has it: names in any order, of bytes none, some, all, or zeros. A disk whose
fsync lies keeps nothing for certain; then files may be damaged, which must be seen, but never wrong without a word.
"""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

CALLS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "close")


class PowerFailure(BaseException):
    """Nothing of the program runs any more, not even what cleans up."""


@dataclass
class File:
    """The bytes of a file: as the program sees them, and as they are certain to be on the disk."""

    content: bytes = b""
    certain: bytes = b""

    def after(self, rng: random.Random) -> bytes:
        """What is on the disk when the power is back."""
        if self.content == self.certain:
            return self.content
        part = self.content[: rng.randrange(len(self.content) + 1)]
        return rng.choice((self.certain, self.content, part, bytes(len(self.content))))


@dataclass
class Change:
    """A change of names in a directory: these appear, with a file or as a directory (None), those vanish."""

    directory: str
    appear: dict[str, File | None] = field(default_factory=dict)
    vanish: tuple[str, ...] = ()
    certain: bool = False


class Disk:
    """Notes what scb writes to a folder, and stops at call ``at``; ``lies`` says whether fsync does nothing."""

    def __init__(self, folder: Path, at: int, lies: bool) -> None:
        self.at = at
        self.lies = lies
        self.count = 0
        self.failed = False
        self.changes: list[Change] = []
        self._files = {str(path): _whole(path) for path in folder.rglob("*") if path.is_file()}
        self._before = dict(self._files)
        self._folders = [str(path) for path in folder.rglob("*") if path.is_dir()]
        self._folder = folder
        self._open: dict[int, File | str] = {}  # handle → file, or name of a directory

    @contextmanager
    def under(self) -> Iterator[None]:
        """While this lasts, scb writes to this disk."""
        wrapped = {name: self._wrap(getattr(self, f"_note_{name}"), getattr(os, name)) for name in CALLS}
        with mock.patch.multiple(os, **wrapped):
            yield

    def rebuild(self, folder: Path, rng: random.Random) -> None:
        """Write to an empty folder what is on the disk when the power is back."""
        names: dict[str, File | None] = dict.fromkeys(self._folders) | self._before
        for change in self.changes:
            if change.certain or rng.random() < 0.5:
                for name in change.vanish:
                    names.pop(name, None)
                names |= change.appear
        for name, file in sorted(names.items()):  # a directory comes before what is in it
            path = folder / Path(name).relative_to(self._folder)
            if not path.parent.is_dir():
                continue  # it is lost, and all that was in it
            if file is None:
                path.mkdir()
            else:
                path.write_bytes(file.after(rng))

    def _wrap(self, note: Callable[..., None], call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            if self.failed or self.count == self.at:
                self.failed = True
                if call.__name__ == "close":  # what has ended holds no lock
                    call(*arguments, **options)
                raise PowerFailure
            answer = call(*arguments, **options)
            note(answer, *arguments, **options)
            return answer

        return noted

    def _note_open(self, handle: int, path: Any, flags: int = 0, *_: Any, **__: Any) -> None:
        name = str(path)
        if os.path.isdir(name):
            self._open[handle] = name
        elif flags & os.O_CREAT:
            if name not in self._files:
                self._files[name] = File()
                self.changes.append(Change(os.path.dirname(name), {name: self._files[name]}))
            self._open[handle] = self._files[name]

    def _note_write(self, size: int, handle: int, data: Any) -> None:
        if isinstance(file := self._open.get(handle), File):
            file.content += bytes(data[:size])

    def _note_fsync(self, _: None, handle: int) -> None:
        synced = self._open.get(handle)
        if self.lies or synced is None:
            return
        if isinstance(synced, File):
            synced.certain = synced.content
        else:
            for change in self.changes:
                change.certain |= change.directory == synced

    def _note_replace(self, _: None, source: Any, target: Any) -> None:
        name = str(target)
        self._files[name] = self._files.pop(str(source))
        self.changes.append(Change(os.path.dirname(name), {name: self._files[name]}, (str(source),)))

    def _note_unlink(self, _: None, path: Any) -> None:
        if self._files.pop(str(path), None) is not None:
            self.changes.append(Change(os.path.dirname(path), vanish=(str(path),)))

    def _note_mkdir(self, _: None, path: Any, *__: Any) -> None:
        self.changes.append(Change(os.path.dirname(path), {str(path): None}))

    def _note_close(self, _: None, handle: int) -> None:
        self._open.pop(handle, None)


def _whole(path: Path) -> File:
    content = path.read_bytes()
    return File(content, content)
