"""The estimator on streams, along a path of sparsity, and in scikit-learn's cross-validation, by time and by group."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, GroupKFold, GroupShuffleSplit, TimeSeriesSplit, cross_val_score

import scb
from scb.sequences.kept import KeptSymbols
from scb.sequences.symbols import as_sequences
from truth.mtd import MTD

Bigram = scb.SparseContextualBigram


def taken(pieces, max_lag=3, memory=1000):
    kept = KeptSymbols(max_lag, memory)
    for piece in pieces:
        kept.take(as_sequences(piece), max_lag, memory)
    return kept


def pieces_of(x, rng, most=700):
    cuts = np.cumsum(rng.integers(1, most, size=x.size))
    return np.split(x, cuts[cuts < x.size])


# ------------------------------------------------------------------------------------------------ partial_fit


@pytest.mark.parametrize("transition", ["shared", "per_lag"])
def test_a_stream_that_fits_into_memory_gives_what_fit_gives(transition):
    x = MTD.random(1).sample(6000, 1)
    letters = np.array(list("dbca"))[x]  # new symbols may come late, and in any order
    whole = Bigram(12, transition=transition).fit(letters)
    model = Bigram(12, transition=transition)
    for piece in pieces_of(letters, np.random.default_rng(0)):
        model.partial_fit(piece, fit=False)
    model.partial_fit()
    assert model.n_seen_ == 6000
    assert model.classes_.tolist() == whole.classes_.tolist()
    assert model.n_windows_ == whole.n_windows_
    assert model.n_symbols_ == whole.n_symbols_
    assert model.loglik_ == whole.loglik_
    np.testing.assert_array_equal(model.attention_.toarray(), whole.attention_.toarray())
    np.testing.assert_array_equal(model.predict_proba(letters[:50]), whole.predict_proba(letters[:50]))


def test_sequences_begin_anew_and_one_goes_on():
    a, b, c = [0, 1, 2, 1], [2, 2, 0], [1, 0, None, 1]
    data = taken([[a, b], [c], [0, 1], [2]], max_lag=2).windows(context=True)
    whole = Bigram(2).fit([a, b, [*c, 0, 1, 2]])
    assert data.n == whole.n_windows_ == 3 + 2 + 1 + 3
    (part,) = data.partitions
    assert part.label.tolist() == [1, 2, 1, 2, 0, 0, 0, 1, 2]
    # lags 2 and 1; 3 where nothing is there
    assert part.gather(np.tile([0, 1], (3, 1)), 3).tolist() == [
        [3, 0], [0, 1], [1, 2], [3, 2], [2, 2], [3, 1], [3, 1], [1, 0], [0, 1]
    ]  # fmt: skip


def test_what_is_kept_is_bounded_and_does_not_depend_on_the_pieces():
    x = np.random.default_rng(0).integers(3, size=20_000)
    for seed in range(3):
        kept = taken(pieces_of(x, np.random.default_rng(seed), most=60 + 700 * seed), memory=2000)
        assert kept.seen == 20_000
        assert 1900 <= kept.windows(context=True).tokens <= 2000
        blocks = np.concatenate(kept.blocks)
        np.testing.assert_array_equal(blocks, np.concatenate(taken([x], memory=2000).blocks))
    at = [i for i in range(0, 20_000, kept.length) if any(np.array_equal(x[i : i + kept.length], b[3:]) for b in kept.blocks)]
    assert len(at) >= len(kept.blocks)
    for i, block in zip(at, kept.blocks, strict=True):  # what comes before a block is there to be looked back at
        np.testing.assert_array_equal(block[:3], x[i - 3 : i] if i else [-1] * 3)


def test_all_parts_of_a_stream_have_the_same_chance():
    """The mean place of what is kept of 0 … 1 is 0.5, within three standard deviations of 64 blocks out of many."""
    x = np.repeat(np.arange(1000), 60)
    places = [x for block in taken([x], memory=4000).blocks for x in block[3:]]
    assert abs(np.mean(places) / 999 - 0.5) < 3 * np.sqrt(1 / 12 / 64)


def test_a_sample_of_a_long_stream_finds_the_lags():
    truth = MTD.random(1)
    model = Bigram(12, transition="shared")
    for piece in np.split(truth.sample(60_000, 1), 6):
        model.partial_fit(piece, memory=15_000, fit=False)
    model.partial_fit(memory=15_000)
    assert model.n_symbols_ <= 15_000 < model.n_seen_
    assert set(zip(model.lags_["context"].tolist(), model.lags_["lag"].tolist(), strict=True)) == truth.table


def test_a_stream_goes_on_after_a_file(tmp_path):
    x = np.array(list("abcd"))[MTD.random(1).sample(5000, 1)]
    whole = Bigram(12, transition="shared").partial_fit(x, memory=3000)
    model = Bigram(12, transition="shared").partial_fit(x[:1777], memory=3000)
    model.save(tmp_path / "model")
    again = Bigram.load(tmp_path / "model").partial_fit(x[1777:], memory=3000)
    assert again.n_seen_ == 5000
    assert again.loglik_ == whole.loglik_
    np.testing.assert_array_equal(again.transition_, whole.transition_)
    fresh = Bigram(12, transition="shared").fit(x[:1000])
    assert fresh.n_seen_ == 0
    assert again.fit(x[:1000]).n_seen_ == 0


def test_streams_refuse_what_they_cannot_be():
    model = Bigram(3).partial_fit(list("abcabcab" * 5))
    for options, message in (
        ({"memory": 1001}, "memory = 1001"),
        ({"memory": 10}, "memory = 10, but it was"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(list("abc"), **options)
    with pytest.raises(ValueError, match="memory = 10: it must be at least 1000"):
        Bigram(3).partial_fit(list("abc"), memory=10)
    with pytest.raises(ValueError, match="max_lag = 4, but it was 3"):
        model.set_params(max_lag=4).partial_fit(list("abc"))
    with pytest.raises(TypeError, match="of one type"):
        Bigram(3).partial_fit([0, 1, 2], fit=False).partial_fit(list("abc"))
    with pytest.raises(ValueError, match="holds no symbol"):
        Bigram(3).partial_fit([None, None])


def test_a_file_is_not_written_with_symbols_that_its_model_does_not_know(tmp_path):
    model = Bigram(2).partial_fit(list("abab" * 20))
    model.partial_fit(list("xyxy"), fit=False)
    with pytest.raises(ValueError, match="fit=True, then save"):
        model.save(tmp_path / "model")


# ------------------------------------------------------------------------------------------------ a path over sparsity


def test_the_path_has_its_best_where_the_truth_is():
    truth = MTD.random(1, ((2, 7), (1, 11), (2, 7), (7, 11)))
    x = truth.sample(10_000, 1)
    path = scb.sparsity_path(Bigram(12, transition="shared"), x, (1, 2, 3))
    rows = path.columns
    assert rows["lags"].tolist() == ["1", "2", "3", "auto"]
    assert rows["total"].tolist()[:3] == [4, 8, 12]
    assert rows["bic"][:3].argmin() == 1
    assert rows["difference"].min() == 0
    assert rows["difference"][0] > 3 * rows["error"][0] > 0  # one lag is too few
    alone = Bigram(12, transition="shared", lags=2).fit(x[:8000])
    held = alone.log_likelihoods(x[8000 - 12 :])[12:]
    assert rows["bits"][1] == pytest.approx(-held.mean() / np.log(2))
    assert rows["parameters"][1] == alone.n_parameters_
    assert len(path.to_pandas()) == 4
    assert "auto" in str(path)
    for criterion in ("bits", "bic"):
        line = path.plot(criterion).lines[0]
        np.testing.assert_array_equal(line.get_xdata(), rows["total"][:3])
        np.testing.assert_array_equal(line.get_ydata(), rows[criterion][:3])
    with pytest.raises(ValueError, match="criterion = 'aic'"):
        path.plot("aic")
    with pytest.raises(ValueError, match="held_out = 0"):
        scb.sparsity_path(Bigram(12), x, held_out=0)


# ------------------------------------------------------------------------------------------------ cross-validation


@pytest.fixture(scope="module")
def users():
    """Thirty users with three visits each, of 40 to 80 symbols; which lag matters is common to all."""
    truth = MTD.random(3, ((2,), (1, 2), (2,), (1,)))
    rng = np.random.default_rng(0)
    visits = [truth.sample(int(n), int(n) + i).tolist() for i, n in enumerate(rng.integers(40, 81, size=90))]
    return visits, np.repeat(np.arange(30), 3)


def test_users_are_held_out_as_a_whole(users):
    visits, groups = users
    for cv in (GroupKFold(3), GroupShuffleSplit(3, random_state=0)):
        scores = cross_val_score(Bigram(4, transition="shared"), visits, groups=groups, cv=cv)
        for score, (train, test) in zip(scores, cv.split(visits, groups=groups), strict=True):
            assert not set(groups[train]) & set(groups[test])
            by_hand = Bigram(4, transition="shared").fit([visits[i] for i in train]).score([visits[i] for i in test])
            assert score == by_hand


def test_a_grid_over_max_lag_is_scored_on_the_same_symbols(users):
    visits, groups = users
    grid = {"max_lag": [1, 2, 30]}
    search = GridSearchCV(Bigram(transition="shared", background="labels"), grid, cv=GroupKFold(3)).fit(visits, groups=groups)
    one, two, thirty = search.cv_results_["mean_test_score"]
    assert one < two - 0.01  # the truth has lags 1 and 2
    assert two == pytest.approx(thirty, rel=1e-9)  # the same lags are found, and the same symbols scored
    (_, test), *_ = GroupKFold(3).split(visits, groups=groups)
    for lag in (1, 30):
        each = Bigram(lag, transition="shared").fit(visits).log_likelihoods([visits[i] for i in test])
        assert each.size == sum(len(visits[i]) for i in test)
        assert np.isfinite(each).sum() == sum(len(visits[i]) - 1 for i in test)


def test_time_goes_forward_in_one_sequence_and_in_many(users):
    x = MTD.random(1).sample(4000, 1)
    cv = TimeSeriesSplit(3, test_size=500)
    scores = cross_val_score(Bigram(12, transition="shared"), x, cv=cv)
    for score, (train, test) in zip(scores, cv.split(x), strict=True):
        assert train.max() < test.min()
        assert score == Bigram(12, transition="shared").fit(x[train]).score(x[test])
    visits, _ = users
    assert np.isfinite(cross_val_score(Bigram(4, transition="shared"), visits, cv=TimeSeriesSplit(3))).all()


def test_a_symbol_that_only_the_held_out_part_has(users):
    visits, groups = users
    rare = [["abcd"[s] for s in visit] for visit in visits]
    rare[-1][5] = "z"
    with pytest.warns(UserWarning, match="Scoring failed"):
        scores = cross_val_score(Bigram(4, transition="shared"), rare, groups=groups, cv=GroupKFold(3))
    assert np.isnan(scores).sum() == 1
    lenient = Bigram(4, transition="shared", handle_unknown="missing")
    assert np.isfinite(cross_val_score(lenient, rare, groups=groups, cv=GroupKFold(3))).all()
