"""n-grams against a dictionary of counts in plain Python."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from scb.sequences.coding import windows_of_codes as windows
from scb.sequences.ngrams import LONGEST, NGram, baselines


def witten_bell(train, max_lag, order):
    """Counts from every window; p(o | history) by recursion."""
    seen = defaultdict(Counter)
    for i in range(max_lag, len(train)):
        for n in range(order):
            seen[tuple(train[i - n : i])][train[i]] += 1

    def p(o, history, N):
        if history is None:
            return 1 / N
        shorter = history[1:] if history else None
        counts = seen.get(history)
        if not counts:
            return p(o, shorter, N)
        total, kinds = sum(counts.values()), len(counts)
        return (counts[o] + kinds * p(o, shorter, N)) / (total + kinds)

    return p


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_an_ngram_equals_plain_counting(order):
    rng = np.random.default_rng(order)
    train, test = rng.integers(4, size=400).tolist(), rng.integers(5, size=80).tolist()
    model = NGram.fit(windows([np.array(train)], 5, 6, contexts=True), order)
    p = witten_bell(train, 6, order)
    expected = [p(test[i], tuple(test[i - order + 1 : i]), 5) for i in range(6, len(test))]
    np.testing.assert_allclose(model.likelihoods(windows([np.array(test)], 5, 6, contexts=False)), expected, rtol=1e-12)


def test_an_ngram_is_a_law():
    rng = np.random.default_rng(0)
    model = NGram.fit(windows([rng.integers(3, size=60)], 3, 4, contexts=True), 4)
    history = rng.integers(3, size=4)
    each = [model.likelihoods(windows([np.r_[history, o]], 3, 4, contexts=True))[0] for o in range(3)]
    assert sum(each) == pytest.approx(1)


def test_the_best_order_is_found():
    rng = np.random.default_rng(1)
    x = rng.integers(3, size=30_000)
    for i in range(3, x.size):
        if rng.random() < 0.8:
            x[i] = (x[i - 3] + x[i - 1]) % 3
    train, test = (windows([part], 3, 10, contexts=True) for part in (x[:24_000], x[24_000:]))
    scores = baselines(train, test)
    assert list(scores) == ["unigram", "bigram", "interpolated 4-gram"]
    assert scores["unigram"] == pytest.approx(-np.log(3), abs=0.01)
    now = np.arange(24_010, 30_000)
    right = x[now] == (x[now - 3] + x[now - 1]) % 3
    oracle = np.where(right, np.log(0.8 + 0.2 / 3), np.log(0.2 / 3)).mean()
    assert oracle - 0.01 < scores["interpolated 4-gram"] <= oracle + 0.001


def test_bad_orders_are_named():
    data = windows([np.arange(20) % 3], 3, 4, contexts=True)
    for order in (0, 6):
        with pytest.raises(ValueError, match=f"order = {order}"):
            NGram.fit(data, order)
    many = windows([np.arange(200)], 200, LONGEST, contexts=True)
    with pytest.raises(ValueError, match="too long for 200 symbols"):
        NGram.fit(many, 9)
