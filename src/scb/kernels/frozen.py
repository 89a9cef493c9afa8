"""Steps on V alone, with A frozen: only tokens that matter are drawn, so that a step does not depend on T.

A frozen column is a few *active* positions and one common value everywhere else. Tokens at active positions are drawn one by
one. Of the others only the numbers of each token are needed, which are multinomial; and if the source of the label is one of
them, that token is drawn by itself and the numbers of the rest. The law of (Xa, label) is exactly that of whole contexts.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from scb.kernels.fresh import choose, differentiate


class Frozen(NamedTuple):
    """The columns of a frozen A.

    Attributes
    ----------
    counts : (N,), active positions of each column
    value : (·, N), their weights
    source : (Q, N), for each position of the task's support its index among the active ones, or −1
    common : (N,), the weight of every other position
    """

    counts: np.ndarray
    value: np.ndarray
    source: np.ndarray
    common: np.ndarray


@numba.njit(cache=True)
def frozen_gradient(lasts, u_tokens, u_source, u_label, rest, mu, q, P, frozen, V, mass, labels, scores, gV):
    """Summed loss of a batch; its gradient in V is added to gV.

    ``u_tokens`` (B, ·) decides the tokens at active positions and, in its last column, that of a source elsewhere; ``rest`` (B, N)
    holds how often each token occurs at the positions that are left. Twin: ``reference.frozen_mass``.
    """
    tokens = np.empty(u_tokens.shape[1], np.int64)
    for i in range(lasts.size):
        k = lasts[i]
        slot = choose(q[:, k], u_source[i])
        inside = frozen.source[slot, k]
        for n in range(mu.size):
            mass[i, n] = frozen.common[k] * rest[i, n]
        for j in range(frozen.counts[k]):
            tokens[j] = choose(mu, u_tokens[i, j])
            mass[i, tokens[j]] += frozen.value[j, k]
        if inside >= 0:
            token = tokens[inside]
        else:
            token = choose(mu, u_tokens[i, -1])
            mass[i, token] += frozen.common[k]
        labels[i] = choose(P[:, token], u_label[i])
    return differentiate(V, labels, mass, scores, gV)
