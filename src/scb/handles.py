"""Open files as handles of the operating system, and locks on them, for Linux, macOS and Windows.

A lock belongs to its handle: it ends when the handle is closed, however the process ends. Locking
neither reads nor changes the file.
"""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FOR_US = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_REGULAR = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@contextmanager
def open_handle(path: Path | str, flags: int, *, follow: bool = False) -> Iterator[int]:
    """Open a file as a handle of the operating system, and close it when the context ends.

    Unless ``follow`` is true, a symbolic link raises an OSError (``errno.ELOOP``), and opening a
    pipe does not wait.
    """
    if not follow:
        flags |= _REGULAR
        # Windows has no flag for it: whoever must be sure compares the file with the path again.
        if not hasattr(os, "O_NOFOLLOW") and os.path.islink(path):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    handles: list[int] = []
    try:
        # One call opens and keeps: an interrupt that comes between two calls would lose the handle.
        handles.extend(map(os.open, [path], [flags | _FOR_US], [0o666]))
        yield handles[0]
    finally:
        for handle in handles:
            os.close(handle)


if sys.platform == "win32":
    import msvcrt

    # Nobody else can read a locked byte, so it is one that no content reaches.
    _LOCKED_BYTE = 1 << 30

    def lock_handle(handle: int, *, wait: bool = False) -> None:
        """Lock an open file; BlockingIOError if another handle has it, after ten seconds if
        ``wait``.
        """
        os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EDEADLK):
                raise
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
        finally:
            os.lseek(handle, 0, os.SEEK_SET)

    def let_go(handle: int) -> None:
        """Close a file before it is renamed or removed; its handle stays open, on nothing."""
        with open_handle(os.devnull, os.O_RDWR, follow=True) as nothing:
            os.dup2(nothing, handle, inheritable=False)

else:
    import fcntl

    def lock_handle(handle: int, *, wait: bool = False) -> None:
        """Lock an open file; BlockingIOError if another handle has it, unless ``wait``."""
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)

    def let_go(handle: int) -> None:
        """Do nothing: a file may be renamed or removed while it is open and locked."""
