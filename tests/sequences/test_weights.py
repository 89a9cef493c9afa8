"""Weights, groups and soft labels: against repeated data, permutations of nothing, and a model that is known."""

import numpy as np
import pytest
from sklearn.base import clone

import scb
from scb.sequences.group_test import compare_groups
from truth.mtd import MTD

Bigram = scb.SparseContextualBigram
TRUTH = MTD.random(1)


def same(one, other):
    """All that was found agrees to 1e-9."""
    assert one.loglik_ == pytest.approx(other.loglik_, rel=1e-9)
    assert one.lags_["lag"].tolist() == other.lags_["lag"].tolist()
    for name in ("weight", "stderr"):
        np.testing.assert_allclose(one.lags_[name], other.lags_[name], rtol=1e-9, atol=1e-12)
    for name in ("nats", "delta_bic", "influence"):
        np.testing.assert_allclose(one.summary().columns[name], other.summary().columns[name], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(one.frequencies_, other.frequencies_, rtol=1e-12)
    np.testing.assert_allclose(one.prior_, other.prior_, rtol=1e-9)
    assert (one.n_windows_, one.n_symbols_, one.n_parameters_) == (other.n_windows_, other.n_symbols_, other.n_parameters_)


@pytest.mark.parametrize("options", [{"transition": "shared"}, {"transition": "per_lag"}, {"context": False}], ids=str)
def test_whole_weights_are_repeated_data(options):
    x = TRUTH.sample(4000, 1).reshape(40, 100)
    x[:, 50] = -1  # a gap in each
    x = [[None if s < 0 else s for s in row] for row in x.tolist()]
    weight = np.random.default_rng(0).integers(0, 4, size=40)
    repeated = [row for row, times in zip(x, weight, strict=True) for _ in range(times)]
    # Held-out blocks of repeated data were fitted too: an n-gram knows them by heart
    model = Bigram(12, background="labels", **options)
    same(clone(model).fit(x, sample_weight=weight), clone(model).fit(repeated))


def test_weights_of_symbols_are_those_of_their_sequence_where_they_agree():
    x = TRUTH.sample(4000, 1).reshape(40, 100)
    weight = np.random.default_rng(0).random(40)
    one = Bigram(12).fit(list(x), sample_weight=weight)
    other = Bigram(12).fit(list(x), sample_weight=np.repeat(weight, 100))
    same(one, other)
    assert one.n_windows_ == round(weight.sum() * 99)


def test_a_symbol_without_weight_is_no_label():
    """A first half of noise does not matter if its labels do not count."""
    x = np.concatenate([np.random.default_rng(0).integers(4, size=3000), TRUTH.sample(6000, 1)])
    weight = np.repeat([0.0, 1.0], [3000 + 12, 6000 - 12])
    found = Bigram(12, transition="shared").fit(x, sample_weight=weight)
    alone = Bigram(12, transition="shared").fit(x[3000:])
    assert found.lags_["lag"].tolist() == alone.lags_["lag"].tolist()
    np.testing.assert_allclose(found.lags_["weight"], alone.lags_["weight"], atol=0.01)
    assert found.n_windows_ == 6000 - 12


def test_a_symbol_that_never_counts_is_not_impossible():
    x = TRUTH.sample(3000, 1)
    x[:200:7] = 9
    found = Bigram(12, transition="shared", background="labels").fit(x, sample_weight=x != 9)
    assert found.lags_["lag"].tolist() == Bigram(12, transition="shared").fit(x[200:]).lags_["lag"].tolist()
    assert found.converged_
    assert found.prior_[-1] > 0


def test_soft_labels_of_one_sequence_are_not_many_sequences():
    x = TRUTH.sample(2000, 1)
    soft = np.random.default_rng(1).dirichlet(np.ones(4), 4)[np.roll(x, 3)]
    found = Bigram(6).fit(x, probabilities=soft)
    assert np.isnan(found.sequence_bits_)
    assert not any("each sequence" in name for name in found.choices_)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 2], "one weight for each of the 3 sequences"),
        ([1, -1, 1], "at least 0"),
        ([0, 0, 0], "not all zero"),
        ([1, np.nan, 1], "finite"),
    ],
)
def test_bad_weights_are_named(weight, message):
    with pytest.raises(ValueError, match=message):
        Bigram(2).fit([list("abab")] * 3, sample_weight=weight)


# ------------------------------------------------------------------------------------------------ groups


