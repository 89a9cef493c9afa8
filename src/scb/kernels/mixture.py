"""The mixture likelihood Σ_j q_j P[o, x_j] on a few positions: one pass for its gradient, one for its Fisher information.

A row is a sample, or ``weight`` equal ones: the tokens (s,) at the positions that its last token k may attend to, with weights
q[k] (K, s). A slot with weight 0 is skipped. Tokens number the columns of P (N, C + 1); token C stands for the background, a fixed
law of the label. Where all positions share one matrix, C = N; where each has its own, their columns stand side by side.
"""

import numba
import numpy as np


@numba.njit(cache=True, error_model="numpy")
def likelihood_gradient(tokens, last, label, weight, q, P, gq, gP):
    """The log-likelihood, and its derivatives Σ P[o, x_j]/f into gq and Σ q_j/f into gP.

    A sample that (P, q) make impossible gives −∞. Twin: ``likelihood_gradient``.
    """
    n, s = tokens.shape
    gq[:] = 0.0
    gP[:] = 0.0
    total = 0.0
    for i in range(n):
        k = last[i]
        o = label[i]
        f = 0.0
        for j in range(s):
            f += q[k, j] * P[o, tokens[i, j]]
        total += weight[i] * np.log(f)
        r = weight[i] / f
        for j in range(s):
            if q[k, j] > 0.0:
                x = tokens[i, j]
                gq[k, j] += P[o, x] * r
                gP[o, x] += q[k, j] * r
    return total


@numba.njit(cache=True)
def likelihood_information(tokens, last, weight, q, P, PP, Pq, qq):
    """Fisher information of (P, q) given contexts and last tokens, each counted ``weight`` times, without constraints.

    With f_o = Σ_j q_j P[o, x_j], summed over samples and over labels o with f_o > 0:

        PP[o, m, l] = ∂_{P[o, m]} f_o · ∂_{P[o, l]} f_o / f_o        Pq[o, m, k, j] = ∂_{P[o, m]} f_o · ∂_{q[k, j]} f_o / f_o
        qq[k, i, j] = ∂_{q[k, i]} f_o · ∂_{q[k, j]} f_o / f_o

    All other blocks vanish. Twin: ``likelihood_information``.
    """
    n, s = tokens.shape
    for o in range(P.shape[0]):  # outermost: the blocks of one label stay in the cache
        for i in range(n):
            k = last[i]
            f = 0.0
            for j in range(s):
                f += q[k, j] * P[o, tokens[i, j]]
            if f <= 0.0:
                continue
            r = weight[i] / f
            for j in range(s):
                if q[k, j] > 0.0:
                    x = tokens[i, j]
                    for h in range(s):
                        if q[k, h] > 0.0:
                            y = tokens[i, h]
                            PP[o, x, y] += r * q[k, j] * q[k, h]
                            Pq[o, x, k, h] += r * q[k, j] * P[o, y]
                            qq[k, j, h] += r * P[o, x] * P[o, y]


@numba.njit(cache=True)
def likelihood_curvature(tokens, last, label, weight, q, P, PP, Pq, qq):
    """Minus the second derivatives of the log-likelihood, in the blocks of ``likelihood_information``.

    f is bilinear, so they are the products of first derivatives of f over f², less 1/f where P[o, x_j] meets q[k, j]. Slots with
    weight 0 count. Twin: ``likelihood_curvature``.
    """
    n, s = tokens.shape
    C = P.shape[1] - 1
    for i in range(n):
        k = last[i]
        o = label[i]
        f = 0.0
        for j in range(s):
            f += q[k, j] * P[o, tokens[i, j]]
        r = 1.0 / f
        w = weight[i]
        for j in range(s):
            x = tokens[i, j]
            for h in range(s):
                y = tokens[i, h]
                qq[k, j, h] += w * r * r * P[o, x] * P[o, y]
                if x < C:
                    Pq[o, x, k, h] += w * r * r * q[k, j] * P[o, y]
                    if y < C:
                        PP[o, x, y] += w * r * r * q[k, j] * q[k, h]
            if x < C:
                Pq[o, x, k, j] -= w * r
