"""Arrays as NumPy's .npz files, without pickles and without compression."""

import io
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from numpy.typing import NDArray

from scb.inputs import InputError


def stored(arrays: dict[str, NDArray[Any]], comment: str) -> bytes:
    """An .npz file as ``np.savez`` writes it, with a comment of the archive."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # pyright: ignore[reportArgumentType]
    with ZipFile(buffer, "a") as archive:
        archive.comment = comment.encode()
    return buffer.getvalue()


def stored_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file as ``np.savez`` writes it. A compressed one is refused: few bytes of it can become any number."""
    arrays = {}
    with ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            if member.compress_type != ZIP_STORED or member.file_size > len(content):
                raise InputError(f"{member.filename} is compressed, which Task.save does not do")
            data = archive.read(member)
            arrays[member.filename.removesuffix(".npy")] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return arrays
