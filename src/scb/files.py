"""Files that are written whole and whose damage is detected.

After a crash, a file holds either its old content or its new content, never a part of one. A file
that is read again carries a digest of all its bytes. Its writer puts ``SLOT`` where the format has
room for text before or after all data (a header, a last key, a comment), and ``seal`` fills in the
digest. The digest is checked before any parser sees the content. Only regular files are read,
because a pipe or a device may never end.
"""

import json
import os
import re
import secrets
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from scb.handles import let_go, lock_handle, open_handle
from scb.inputs import DamagedFileError, InputError, InputTypeError

_MARK = b"scb-sha256:"
SLOT = _MARK.decode() + "0" * 64
"""A placeholder for the digest of a file, which is computed with the placeholder in the file."""
_SEAL = re.compile(_MARK + b"([0-9a-f]{64})")
_PARTIAL = re.compile(r"\.(.+)\.[0-9a-f]{8}\.scb\.partial", re.DOTALL)
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL
_NEAR = 4096  # bytes at either end of a file in which its mark stands


class WriteError(OSError):
    """A file cannot be written, for instance because the disk is full.

    The message names the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.files import WriteError, write_atomically
    >>> try:
    ...     write_atomically(Path("nowhere/page.txt"), b"")
    ... except WriteError as error:
    ...     print(error)
    cannot write nowhere/page.txt: No such file or directory
    """


