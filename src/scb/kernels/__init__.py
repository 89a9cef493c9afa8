"""Compiled functions of arrays and scalars. A plain NumPy twin of each stands in ``tests/truth/twins.py``."""

import os

import numba

REORDER = {"reassoc", "contract", "nsz"}
"""``fastmath`` flags: sums may be reordered, so that they vectorise; NaN and infinity stay what they are."""

_PROCESS = os.getpid()


def may_run_parallel() -> bool:
    """Whether kernels may use several threads. Not in a forked process: OpenMP would end it."""
    return os.getpid() == _PROCESS and numba.get_num_threads() > 1
