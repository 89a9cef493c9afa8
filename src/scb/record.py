"""What a result was made with; and runs on disk: one file of arrays, its facts as JSON in the header, replaced atomically."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import fields
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

FILE = "run.safetensors"
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


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file at once: whoever reads it, after a crash too, sees the old content or the new."""
    partial = path.with_name(f"{path.name}.partial")
    with open(partial, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def save_run(run: Any, directory: str | Path) -> None:
    """Write the fields of a ``Run``. A kill at any moment leaves the old file or the new one, never half of one."""
    from safetensors.numpy import save

    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    facts = {f.name: getattr(run, f.name) for f in fields(run)}
    arrays = {name: facts.pop(name) for name in ("V", "parameters")}
    arrays |= {f"history.{name}": column for name, column in facts.pop("history").items()}
    # Transposed, so that column-contiguous arrays are written as they lie in memory.
    data = {name: np.ascontiguousarray(array.T) for name, array in arrays.items()}
    write_atomically(directory / FILE, save(data, {"run": json.dumps(facts), "versions": json.dumps(versions())}))


def load_run(directory: str | Path) -> dict[str, Any]:
    """The fields of a ``Run`` that ``save_run`` wrote."""
    from safetensors import safe_open

    path = Path(directory) / FILE
    if not path.exists():
        raise FileNotFoundError(f"{directory} holds no run: there is no {FILE} in it")
    with safe_open(path, framework="numpy") as file:
        facts = json.loads(file.metadata()["run"])
        arrays = {name: file.get_tensor(name).T for name in file.keys()}  # noqa: SIM118
    history = {name.removeprefix("history."): array for name, array in arrays.items() if "history." in name}
    parameters = np.asfortranarray(arrays["parameters"])
    return facts | {"V": np.ascontiguousarray(arrays["V"]), "parameters": parameters, "history": history}
