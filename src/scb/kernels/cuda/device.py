"""The GPU: whether there is one, its memory, and its compiler, all through CuPy."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol

import numpy as np

from scb.arrays import Array
from scb.extras import install
from scb.inputs import InputError
from scb.kernels.cuda.layout import source

# launch(kernel, grid, threads, shared bytes, *arguments)
Launch = Callable[..., None]


class Device(Protocol):
    """The device on which a step runs: a module of arrays, its free memory, and a compiler."""

    xp: Any
    processors: int

    def free_memory(self) -> int:
        """Return the number of bytes that are still free."""
        ...

    def compile(self, macros: Mapping[str, str]) -> Launch:
        """Return the kernels, compiled with these macros."""
        ...

    def record(self, launches: Callable[[], None]) -> Callable[[], None]:
        """Return an object that repeats the same launches, faster if possible."""
        ...

    def to_host(self, array: Any) -> Array:
        """Return a copy of an array of the device in NumPy."""
        ...


class Gpu:
    """The current GPU of CuPy."""

    def __init__(self) -> None:
        try:
            import cupy  # pyright: ignore[reportMissingImports] (an extra)
        except ImportError:
            raise InputError(
                f"device = 'cuda' needs CuPy: {install('cuda13')}, or cuda12 for an older driver"
            ) from None
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise InputError(
                f"device = 'cuda' finds no NVIDIA GPU whose driver fits CuPy {cupy.__version__}: "
                f"{error}"
            ) from None
        if count == 0:
            raise InputError(
                "device = 'cuda' finds no NVIDIA GPU; nvidia-smi lists those that the driver knows"
            )
        self.xp: Any = cupy
        self.processors: int = cupy.cuda.Device().attributes["MultiProcessorCount"]
        self.name: str = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)[
            "name"
        ].decode()

    def free_memory(self) -> int:
        """Return the number of bytes that are still free, including those in CuPy's pool."""
        pool = self.xp.get_default_memory_pool()
        return int(self.xp.cuda.runtime.memGetInfo()[0]) + pool.free_bytes()

    def compile(self, macros: Mapping[str, str]) -> Launch:
        """Return the kernels, which are compiled once for each size of task and kept on disk by
        CuPy.
        """
        options = ("-std=c++17", *(f"-D{name}={value}" for name, value in macros.items()))
        module = _module(self.xp, self.xp.cuda.Device().id, options)
        kernels: dict[str, Any] = {}

        def launch(
            name: str, grid: tuple[int, ...], threads: int, shared: int, *arguments: Any
        ) -> None:
            if name not in kernels:
                kernels[name] = module.get_function(name)
                if shared > 48 * 1024:
                    kernels[name].max_dynamic_shared_size_bytes = shared
            kernels[name](grid, (threads,), tuple(map(plain, arguments)), shared_mem=shared)

        return launch

    def record(self, launches: Callable[[], None]) -> Callable[[], None]:
        """Return the launches as one CUDA graph, which takes a few microseconds to launch."""
        stream = self.xp.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            launches()
            graph = stream.end_capture()
        return graph.launch

    def to_host(self, array: Any) -> Array:
        """Return a copy of an array of the device in NumPy."""
        return array.get()


@cache
def _module(xp: Any, device: int, options: tuple[str, ...]) -> Any:
    """The kernels as loaded on a device: once for each process, since a sweep trains on thousands
    of tasks of one size.
    """
    return xp.RawModule(code=source(), options=options)


def plain(argument: Any) -> Any:
    """Return an argument for a kernel: integers have 32 bits unless they are NumPy's, and floats
    have 64.
    """
    if isinstance(argument, bool | int):
        return np.int32(argument)
    if isinstance(argument, float):
        return np.float64(argument)
    return argument
