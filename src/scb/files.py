"""Files that are written whole and say when they are damaged, and directories in which one process writes at a time.

After a crash there is the old content or the new, never half of one. What is read again carries a digest of all its bytes: whoever
writes it puts ``SLOT`` wherever its format has room for text (a header, a key, a comment), and ``seal`` fills in the digest. It is
compared before any parser sees the content.
"""

import fcntl
import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from scb.inputs import DamagedFileError, InputError, InputTypeError

_MARK = b"scb-sha256:"
SLOT = _MARK.decode() + "0" * 64
"""Stands in a file for the digest of the file, in which this stands."""
_SEAL = re.compile(_MARK + b"([0-9a-f]{64})")
_PARTIAL = ".partial"
_LOCK = ".lock"


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file at once: whoever reads it, after a crash too, sees the old content or the new.

    The temporary file beside it has a name of its own, so that two who write do not meet. What a killed process leaves of it is
    removed when the file is written again, or by the next process that has the directory to itself (``alone``).

    Parameters
    ----------
    path : Path
        The file.
    content : bytes
        All of its new content.

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
    remove_abandoned(path.parent, path.name)
    handle, partial = _locked_partial(path)
    try:
        try:
            left = memoryview(content)
            while left:
                left = left[os.write(handle, left) :]
            os.fchmod(handle, 0o666 & ~_umask())  # mkstemp keeps it from others
            os.fsync(handle)
            os.replace(partial, path)
        finally:
            os.close(handle)
    except BaseException:
        with suppress(OSError):
            os.unlink(partial)
        raise
    _sync_directory(path.parent)


def _locked_partial(path: Path) -> tuple[int, str]:
    """A new temporary file for a path, locked for as long as it is open: one that is not has been abandoned."""
    while True:
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_PARTIAL)
        with suppress(OSError):  # where files cannot be locked, nobody removes them
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, partial
        os.close(handle)  # somebody took it for an abandoned one in the moment before it was locked


def remove_abandoned(directory: Path, name: str = "") -> None:
    """Remove temporary files of processes that were killed while they wrote a file of this name, or any one in the directory."""
    beginning = f".{name}." if name else "."
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(beginning) and entry.name.endswith(_PARTIAL):
                _remove_unless_locked(entry.path)


def _remove_unless_locked(partial: str) -> None:
    with suppress(OSError):  # it is being written, has been renamed, or is not ours
        handle = os.open(partial, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(partial)
        finally:
            os.close(handle)


def make_directory(directory: Path) -> None:
    """Make a directory, and those above it that are not there, and have their names on disk."""
    if not directory.is_dir():
        make_directory(directory.parent)
        directory.mkdir(exist_ok=True)
        _sync_directory(directory.parent)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _sync_directory(directory: Path) -> None:
    """Have the new name on disk too; where a file system cannot, the rename alone must do."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def alone(directory: Path, work: str) -> Iterator[None]:
    """While this lasts, no other process that asks for it has the directory; ``work`` says what it is for, in a few words."""
    make_directory(directory)
    with open(directory / _LOCK, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another process is {work} in {directory}: wait for it, or end it") from None
        remove_abandoned(directory)
        yield


# ------------------------------------------------------------------------------------------------------ digests


def seal(content: bytes) -> bytes:
    """The content with its digest in place of ``SLOT``."""
    before, found, after = content.partition(SLOT.encode())
    if not found or SLOT.encode() in after:
        raise InputError(f"data hold the text {SLOT}, which marks the place of a digest: leave it out")
    return before + _MARK + sha256(content).hexdigest().encode() + after


def is_sealed(path: Path, content: bytes) -> bool:
    """Whether the content carries a digest; a DamagedFileError if that is of something else."""
    seals = list(_SEAL.finditer(content))
    for found in seals:  # data may hold the text of another one
        a, b = found.span(1)
        digest = sha256(content[:a])
        digest.update(b"0" * 64)
        digest.update(content[b:])
        if digest.hexdigest().encode() == found.group(1):
            return True
    if seals:
        raise DamagedFileError(f"{path} is damaged, or was changed by hand: its content does not have the digest that it carries")
    return False


def read_sealed(path: Path) -> tuple[bytes, bool]:
    """The content of a file, and whether it carries its digest; a DamagedFileError if it carries another one."""
    content = path.read_bytes()
    return content, is_sealed(path, content)


def warn_unless(sealed: bool, path: Path) -> None:
    """A file that makes sense but carries no digest is one of the time before there were any: it is read, with a warning."""
    if not sealed:
        text = f"{path} carries no digest: an older version of scb wrote it, and damage cannot be seen. Save it again"
        warnings.warn(text, stacklevel=3)


def write_json(path: Path, facts: dict[str, Any]) -> None:
    """Write a table of facts, sealed. NumPy's numbers are written as numbers."""
    text = to_json(facts | {"digest": SLOT}, indent=2, ensure_ascii=False) + "\n"
    write_atomically(path, seal(text.encode(errors="surrogatepass")))


def read_json(path: Path) -> dict[str, Any]:
    """The facts that ``write_json`` wrote."""
    content, sealed = read_sealed(path)
    try:
        facts = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} is damaged: it is not JSON ({error})") from None
    if not isinstance(facts, dict):
        raise DamagedFileError(f"{path} is damaged: it holds {json.dumps(facts)[:20]}, where a table is wanted")
    facts.pop("digest", None)
    warn_unless(sealed, path)
    return facts


def to_json(value: Any, **options: Any) -> str:
    """JSON of values that may hold scalars and arrays of NumPy."""
    return json.dumps(value, default=_plain, **options)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise InputTypeError(f"{type(value).__name__} cannot be written as JSON")


# ------------------------------------------------------------------------------------------------------ arrays


def write_arrays(path: Path, kind: str, arrays: dict[str, Any], facts: dict[str, Any]) -> None:
    """Write arrays, and facts as JSON in their header (safetensors; nothing is executed when it is read), sealed.

    The same arrays and facts give the same bytes: one entry in the header, since safetensors does not fix the order of several.
    """
    from safetensors.numpy import save

    header = {"scb": to_json({"kind": kind, "digest": SLOT, "facts": facts})}
    write_atomically(path, seal(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, header)))


def read_arrays(path: Path, kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any], bool]:
    """Arrays and facts that ``write_arrays`` wrote as this kind, and whether they are sealed; if not, the header are the facts."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    content, sealed = read_sealed(path)
    try:
        arrays = {name: np.array(array) for name, array in sorted(load(content).items())}  # copies, which can be written to
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size]).get("__metadata__", {})
        said = json.loads(header["scb"]) if "scb" in header else header
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        raise DamagedFileError(f"{path} is damaged, or no file of scb ({error})") from None
    if not isinstance(said, dict):
        raise DamagedFileError(f"{path} is damaged: its header is no table")
    if not sealed:
        return arrays, said, False
    if said.get("kind") != kind or not isinstance(said.get("facts"), dict):
        raise DamagedFileError(f"{path} holds {said.get('kind')!r}, where {kind!r} is wanted")
    return arrays, said["facts"], True
