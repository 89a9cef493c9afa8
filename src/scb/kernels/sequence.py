"""The sequence extension, one token after the other."""

from __future__ import annotations

import numba


@numba.njit(cache=True)
def continue_sequence(tokens, start, cumulative_q, positions, cumulative_p, u):
    """Fill ``tokens[start:]``; u[i] holds the two uniforms of token start + i. Twin: ``reference.continue_sequence``."""
    T = start - 1
    for i in range(start, tokens.size):
        last = tokens[i - 1]
        slot = 0
        while u[i - start, 0] >= cumulative_q[slot, last]:
            slot += 1
        source = tokens[i - 1 - T + positions[slot, last]]
        label = 0
        while u[i - start, 1] >= cumulative_p[label, source]:
            label += 1
        tokens[i] = label
