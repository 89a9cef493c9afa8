"""Options that the data decide, sequences that differ, what is held out, and symbols that were never seen."""

import warnings

import numpy as np
import pytest

import scb
from scb.sequences.analysis import split
from scb.sequences.baselines.ngram import NGram
from scb.sequences.baselines.per_sequence import SequenceBackground, own_counts
from scb.sequences.coding import windows_of_codes

GAP = -1


def order_two(n, seed):
    """The next symbol is the exclusive or of the last two, nine times in ten."""
    rng = np.random.default_rng(seed)
    x = [0, 1]
    for flip in rng.random(n) < 0.1:
        x.append(x[-1] ^ x[-2] ^ int(flip))
    return np.array(x)


def panel(seed, *, memory, spread=2.0, sequences=150):
    """Four symbols; each sequence has frequencies of its own. With a memory, half of the symbols follow one at lag 3 or 6."""
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.full(4, 2.0))
    P = 0.85 * np.roll(np.eye(4), 1, axis=0) + 0.15 / 4
    drawn = []
    for _ in range(sequences):
        own = rng.dirichlet(spread * base) * 0.96 + 0.01
        x = rng.choice(4, p=own, size=6).tolist()
        for _ in range(int(rng.integers(30, 80))):
            source = x[-3] if x[-1] < 2 else x[-6]
            x.append(int(rng.choice(4, p=P[:, source] if rng.random() < memory else own)))
        drawn.append(x)
    return drawn


# ------------------------------------------------------------------------------------------------ the choice


def same_model(one, other):
    assert one.loglik_ == other.loglik_
    np.testing.assert_array_equal(one.attention_.toarray(), other.attention_.toarray())


def test_what_is_chosen_is_the_fit_that_can_be_asked_for():
    x = order_two(4000, 0)
    model = scb.SparseContextualBigram(5).fit(x)
    options = {"transition": model._fitted.transition, "context": model._fitted.context, "background": "ngram"}
    same_model(model, scb.SparseContextualBigram(5, **options).fit(x))
    answer = model.summary().answer
    assert answer.startswith("The last 2 symbols matter together, as an n-gram; beyond them, no earlier symbol")
    best = min(model.choices_, key=model.choices_.get)
    assert best == "beside an n-gram"
    assert f"{best} {model.choices_[best]:.4f}" in " ".join(str(model.summary()).split())


def test_where_the_usual_choice_is_good_nothing_else_is_made():
    x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 4000, seed=0)
    model = scb.SparseContextualBigram(6).fit(x)
    usual = scb.SparseContextualBigram(6, transition="auto", context=True, background="labels").fit(x)
    same_model(model, usual)
    assert usual.choices_ == {}
    assert set(usual.criterion_) == {"shared", "per_lag"}


def test_lags_that_are_the_same_after_every_symbol_need_no_context():
    """Twelve symbols, of which seven in ten follow that at one of six lags: to tell weights after each symbol is too much."""
    rng = np.random.default_rng(1)
    x = rng.integers(12, size=6).tolist()
    for u, lag, other in zip(rng.random(3000), rng.integers(1, 7, size=3000), rng.integers(12, size=3000), strict=True):
        x.append((x[-lag] + 1) % 12 if u < 0.7 else int(other))
    model = scb.SparseContextualBigram(8).fit(np.array(x))
    assert not model._fitted.context
    assert set(model.lags_["lag"].tolist()) == set(range(1, 7))
    assert model.choices_["one matrix, no context"] < model.choices_["one matrix for all lags"] - 0.01


def test_lags_that_are_asked_for_keep_the_background():
    model = scb.SparseContextualBigram(5, lags=[1, 2]).fit(order_two(2000, 0))
    assert model._fitted.background is None


def test_a_chosen_model_comes_back_from_its_file(tmp_path):
    for X in (order_two(3000, 1), panel(0, memory=0.0)):
        model = scb.SparseContextualBigram(5).fit(X)
        model.save(tmp_path / "model.safetensors")
        again = scb.SparseContextualBigram.load(tmp_path / "model.safetensors")
        assert model._fitted.background is not None
        assert again.choices_ == model.choices_
        assert again.get_params() == model.get_params()
        np.testing.assert_array_equal(again.predict_proba(X[:30]), model.predict_proba(X[:30]))


# ------------------------------------------------------------------------------------------------ sequences that differ


def test_frequencies_are_counted_in_the_sequence_so_far():
    """Against counts by hand; a gap shorter than a window does not begin another sequence."""
    x = [np.array([0, 1, 1, GAP, 1, 0, 1]), np.array([2]), np.array([1, 1, 2])]
    data = windows_of_codes(x, 3, 4, context=True)
    (partition,) = data.partitions
    own, length = own_counts(partition, data.shape)
    assert own.tolist() == [0, 1, 1, 3, 1, 0]
    assert length.tolist() == [1, 2, 4, 5, 1, 2]
    background = SequenceBackground(np.array([0.5, 0.3, 0.2]), 2.0)
    (with_own,) = background.attached(data).partitions
    distributions = with_own.background.distributions
    np.testing.assert_allclose(distributions.sum(axis=1), 1)
    np.testing.assert_allclose(distributions[4], (2 * background.prior + [0, 1, 0]) / 3)
    np.testing.assert_allclose(distributions[np.arange(6), partition.label], background.likelihoods(partition, data.shape))