def walks(seed, other=None, n=40, length=60):
    """Sequences of two groups: the second half comes from another model, if there is one."""
    first = TRUTH.sample(n * length // 2, 2 * seed).reshape(-1, length)
    second = (other or TRUTH).sample(n * length // 2, 2 * seed + 1).reshape(-1, length)
    return [*first, *second], np.repeat(["a", "b"], n // 2)


def test_groups_of_one_model_differ_at_the_level_of_the_test():
    """In 200 pairs of equal groups, p ≤ 0.05 about as often as it should be, for each part."""
    model = Bigram(12, transition="shared").fit(TRUTH.sample(8000, 9999))._model()
    p = []
    for seed in range(200):
        x, groups = walks(seed)
        test = compare_groups(model, x, groups, 99, np.random.default_rng(seed))
        p.append([test.parts["p"][0], test.parts["p"][1], test.parts["p"][2:].min()])
    rejected = (np.array(p) <= 0.05).sum(axis=0)
    # 10 are expected of 200; between 3 and 20 in 99 of 100 such tests
    assert ((rejected >= 3) & (rejected <= 20)).all(), rejected


def test_groups_of_two_models_are_told_apart_and_the_lag_is_named():
    """After the first symbol, the first model has equal weights on two lags, the second nearly all on one of them."""
    first, *others = TRUTH.weights
    turned = MTD((dict(zip(first, (0.9, 0.1), strict=True)), *others), TRUTH.matrices)
    x, groups = walks(0, turned, n=200)
    model = Bigram(12, transition="shared").fit(x, groups=groups)
    parts = dict(zip(model.groups_.parts["part"].tolist(), model.groups_.parts["p"].tolist(), strict=True))
    assert parts["weights"] <= 0.01
    assert {name for name, p in parts.items() if p <= 0.05 and name.startswith("lag")} == {f"lag {lag}" for lag in first}
    scores = model.groups_.scores
    assert scores["group"].tolist() == ["a", "b"]
    assert scores["n"].tolist() == [100 * 59] * 2
    for i, part in enumerate((x[:100], x[100:])):
        assert scores["bits"][i] == pytest.approx(-model.score(part) / np.log(2), rel=1e-9)
    assert "weights" in str(model.groups_)
    with pytest.raises(ValueError, match="groups has 3 entries, but X has 200 sequences"):
        model.compare_groups(x, [1, 2, 3])
    with pytest.raises(ValueError, match="at least 2"):
        model.compare_groups(x, [1] * 200)
    assert not hasattr(model.fit(x), "groups_")


def test_groups_with_other_matrices_are_told_apart():
    turned = MTD(TRUTH.weights, {lag: P[:, ::-1] for lag, P in TRUTH.matrices.items()})
    x, groups = walks(0, turned, n=100)
    parts = Bigram(12, transition="shared").fit(x).compare_groups(x, groups, n_permutations=99).parts
    assert parts["part"][1] == "matrices"
    assert parts["p"][1] == 0.01


# ------------------------------------------------------------------------------------------------ soft labels


@pytest.mark.parametrize("transition", ["shared", "per_lag"])
def test_a_model_of_lags_is_explained_by_its_own_parameters(transition):
    x = TRUTH.sample(8000, 1)
    outside = Bigram(12, transition=transition, smoothing=0).fit(x[:5000])
    unseen = x[5000:]
    # Where lags are missing, the background of the other model is not ours
    weight = np.repeat([0.0, 1.0], [12, 3000 - 12])
    soft = outside.predict_proba(unseen)
    found = Bigram(12, transition=transition, smoothing=0).fit(unseen, probabilities=soft, sample_weight=weight)
    assert found.lags_["lag"].tolist() == outside.lags_["lag"].tolist()
    np.testing.assert_allclose(found.lags_["weight"], outside.lags_["weight"], atol=1e-6)
    np.testing.assert_allclose(found.predict_proba(unseen)[12:], soft[12:], atol=1e-6)
    assert found.explained_share_ == pytest.approx(1, abs=1e-6)


def test_soft_labels_that_are_certain_are_labels():
    x = TRUTH.sample(4000, 1)
    certain = np.eye(4)[np.append(x[1:], 0)]
    same(Bigram(12).fit(x, probabilities=certain), Bigram(12).fit(x))


def test_predictions_that_no_lag_explains():
    """A model that predicts by the number of ones so far says something that no lag says."""
    x = np.random.default_rng(0).integers(2, size=3000)
    odd = np.cumsum(x) % 2
    soft = np.where(odd[:, None] == [0, 1], 0.9, 0.1)
    found = Bigram(3).fit(x, probabilities=soft)
    assert found.explained_share_ < 0.05


@pytest.mark.parametrize(
    ("soft", "message"),
    [
        (np.full((9, 2), 0.5), r"shape \(9, 2\): there must be a row for each of the 10"),
        (np.full((10, 2), 0.4), "must be a distribution"),
    ],
)
def test_bad_soft_labels_are_named(soft, message):
    with pytest.raises(ValueError, match=message):
        Bigram(2).fit(list("ababbababa"), probabilities=soft)
