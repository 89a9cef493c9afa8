"""The compilation of kernels: its options, the cache on disk where one is possible, and a message
to the user.

**The same bits in every process.** Numba compiles each function separately, and once more inside
every function that calls it. Both versions have the same name, and a process uses the version that
it has loaded first. The process that compiles has the function's own version, whereas a process
that loads the caller from the cache has the caller's version. The two versions give the same bits
unless the compiler may reorder sums. Functions that reorder sums, and all functions that contain
them, are therefore always inlined: a kernel that Python calls holds the only version that it uses.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import current_process
from time import perf_counter
from typing import Any

import numba
from numba.core import event
from numba.core.caching import FunctionCache

from scb.handles import lock_handle, open_handle

# Sums may be reordered, so that they vectorise; NaN and infinity stay what they are
_REORDER = {"reassoc", "contract", "nsz"}
_PATIENCE = 10.0  # seconds between two lines where there is no terminal


def compiled(
    function: Callable[..., Any] | None = None, *, inline: bool = False, reorder: bool = False
) -> Any:
    """Compile a function on its first call with arguments of given types; keep the result on disk.

    The compiled function runs without Python's global lock. Division by zero gives an infinity or
    NaN, as in NumPy.

    Parameters
    ----------
    function : of arrays, scalars and NamedTuples of them
    inline : inline it into every function that calls it; Python cannot call it
    reorder : let sums be reordered; implies ``inline``. Whoever calls it must be inlined too, or be
    called from Python alone

    Returns
    -------
    The compiled function.
    """
    if function is None:
        return lambda function: compiled(function, inline=inline, reorder=reorder)
    # What is not said here would be taken from the function that is being compiled, so that it
    # would depend on who calls first.
    options = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": _REORDER if reorder else False,
        "forceinline": inline or reorder,
        "no_cpython_wrapper": inline or reorder,
        "no_cfunc_wrapper": True,
    }
    kernel: Any = numba.njit(**options)(function)
    try:
        kernel._cache = _SharedCache(function)  # as ``cache=True`` would do, with a lock
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        _notice.kept = False
    return kernel


class _SharedCache(FunctionCache):
    """The compiled versions of a function on disk, to which one process at a time adds.

    Numba numbers the files of a function's versions. Without a lock, two processes that compile
    two versions at the same time may choose the same number, and one version would be loaded in
    place of the other.
    """

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a version, which a process loads by its signature."""
        with ExitStack() as stack:
            with suppress(OSError):  # a file system without locks
                self._impl.locator.ensure_cache_path()
                path = os.path.join(self.cache_path, "lock")
                handle = stack.enter_context(open_handle(path, os.O_RDWR | os.O_CREAT))
                lock_handle(handle, wait=True)
            super().save_overload(sig, data)


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Raise Ctrl-C as a KeyboardInterrupt; while Numba reads named tuples, it turns Ctrl-C into a
    SystemError.
    """
    try:
        yield
    except SystemError as error:
        cause: BaseException = error
        while cause.__cause__:
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt):
            raise cause from None
        raise


class _Notice(event.Listener):
    """Says on stderr that kernels are being compiled, and how far that is; nothing where they are
    loaded from the cache.

    On a terminal it is one line, which is rewritten and vanishes at the end. Elsewhere it is a line
    at the first function that is compiled in this process, and another one every ten seconds. Of
    several workers only the first speaks.
    """

    def __init__(self) -> None:
        self.kept = True  # whether what is compiled is kept on disk
        self.silent = False  # whether somebody else tells the user
        # How many compilations are nested now: one of our functions, and what it calls
        self._depth = 0
        self.functions = 0  # compiled so far
        self._seconds = 0.0  # spent on functions that are through
        self._begun = 0.0
        self._told: float | None = None

    def on_start(self, event: event.Event) -> None:
        """Tell about a function."""
        if self._depth == 0:
            self._begun = perf_counter()
        if self._depth or _is_ours(event):
            self._depth += 1
            self._tell()

    def on_end(self, event: event.Event) -> None:
        """Count a function."""
        if self._depth == 0:
            return
        self.functions += 1
        self._depth -= 1
        if self._depth == 0:
            self._seconds += perf_counter() - self._begun
            if _on_terminal():
                print("\r\x1b[2K", end="", file=sys.stderr, flush=True)

    def _tell(self) -> None:
        if (
            (self.silent and self.kept)
            or sys.stderr is None
            or not current_process().name.endswith(("MainProcess", "-1"))
        ):
            return
        now = perf_counter()
        progress = f"{self.functions} functions in {self._seconds + now - self._begun:.0f} s"
        why = (
            "once, about half a minute"
            if self.kept
            else "no cache directory can be written to; NUMBA_CACHE_DIR names one"
        )
        text = f"scb: compiling kernels ({why}) ..."
        if _on_terminal():
            print(f"\r\x1b[2K{text} {progress}", end="", file=sys.stderr, flush=True)
        elif self._told is None or now > self._told + _PATIENCE:
            print(
                text if self._told is None else f"scb: compiling kernels: {progress}",
                file=sys.stderr,
                flush=True,
            )
            self._told = now


def _is_ours(event: event.Event) -> bool:
    return event.data is not None and event.data["dispatcher"].py_func.__module__.startswith(
        __package__
    )


def _on_terminal() -> bool:
    """Whether stderr is a terminal that nobody else, such as a progress bar, has taken over."""
    return sys.stderr is sys.__stderr__ and sys.stderr is not None and sys.stderr.isatty()


_notice = _Notice()
event.register("numba:compile", _notice)


def functions_compiled() -> int:
    """Return how many functions this process has compiled; functions that it has loaded do not
    count.
    """
    return _notice.functions


def compile_silently() -> None:
    """Print nothing about compiling in this process, because its parent tells the user."""
    _notice.silent = True
