"""What a matrix costs, and matrices that are shrunk."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, logsumexp
from scipy.stats import beta

import scb
from scb.mixture.model import Mixture
from scb.mixture.price import ColumnCounts, MatrixPrice
from scb.mixture.rows import RowTable, Slots
from scb.sequences.coding import windows_of_symbols
from scb.sequences.lag_fit import LagSettings


def permuted(N, n, seed):
    """Of the symbols, 70 % are a permutation of an earlier one at lag 2 or 5; the current symbol decides at which."""
    rng = np.random.default_rng(seed)
    permutation = rng.permutation(N)
    lags = rng.choice([2, 5], size=N)
    x = rng.integers(N, size=n + 5)
    for t in range(5, n + 5):
        if rng.random() < 0.7:
            x[t] = permutation[x[t - lags[x[t - 1]]]]
    return x[5:], lags


def test_the_marginal_likelihood_of_two_labels_is_an_integral():
    base = np.array([0.3, 0.7])
    columns = ColumnCounts(np.array([[4.0, 0.5], [1.0, 2.5]]), base)
    for alpha in (0.4, 2.0, 9.0):
        prior = beta(alpha * base[0], alpha * base[1])
        for c, marginal in zip(((4.0, 1.0), (0.5, 2.5)), columns.marginal(alpha), strict=True):
            integral, _ = quad(lambda p, c=c, prior=prior: p ** c[0] * (1 - p) ** c[1] * prior.pdf(p), 0, 1)
            assert marginal == pytest.approx(np.log(integral), abs=1e-4)


def test_with_many_labels_a_column_costs_what_the_bic_asks_for():
    """That is, (N − 1)/2 · log n but for a constant: ten times the labels add (N − 1)/2 · log 10."""
    P = np.random.default_rng(0).dirichlet(np.ones(4), 4).T
    base = P.mean(axis=1)
    for n in (1e6, 1e7):
        less, more = (MatrixPrice.of(labels * P, base) for labels in (n, 10 * n))
        np.testing.assert_allclose(more.columns - less.columns, 1.5 * np.log(10), atol=0.01)
        assert more.differences - less.differences == pytest.approx(3 * 1.5 * np.log(10), abs=0.03)


@pytest.mark.parametrize("difference", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("labels", [(20, 30), (300, 700), (5000, 5000)])
def test_what_columns_have_in_common_is_not_paid_for_twice(labels, difference):
    """The gain less the price is the ratio of two marginal likelihoods, both integrals over G: with a matrix whose columns are
    drawn about G, and with G alone.
    """
    n = np.array(labels)
    first = np.round(n * (0.4 + difference * np.array([1, 0])))
    counts = np.array([first, n - first])
    total = counts.sum(axis=1)
    base = total / total.sum()
    columns = ColumnCounts(counts, base)
    alpha = columns.concentration()
    G = (np.arange(20_000) + 0.5) / 20_000
    a, b = alpha * G[:, None], alpha * (1 - G[:, None])
    with_matrix = (betaln(a + first, b + n - first) - betaln(a, b)).sum(axis=1)
    ratio = logsumexp(with_matrix) - np.log(G.size) - betaln(*(1 + total))
    gain = columns.largest().sum() - (total * np.log(base)).sum()
    price = MatrixPrice.of(counts, base)
    assert gain - price.differences == pytest.approx(ratio, abs=0.5)
    assert gain - price.columns.sum() < ratio - 0.7


@pytest.mark.parametrize("N", [2, 10, 100, 500])
def test_labels_that_are_drawn_by_chance_gain_no_more_than_they_cost(N):
    rng = np.random.default_rng(N)
    base = rng.dirichlet(np.full(N, 0.5))
    for labels in (3, 300):
        counts = rng.multinomial(labels, base, size=N).T.astype(float)
        pooled = counts.sum(axis=1) / counts.sum()
        there = counts > 0
        gain = (counts * np.log(np.where(there, counts / labels / np.maximum(pooled, 1e-300)[:, None], 1.0))).sum()
        assert gain - MatrixPrice.of(counts, pooled).differences < 1.0


def test_a_permutation_costs_little_however_many_symbols_there_are():
    """The BIC would ask for 300 · 299/2 · log 100 nats, which is more than there is to be gained."""
    N, n = 300, 100
    counts = n * (0.7 * np.eye(N) + 0.3 / N)
    price = MatrixPrice.of(counts, np.full(N, 1 / N)).differences
    gain = N * n * (0.7 * np.log(0.7 * N))
    assert 0 < price < gain / 3 < N * (N - 1) / 2 * np.log(n)


@pytest.mark.parametrize("transition", ["shared", "per_lag"])
def test_lags_are_found_where_the_bic_would_hide_any(transition):
    """40 symbols and 1,200 labels: (N − 1)²/2 · log(n/N) = 2,590 nats, and the lags gain n · (log N − entropy) = 2,420."""
    x, lags = permuted(40, 1800, 0)
    model = scb.SparseContextualBigram(6, transition=transition).fit(x[:1200])
    found = set(zip(model.lags_["context"].tolist(), model.lags_["lag"].tolist(), strict=True))
    truth = set(enumerate(lags.tolist()))
    assert len(found - truth) <= 2
    assert len(found & truth) >= 36
    asked = scb.SparseContextualBigram(6, transition=transition, lags=2).fit(x[:1200])
    assert -model.score(x[1200:]) < -asked.score(x[1200:]) + 0.05 * np.log(2)


def test_shrunk_matrices_predict_better_and_are_left_alone_where_there_are_many_labels():
    x, _ = permuted(60, 5000, 1)
    plain, shrunk = (
        scb.SparseContextualBigram(6, transition="shared", smoothing=smoothing).fit(x[:4000]) for smoothing in (1, "auto")
    )
    assert plain.lags_["lag"].tolist() == shrunk.lags_["lag"].tolist()
    assert shrunk.score(x[4000:]) > plain.score(x[4000:]) + 0.2
    np.testing.assert_allclose(shrunk.transition_.sum(axis=0), 1)
    few = scb.generate(scb.Task.random(3, 5, 1), 3000)
    same = [scb.SparseContextualBigram(6, smoothing=smoothing).fit(few) for smoothing in (1, "auto")]
    np.testing.assert_array_equal(*(model.transition_ for model in same))


def test_smoothing_is_a_number_or_auto():
    assert LagSettings().smoothing == "auto"
    with pytest.raises(ValueError, match="smoothing = 'much'"):
        LagSettings(smoothing="much")


def two_lags(N, n, alike):
    """Half of the symbols are a permutation of the one at lag 2 or 5, drawn at random; the same permutation at both, or not."""
    rng = np.random.default_rng(3)
    permutations = {2: rng.permutation(N), 5: rng.permutation(N)}
    x = rng.integers(N, size=n)
    for t in range(5, n):
        if rng.random() < 0.5:
            lag = int(rng.choice([2, 5]))
            x[t] = permutations[2 if alike else lag][x[t - lag]]
    return x


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize(("N", "n"), [(60, 2500), (100, 6000)])
def test_what_one_matrix_has_memorised_does_not_hide_another_lag(N, n, alike):
    """With less than one sample for each entry, the matrix of the first lag explains labels of the second one."""
    model = scb.SparseContextualBigram(8, transition="per_lag", context=False, background="labels")
    assert sorted(model.fit(two_lags(N, n, alike)).lags_["lag"].tolist()) == [2, 5]


@pytest.mark.parametrize("context", [True, False])
@pytest.mark.parametrize("alike", [True, False])
def test_the_bic_tells_one_matrix_from_two_however_many_symbols_there_are(alike, context):
    """With 10 samples for each entry; if each entry had to pay, one matrix would be chosen for different lags, too."""
    x = two_lags(30, 9000, alike)
    model = scb.SparseContextualBigram(8, context=context, background="labels").fit(x)
    assert min(model.criterion_, key=model.criterion_.get) == ("shared" if alike else "per_lag")
    by_number = {kind: fixed(kind, context).fit(x).bic(x) for kind in ("shared", "per_lag")}
    assert min(by_number, key=by_number.get) == "shared"


def fixed(kind, context):
    return scb.SparseContextualBigram(8, transition=kind, context=context, background="labels", smoothing=0)


def test_a_lag_of_many_symbols_is_charged_its_price():
    """Each of two permutations is worth thousands of nats, less than the BIC would charge for all entries of a matrix."""
    rows = fixed("per_lag", False).fit(two_lags(100, 9000, False)).summary().columns
    assert rows["lag"].tolist() == [2, 5]
    assert (rows["delta_bic"] > 0).all()
    assert (rows["delta_bic"] < 2 * rows["nats"]).all()
    assert (2 * rows["nats"] < 99**2 * np.log(9000)).all()


def test_the_labels_of_slots_are_those_of_their_columns_and_weights():
    """With a background in some rows, a lag before the first symbol, and a state that has one slot fewer."""
    x, _ = permuted(4, 300, 0)
    data, _, _ = windows_of_symbols(x, None, 6, True)
    P = np.random.default_rng(0).dirichlet(np.ones(4), 4).T
    q = np.array([[0.2, 0.3, 0.5]] * 3 + [[0.4, 0.6, 0.0]])
    support = [np.array([0, 3])] * 3 + [np.array([2])]
    at = Mixture(P, data.label_distribution, q)
    rows = data.rows(Slots.from_support(support, None, 3))
    labels = rows.total(RowTable.labels_by_slot, at)
    sums = rows.total(RowTable.evaluate, at)
    np.testing.assert_allclose(labels.sum(axis=(0, 1)), (P * sums.P).sum(axis=0))
    whole = data.whole().rows(Slots.from_support(support, None, 3))
    by_weight = q * whole.total(RowTable.evaluate, at).q
    np.testing.assert_allclose(whole.total(RowTable.labels_by_slot, at).sum(axis=2)[:, 1:], by_weight[:, 1:])


def markov(N, n, seed):
    """A Markov chain: the current symbol matters, and nothing else does."""
    rng = np.random.default_rng(seed)
    cumulative = rng.dirichlet(np.full(N, 3.0), N).cumsum(axis=1)
    x = [0]
    for u in rng.random(n - 1).tolist():
        x.append(min(N - 1, int(np.searchsorted(cumulative[x[-1]], u))))
    return np.array(x)


@pytest.mark.parametrize("transition", ["shared", "per_lag"])
def test_a_lag_is_not_found_by_what_the_current_symbol_explains(transition):
    """Lag 1 just misses its price after some symbols; with a free column, any other lag would explain the same labels."""
    model = scb.SparseContextualBigram(30, transition=transition, context=True, background="labels")
    found = [model.fit(markov(5, 1000, seed)).lags_["lag"] for seed in range(30)]
    assert sum(bool((lags > 1).any()) for lags in found) <= 2
    assert sum((lags == 1).sum() for lags in found) >= 90


def test_two_lags_of_two_symbols_are_found_in_a_short_sequence():
    """Much like the chain of hdMTD's paper with 1,000 symbols: lag 5 is drawn three times as often as lag 1, but says less."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(30):
        x = rng.integers(2, size=1100).tolist()
        for t in range(10, len(x)):
            lag, zeros = (1, [0.3, 0.95]) if rng.random() < 0.27 else (5, [0.49, 0.66])
            x[t] = int(rng.random() >= zeros[x[t - lag]])
        model = scb.SparseContextualBigram(100, context=False, transition="per_lag").fit(x[100:])
        found.append(set(model.lags_["lag"].tolist()))
    assert found.count({1, 5}) >= 8
    assert sum(not lags <= {1, 5} for lags in found) <= 1
