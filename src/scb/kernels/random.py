"""sfc64, a small fast generator with 256 bits of state, for use inside kernels."""

from __future__ import annotations

import numba
import numpy as np

_ONE = np.uint64(1)
_SHIFTS = np.uint64(11), np.uint64(3), np.uint64(24), np.uint64(40)
TO_UNIT = 1.0 / (1 << 53)


@numba.njit(inline="always")
def next_word(state):
    """The next 64 random bits; ``state`` is a uint64 array of four words, changed in place."""
    word = state[0] + state[1] + state[3]
    state[3] += _ONE
    state[0] = state[1] ^ (state[1] >> _SHIFTS[0])
    state[1] = state[2] + (state[2] << _SHIFTS[1])
    state[2] = ((state[2] << _SHIFTS[2]) | (state[2] >> _SHIFTS[3])) + word
    return word


@numba.njit(inline="always")
def next_unit(state):
    """A uniform on [0, 1) with 53 bits."""
    return (next_word(state) >> _SHIFTS[0]) * TO_UNIT
