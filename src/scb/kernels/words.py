"""Random words by counting: word i of a stream is a hash of its key and i, so any part of it can be made anywhere.

This is splitmix64 with the key as its starting point. Streams have random 64-bit keys.
"""

from __future__ import annotations

import numba
import numpy as np

ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S1, _S2, _S3, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 1.0 / (1 << 53)


@numba.njit(cache=True)
def fill_words(key, start, mask, words):
    """Words start, start + 1, … of the stream ``key``, masked, into the uint64 array. Twin: ``reference.words``."""
    for i in range(words.size):
        z = key + np.uint64(start + i) * _GOLDEN
        z = (z ^ (z >> _S1)) * _M1
        z = (z ^ (z >> _S2)) * _M2
        words[i] = (z ^ (z >> _S3)) & mask


@numba.njit(cache=True)
def to_unit(word):
    """A uniform on [0, 1) with 53 bits."""
    return (word >> _S11) * _UNIT
