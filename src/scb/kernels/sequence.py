"""Sequences, one token after the other: each new token is drawn from a source among the tokens before it."""

import numba

from scb.kernels.random import choose


@numba.njit(cache=True)
def continue_sequence(tokens, start, cumulative_q, positions, cumulative_p, u):
    """Fill ``tokens[start:]``; u[i] holds the two uniforms of token start + i. Twin: ``continue_sequence``."""
    T = start - 1
    for i in range(start, tokens.size):
        last = tokens[i - 1]
        slot = choose(cumulative_q[:, last], u[i - start, 0])
        source = tokens[i - 1 - T + positions[slot, last]]
        tokens[i] = choose(cumulative_p[:, source], u[i - start, 1])


@numba.njit(cache=True)
def continue_lags(tokens, start, cumulative_q, lags, cumulative_p, first, u):
    """Fill ``tokens[start:]`` where the slots of each context are lags; lag 0 is the background. Twin: ``continue_lags``.

    Slot j of context k looks ``lags[j, k]`` tokens back and takes its law from the column of cumulative_p that many after
    ``first[j, k]``. With one column of cumulative_q there is one context for all.
    """
    contexts = cumulative_q.shape[1]
    for i in range(start, tokens.size):
        k = tokens[i - 1] if contexts > 1 else 0
        slot = choose(cumulative_q[:, k], u[i - start, 0])
        lag = lags[slot, k]
        column = first[slot, k]
        if lag > 0:
            column += tokens[i - lag]
        tokens[i] = choose(cumulative_p[:, column], u[i - start, 1])
