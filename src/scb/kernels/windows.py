"""The sums that the search for positions needs over whole windows: tokens, rows, and statistics of
pairs at every position.

Statistics of (label, token) pairs are taken given the last token, of samples that are windows of
one flat array of tokens: token t of sample i is ``tokens[starts[i] + t]``. A batch and the windows
of a long sequence look the same in this array, and neither is copied. Token N stands for the
absence of a token, before the start of a sequence or in a gap.
"""

import numpy as np

from scb.kernels.compiler import compiled

# Positions at a time: a cache line of tokens of one byte
_BLOCK = 64


@compiled
def count_tokens(tokens, counts):
    """Add counts of tokens to ``counts``, using four tables so that no count waits for the previous
    one. Twin: ``np.bincount``.
    """
    table = np.zeros((4, counts.size), np.int64)
    whole = tokens.size // 4 * 4
    for i in range(0, whole, 4):
        table[0, tokens[i]] += 1
        table[1, tokens[i + 1]] += 1
        table[2, tokens[i + 2]] += 1
        table[3, tokens[i + 3]] += 1
    for i in range(whole, tokens.size):
        table[0, tokens[i]] += 1
    for m in range(counts.size):
        counts[m] += table[0, m] + table[1, m] + table[2, m] + table[3, m]


@compiled
def gather_tokens(tokens, starts, last, positions, nothing, out):
    """Write the tokens at ``positions[k]`` (K, s) of samples with last token k into out (n, s), and
    ``nothing`` where a position is negative.

    Twin: ``gathered``.
    """
    for i in range(starts.size):
        k = last[i]
        for j in range(positions.shape[1]):
            t = positions[k, j]
            out[i, j] = tokens[starts[i] + t] if t >= 0 else nothing


@compiled
def encode_rows(tokens, starts, last, label, positions, N, codes):
    """Write one integer for (last token, label, tokens at ``positions[k]``) of each sample into
    codes (n,).

    The integer is the number with the digits last token, label (base N) and tokens (base N + 1; N
    where a position is negative). Twin: ``row_codes``.
    """
    for i in range(starts.size):
        k = last[i]
        code = k * N + label[i]
        for j in range(positions.shape[1]):
            t = positions[k, j]
            code = code * (N + 1) + (np.int64(tokens[starts[i] + t]) if t >= 0 else N)
        codes[i] = code


@compiled
def add_pair_scores(tokens, starts, column, row, weight, order, table, scores):
    """Add weight_i · table[row_i, x_it] to scores[column_i, t], for every t. Twin:
    ``add_pair_scores``.

    Samples are taken in ``order``; where four in a row have the same column, they are added in one
    go.
    """
    N = table.shape[1]
    T = scores.shape[1]
    n = order.size
    u = np.empty((4, N))
    i = 0
    while i < n:
        a = order[i]
        k = column[a]
        together = 1
        if (
            i + 4 <= n
            and column[order[i + 1]] == k
            and column[order[i + 2]] == k
            and column[order[i + 3]] == k
        ):
            together = 4
        for j in range(together):
            b = order[i + j]
            for m in range(N):
                u[j, m] = weight[b] * table[row[b], m]
        out = scores[k]
        x = tokens[starts[a] : starts[a] + T]
        if together == 1:
            for t in range(T):
                out[t] += u[0, x[t]]
        else:
            b, c, d = starts[order[i + 1]], starts[order[i + 2]], starts[order[i + 3]]
            y, z, w = tokens[b : b + T], tokens[c : c + T], tokens[d : d + T]
            for t in range(T):
                out[t] += (u[0, x[t]] + u[1, y[t]]) + (u[2, z[t]] + u[3, w[t]])
        i += together


