"""Steps on V alone, for which A is frozen and only the tokens that matter are drawn."""

from typing import NamedTuple

import numpy as np

from scb.kernels.compiler import compiled
from scb.kernels.random import choose
from scb.kernels.step.batch import differentiate


class Frozen(NamedTuple):
    """The columns of a frozen A, each a few *active* positions and one common value everywhere
    else.

    Steps on V alone only draw tokens that matter, so they do not depend on T. Tokens at active
    positions are drawn one by one. At the other positions, only the number of occurrences of each
    token is needed, and these numbers are multinomial. If the source of the label is one of these
    positions, its token is drawn separately, followed by the numbers for the rest. The distribution
    of (Xa, label) is exactly that of whole contexts.
    """

    # (N,), active positions of each column
    counts: np.ndarray
    value: np.ndarray  # (·, N), their weights
    # (Q, N), for each position of the task's support its index among the active ones, or −1
    source: np.ndarray
    # (N,), the weight of every other position
    common: np.ndarray


class FrozenDraws(NamedTuple):
    """The random parts of the B samples of a step; the fields u are uniform numbers."""

    lasts: np.ndarray  # (B,), last tokens
    u_source: np.ndarray  # (B,)
    u_label: np.ndarray  # (B,)
    # (B, ·), of the tokens at active positions and, in the last column, of a source elsewhere
    u_tokens: np.ndarray
    # (B, N), how often each token occurs at the positions that are left
    rest: np.ndarray


@compiled
def frozen_gradient(draws, sampler, frozen, V):
    """Return the summed loss of a mini-batch with a ``LabelSampler``, its summed gradient in V, and
    each mass Xa (B, N). Twin: ``frozen_mass``.
    """
    B, N = draws.rest.shape
    tokens = np.empty(draws.u_tokens.shape[1], np.int64)
    labels = np.empty(B, np.int64)
    mass = np.empty((B, N))
    gV = np.zeros((N, N))
    for i in range(B):
        k = draws.lasts[i]
        for n in range(N):
            mass[i, n] = frozen.common[k] * draws.rest[i, n]
        for j in range(frozen.counts[k]):
            tokens[j] = choose(sampler.mu, draws.u_tokens[i, j])
            mass[i, tokens[j]] += frozen.value[j, k]
        slot = choose(sampler.q[:, k], draws.u_source[i])
        active = frozen.source[slot, k]
        if active >= 0:
            token = tokens[active]
        else:
            token = choose(sampler.mu, draws.u_tokens[i, -1])
            mass[i, token] += frozen.common[k]
        labels[i] = choose(sampler.P[:, sampler.first[slot, k] + token], draws.u_label[i])
    loss = differentiate(V, labels, mass, np.empty((B, N)), gV)
    return loss, gV, mass