@pytest.mark.parametrize("seed", range(3))
def test_sequences_that_differ_have_no_memory(seed):
    X = panel(seed, memory=0.0)
    model = scb.SparseContextualBigram(10).fit(X)
    assert model.attention_.nnz == 0
    assert model.summary().answer.startswith("Each sequence has frequencies of its own; beyond them, no earlier symbol")
    with pytest.warns(UserWarning, match="the sequences differ"):
        asked = scb.SparseContextualBigram(10, context=True, background="labels").fit(X)
    assert asked.attention_.nnz > 10
    assert any("the sequences differ" in line for line in asked.summary().warnings)


def test_a_memory_is_found_in_sequences_that_differ():
    model = scb.SparseContextualBigram(10, background="per_sequence").fit(panel(3, memory=0.5))
    found = {(int(k), int(lag)) for k, lag in zip(model.lags_["context"], model.lags_["lag"], strict=True)}
    assert found == {(0, 3), (1, 3), (2, 6), (3, 6)}


def test_sequences_that_are_alike_are_not_said_to_differ():
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            X = rng.integers(3, size=(60, 40))
            model = scb.SparseContextualBigram(8).fit(X)
            assert model._fitted.background is None
            assert model.attention_.nnz == 0


def test_what_a_sequence_has_shown_is_used_to_predict():
    model = scb.SparseContextualBigram(4, background="per_sequence").fit(panel(0, memory=0.0))
    long, short = [3] * 60, [3] * 4
    after_long, after_short = model.predict_proba([long, short])[:, 3]
    assert after_long > after_short + 0.05
    np.testing.assert_allclose(model.predict_proba(long)[-1, 3], after_long)
    np.testing.assert_allclose(model.forecast(np.array(long), 2, n_samples=5)[0, 3], after_long)
    assert model.sample(20, random_state=0).size == 20


# ------------------------------------------------------------------------------------------------ what is held out


def test_whole_sequences_are_held_out_at_random():
    codes = [np.full(length, i) for i, length in enumerate([40] * 50 + [4] * 200)]
    parts = split(codes, 0.2, seed=3)
    held = {int(x[0]) for x in parts.test}
    assert held.isdisjoint(int(x[0]) for x in parts.train)
    assert len(parts.train) + len(parts.test) == 250
    assert parts.skipped == [0] * len(parts.test)
    symbols = sum(map(len, parts.test)) / 2800
    assert 0.2 <= symbols < 0.22
    # Long and short sequences in the same proportion, not the last ones
    assert 5 <= sum(i < 50 for i in held) <= 16
    assert {int(x[0]) for x in split(codes, 0.2, seed=4).test} != held
    assert [int(x[0]) for x in split(codes, 0.2, seed=3).test] == [int(x[0]) for x in parts.test]


def test_long_sequences_are_cut_in_time():
    codes = [np.arange(1000), np.arange(500), *[np.arange(10)] * 20]
    parts = split(codes, 0.2)
    assert parts.skipped[:2] == [800, 400]
    assert [len(x) for x in parts.train[:2]] == [800, 400]
    assert len(parts.train) + len(parts.test) == 24
    two = split([np.arange(6), np.arange(6)], 0.5)
    assert sum(map(len, two.train)) == sum(len(x) - cut for x, cut in zip(two.test, two.skipped, strict=True))


def test_the_split_is_said_in_words():
    X = [list("abcabcab") for _ in range(40)]
    model = scb.SparseContextualBigram(2, lags=1)
    about = scb.analyse(model, X, n_halves=0, random_state=5).about
    assert "Held out to be predicted: 8 sequences drawn at random (seed 5); everything else is fitted" in about


@pytest.mark.parametrize("background", ["labels", "ngram", "per_sequence"])
def test_a_symbol_that_was_never_seen_costs_no_more_than_with_the_unigram(background):
    x = scb.generate(scb.Task.random(N=3, T=4, sparsity=1, seed=0), 1500, seed=0)
    codes = [x[:700], x[700:]]
    data = windows_of_codes(codes, 6, 4, context=True)
    from scb.sequences.lag_fit import LagSettings, fit_lags

    model = fit_lags(data, np.arange(6), LagSettings(4, "shared", True, background=background))
    distributions = model.distributions(x[:50])
    np.testing.assert_allclose(distributions.sum(axis=1), 1)
    unigram = NGram.fit(codes, 6, 1, "witten-bell").distributions(np.zeros(1, np.int64))[0]
    assert (distributions[:, 3:] >= unigram[3:] * (1 - 1e-12)).all()
    assert (model.unseen[:3] == 0).all()