@compiled
def pair_chi_squares(tokens, starts, label, order, bounds, mu, chi):
    """Write χ² of label against token at every (k, t) into chi (N, T): Σ_{o,m} (C − n_k(o) μ_m)² /
    (n_k(o) μ_m).

    C is the table of pairs (o, x_t) over the n_k samples ``order[bounds[k]:bounds[k + 1]]`` whose
    last token is k, and n_k(o) counts their labels. Only one such table is held at a time. Twin:
    ``pair_chi_squares``.
    """
    N, T = chi.shape
    table = np.zeros((N, N))
    longest = 0
    for k in range(N):
        longest = max(longest, bounds[k + 1] - bounds[k])
    # a block of positions of the samples of one k, turned: by position
    x = np.empty((_BLOCK, longest), tokens.dtype)
    o = np.empty(longest, np.int64)
    inverse = np.empty((N, N))
    for k in range(N):
        n = bounds[k + 1] - bounds[k]
        of_label = np.zeros(N)
        for i in range(n):
            o[i] = label[order[bounds[k] + i]]
            of_label[o[i]] += 1.0
        for a in range(N):
            for m in range(N):
                expected = of_label[a] * mu[m]
                inverse[a, m] = 1.0 / expected if expected > 0.0 else 0.0
        for first in range(0, T, _BLOCK):
            width = min(_BLOCK, T - first)
            for i in range(n):
                at = starts[order[bounds[k] + i]] + first
                for b in range(width):
                    x[b, i] = tokens[at + b]
            for b in range(width):
                total = 0.0
                for i in range(n):
                    table[o[i], x[b, i]] += 1.0
                if n >= N * N:
                    for a in range(N):
                        for m in range(N):
                            total += table[a, m] ** 2 * inverse[a, m]
                            table[a, m] = 0.0
                else:  # Σ over cells of C²/E is Σ over samples of C/E
                    for i in range(n):
                        total += table[o[i], x[b, i]] * inverse[o[i], x[b, i]]
                    for i in range(n):
                        table[o[i], x[b, i]] = 0.0
                chi[k, first + b] = total - n


@compiled
def add_source_tables(tokens, starts, label, row, inverse, weight, scores, information):
    """For samples whose label has distribution f, add up 1/f of the observed label and 1/f of every
    label, by position and the token there.

    Over all samples, w_i/f[o_i] is added to scores[t, x_it, o_i] and w_i/f[o] to information[t,
    x_it, o] for every o, both (T, N, N); ``inverse[row_i]`` holds 1/f, and w is the weight of a
    sample. These are the score and the Fisher information of a matrix that position t may get.
    Twin: ``source_tables``.
    """
    T = scores.shape[0]
    N = inverse.shape[1]
    for i in range(starts.size):
        x = tokens[starts[i] : starts[i] + T]
        r = inverse[row[i]]
        o = label[i]
        w = weight[i]
        here = w * r[o]
        for t in range(T):
            if x[t] < N:
                scores[t, x[t], o] += here
                for m in range(N):
                    information[t, x[t], m] += w * r[m]


@compiled
def add_label_tables(tokens, starts, label, row, distributions, weight, came, expected):
    """Count how often each label was observed and how often it was expected, by position and the
    token there.

    Over all samples, the weight w_i is added to came[t, x_it, o_i], and w_i times the distribution
    f of the label to expected[t, x_it], both (T, N, N); ``distributions[row_i]`` holds f. The two
    differ where a position carries information that f does not include. Twin: ``label_tables``.
    """
    T = came.shape[0]
    N = distributions.shape[1]
    for i in range(starts.size):
        x = tokens[starts[i] : starts[i] + T]
        f = distributions[row[i]]
        o = label[i]
        w = weight[i]
        for t in range(T):
            if x[t] < N:
                came[t, x[t], o] += w
                for m in range(N):
                    expected[t, x[t], m] += w * f[m]


@compiled
def add_weight_scores(
    tokens, starts, last, label, row, inverse, weight, positions, matrices, scores, information
):
    """For samples whose label has distribution f, add up Σ w_i P_t[o_i, x_it]/f[o_i] and Σ w_i Σ_o
    P_t[o, x_it]²/f[o], for a matrix P_t at each position and the weight w of each sample.

    The sums are added to scores and information (K, r) of each last token and each of r
    ``positions``; matrices (r, N, N) have their distributions in rows. ``inverse[row_i]`` holds
    1/f. Twin: ``weight_scores``.
    """
    N = inverse.shape[1]
    for i in range(starts.size):
        r = inverse[row[i]]
        k = last[i]
        o = label[i]
        for j in range(positions.size):
            x = tokens[starts[i] + positions[j]]
            if x < N:
                distribution = matrices[j, x]
                scores[k, j] += weight[i] * (distribution[o] * r[o])
                total = 0.0
                for m in range(N):
                    total += distribution[m] * distribution[m] * r[m]
                information[k, j] += weight[i] * total
