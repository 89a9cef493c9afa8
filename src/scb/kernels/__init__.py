"""Compiled functions of arrays and scalars. A plain NumPy twin of each stands in ``tests/truth/twins.py``."""

import os
import sys
from time import monotonic
from typing import Any

import numba
from numba.core.event import Event, Listener, register

REORDER = {"reassoc", "contract", "nsz"}
"""``fastmath`` flags: sums may be reordered, so that they vectorise; NaN and infinity stay what they are."""

_PROCESS = os.getpid()


def may_run_parallel() -> bool:
    """Whether kernels may use several threads. Not in a forked process: OpenMP would end it."""
    return os.getpid() == _PROCESS and numba.get_num_threads() > 1


class _SayCompiling(Listener):
    """Says on stderr that kernels are being compiled, and which, so that nobody wonders why the first call takes so long."""

    def __init__(self) -> None:
        self._said = -10.0

    def on_start(self, event: Event) -> None:
        """Say the kernel's name: on a terminal in one line that changes, elsewhere a line every ten seconds."""
        kernel = _kernel(event)
        if not kernel.__module__.startswith("scb."):
            return
        text = f"scb: compiling kernels, which takes a minute or two and happens once: {kernel.__name__}"
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif monotonic() - self._said >= 10:
            self._said = monotonic()
            print(text, file=sys.stderr, flush=True)

    def on_end(self, event: Event) -> None:
        """Clear the line."""
        if sys.stderr.isatty() and _kernel(event).__module__.startswith("scb."):
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _kernel(event: Event) -> Any:
    """The function that an event is about."""
    data: Any = event.data
    return data["dispatcher"].py_func


register("numba:compile", _SayCompiling())
