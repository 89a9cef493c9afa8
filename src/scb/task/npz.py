"""Arrays as NumPy's .npz files, without pickles and without compression."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from scb.files import SLOT, read_sealed, refuse_foreign, seal, write_atomically
from scb.inputs import DamagedFileError, InputError

_MARK = "scb task "
_UNREADABLE = (
    BadZipFile,
    ValueError,
    TypeError,
    EOFError,
    OverflowError,
    MemoryError,
    NotImplementedError,
)


def write_npz(path: Path, arrays: dict[str, NDArray[Any]], overwrite: bool) -> None:
    """Write a sealed .npz file as ``np.savez`` does; the digest is in the comment of the archive.

    An existing task is replaced; any other file is replaced only if ``overwrite`` is true.
    """
    refuse_foreign(path, _MARK, overwrite)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # pyright: ignore[reportArgumentType]
    with ZipFile(buffer, "a") as archive:
        archive.comment = (_MARK + SLOT).encode()
    write_atomically(path, seal(buffer.getvalue()))


@contextmanager
def reading_npz(path: Path) -> Iterator[dict[str, NDArray[Any]]]:
    """Provide the arrays of a file that ``write_npz`` wrote to a block that makes a task of them;
    errors in the block are reported as errors of the file.
    """
    content = read_sealed(path)
    try:
        yield stored_arrays(content)
    except KeyError as error:
        raise DamagedFileError(f"{path} is not a task: it lacks {error}") from None
    except _UNREADABLE as error:
        raise DamagedFileError(f"{path} is damaged, or not a task ({error})") from None


def stored_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file as ``np.savez`` writes it. A compressed file is refused,
    because a few of its bytes can expand to any number of bytes.
    """
    arrays = {}
    with ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            if member.compress_type != ZIP_STORED or member.file_size > len(content):
                raise InputError(f"{member.filename} is compressed, which Task.save does not do")
            data = io.BytesIO(archive.read(member))
            np.lib.format.read_magic(data)
            shape, _, kind = np.lib.format.read_array_header_1_0(data)
            if prod(shape) * kind.itemsize > member.file_size:
                raise InputError(
                    f"{member.filename} promises an array of shape {shape}, but is shorter"
                )
            data.seek(0)
            arrays[member.filename.removesuffix(".npy")] = np.lib.format.read_array(
                data, allow_pickle=False
            )
    return arrays
