"""Covariates: values known when a symbol is predicted, as sources beside the lags or as the one that chooses."""

import numpy as np
import pandas as pd
import pytest

import scb
from scb.inputs import InputError

SYMBOLS = np.array(["dry", "wet"])


def weather(n=3000, seed=0):
    """Days that repeat the day before or have the weather of their season, and a column of noise."""
    rng = np.random.default_rng(seed)
    season = np.array(["winter", "summer"])[(np.arange(n) // 250) % 2]
    wet = [0]
    for i in range(1, n):
        own = int(rng.random() < (0.85 if season[i] == "winter" else 0.2))
        wet.append(own if rng.random() < 0.5 else wet[-1])
    return SYMBOLS[wet], {"season": season, "noise": rng.integers(0, 5, n)}


def switching(n=3000, seed=0):
    """In winter days repeat the one before, in summer they change: neither says anything alone."""
    rng = np.random.default_rng(seed)
    season = np.array(["winter", "summer"])[rng.integers(0, 2, n)]
    wet = [0]
    for i in range(1, n):
        expected = wet[-1] if season[i] == "winter" else 1 - wet[-1]
        wet.append(expected if rng.random() < 0.9 else 1 - expected)
    return SYMBOLS[wet], {"season": season}


@pytest.fixture(scope="module")
def fitted():
    x, columns = weather()
    return x, columns, scb.SparseContextualBigram(4).fit(x, covariates=columns)


def test_a_season_is_found_and_noise_is_not(fitted):
    x, _columns, model = fitted
    assert model.covariates_ == {"season": True, "noise": False}
    assert set(model.lags_["source"]) == {"lag 1", "season"}
    assert (model.lags_["lag"][model.lags_["source"] == "season"] == 0).all()
    assert "season" in model.summary().answer
    assert "do not matter, as far as these data can tell: noise" in " ".join(model.summary().about)
    new, others = weather(seed=1)
    without = scb.SparseContextualBigram(4).fit(x)
    assert model.score(new, covariates=others) > without.score(new) + 0.02


def test_likelihoods_and_reasons_equal_their_enumeration(fitted):
    x, columns, model = fitted
    code = np.searchsorted(model.classes_, x)
    value = np.searchsorted(["summer", "winter"], columns["season"])
    each = model.log_likelihoods(x, covariates=columns)
    reasons = model.explain(x, covariates=columns)
    attention = model.attention_.toarray()
    for i in range(10, 200):
        k = code[i - 1]
        terms = [model.background_weight_[k] * model.prior_[code[i]]]
        for lag in range(1, 5):
            matrix = model.transition_.get(lag)
            terms.append(0.0 if matrix is None else attention[k, lag - 1] * matrix[code[i], code[i - lag]])
        terms += [attention[k, 4] * model.transition_[5][code[i], value[i]], 0.0]
        assert np.isclose(each[i], np.log(sum(terms)), rtol=0, atol=1e-12)
        posterior = reasons.posterior[[i]].toarray().ravel()
        assert np.allclose(posterior, np.array(terms) / sum(terms), rtol=0, atol=1e-12)
    assert np.allclose(reasons.posterior.sum(axis=1)[1:], 1, rtol=0, atol=1e-12)
    assert reasons.sources == ["background", "lag 1", "lag 2", "lag 3", "lag 4", "season", "noise"]


@pytest.mark.parametrize("context", [True, False])
def test_a_covariate_that_is_an_earlier_symbol_is_a_lag(context):
    x = scb.generate(scb.Task.random(N=3, T=4, sparsity=2, seed=3), 2000, seed=0)
    earlier = np.append([None] * 3, x[:-3])
    options = {"transition": "per_lag", "context": context, "background": "labels", "smoothing": 0.0}
    lags = scb.SparseContextualBigram(3, lags=[1, 3], **options).fit(x)
    values = scb.SparseContextualBigram(1, lags=[1], **options).fit(x, covariates={"earlier": earlier})
    assert values.loglik_ == pytest.approx(lags.loglik_, abs=1e-3)
    assert values.n_parameters_ == lags.n_parameters_


def test_predictions_agree_with_each_other_and_after_loading(fitted, tmp_path):
    x, columns, model = fitted
    more = {"season": np.append(columns["season"], "winter")}
    proba = model.predict_proba(x, covariates=more)
    each = model.log_likelihoods(x, covariates=columns)
    code = np.searchsorted(model.classes_, x)
    assert np.allclose(np.log(proba[np.arange(len(x) - 1), code[1:]]), each[1:], rtol=0, atol=1e-12)
    ends = model.predict_proba([x[:50].tolist(), x[:51].tolist()], covariates={"season": more["season"][[50, 51]]})
    assert np.allclose(ends, proba[[49, 50]], rtol=0, atol=1e-12)
    ahead = model.forecast(x, 3, covariates={"season": ["winter"] * 3})
    assert np.allclose(ahead[0], proba[-1], rtol=0, atol=1e-12)
    both = model.forecast([x[:9].tolist(), x[:9].tolist()], 2, covariates={"season": ["winter", "winter", "summer", "summer"]})
    assert both[0, 1, 1] > both[1, 1, 1]
    drawn = model.sample(2000, covariates={"season": ["winter"] * 2000})
    assert (drawn == "wet").mean() > 0.7
    model.save(tmp_path / "model.safetensors")
    loaded = scb.SparseContextualBigram.load(tmp_path / "model.safetensors")
    assert np.array_equal(loaded.predict_proba(x, covariates=more), proba)
    assert loaded.covariates_ == model.covariates_
    assert str(loaded.summary()) == str(model.summary())
    assert model.stability(x, covariates=columns, n_halves=2).shape == model.lags_["lag"].shape


def test_a_covariate_that_chooses(tmp_path):
    x, columns = switching()
    model = scb.SparseContextualBigram(3).fit(x, covariates=columns)
    without = scb.SparseContextualBigram(3).fit(x)
    new, others = switching(seed=1)
    assert model.score(new, covariates=others) > without.score(new) + 0.3
    assert "season" in model.lags_["source"][0]
    assert set(model.lags_["context"]) <= {f"{a}, season {b}" for a in SYMBOLS for b in ("summer", "winter")}
    assert "together choose" in " ".join(model.summary().about)
    each = model.log_likelihoods(new, covariates=others)
    more = {"season": np.append(others["season"], "winter")}
    code = np.searchsorted(model.classes_, new)
    proba = model.predict_proba(new, covariates=more)
    assert np.allclose(np.log(proba[np.arange(len(new) - 1), code[1:]]), each[1:], rtol=0, atol=1e-12)
    assert np.allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-12)
    model.save(tmp_path / "model.safetensors")
    loaded = scb.SparseContextualBigram.load(tmp_path / "model.safetensors")
    assert np.array_equal(loaded.predict_proba(new, covariates=more), proba)
    assert model.plot_matrices().axes
    assert model.plot().get_xlabel()


def test_values_that_were_not_in_the_fit(fitted):
    x, columns, model = fitted
    strange = {"season": ["monsoon"] * 9}
    with pytest.raises(InputError, match="'season' holds 'monsoon', which did not occur"):
        model.score(x[:9], covariates=strange)
    patient = scb.SparseContextualBigram(4, handle_unknown="missing").fit(x, covariates=columns)
    assert patient.score(x[:9], covariates=strange) == patient.score(x[:9], covariates={"season": [None] * 9})
    with pytest.raises(InputError, match="needs 'season'"):
        model.score(x)
    with pytest.raises(InputError, match=r"one for each of the 3,001 symbols, and the symbol after"):
        model.predict(x, covariates=columns)


def test_integer_weights_equal_repeated_data():
    sequences, seasons = [], []
    for seed in range(6):
        x, columns = weather(200, seed)
        sequences.append(x.tolist())
        seasons.append(columns["season"].tolist())
    weight = [1, 2, 0, 3, 1, 1]
    options = {"transition": "per_lag", "context": True, "background": "labels"}
    weighted = scb.SparseContextualBigram(3, **options).fit(sequences, covariates={"s": seasons}, sample_weight=weight)
    again = [[x for x, w in zip(one, weight, strict=True) for _ in range(w)] for one in (sequences, seasons)]
    repeated = scb.SparseContextualBigram(3, **options).fit(again[0], covariates={"s": again[1]})
    assert weighted.loglik_ == pytest.approx(repeated.loglik_, rel=1e-9)
    assert np.allclose(weighted.attention_.toarray(), repeated.attention_.toarray(), rtol=0, atol=1e-9)


def test_columns_come_as_people_have_them():
    x, columns = weather(1000)
    names = np.where(np.arange(1000) < 600, "a", "b")
    frame = pd.DataFrame({"who": names, "day": np.arange(1000), "weather": x, **columns}).sample(frac=1, random_state=0)
    read = scb.read_sequences(frame, column="weather", group="who", order="day", covariates=["season"])
    assert read.said.endswith("covariates: season")
    options = {"transition": "per_lag", "context": True, "background": "labels"}
    from_table = scb.SparseContextualBigram(3, **options).fit(read)
    parts = [[one[:600].tolist(), one[600:].tolist()] for one in (x, columns["season"])]
    from_lists = scb.SparseContextualBigram(3, **options).fit(parts[0], covariates={"season": parts[1]})
    assert from_table.loglik_ == pytest.approx(from_lists.loglik_, rel=1e-12)
    assert from_table.score(read) == pytest.approx(from_lists.score(parts[0], covariates={"season": parts[1]}))
    series = scb.SparseContextualBigram(3, **options).fit(x, covariates=pd.Series(columns["season"], name="season"))
    array = scb.SparseContextualBigram(3, **options).fit(x, covariates=np.array([columns["season"]]).T)
    assert series.loglik_ == array.loglik_
    assert list(array.covariates_) == ["covariate 1"]


def test_values_of_sequences_and_numbers_in_bins():
    rng = np.random.default_rng(0)
    heat = rng.uniform(0, 30, 60)
    sequences = [SYMBOLS[(rng.random(40) < 0.1 + h / 40).astype(int)].tolist() for h in heat]
    model = scb.SparseContextualBigram(3, background="labels").fit(sequences, covariates={"heat": heat})
    assert model.covariates_ == {"heat": True}
    matrix = model.transition_[4]
    assert matrix.shape == (2, 8)
    assert matrix[1, -1] > matrix[1, 0]
    wet = model.predict_proba([["dry"], ["dry"]], covariates={"heat": [1.0, 99.0]})[:, 1]
    assert wet[1] > wet[0] + 0.2


def test_what_cannot_be():
    x, columns = weather(300)
    fit = scb.SparseContextualBigram(3).fit
    for covariates, message in (
        ({"season": columns["season"][:7]}, "'season' has 7 values, but there must be one for each of the 300 symbols"),
        ({}, "no column"),
        ({"id": [f"user {i}" for i in range(900)][:300] + ["x"] * 0}, None),
        ({"when": np.arange(300).astype("datetime64[D]")}, "'when' holds"),
        ({"empty": [None] * 300}, "'empty' has 0 different values"),
    ):
        if message is None:
            assert fit(x, covariates=covariates).covariates_ == {"id": False}
            continue
        with pytest.raises(InputError, match=message):
            fit(x, covariates=covariates)
    with pytest.raises(InputError, match="transition must be 'auto' or 'per_lag'"):
        scb.SparseContextualBigram(3, transition="shared").fit(x, covariates=columns)
    with pytest.raises(InputError, match="init cannot be given"):
        fit(x, covariates=columns, init=scb.SparseContextualBigram(3).fit(x))


def test_groups_and_soft_labels_beside_covariates():
    parts = [weather(300, seed) for seed in range(8)]
    sequences = [x.tolist() for x, _ in parts]
    columns = {"season": [c["season"].tolist() for _, c in parts]}
    model = scb.SparseContextualBigram(3).fit(sequences, covariates=columns, groups=[0, 1] * 4)
    assert model.groups_.parts["p"].min() > 0.01
    assert "season" in model.groups_.parts["part"]
    x, own = weather(1000, 9)
    soft = model.predict_proba(x, covariates={"season": np.append(own["season"], "winter")})
    twin = scb.SparseContextualBigram(3, transition="per_lag", context=True, background="labels").fit(
        x, covariates={"season": own["season"]}, probabilities=soft
    )
    assert twin.explained_share_ > 0.999