def cannot_write(path: Path, error: OSError) -> WriteError:
    """Return the error to raise when a file cannot be written."""
    told = WriteError(f"cannot write {path}: {error.strerror or error}")
    told.errno = error.errno
    return told


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file atomically: after a crash, a reader sees either the old or the new content.

    If the path is a link, the file that the link points to is replaced, and the link is kept.
    Concurrent writers use distinct temporary files. A temporary file that a killed process leaves
    behind is removed when the file is next written or when another process opens the folder.

    Parameters
    ----------
    path : Path
        The file.
    content : bytes
        The complete new content of the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from scb.files import write_atomically
    >>> with TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "page.txt", b"whole")
    ...     (Path(folder) / "page.txt").read_text()
    'whole'
    """
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if target.exists() and not target.is_file():
        raise InputError(f"{path} is not a regular file: give another name")
    try:
        _write(target, content)
    except OSError as error:
        raise cannot_write(path, error) from error


def _write(path: Path, content: bytes) -> None:
    remove_abandoned(path.parent, path.name)
    with _locked_partial(path) as (handle, partial):
        write_all(handle, content)
        os.fsync(handle)
        let_go(handle)
        os.replace(partial, path)
    sync_directory(path.parent)


def write_all(handle: int, content: bytes) -> None:
    """Write all of the content, in as many pieces as the file system needs."""
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


@contextmanager
def _locked_partial(path: Path) -> Iterator[tuple[int, str]]:
    """A new temporary file for a path, locked for as long as it is open: one that is not locked has
    been abandoned. It is removed if the work with it fails.
    """
    while True:
        partial = os.path.join(path.parent, f".{path.name}.{secrets.token_hex(4)}.scb.partial")
        with open_handle(partial, _NEW) as handle:
            try:
                with suppress(OSError):  # where files cannot be locked, nobody removes them
                    lock_handle(handle, wait=True)
                # None: taken for an abandoned file in the moment before it was locked
                if os.fstat(handle).st_nlink:
                    yield handle, partial
                    return
            except BaseException:
                with suppress(OSError):
                    let_go(handle)
                    os.unlink(partial)
                raise


def remove_abandoned(directory: Path, name: str = "") -> None:
    """Remove temporary files of processes that were killed while they wrote a file of this name, or
    any file in the directory.
    """
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            found = _PARTIAL.fullmatch(entry.name)
            if found and name in ("", found[1]) and entry.is_file(follow_symlinks=False):
                _remove_unless_locked(entry.path)


def _remove_unless_locked(partial: str) -> None:
    # An error: it is being written, has been renamed, or is not ours.
    with suppress(OSError), open_handle(partial, os.O_RDWR) as handle:
        lock_handle(handle)
        let_go(handle)
        os.unlink(partial)


def make_directory(directory: Path) -> None:
    """Make a directory and any missing parents, and ensure that their names are on disk."""
    missing = []
    # "." again and again, if it was deleted
    while not directory.is_dir() and directory not in missing[-1:]:
        missing.append(directory)
        directory = directory.parent
    for directory in reversed(missing):
        _make_one(directory)


def _make_one(directory: Path) -> None:
    try:
        directory.mkdir(exist_ok=True)
    except FileExistsError:
        raise InputError(f"{directory} is not a directory: give another name") from None
    except OSError as error:
        raise cannot_write(directory, error) from error
    sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    """Ensure that the new name is on disk too, if the file system supports this."""
    with suppress(OSError), open_handle(directory, os.O_RDONLY, follow=True) as handle:
        os.fsync(handle)


def prepare_file(path: Path, mark: str, overwrite: bool = False) -> None:
    """Check that a file may be written, and create its directory.

    Raise an InputError if the file already exists and was not written by scb. The check is made
    early, so a result that took minutes to compute is not lost just as it is about to be written.

    Parameters
    ----------
    path : Path
        The file.
    mark : str
        A text that the files of scb contain near their beginning or end.
    overwrite : bool, default False
        Whether a file without this text may be replaced.

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.files import prepare_file
    >>> prepare_file(Path("tables/new.md"), "# My table")
    >>> Path("tables").is_dir()
    True
    """
    if path.is_dir():
        raise InputError(f"{path} is a directory, and must be a file: give another name")
    refuse_foreign(path, mark, overwrite)
    make_directory(path.parent)


def refuse_foreign(path: Path, mark: str, overwrite: bool) -> None:
    """Raise an InputError if the file to be replaced lacks the mark that the files of scb have near
    their beginning or end.
    """
    if overwrite or not path.is_file() or not path.stat().st_size:
        return
    with open(path, "rb") as file:
        near = file.read(_NEAR)
        file.seek(-min(_NEAR, path.stat().st_size), os.SEEK_END)
        near += file.read(_NEAR)
    if mark.encode() not in near:
        raise InputError(
            f"{path} is there, and is not what would be written in its place: give another name, or"
            " replace it with --overwrite (overwrite=True in Python)"
        )


# ------------------------------------------------------------------------------------------ digests


def seal(content: bytes) -> bytes:
    """Return the content with its digest in place of ``SLOT``."""
    before, found, after = content.partition(SLOT.encode())
    if not found or SLOT.encode() in after:
        raise InputError(
            f"data hold the text {SLOT}, which marks the place of a digest: leave it out"
        )
    return before + _MARK + sha256(content).hexdigest().encode() + after


def is_sealed(path: Path, content: bytes) -> bool:
    """Return whether the content carries a digest; raise a DamagedFileError if the digest is that
    of other content.
    """
    seals = _SEAL.finditer(content)
    # Data may hold any number of such texts, but none before a seal in a header, and none after a
    # seal at the end.
    candidates = [*islice(seals, 1), *deque(seals, maxlen=1)]
    for found in candidates:
        a, b = found.span(1)
        digest = sha256(memoryview(content)[:a])
        digest.update(b"0" * 64)
        digest.update(memoryview(content)[b:])
        if digest.hexdigest().encode() == found.group(1):
            return True
    if candidates:
        raise DamagedFileError(
            f"{path} is damaged, or was changed by hand:"
            " its content does not have the digest that it carries"
        )
    return False


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; raise an InputError if it is a pipe or a device, which might never
    end.
    """
    try:
        kind = os.stat(path).st_mode
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is not there") from None
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(f"{path} is a directory, where a file is wanted")
    if not stat.S_ISREG(kind):
        raise InputError(
            f"{path} is a pipe or a device, where a regular file is wanted:"
            " write what it gives to a file first"
        )
    return open(path, "rb")


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file."""
    with open_regular(path) as file:
        return file.read()


def read_sealed(path: Path) -> bytes:
    """Return the content of a file that carries its digest; raise a DamagedFileError for any other
    file.
    """
    content = read_regular(path)
    if not is_sealed(path, content):
        raise DamagedFileError(f"{path} is damaged, or not written by scb: it carries no digest")
    return content


def write_json(path: Path, facts: dict[str, Any]) -> None:
    """Write a table of facts as sealed JSON. NumPy's numbers are written as plain numbers."""
    text = to_json(facts | {"digest": SLOT}, indent=2, ensure_ascii=False) + "\n"
    write_atomically(path, seal(text.encode(errors="surrogatepass")))


def read_json(path: Path) -> dict[str, Any]:
    """Return the facts that ``write_json`` wrote."""
    content = read_sealed(path)
    try:
        facts = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} is damaged: it is not JSON ({error})") from None
    if not isinstance(facts, dict):
        raise DamagedFileError(
            f"{path} is damaged: it holds {json.dumps(facts)[:20]}, where a table is wanted"
        )
    facts.pop("digest", None)
    return facts


def to_json(value: Any, **options: Any) -> str:
    """Return the JSON of values, which may include scalars and arrays of NumPy."""
    return json.dumps(value, default=_plain, **options)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise InputTypeError(f"{type(value).__name__} cannot be written as JSON")
