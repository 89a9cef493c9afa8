"""The origin of a result: versions, machine, and a digest of the code."""

import os
import platform
import sys
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from scb.inputs import InputError

ROOT = Path(__file__).parent
SHOWING = ("cli/", "lab/", "paper/", "picture.py")
"""Files that begin so print, draw or judge results, except the experiments of the paper."""


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages on which the results depend.

    Returns
    -------
    dict of str

    Examples
    --------
    >>> from scb.provenance import versions
    >>> sorted(versions())
    ['numba', 'numpy', 'python', 'scb']
    """
    own = import_module("scb").__version__  # works in a source tree that is not installed, too
    return {"python": platform.python_version(), "scb": own} | {
        name: version(name) for name in ("numpy", "numba")
    }


def machine(gpu: bool = False) -> str:
    """Return the name of the CPU and the number of its cores.

    Parameters
    ----------
    gpu : bool, default False
        Whether to name the GPU as well.

    Returns
    -------
    str

    Examples
    --------
    >>> from scb.provenance import machine
    >>> "core" in machine()
    True
    """
    # Where there is no such file, as on macOS and Windows, Python's own name has to do
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            name = next(
                line.split(":")[1].strip() for line in file if line.startswith("model name")
            )
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    description = f"{name}, {os.cpu_count()} cores"
    if gpu:
        from scb.kernels.cuda.device import Gpu

        description += f", {Gpu().name}"
    return description


@cache
def code_digest(*modules: str, root: Path = ROOT) -> str:
    """Return a hash of the code that results depend on: scb, and these modules of other packages.

    Code that only shows results is left out. All other code of scb is included, because a job may
    use any of it. A script is left out too, because workers do not have it.
    """
    digest = sha256()
    for path in sorted((*root.rglob("*.py"), *root.rglob("*.cu*"))):
        name = path.relative_to(root).as_posix()
        if not name.startswith(SHOWING) or name.startswith("paper/experiments/"):
            digest.update(name.encode() + path.read_bytes())
    for name in sorted(set(modules) - {"__main__", "__mp_main__"}):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None and not name.startswith("scb."):
            digest.update(name.encode() + Path(file).read_bytes())
    return digest.hexdigest()


def require_code(code: str, *modules: str) -> None:
    """On a worker, raise an InputError unless its code is that of the driver."""
    if code_digest(*modules) != code:
        raise InputError(
            "a worker has another version of scb than this process: install the same one there"
        )
