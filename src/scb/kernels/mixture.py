"""The sums that the fit of a mixture needs on a few positions: its likelihood and derivatives.

The likelihood is that of Σ_j q_j P[o, x_j]. A row is a sample, or ``weight`` equal ones: the tokens
(s,) at the positions that its last token k may attend to, with weights q[k] (K, s). A slot with
weight 0 is skipped. Tokens number the columns of P (N, C); token C stands for the background, a
distribution of the label that is given: the label of sample i has probability g[i] under it. Where
all positions share one matrix, C = N; where each has its own, their columns are side by side.
"""

import numpy as np

from scb.kernels.compiler import compiled


@compiled(inline=True)
def mix_slots(tokens, q, P, i, k, o, given, p):
    """Return the probability f of label o in sample i, and write its probability under each slot
    into p (s,).
    """
    f = 0.0
    for j in range(p.size):
        x = tokens[i, j]
        p[j] = P[o, x] if x < P.shape[1] else given
        f += q[k, j] * p[j]
    return f


@compiled
def likelihood_gradient(tokens, last, label, weight, g, q, P, gq, gP):
    """Return the log-likelihood, and write its derivatives Σ P[o, x_j]/f into gq and Σ q_j/f into
    gP.

    A sample that (P, q) make impossible gives −∞. Twin: ``likelihood_gradient``.
    """
    n, s = tokens.shape
    C = P.shape[1]
    gq[:] = 0.0
    gP[:] = 0.0
    total = 0.0
    p = np.empty(s)
    for i in range(n):
        k = last[i]
        o = label[i]
        f = 0.0
        for j in range(s):
            if q[k, j] > 0.0:
                x = tokens[i, j]
                p[j] = P[o, x] if x < C else g[i]
                f += q[k, j] * p[j]
        total += weight[i] * np.log(f)
        r = weight[i] / f
        for j in range(s):
            if q[k, j] > 0.0:
                gq[k, j] += p[j] * r
                x = tokens[i, j]
                if x < C:
                    gP[o, x] += q[k, j] * r
    return total


@compiled
def weight_curvature(tokens, last, label, weight, g, q, P, asked, logliks, gq, qq):
    """Write the log-likelihood of each state in ``asked`` into logliks (K,), its derivatives in the
    weights into gq (K, s), and minus the second derivatives into qq (K, s, s).

    Slots with weight 0 count. Twins: ``likelihood_gradient`` for the samples of one state, and
    ``likelihood_curvature``.
    """
    n, s = tokens.shape
    gq[:] = 0.0
    qq[:] = 0.0
    logliks[:] = 0.0
    p = np.empty(s)
    for i in range(n):
        k = last[i]
        if not asked[k]:
            continue
        o = label[i]
        f = mix_slots(tokens, q, P, i, k, o, g[i], p)
        logliks[k] += weight[i] * np.log(f)
        r = weight[i] / f
        rr = r / f
        for j in range(s):
            gq[k, j] += p[j] * r
            to_q = rr * p[j]
            for h in range(s):
                qq[k, j, h] += to_q * p[h]


@compiled
def likelihood_information(tokens, last, weight, which, distributions, q, P, PP, Pq, qq):
    """Compute the Fisher information of (P, q) given contexts and last tokens, each counted
    ``weight`` times, without constraints.

    Token C stands for the background, whose distribution is distributions[which_i]. With f_o = Σ_j
    q_j P[o, x_j], summed over samples and over labels o with f_o > 0:

        PP[o, m, l] = ∂_{P[o, m]} f_o · ∂_{P[o, l]} f_o / f_o
        Pq[o, m, k, j] = ∂_{P[o, m]} f_o · ∂_{q[k, j]} f_o / f_o
        qq[k, i, j] = ∂_{q[k, i]} f_o · ∂_{q[k, j]} f_o / f_o

    All other blocks vanish. Twin: ``likelihood_information``.
    """
    n, s = tokens.shape
    C = P.shape[1]
    p = np.empty(s)
    # Outermost: the blocks of one label stay in the cache
    for o in range(P.shape[0]):
        for i in range(n):
            k = last[i]
            f = mix_slots(tokens, q, P, i, k, o, distributions[which[i], o], p)
            if f <= 0.0:
                continue
            r = weight[i] / f
            for j in range(s):
                if q[k, j] > 0.0:
                    x = tokens[i, j]
                    for h in range(s):
                        if q[k, h] > 0.0:
                            y = tokens[i, h]
                            if x < C:
                                Pq[o, x, k, h] += r * q[k, j] * p[h]
                                if y < C:
                                    PP[o, x, y] += r * q[k, j] * q[k, h]
                            qq[k, j, h] += r * p[j] * p[h]


