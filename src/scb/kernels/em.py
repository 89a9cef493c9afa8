"""EM steps for the distributions of a mixture, and jumps along them.

P (N, C) has distributions in its columns, and q (K, s) in its rows.
"""

import numpy as np

from scb.kernels.compiler import compiled


@compiled
def pairwise_sum(x):
    """Return the sum of x (n,) in the order of additions of ``np.sum``, to the same bits: where the
    likelihood is nearly flat, a search does not forget how sums were rounded.
    """
    n = x.size
    if n < 8:
        total = 0.0
        for i in range(n):
            total += x[i]
        return total
    if n <= 128:
        r = x[:8].copy()
        whole = n - n % 8
        for i in range(8, whole):
            r[i % 8] += x[i]
        total = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
        for i in range(whole, n):
            total += x[i]
        return total
    half = n // 2 - n // 2 % 8
    return pairwise_sum(x[:half]) + pairwise_sum(x[half:])


@compiled(inline=True)
def normalise(P, q, other_P, other_q):
    """Divide the columns of P and the rows of q by their sums; one whose sum is 0 is copied from
    ``other_P`` or ``other_q``.
    """
    N, C = P.shape
    mass = np.zeros(C)
    for o in range(N):
        for m in range(C):
            mass[m] += P[o, m]
    for o in range(N):
        for m in range(C):
            P[o, m] = P[o, m] / mass[m] if mass[m] > 0.0 else other_P[o, m]
    for k in range(q.shape[0]):
        weight = pairwise_sum(q[k])
        for j in range(q.shape[1]):
            q[k, j] = q[k, j] / weight if weight > 0.0 else other_q[k, j]


@compiled
def em_update(P, q, gP, gq, new_P, new_q):
    """Write normalised expected counts into new_P and new_q, from the derivatives gP and gq of the
    log-likelihood. Columns and rows that are never used stay unchanged. Twin: ``em_update``.
    """
    for o in range(P.shape[0]):
        for m in range(P.shape[1]):
            new_P[o, m] = P[o, m] * gP[o, m]
    for k in range(q.shape[0]):
        for j in range(q.shape[1]):
            new_q[k, j] = q[k, j] * gq[k, j]
    normalise(new_P, new_q, P, q)


@compiled(inline=True)
def squares(x0, x1, x2):
    """Return ‖x₁ − x₀‖² and ‖x₂ − 2x₁ + x₀‖²."""
    first = np.empty(x0.size)
    second = np.empty(x0.size)
    i = 0
    for k in range(x0.shape[0]):
        for j in range(x0.shape[1]):
            first[i] = (x1[k, j] - x0[k, j]) ** 2
            second[i] = (x2[k, j] - 2 * x1[k, j] + x0[k, j]) ** 2
            i += 1
    return pairwise_sum(first), pairwise_sum(second)


@compiled(inline=True)
def jump_along(x0, x1, x2, alpha, least_kept, out):
    """Write x₀ + 2α(x₁ − x₀) + α²(x₂ − 2x₁ + x₀) into ``out``, or at least a part of x₂."""
    for i in range(x0.shape[0]):
        for j in range(x0.shape[1]):
            turn = x2[i, j] - 2 * x1[i, j] + x0[i, j]
            ahead = x0[i, j] + 2 * alpha * (x1[i, j] - x0[i, j]) + alpha**2 * turn
            out[i, j] = max(ahead, least_kept * x2[i, j])


@compiled
def squared_jump(P0, q0, P1, q1, P2, q2, least_kept, P, q):
    """Write into P and q where ``jump_along`` leads from three points (P, q), normalised, with α =
    ‖x₁ − x₀‖/‖x₂ − 2x₁ + x₀‖ ≥ 1. Twin: ``squared_jump``.
    """
    length_P, turn_P = squares(P0, P1, P2)
    length_q, turn_q = squares(q0, q1, q2)
    length = np.sqrt(length_P + length_q)
    turn = np.sqrt(turn_P + turn_q)
    alpha = max(1.0, length / turn) if turn > 0.0 else 1.0
    jump_along(P0, P1, P2, alpha, least_kept, P)
    jump_along(q0, q1, q2, alpha, least_kept, q)
    normalise(P, q, P2, q2)
