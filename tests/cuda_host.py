"""A device for the CUDA kernels that is no GPU: their source, compiled behind ``cuda/host.cpp``; arrays are NumPy's."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import scb.kernels.cuda
from scb.kernels.cuda.device import Launch, plain

KERNELS = Path(scb.kernels.cuda.__file__).parent
SHIM = Path(__file__).parent / "cuda" / "host.cpp"
COMPILER = shutil.which("g++") or shutil.which("clang++")


class Host:
    """Runs kernels here. ``descending`` turns the order of threads and blocks around; ``folder`` has another source."""

    def __init__(self, folder: Path = KERNELS, *, descending: bool = False) -> None:
        self.xp: Any = np
        self.processors = 4
        self.folder = folder
        self.descending = descending
        self.free = 1 << 30

    def free_memory(self) -> int:
        return self.free

    def compile(self, macros: Mapping[str, str]) -> Launch:
        library = ctypes.CDLL(str(build(self.folder, macros)))

        def launch(name: str, grid: tuple[int, ...], threads: int, shared: int, *arguments: Any) -> None:
            library.set_order(int(self.descending))
            values = [_cell(argument) for argument in arguments]
            pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
            x, y, z = (*grid, 1, 1)[:3]
            getattr(library, f"launch_{name}")(x, y, z, threads, pointers)

        return launch

    def record(self, launches: Any) -> Any:
        return launches

    def to_host(self, array: Any) -> Any:
        return np.array(array)


def _cell(argument: Any) -> Any:
    """A C value that holds an argument: an array's address, or a number."""
    argument = plain(argument)
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous
        return ctypes.c_void_p(argument.ctypes.data)
    kinds = {np.int32: ctypes.c_int32, np.uint64: ctypes.c_uint64, np.float64: ctypes.c_double}
    return kinds[type(argument)](argument.item())


def build(folder: Path, macros: Mapping[str, str]) -> Path:
    """The shared library of a source with these macros; compiled once."""
    assert COMPILER is not None
    texts = [SHIM.read_text(), *(path.read_text() for path in sorted(folder.glob("*.cu*")))]
    digest = hashlib.sha256(repr((texts, sorted(macros.items()))).encode()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"scb-cuda-host-{digest}.so"
    if not library.exists():
        defined = [f"-D{name}={value}" for name, value in macros.items()]
        options = ["-std=c++17", "-O1", "-shared", "-fPIC", "-w", f"-I{folder}", *defined]
        partial = library.with_suffix(f".{np.random.default_rng().integers(1 << 62)}")
        subprocess.run([COMPILER, *options, str(SHIM), "-o", str(partial)], check=True)
        partial.rename(library)
    return library
