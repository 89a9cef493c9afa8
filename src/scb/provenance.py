"""What a result was made with: versions, machine, and a digest of the code."""

from __future__ import annotations

import os
import platform
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

SHOWN = ("figures", "claims", "cli", "report")  # parts of the package that no table depends on


@cache
def versions() -> dict[str, str]:
    """What a result was made with."""
    return {"python": platform.python_version()} | {name: version(name) for name in ("scb", "numpy", "numba")}


@cache
def code_digest() -> str:
    """A hash of the sources that tables are computed by: another code does not find the results of this one."""
    root, digest = Path(__file__).parent, sha256()
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        if inside.parts[0] not in SHOWN:
            digest.update(str(inside).encode() + path.read_bytes())
    return digest.hexdigest()


def require_code(code: str) -> None:
    """On a worker: ValueError unless it has the driver's code."""
    if code_digest() != code:
        raise ValueError("a worker has another version of scb than this process: install the same one there")


def machine() -> str:
    """The processor and its cores."""
    try:
        with open("/proc/cpuinfo") as file:
            name = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores"
