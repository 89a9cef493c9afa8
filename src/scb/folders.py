"""Folders that scb writes into. Only one process writes at a time, and it changes only files of
scb.

The hidden file ``.scb`` in such a folder is its lock, and it lists the names under which scb writes
there. A name is added to the list before its file exists, so every file of scb can be recognised
even if the process is killed.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from scb.files import (
    cannot_write,
    make_directory,
    remove_abandoned,
    sync_directory,
    write_all,
)
from scb.handles import let_go, lock_handle, open_handle
from scb.inputs import InputError

RECORD = ".scb"
_FIRST = b"scb: the lock of this folder, and the names of what scb writes here\n"
_NO_FILE = (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV)


class Folder:
    """A folder that is open for writing; ``scb.folders.opened`` opens it.

    Parameters
    ----------
    path : Path
        The folder.
    handle : int
        The open file ``.scb`` in the folder, which is its lock and lists the names that scb writes.
    work : str
        The work that is done in the folder, such as "training".
    overwrite : bool
        Whether files that scb did not write may be replaced.
    inputs : sequence of Path
        Files that are read for this work and are never written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.folders import opened
    >>> with opened(Path("out"), "testing") as folder:
    ...     folder.claim("a.txt", "b.txt")
    ...     _ = folder.file("a.txt").write_text("a")
    ...     folder.check()
    ...     folder.leave_nothing(made=True)
    >>> Path("out/a.txt").read_text()
    'a'
    """

    def __init__(self, path: Path, handle: int, work: str, overwrite: bool, inputs: Sequence[Path]):
        self.path = path
        self.work = work
        self._handle = handle
        self._overwrite = overwrite
        self._inputs = inputs
        self._content = _read(handle, os.fstat(handle).st_size)
        if not self._content.startswith(_FIRST):  # empty, or what a power failure left of it
            os.ftruncate(handle, 0)
            self._content = b""
            self._append(_FIRST)
        self._names = set(self._content[len(_FIRST) :].decode(errors="replace").split("\n"))

    def check(self) -> None:
        """Raise an InputError unless this is still the folder that was opened."""
        if not _is_at(self.path / RECORD, self._handle):
            raise InputError(
                f"{self.path} was removed or replaced while scb was {self.work} there: what it"
                " holds now is not complete, run the command again"
            )

    def claim(self, *names: str, overwrite: bool = False) -> None:
        """Add file names to the list of names before the files are written.

        An InputError is raised for a name that is an input, a link, or a file that scb did not
        write.

        Parameters
        ----------
        names : str
            The names; a name that ends with / is that of a folder.
        overwrite : bool, default False
            Whether files that scb did not write may be replaced.
        """
        self.check()
        new = [name for name in dict.fromkeys(names) if name not in self._names]
        for name in names:
            _refuse_kind(self.path / name, stat.S_ISDIR if name.endswith("/") else stat.S_ISREG)
            for one in self._inputs:
                if _same(self.path / name, one):
                    raise InputError(
                        f"{self.path / name} would be written, and is the input: give another --out"
                    )
        foreign = [name for name in new if _holds_something(self.path / name)]
        if foreign and not (overwrite or self._overwrite):
            raise InputError(
                f"{self.path} has {', '.join(foreign)}, which scb did not write: give another "
                "folder, or replace it with --overwrite (overwrite=True in Python)"
            )
        if new:
            self._append("".join(f"{name}\n" for name in new).encode())
            self._names.update(new)

    def file(self, name: str) -> Path:
        """Claim a name and return its path.

        Parameters
        ----------
        name : str
            The name of the file.

        Returns
        -------
        Path
            The path to write the file to.
        """
        self.claim(name)
        return self.path / name

    def leave_nothing(self, made: bool) -> None:
        """Remove the list of names if none of the files exists; remove a new folder if it is empty.

        Parameters
        ----------
        made : bool
            Whether the folder is new.
        """
        with suppress(OSError, InputError):
            self.check()
            if not any(name and (self.path / name).exists() for name in self._names):
                let_go(self._handle)
                os.unlink(self.path / RECORD)
                if made:
                    self.path.rmdir()

    def _append(self, content: bytes) -> None:
        if self._content and not self._content.endswith(b"\n"):
            content = b"\n" + content
        try:
            os.lseek(self._handle, 0, os.SEEK_END)
            write_all(self._handle, content)
            os.fsync(self._handle)
        except OSError as error:
            raise cannot_write(self.path / RECORD, error) from error
        self._content += content


@contextmanager
def opened(
    path: Path,
    work: str,
    *,
    lock: bool = True,
    overwrite: bool = False,
    inputs: Sequence[Path] = (),
) -> Iterator[Folder]:
    """Open a folder for writing, creating it if necessary.

    Other processes are kept out until the ``with`` block ends. If the block fails before anything
    is written, nothing is left behind.

    Parameters
    ----------
    path : Path
        The folder.
    work : str
        The work that is done in the folder, such as "training".
    lock : bool, default True
        Whether to keep other processes out.
    overwrite : bool, default False
        Whether files that scb did not write may be replaced.
    inputs : sequence of Path
        Files that are read for this work and are never written.

    Returns
    -------
    Folder
        The open folder, in a context manager.

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.folders import opened
    >>> with opened(Path("out"), "testing") as folder:
    ...     _ = folder.file("a.txt").write_text("a")
    >>> sorted(path.name for path in Path("out").iterdir())
    ['.scb', 'a.txt']
    """
    made = not path.is_dir()
    make_directory(path)
    with ExitStack() as stack:
        try:
            handle = stack.enter_context(_locked_record(path, work, lock))
        except BaseException:
            if made:
                with suppress(OSError):
                    path.rmdir()
            raise
        folder = Folder(path, handle, work, overwrite, inputs)
        try:
            remove_abandoned(path)
            yield folder
            folder.check()
        except BaseException:
            folder.leave_nothing(made)
            raise


@contextmanager
def _locked_record(directory: Path, work: str, lock: bool) -> Iterator[int]:
    """The open record of a folder, which is a file of ours and is held by nobody else."""
    path = directory / RECORD
    while True:
        with ExitStack() as stack:
            try:
                handle = stack.enter_context(open_handle(path, os.O_RDWR | os.O_CREAT))
            except OSError as error:
                raise (
                    _not_ours(path) if error.errno in _NO_FILE else cannot_write(path, error)
                ) from error
            _refuse_foreign_record(path, handle)
            if lock:
                _lock(directory, handle, work)
            # Elsewhere: whoever had it has removed it just now.
            if _is_at(path, handle):
                sync_directory(directory)
                yield handle
                return


def _refuse_foreign_record(path: Path, handle: int) -> None:
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
        raise _not_ours(path)
    begin = _read(handle, len(_FIRST)).rstrip(b"\0")
    if not _FIRST.startswith(begin):
        raise _not_ours(path)


def _read(handle: int, size: int) -> bytes:
    """The first bytes of an open file."""
    os.lseek(handle, 0, os.SEEK_SET)
    return os.read(handle, size)


def _not_ours(path: Path) -> InputError:
    return InputError(
        f"{path} is not the file of that name that scb keeps in a folder: give another folder, or"
        " remove it"
    )


def _lock(directory: Path, handle: int, work: str) -> None:
    try:
        lock_handle(handle)
    except BlockingIOError:
        raise InputError(
            f"another process is {work} in {directory}: wait for it, or end it"
        ) from None
    except OSError as error:
        where = _file_system(handle)
        if os.fstat(handle).st_size == 0:  # made just now
            let_go(handle)
            (directory / RECORD).unlink(missing_ok=True)
        raise InputError(
            f"{directory} cannot be locked: {error.strerror} ({where}). If no other process"
            " writes there, go on with --no-lock (lock=False in Python)"
        ) from error


def _file_system(handle: int) -> str:
    """The kind of the file system of an open file, and where it is mounted, if known."""
    device = os.fstat(handle).st_dev
    with (
        suppress(OSError),
        open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts,
    ):
        number = f"{os.major(device)}:{os.minor(device)}"
        for line in mounts:
            words = line.split()
            if words[2] == number:
                return f"the file system at {words[4]} is {words[words.index('-') + 1]}"
    return "by its file system"


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except OSError:
        return False


def _same(path: Path, other: Path) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _refuse_kind(path: Path, wanted: Callable[[int], bool]) -> None:
    """InputError if something is there that is a link, or of another kind than what is to be
    written.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not wanted(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "something else"
        raise InputError(
            f"{path} would be written, and is {kind}: remove it, or give another folder"
        )


def _holds_something(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()
