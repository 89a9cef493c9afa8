"""Compiled functions of arrays and scalars; ``reference`` holds a plain NumPy twin of each."""

from __future__ import annotations

import os

_forked = False


def _remember_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_remember_fork)


def threads() -> bool:
    """Whether kernels may use several threads. Not in a forked process: OpenMP would end it."""
    if _forked:
        return False
    import numba

    return numba.get_num_threads() > 1
