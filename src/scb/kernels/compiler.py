"""How kernels are compiled: with which options, kept on disk where that is possible, and with a word to the user.

**The same bits in every process.** Numba compiles each function by itself and once more inside every function that calls it. Both
versions have the same name, and a process uses whichever it has loaded first: the process that compiles has the function's own, one
that loads the caller from the cache has the caller's. Two versions of a function give the same bits unless the compiler may
reorder its sums. So functions that reorder sums, and all that contain such functions, are always inlined (``inline``): a kernel that
is called from Python holds the one version that it uses.
"""

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numba
from numba.core import event

_REORDER = {"reassoc", "contract", "nsz"}  # sums may be reordered, so that they vectorise; NaN and infinity stay what they are


def compiled(function: Callable[..., Any] | None = None, *, inline: bool = False, reorder: bool = False) -> Any:
    """Compile a function when it is first called with arguments of given types, and keep the result on disk.

    It runs without Python's global lock. Division by zero gives an infinity or NaN, as in NumPy.

    Parameters
    ----------
    function : of arrays, scalars and NamedTuples of them
    inline : inline it into every function that calls it; Python cannot call it
    reorder : let sums be reordered. Implies ``inline``; whoever calls it must be inlined too, or be called from Python alone
    """
    if function is None:
        return lambda function: compiled(function, inline=inline, reorder=reorder)
    # What is not said here would be taken from the function that is being compiled, so that it would depend on who calls first.
    options = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": _REORDER if reorder else False,
        "forceinline": inline or reorder,
        "no_cpython_wrapper": inline or reorder,
        "no_cfunc_wrapper": True,
    }
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        _notice.no_cache = True
        return numba.njit(**options)(function)


class _Notice(event.Listener):
    """One line on stderr while kernels are compiled, and none where they are loaded from the cache."""

    def __init__(self) -> None:
        self.no_cache = False
        self._depth = 0
        self._begun: float | None = None

    def on_start(self, event: event.Event) -> None:
        """Say what is happening, when the first function is compiled."""
        if not _is_ours(event):
            return
        self._depth += 1
        if self._begun is None:
            self._begun = perf_counter()
            often = (
                "each time: no directory for the cache can be written to, NUMBA_CACHE_DIR names one" if self.no_cache else "once"
            )
            print(f"scb: compiling kernels ({often}; about 20 s) ...", file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        """Count."""
        if _is_ours(event):
            self._depth -= 1


def _is_ours(event: event.Event) -> bool:
    return event.data["dispatcher"].py_func.__module__.startswith(__package__)


_notice = _Notice()
event.register("numba:compile", _notice)
