"""What a new matrix could gain: the quadratic model beside a general optimiser, and what all tokens have in common."""

import numpy as np
import pytest
from scipy.optimize import minimize

from scb.mixture.new_matrix import attainable_ratio, difference_of_tokens, labels_by_score


def tables(N, n, rng, pulled):
    """Scores and information (N, N), and n samples with each token, of labels whose distributions f differ from sample to sample;
    a part ``pulled`` of the labels follow the token instead.
    """
    scores, information = np.zeros((2, N, N))
    f = rng.dirichlet(np.full(N, 0.7), n) + 0.01
    f /= f.sum(axis=1, keepdims=True)
    x = rng.integers(N, size=n)
    labels = np.where(rng.random(n) < pulled, (x + 1) % N, [rng.choice(N, p=p) for p in f])
    for i in range(n):
        scores[x[i], labels[i]] += 1 / f[i, labels[i]]
        information[x[i]] += 1 / f[i]
    return scores, information


def by_optimiser(scores, information):
    """The same maximum, found by sequential quadratic programming over the weight and w·M."""
    N = len(scores)
    inverse = 1 / information
    n = (inverse * scores).sum(axis=1) / inverse.sum(axis=1)
    rest = scores - n[:, None]

    def loss(z):
        u = z[1:].reshape(N, N)
        return -(2 * (u * rest).sum() - (u**2 * information).sum() + z[0] ** 2 * n.sum()) / n.sum()

    sums = {"type": "eq", "fun": lambda z: z[1:].reshape(N, N).sum(axis=1) - z[0]}
    starts = (np.r_[w, np.full(N * N, w / N)] for w in (0.01, 0.1, 0.5))
    found = [
        minimize(loss, z, method="SLSQP", bounds=[(0, 1)] * (1 + N * N), constraints=sums, options={"ftol": 1e-14, "maxiter": 500})
        for z in starts
    ]
    return -min(one.fun for one in found if one.success) * n.sum()


def difference(scores, information):
    """The χ² of a single position, without what its tokens have in common."""
    return difference_of_tokens((scores, information), labels_by_score(scores, information))[0]


@pytest.mark.parametrize("N", [2, 3, 5])
@pytest.mark.parametrize("pulled", [0.0, 0.05, 0.4])
def test_the_attainable_ratio_is_that_of_a_general_optimiser(N, pulled):
    """Up to 10 %, because only twelve weights are tried; and never more."""
    scores, information = tables(N, 800, np.random.default_rng(N), pulled)
    best = by_optimiser(scores, information)
    ratio = attainable_ratio(scores, information)
    assert 0.9 * best - 0.1 <= ratio <= best * (1 + 1e-5) + 1e-6


def test_what_cannot_be_gained_is_not_promised():
    """After one token, an unlikely label is rarer still. The weight of a matrix would come from all samples, most of which fit."""
    rng = np.random.default_rng(0)
    n = 4000
    scores, information = np.zeros((2, 2, 2))
    x = rng.integers(2, size=n)
    p = np.where(rng.random(n) < 0.5, 0.02, 0.5)
    label = rng.random(n) < np.where((x == 1) & (p < 0.1), 0.0, p)
    for token, o, f in zip(x, label.astype(int), np.stack([1 - p, p], axis=1), strict=True):
        scores[token, o] += 1 / f[o]
        information[token] += 1 / f
    chi_square = difference(scores[None], information[None])
    assert chi_square > 3 * attainable_ratio(scores, information)


def test_what_all_tokens_have_in_common_does_not_count():
    rng = np.random.default_rng(1)
    information = rng.uniform(50, 100, size=(1, 4))
    scores = 40 * np.array([[0.7, 1.1, 1.4, 0.8]])
    same = np.repeat(scores, 3, axis=0)[None], np.repeat(information, 3, axis=0)[None]
    assert abs(difference(*same)) < 1e-9
    other = same[0].copy()
    other[0, 1] = other[0, 1, ::-1]
    assert difference(other, same[1]) > 1
