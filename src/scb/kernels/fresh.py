"""Draw a mini-batch, predict and differentiate in one pass, without ever holding a (B, T) batch."""

from __future__ import annotations

import numba
import numpy as np

from scb.kernels.random import next_unit

GUIDE = 4096


def guide_table(cumulative):
    """guide[i] is the first token whose interval reaches beyond i/GUIDE: where to begin looking for a uniform there."""
    return np.searchsorted(cumulative, np.arange(GUIDE) / GUIDE, side="right").astype(np.int32)


@numba.njit(cache=True)
def fresh_gradient(state, lasts, cumulative_mu, guide, positions, cumulative_q, cumulative_p, V, A, tokens, gV, gA):
    """Add the gradients of the samples with last tokens ``lasts`` to gV (N, N) and gA (T, N); return their summed loss.

    ``state`` is the generator's; ``tokens`` a scratch array of T. Twin: ``reference.fresh_gradient``.
    """
    T, N = A.shape
    mass, r, u = np.empty(N), np.empty(N), np.empty(N)
    loss = 0.0
    for k in lasts:
        mass[:] = 0.0
        for t in range(T):
            x = next_unit(state)
            token = guide[int(x * GUIDE)]
            while x >= cumulative_mu[token]:
                token += 1
            tokens[t] = token
            mass[token] += A[t, k]
        slot = 0
        x = next_unit(state)
        while x >= cumulative_q[slot, k]:
            slot += 1
        source = tokens[positions[slot, k]]
        label = 0
        x = next_unit(state)
        while x >= cumulative_p[label, source]:
            label += 1
        for n in range(N):
            r[n] = -1.0 if n == label else 0.0
            for m in range(N):
                r[n] += V[n, m] * mass[m]
            loss += 0.5 * r[n] * r[n]
        for m in range(N):
            u[m] = 0.0
            for n in range(N):
                u[m] += V[n, m] * r[n]
                gV[n, m] += r[n] * mass[m]
        for t in range(T):
            gA[t, k] += u[tokens[t]]
    return loss
