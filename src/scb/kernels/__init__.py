"""Compiled functions of arrays and scalars. A plain NumPy twin of each stands in ``tests/truth/twins.py``."""

import os

import numba

REORDER = {"reassoc", "contract", "nsz"}
"""``fastmath`` flags: sums may be reordered, so that they vectorise; NaN and infinity stay what they are."""

_forked = False


def _remember_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_remember_fork)


def may_run_parallel() -> bool:
    """Whether kernels may use several threads. Not in a forked process: OpenMP would end it."""
    return not _forked and numba.get_num_threads() > 1
