"""Experts whose predictions are multiplied: each against plain loops, their weights against the gradient, and what they save."""

import numpy as np
import pytest

import scb
from scb.sequences.baselines.adaptive import LongestMatch, RecentFrequencies, RecentPairs
from scb.sequences.product import RIDGE, fit_weights

GAP = -1


def copies(seed, n=2500):
    """Pieces of 40 symbols that come again at no fixed distance, with new symbols between them."""
    rng = np.random.default_rng(seed)
    x = rng.integers(4, size=100).tolist()
    while len(x) < n:
        start = rng.integers(len(x) - 40)
        x += x[start : start + 40] + rng.integers(4, size=10).tolist()
    return np.array(x)


@pytest.fixture(scope="module")
def fitted():
    x = copies(0)
    return scb.Experts(scb.SparseContextualBigram(max_lag=6)).fit(x), x


def test_recent_symbols_and_pairs_are_what_a_loop_counts():
    rng = np.random.default_rng(0)
    x = rng.integers(3, size=60)
    x[[10, 11, 30]] = GAP
    prior = np.array([0.5, 0.3, 0.2])
    pairs = rng.dirichlet(np.ones(3), 3)
    frequencies = RecentFrequencies(prior, 5.0).distributions(x)
    after = RecentPairs(pairs, prior, 3.0).distributions(x)
    counts, tables = np.zeros(3), np.zeros((3, 3))
    for t in range(x.size + 1):
        np.testing.assert_allclose(frequencies[t], (counts + prior) / (counts + prior).sum())
        expected = prior
        if t and x[t - 1] >= 0:
            expected = tables[x[t - 1]] + pairs[x[t - 1]]
        np.testing.assert_allclose(after[t], expected / expected.sum())
        if t == x.size:
            break
        counts *= 0.5 ** (1 / 5)
        if x[t] >= 0:
            counts[x[t]] += 1
        if t and x[t - 1] >= 0:
            tables[x[t - 1]] *= 0.5 ** (1 / 3)
            if x[t] >= 0:
                tables[x[t - 1], x[t]] += 1


def test_a_match_says_what_came_last_time():
    train = np.array([0, 1, 2, 3, 0, 2, 2, 1])
    match = LongestMatch(4, 2, [train])
    fitted = LongestMatch.fit([train], 4)
    assert fitted.shortest == 3
    match.places.update({code: (0, place) for place, code in enumerate(match._codes(train)) if code >= 0})
    x = np.array([3, 1, 2, 3, 0, 1, 2, 3])
    said, longer = match.found(x)
    # After 1 2 the data of the fit had 3 0 2, of which the last was wrong; after 0 1 they had 2 3 0
    assert said.tolist() == [-1, -1, -1, 3, 0, 2, 2, 3, 0]
    assert longer.tolist() == [0, 0, 0, 0, 1, 2, 0, 1, 2]
    match.learn(x, np.arange(1, x.size))
    assert (match.right[:3].tolist(), match.wrong[:3].tolist()) == ([3, 3, 1], [1, 1, 2])
    p = match.distributions(x)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert p[3, 3] == pytest.approx(3 / 4)
    np.testing.assert_allclose(p[0], 0.25)


def test_no_prediction_sees_its_symbol(fitted):
    """With another symbol at one place, and others after it, what was predicted up to there stays."""
    experts, x = fitted
    other = x[:300].copy()
    other[200:] = (other[200:] + 1) % 4
    np.testing.assert_allclose(experts.predict_proba(x[:300])[:200], experts.predict_proba(other)[:200], rtol=1e-9)


def test_weights_are_where_the_gradient_is_0():
    rng = np.random.default_rng(0)
    logs = np.log(rng.dirichlet(np.ones(3), (400, 4))).swapaxes(1, 2)
    truth = np.array([0.2, 0.9, 0.0, -0.3])
    p = np.exp(logs @ truth)
    p /= p.sum(axis=1, keepdims=True)
    labels = (p.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1)
    start = np.eye(4)[0]
    weights = fit_weights(logs, labels, start)

    def value(w):
        scores = logs @ w
        own = scores[np.arange(400), labels] - np.log(np.exp(scores).sum(axis=1))
        return own.sum() - RIDGE / 2 * ((w - start) ** 2).sum()

    for step in 1e-3 * np.eye(4):
        assert value(weights) >= value(weights + step)
        assert value(weights) >= value(weights - step)
    assert np.abs(weights - truth).max() < 0.3


def test_the_match_finds_copies_that_lags_cannot(fitted):
    experts, x = fitted
    table = experts.summary()
    adds = dict(zip(table.columns["expert"].tolist(), table.columns["adds"].tolist(), strict=True))
    assert max(adds, key=adds.get) == "longest match"
    assert "longest match" in str(table)
    held_out = copies(0, 4000)[x.size :]
    whole = np.concatenate([x, held_out])
    bits = -experts.log_likelihoods(whole)[x.size - 1 :].mean() / np.log(2)
    lags = -experts.model_.log_likelihoods(whole)[x.size - 1 :].mean() / np.log(2)
    assert bits < lags - 0.1
    assert experts.bits_ == pytest.approx(bits, abs=0.2)


def test_the_table_of_lags_is_that_of_the_estimator():
    x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
    experts = scb.Experts(scb.SparseContextualBigram(max_lag=6)).fit(x)
    own = scb.SparseContextualBigram(max_lag=6).fit(x)
    assert str(experts.model_.summary()) == str(own.summary())
    # The lags are all there is: nothing is lost by the others
    new = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=1)
    assert experts.score(new) > own.score(new) - 0.01


def test_several_sequences_and_gaps(fitted):
    experts, x = fitted
    gap = [*x[:20].tolist(), None, *x[20:30].tolist()]
    p = experts.predict_proba([gap, x[:5].tolist()])
    assert p.shape == (2, 4)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert experts.log_likelihoods([gap, x[:5].tolist()]).size == 19 + 9 + 4
    with pytest.raises(scb.InputError, match="held_out = 2"):
        scb.Experts(held_out=2).fit(x)
