"""What a result was made with: versions, machine, and a digest of the code that it depends on."""

import os
import platform
import re
import sys
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from scb.inputs import InputError

ROOT = Path(__file__).parent
_FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)+", re.MULTILINE)
_IMPORT = re.compile(
    r"^[ \t]*(?:from|import)[ \t]+([\w.]+)(?:[ \t]+import[ \t]+(\([^)]*\)|[^#\n]*))?", re.MULTILINE
)


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that numbers depend on.

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
    """Return the name of the processor and the number of its cores.

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
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            name = next(
                line.split(":")[1].strip() for line in file if line.startswith("model name")
            )
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    found = f"{name}, {os.cpu_count()} cores"
    if gpu:
        from scb.kernels.cuda.device import Gpu

        found += f", {Gpu().name}"
    return found


@cache
def code_digest(*modules: str, root: Path = ROOT) -> str:
    """A hash of the sources of some modules of scb and of all that they import; of the whole
    library unless modules are named.

    Imports inside functions count; imports for the type checker do not. All kernels except those
    for CUDA are part of every digest, because Numba compiles them into one another. A module
    outside scb, such as that of another package, may use the whole library; its own source counts
    too, unless it is a script, which other processes do not have.
    """
    sources = _sources(root)
    wanted = set(sources)
    if modules and wanted.issuperset(modules):
        kernels = {
            name
            for name in sources
            if name.startswith("scb.kernels") and not name.startswith("scb.kernels.cuda")
        }
        wanted = _closure(modules, sources) | kernels
    digest = sha256()
    for name in sorted(wanted):
        digest.update(name.encode() + sources[name].read_bytes())
        if sources[name].name == "__init__.py":
            # CUDA's sources belong to their package
            for path in sorted(sources[name].parent.glob("*.cu*")):
                digest.update(path.name.encode() + path.read_bytes())
    for name in sorted(set(modules) - set(sources) - {"__main__", "__mp_main__"}):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None:
            digest.update(name.encode() + Path(file).read_bytes())
    return digest.hexdigest()


@cache
def dependencies(module: str, root: Path = ROOT) -> frozenset[str]:
    """The modules of scb that a module of scb imports, directly or not, and itself; none for a
    module of another package.
    """
    sources = _sources(root)
    return frozenset(_closure((module,), sources)) if module in sources else frozenset()


def require_code(code: str, *modules: str) -> None:
    """On a worker: ValueError unless its digest of these modules is the driver's."""
    if code_digest(*modules) != code:
        raise InputError(
            "a worker has another version of scb than this process: install the same one there"
        )


def _sources(root: Path) -> dict[str, Path]:
    """Module → file of all of scb."""
    found = {}
    for path in root.rglob("*.py"):
        parts = ("scb", *path.relative_to(root).with_suffix("").parts)
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def _closure(modules: tuple[str, ...], sources: dict[str, Path]) -> set[str]:
    """The modules and everything of scb that they import, directly or not."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        # Its __init__ runs first; that of scb names others without importing them
        package = name.rpartition(".")[0]
        waiting += [
            other
            for other in (package, *_imported(sources[name]))
            if other in sources and other != "scb"
        ]
    return found


def _imported(path: Path) -> list[str]:
    """The modules, and the names in them, that a file imports, except in blocks of TYPE_CHECKING.

    By its lines, which takes a tenth of the time of a syntax tree. A text that looks like an import
    is taken for one: then the digest stands for more than it must, never for less.
    """
    found = []
    for module, names in _IMPORT.findall(_FOR_TYPES.sub("", path.read_text(encoding="utf-8"))):
        found.append(module)
        found += [
            f"{module}.{name.split()[0]}" for name in names.strip("()").split(",") if name.strip()
        ]
    return found
