"""Arrays and facts in one sealed file in the safetensors format, so nothing is executed when the
file is read.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from scb.files import SLOT, read_sealed, refuse_foreign, seal, to_json, write_atomically
from scb.inputs import DamagedFileError


def write_arrays(
    path: Path, kind: str, arrays: dict[str, Any], facts: dict[str, Any], overwrite: bool = False
) -> None:
    """Write a sealed file of arrays, with facts as JSON in its header.

    A file of the same kind is replaced; any other file is replaced only if ``overwrite`` is true.
    The same arrays and facts give the same bytes, because the header has only one entry;
    safetensors does not fix the order of several entries.
    """
    from safetensors.numpy import save

    refuse_foreign(path, json.dumps(json.dumps({"kind": kind}))[1:-2], overwrite)
    header = {"scb": to_json({"kind": kind, "digest": SLOT, "facts": facts})}
    write_atomically(
        path,
        seal(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, header)),
    )


def read_arrays(path: Path, kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays and facts that ``write_arrays`` wrote as this kind."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    content = read_sealed(path)
    try:
        # Copies, which can be written to
        arrays = {name: np.array(array) for name, array in sorted(load(content).items())}
        size = int.from_bytes(content[:8], "little")
        header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["scb"])
        if header["kind"] == kind:
            return arrays, dict(header["facts"])
    except (
        SafetensorError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        MemoryError,
    ) as error:
        raise DamagedFileError(f"{path} is damaged, or no file of scb ({error})") from None
    raise DamagedFileError(f"{path} holds {header['kind']!r}, where {kind!r} is wanted")
