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


@numba.njit(cache=True)
def continue_lags(tokens, start, cumulative_q, lags, cumulative_p, first, u):
    """Fill ``tokens[start:]`` where the slots of each context are lags; lag 0 is the background. Twin: ``reference.continue_lags``.

    Slot j of context k looks ``lags[j, k]`` tokens back and takes its law from the column of cumulative_p that many after
    ``first[j, k]``. With one column of cumulative_q there is one context for all.
    """
    contexts = cumulative_q.shape[1]
    for i in range(start, tokens.size):
        k = tokens[i - 1] if contexts > 1 else 0
        slot = 0
        while u[i - start, 0] >= cumulative_q[slot, k]:
            slot += 1
        lag = lags[slot, k]
        column = first[slot, k] + (tokens[i - lag] if lag > 0 else 0)
        label = 0
        while u[i - start, 1] >= cumulative_p[label, column]:
            label += 1
        tokens[i] = label