@compiled
def likelihood_curvature(tokens, last, label, weight, g, q, P, PP, Pq, qq, mixed):
    """Compute minus the second derivatives of the log-likelihood in the blocks of
    ``likelihood_information``; the block for P and q is Pq − mixed.

    Since f is bilinear, they are the products of first derivatives of f divided by f², less 1/f
    where P[o, x_j] meets q[k, j], which is ``mixed``. Slots with weight 0 count. Twin:
    ``likelihood_curvature``.
    """
    n, s = tokens.shape
    C = P.shape[1]
    p = np.empty(s)
    for i in range(n):
        k = last[i]
        o = label[i]
        f = mix_slots(tokens, q, P, i, k, o, g[i], p)
        r = weight[i] / f
        rr = r / f
        for j in range(s):
            to_q = rr * p[j]
            for h in range(s):
                qq[k, j, h] += to_q * p[h]
            x = tokens[i, j]
            if x < C:
                mixed[o, x, k, j] += r
                to_P = rr * q[k, j]
                if to_P > 0.0:
                    for h in range(s):
                        Pq[o, x, k, h] += to_P * p[h]
                    for h in range(s):
                        y = tokens[i, h]
                        if y < C:
                            PP[o, x, y] += to_P * q[k, h]


@compiled
def likelihood_product(tokens, last, label, weight, g, q, P, dq, dP, hq, hP):
    """Write minus the second derivatives of the log-likelihood times a direction (dq, dP) into hq
    and hP, without forming a matrix.

    This needs one pass over the samples, as for the gradient. The background does not move, nor
    does a weight that is 0. Twin: ``likelihood_curvature`` times the direction.
    """
    n, s = tokens.shape
    C = P.shape[1]
    hq[:] = 0.0
    hP[:] = 0.0
    p = np.empty(s)
    dp = np.empty(s)
    for i in range(n):
        k = last[i]
        o = label[i]
        f = 0.0
        change = 0.0
        for j in range(s):
            if q[k, j] > 0.0:
                x = tokens[i, j]
                p[j] = P[o, x] if x < C else g[i]
                dp[j] = dP[o, x] if x < C else 0.0
                f += q[k, j] * p[j]
                change += dq[k, j] * p[j] + q[k, j] * dp[j]
        r = weight[i] / f
        change /= f
        for j in range(s):
            if q[k, j] > 0.0:
                hq[k, j] += r * (p[j] * change - dp[j])
                x = tokens[i, j]
                if x < C:
                    hP[o, x] += r * (q[k, j] * change - dq[k, j])


@compiled
def add_distributions(tokens, last, which, distributions, q, columns, out):
    """Add the distribution Σ_j q_j·(distribution of slot j) of each row to out (r, N); ``columns``
    (C, N) holds distributions of tokens. Twin: ``distributions``.
    """
    n, s = tokens.shape
    C, N = columns.shape
    for i in range(n):
        k = last[i]
        for j in range(s):
            w = q[k, j]
            if w > 0.0:
                x = tokens[i, j]
                distribution = columns[x] if x < C else distributions[which[i]]
                for o in range(N):
                    out[i, o] += w * distribution[o]
