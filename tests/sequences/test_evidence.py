"""The estimator on data of others: many symbols, gaps, short sequences, unseen symbols; and how sure it is of what it finds."""

import copy
import csv
import json
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

import scb
from scb.folders import opened
from scb.mixture import settle
from scb.mixture.em import climb_by_em, maximise
from scb.mixture.fit import fit_mixture, incomplete_from
from scb.mixture.model import Background, Mixture
from scb.mixture.newton import Point, inverse_along
from scb.mixture.partition import Partition
from scb.mixture.rows import RowTable, Slots
from scb.mixture.tuning import TUNING
from scb.sequences.coding import windows_of_codes
from scb.sequences.fit_folder import write_tables
from scb.sequences.lag_fit import MAX_LAG
from scb.sequences.report import lag_table
from truth.mtd import MTD

Bigram = scb.SparseContextualBigram


def table(model):
    return set(zip(model.lags_["context"].tolist(), model.lags_["lag"].tolist(), strict=True))


# ------------------------------------------------------------------------------------------------ many symbols


@pytest.mark.parametrize("N", [2, 20, 61, 100])
@pytest.mark.parametrize("context", [True, False])
@pytest.mark.parametrize("transition", ["shared", "per_lag"])
def test_noise_has_no_lags_however_many_symbols(N, context, transition):
    x = np.random.default_rng(N).integers(N, size=5000)
    model = Bigram(5, transition=transition, context=context).fit(x)
    assert model.lags_["lag"].size == 0
    assert model.converged_
    assert -model.score(x) == pytest.approx(np.log(N), abs=0.05)


def test_a_search_that_is_cut_short_says_so(monkeypatch):
    x = MTD.random(1).sample(5000, 1)
    monkeypatch.setattr(settle, "TUNING", replace(TUNING, rounds=1))
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = Bigram(12, transition="per_lag").fit(x)
    assert not model.converged_
    assert "did not converge" in str(model.summary())


def test_twenty_symbols_and_their_lags():
    rng = np.random.default_rng(0)
    support = tuple(tuple(sorted(rng.choice([2, 5, 9], size=rng.integers(1, 3), replace=False).tolist())) for _ in range(20))
    truth = MTD.random(0, support, N=20)
    model = Bigram(12, transition="shared").fit(truth.sample(40_000, 0))
    assert table(model) == truth.table
    assert model.converged_


def test_newton_by_products_climbs_as_high_as_newton_with_matrices():
    x = MTD.random(2).sample(3000, 2)
    data = windows_of_codes([x], 4, 12, context=True)
    positions = np.array([[-1, 10, 5], [-1, 11, 1], [-1, 1, -1], [-1, 10, -1]])
    rows = data.rows(Slots(positions, np.zeros_like(positions)))
    start = Mixture(np.full((4, 4), 0.25), data.label_distribution, np.array([[0, 0.5, 0.5]] * 2 + [[0, 1.0, 0]] * 2))
    start = climb_by_em(rows, start.lifted(), 2).at
    dense = maximise(rows, start, tolerance=1e-6)
    products = maximise(rows, start, tolerance=1e-6, tuning=replace(TUNING, dense=0))
    assert products.gap < 1e-6
    assert products.loglik == pytest.approx(dense.loglik, abs=1e-5)


# ------------------------------------------------------------------------------------------------ windows


def test_every_symbol_that_follows_one_is_predicted_and_lags_that_are_there_are_used():
    codes = [np.array([0, 1, 2, -1, 1, 0]), np.array([2]), np.array([], np.int64), np.array([1, 2])]
    data = windows_of_codes(codes, 3, 3, context=True)
    (part,) = data.partitions
    assert part.label.tolist() == [1, 2, 0, 2]
    assert part.last.tolist() == [0, 1, 1, 1]
    # lag 3, 2 and 1; N = 3 where nothing is there. Lag 3 of the third label lies beyond the gap
    assert part.gather(np.tile([0, 1, 2], (3, 1)), 3).tolist() == [[3, 3, 0], [3, 0, 1], [2, 3, 1], [3, 3, 1]]
    assert data.present.tolist() == [[0, 0, 1], [1, 1, 3], [0, 0, 0]]


def test_many_short_sequences_are_all_used():
    """A thousand sequences of 5 to 40 symbols; the longest lag asked for is longer than any of them."""
    truth = MTD.random(3, ((2,), (1, 2), (2,), (1,)))
    x = truth.sample(30_000, 1)
    cuts = np.cumsum(np.random.default_rng(0).integers(5, 41, size=1000))
    sequences = np.split(x, cuts[cuts < x.size])
    model = Bigram(50, transition="shared").fit(sequences)
    assert model.n_symbols_ == 30_000
    assert model.n_windows_ == 30_000 - len(sequences)
    assert table(model) == truth.table


def test_missing_symbols_take_little_away():
    truth = MTD.random(1)
    x = truth.sample(20_000, 1).astype(float)
    x[np.random.default_rng(0).random(x.size) < 0.03] = np.nan
    model = Bigram(100, transition="shared").fit(x)
    assert model.n_windows_ > 0.93 * x.size
    assert table(model) == {(float(k), lag) for k, lag in truth.table}


def test_too_few_labels_are_told():
    x = np.array([0, 1, np.nan] * 100 + [0, np.nan] * 300)
    with pytest.warns(UserWarning, match="only 100 of 500 symbols"):
        Bigram(3).fit(x)


# ------------------------------------------------------------------------------------------------ unseen symbols


def test_a_symbol_that_was_never_a_label_is_not_impossible(fitted_with_rare):
    model, x = fitted_with_rare
    distributions = model.predict_proba(x[:50])
    assert (distributions > 0).all()
    assert np.isfinite(model.score(["z", "z", *x[:50]]))


def test_unknown_symbols_are_gaps_if_asked(fitted_with_rare):
    model, x = fitted_with_rare
    with pytest.raises(ValueError, match="handle_unknown='missing'"):
        model.score([*x[:50], "new"])
    model.handle_unknown = "missing"
    distributions = model.predict_proba([*x[:50], "new", *x[50:60]])
    np.testing.assert_allclose(distributions[:50], model.predict_proba(x[:50]))
    np.testing.assert_allclose(distributions[50], model.prior_)
    gaps = [*x[:50], None, *x[50:60]]
    assert model.score([*x[:50], "new", *x[50:60]]) == model.score(gaps)
    with pytest.raises(ValueError, match="handle_unknown = 'so'"):
        Bigram(3, handle_unknown="so").fit(x)


@pytest.fixture
def fitted_with_rare():
    """The last class occurs at the start only, where it is no label."""
    x = ["z", *np.array(list("abcd"))[MTD.random(1).sample(3000, 1)]]
    return Bigram(12, transition="shared").fit(x), x


# ------------------------------------------------------------------------------------------------ a background for each window


def test_a_background_for_each_window_enters_every_sum():
    """One distribution in many states equals that of all labels; others give what is written out by hand."""
    x = MTD.random(2).sample(2000, 2)
    data = windows_of_codes([x], 4, 8, context=True)
    rng = np.random.default_rng(0)
    slots = Slots.from_support([np.array([3, 6])] * 4)
    at = Mixture(rng.dirichlet(np.ones(4), 4).T, data.label_distribution, rng.dirichlet(np.ones(3), 4))

    (part,) = data.partitions

    def with_states(distributions):
        states = Background(distributions, np.arange(part.n) % len(distributions))
        return replace(data, partitions=[part.with_background(states)], own_background=True)

    plain = data.rows(slots)
    same = with_states(np.repeat(data.label_distribution[None], 5, axis=0)).rows(slots)
    for a, b in zip(plain.total(RowTable.evaluate, at), same.total(RowTable.evaluate, at), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    for a, b in zip(plain.total(RowTable.information, at), same.total(RowTable.information, at), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    distributions = rng.dirichlet(np.ones(4), 5)
    (rows,) = with_states(distributions).rows(slots).held
    tokens = part.gather(slots.positions, 4)
    by_hand = [
        sum(q * (distribution if m == 4 else at.P[:, m]) for q, m in zip(at.q[k], row, strict=True))
        for k, row, distribution in zip(part.last, tokens, distributions[np.arange(part.n) % 5], strict=True)
    ]
    np.testing.assert_allclose(rows.distributions(at)[rows.row_numbers], by_hand, rtol=1e-12)
    likelihoods = np.array(by_hand)[np.arange(part.n), part.label]
    np.testing.assert_allclose(rows.likelihoods(at)[rows.row_numbers], likelihoods, rtol=1e-12)
    few = with_states(distributions).thinned(1000)
    assert few.own_background
    assert few.partitions[0].background.which.size == few.n


def test_a_lag_must_say_more_than_the_background():
    """A chain of order 2 that sometimes copies the ninth symbol before: the n-gram takes the recent ones, and lag 9 is left."""
    rng = np.random.default_rng(5)
    distributions = rng.dirichlet(np.full(4, 0.5), (4, 4))
    x = rng.integers(4, size=9).tolist()
    for copies, u in rng.random((20_000, 2)).tolist():
        x.append(x[-9] if copies < 0.2 else int((np.cumsum(distributions[x[-2], x[-1]])[:-1] < u).sum()))
    x = np.array(x)
    plain = Bigram(12, transition="per_lag", context=False, background="labels").fit(x)
    assert len(table(plain)) > 1
    beyond = Bigram(12, transition="per_lag", context=False, background="ngram").fit(x)
    assert table(beyond) == {(None, 9)}
    assert beyond.background_weight_[0] > 0.5
    assert not beyond.incomplete_.any()
    assert "background" in str(beyond.summary())
    assert np.allclose(beyond.predict_proba(x[:40]).sum(axis=1), 1)
    assert beyond.sample(5, start=x[:12]).size == 5


# ------------------------------------------------------------------------------------------------ how sure


def test_what_a_lag_is_worth_is_what_a_fit_without_it_loses():
    truth = MTD.random(1)
    x = truth.sample(10_000, 1)
    model = Bigram(12, transition="shared", smoothing=0, context=False, lags=(2, 7, 11)).fit(x)
    rows = model.summary().columns
    for lag, nats, bic in zip(rows["lag"], rows["nats"], rows["delta_bic"], strict=True):
        without = Bigram(12, transition="shared", smoothing=0, context=False, lags=[one for one in (2, 7, 11) if one != lag]).fit(x)
        assert nats == pytest.approx(model.loglik_ - without.loglik_, abs=0.2)
        assert bic == pytest.approx(2 * nats - np.log(model.n_windows_))


def test_evidence_of_shrunk_matrices_is_that_of_long_fits():
    """Each of 20 symbols looks at lags 2 and 5; EM without one of them ends where longer EM would win back less than 5 %."""
    rng = np.random.default_rng(1)
    edges = rng.dirichlet(np.full(20, 0.5), (2, 20)).cumsum(axis=2)
    x = rng.integers(20, size=6000)
    for t in range(5, x.size):
        which = int(rng.random() < 0.4)
        x[t] = min(19, np.searchsorted(edges[which, x[t - (2, 5)[which]]], rng.random()))
    pending = fit_mixture(windows_of_codes([x], 20, 6, True), matrices="per_lag", shrink=1.0).evidence
    assert pending.shrinkage is not None

    def long(at):
        point = Point.from_rows(pending.rows, at.lifted())
        for _ in range(400):
            point = pending.shrinkage.step(pending.rows, point)
        return point.loglik

    found, mixture = pending.find(), pending.search.mixture
    losses = [long(mixture) - long(mixture.without(*slot)) for slot in pending.search.all_slots()]
    assert len(losses) > 30
    assert not np.concatenate(found.bounds).any()
    np.testing.assert_allclose(np.concatenate(found.nats), losses, rtol=0.05)


@pytest.mark.parametrize("transition", ["shared", "per_lag"])
@pytest.mark.parametrize("passes", [0, 60])
def test_where_there_is_no_time_to_fit_again_evidence_is_a_bound_and_adds_up(transition, passes, monkeypatch):
    """Without time P stays fixed, and bounds add up to what the model gains. With some, what is no bound is right within 10 %."""
    x = MTD.random(1, per_lag=transition == "per_lag").sample(5000, 1)
    model = Bigram(12, transition=transition, smoothing=0).fit(x)
    gain = model.loglik_ - model.n_windows_ * float(model.prior_ @ np.log(model.prior_))
    refitted = model.summary().columns
    assert not refitted["nats_bound"].any()
    assert refitted["nats"].sum() <= 1.05 * gain  # both lags of a state lose what they gain together
    again = Bigram(12, transition=transition, smoothing=0).fit(x)
    pending = again._fitted.evidence._compute.args[0]
    rows, slots = pending.rows.counted, pending.search.all_slots()
    effort = passes * len(rows.label) * pending.search.mixture.q.shape[1] * len(slots)
    monkeypatch.setattr("scb.mixture.evidence.TUNING", replace(TUNING, evidence_effort=effort))
    summary = again.summary()
    nats, bounds = summary.columns["nats"], summary.columns["nats_bound"] > 0
    assert bounds.all() if passes == 0 else not bounds.all()
    assert (nats[bounds] >= 0.95 * refitted["nats"][bounds]).all()
    np.testing.assert_allclose(nats[~bounds], refitted["nats"][~bounds], rtol=0.1, atol=1)
    assert nats.sum() <= (gain + 1e-6 if bounds.any() else 1.05 * gain)
    assert ("≤" in str(summary)) == bounds.any()
    assert any("at most" in line for line in summary.warnings) == bounds.any()
    assert ("≤" in str(lag_table(again._model())[1])) == bounds.any()


def test_the_influence_of_the_current_symbol_is_not_known_and_files_say_so(tmp_path):
    x = (np.random.default_rng(0).random(3000) < 0.3).cumsum() % 2
    for context in (True, False):
        model = Bigram(3, context=context, transition="per_lag").fit(x)
        assert model.lags_["lag"].tolist() == [1, 1][: 1 + context]
        with opened(tmp_path / str(context), "a test") as folder:
            write_tables(folder, model)
        with (tmp_path / str(context) / "lags.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert [np.isnan(float(row["influence"])) for row in rows] == [context] * len(rows)
        assert np.isnan(model.summary().columns["influence"]).all() == context


def test_evidence_is_found_when_it_is_asked_for_and_goes_with_the_model(tmp_path):
    """The same bits whether it is asked for, pickled, copied or saved first; the data are not kept for it."""
    x = MTD.random(1).sample(5000, 1)
    for transition in ("shared", "per_lag"):
        asked, pickled, copied, saved = (Bigram(12, transition=transition).fit(x) for _ in range(4))
        evidence = asked._fitted.evidence
        assert "_columns" not in vars(evidence)  # nobody has asked yet
        assert evidence._compute.args[0].search.data.partitions == []
        expected = asked.summary().columns
        assert np.isfinite(expected["nats"]).all()
        assert "_compute" not in vars(evidence)
        saved.save(tmp_path / "model")
        others = (pickle.loads(pickle.dumps(pickled)), copy.deepcopy(copied), Bigram.load(tmp_path / "model"))
        for other in others:
            assert type(other._fitted.evidence) is dict
            for name, column in expected.items():
                np.testing.assert_array_equal(other.summary().columns[name], column)


def test_rows_that_are_too_large_are_not_kept(monkeypatch):
    x = MTD.random(1).sample(3000, 1)
    later = Bigram(12, transition="shared").fit(x)
    monkeypatch.setattr("scb.mixture.evidence.TUNING", replace(TUNING, evidence_bytes=0))
    at_once = Bigram(12, transition="shared").fit(x)
    assert type(at_once._fitted.evidence) is dict
    for name, column in later.summary().columns.items():
        np.testing.assert_array_equal(at_once.summary().columns[name], column)


def test_the_inverse_along_a_direction_equals_that_of_the_matrix():
    """On the tangent space, with the second derivatives written out."""
    x = MTD.random(2).sample(4000, 2)
    data = windows_of_codes([x], 4, 12, context=False)
    rows = data.rows(Slots.from_support([np.array([5, 10])]))
    start = Mixture(np.full((4, 4), 0.25), data.label_distribution, np.array([[0.0, 0.4, 0.6]]))
    at = maximise(rows, start.lifted(), tolerance=1e-9).mixture
    rng = np.random.default_rng(0)
    dP, dq = rng.normal(size=(4, 4)), rng.normal(size=(1, 3))
    in_P, in_q = inverse_along(rows, Point.from_rows(rows, at), dP, dq, TUNING.products_of_errors)
    free = np.concatenate([(at.P > 1e-9).ravel(), (at.q > 1e-9).ravel()])
    PP, Pq, qq, mixed = rows.total(RowTable.curvature, at)
    Pq = Pq - mixed
    H = np.zeros((19, 19))
    for o in range(4):
        H[4 * o : 4 * o + 4, 4 * o : 4 * o + 4] = PP[o]
        H[4 * o : 4 * o + 4, 16:] = Pq[o, :, 0]
        H[16:, 4 * o : 4 * o + 4] = Pq[o, :, 0].T
    H[16:, 16:] = qq[0]
    border = np.zeros((5, 19))
    for m in range(4):
        border[m, m:16:4] = 1
    border[4, 16:] = 1
    H, border = H[np.ix_(free, free)], border[:, free]
    system = np.block([[H, border.T], [border, np.zeros((5, 5))]])
    exact = np.linalg.lstsq(system, np.r_[np.r_[dP.ravel(), dq.ravel()][free], np.zeros(5)])[0][: free.sum()]
    mine = np.r_[in_P.ravel(), in_q.ravel()][free]
    along = np.r_[dP.ravel(), dq.ravel()][free]
    assert along @ mine == pytest.approx(along @ exact, rel=0.02)


def test_intervals_of_the_influence_cover():
    """95 % intervals of how far a lag moves the distribution, over random models; the truth is computed from what made the data."""
    inside = []
    for seed in range(12):
        per_lag = seed % 2 == 1
        truth = MTD.random(seed, per_lag=per_lag)
        x = truth.sample(20_000, seed)
        model = Bigram(12, transition="per_lag" if per_lag else "shared").fit(x)
        mu = model.frequencies_
        rows = model.summary().columns
        for k, lag, low, high in zip(rows["context"], rows["lag"], rows["low"], rows["high"], strict=True):
            if lag > 1 and lag in truth.weights[k]:
                P = truth.matrices[lag]
                influence = truth.weights[k][lag] * (np.abs(P - (P @ mu)[:, None]).sum(axis=0) / 2 @ mu)
                inside.append(low <= influence <= high)
    assert len(inside) > 50
    assert np.mean(inside) > 0.87  # 95 % of 60, less three standard deviations


def test_no_interval_is_a_question_mark():
    x = MTD.random(1, per_lag=True).sample(10_000, 1)
    model = Bigram(12).fit(x)
    text = str(model.summary())
    assert "?" not in text
    assert "0.00 - 0.00" not in text
    assert max(map(len, text.splitlines())) <= 100
    frame = model.summary().to_pandas()
    assert list(frame.columns[:7]) == ["context", "lag", "weight", "influence", "low", "high", "nats"]
    moves = frame[frame["influence"] > 0]
    assert (moves["low"] < moves["influence"]).all()
    assert (moves["influence"] < moves["high"]).all()


def test_lags_are_found_again_in_halves():
    x = MTD.random(1).sample(10_000, 1)
    model = Bigram(12, transition="shared").fit(x)
    found = model.stability(x, n_halves=4)
    assert found.shape == model.lags_["lag"].shape
    assert (found == 1).all()
    assert "found" in str(model.summary())
    for bad in (0, 3):
        with pytest.raises(ValueError, match="n_halves"):
            model.stability(x, n_halves=bad)


def test_what_is_left_unexplained_is_told():
    """A lag beyond max_lag is missed: the contexts that use it are incomplete, the others are not."""
    truth = MTD.random(1, ((2,), (2, 20), (3,), (2,)))
    model = Bigram(5, transition="shared").fit(truth.sample(20_000, 1))
    assert model.incomplete_.tolist() == [False, True, False, False]
    assert model.background_weight_[1] == pytest.approx(truth.weights[1][20], abs=0.15)
    assert "not all lags are found after 1" in str(model.summary())


def test_both_kinds_are_fitted_and_the_better_one_is_kept():
    for per_lag in (False, True):
        x = MTD.random(1, per_lag=per_lag).sample(10_000, 1)
        model = Bigram(12, context=True, background="labels").fit(x)
        # Matrices that are all the same are merged, until two are left
        assert set(model.criterion_) == {"shared", "per_lag" if per_lag else "2"}
        assert isinstance(model.transition_, dict) == per_lag
        best = min(model.criterion_, key=model.criterion_.get)
        assert best == ("per_lag" if per_lag else "shared")


def test_the_command_and_the_class_have_the_same_defaults():
    import inspect

    from scb.cli.fit import fit

    command = {name: p.default for name, p in inspect.signature(fit).parameters.items()}
    for name, value in Bigram().get_params().items():
        if name in command and name != "context":
            assert command[name] == value, name
    # A flag: --no-context is context=False, and without it the data decide
    assert command["context"] is True
    assert Bigram().context == "auto"
    assert command["max_lag"] == MAX_LAG


# ------------------------------------------------------------------------------------------------ forecasts, pictures


def test_a_forecast_is_the_distribution_of_what_comes():
    truth = MTD.random(1)
    x = truth.sample(10_000, 1)
    model = Bigram(12, transition="shared").fit(x)
    distributions = model.forecast(x[:500], 3, n_samples=4000)
    first = model.predict_proba(x[:500])[-1]
    np.testing.assert_allclose(distributions[0], first)
    second = sum(first[s] * model.predict_proba([*x[:500], s])[-1] for s in range(4))  # all continuations
    np.testing.assert_allclose(distributions[1], second, atol=0.04)
    short = model.forecast(x[:3], 2, n_samples=50)  # lags that are not there
    np.testing.assert_allclose(short.sum(axis=1), 1)
    for bad in ({"steps": 0}, {"steps": 2, "n_samples": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            model.forecast(x[:20], **bad)


def test_the_picture_of_the_influence():
    model = Bigram(12, transition="shared").fit(MTD.random(1).sample(5000, 1))
    (image,) = model.plot().images
    np.testing.assert_allclose(np.nan_to_num(np.asarray(image.get_array(), float)), model.influence_.toarray())


def test_a_picture_of_nothing_says_so_and_every_symbol_can_be_seen():
    noise = np.random.default_rng(0).choice(["a", " ", "\n", "$"], size=3000)
    for ax in (model := Bigram(4).fit(noise)).plot(), model.plot_attention():
        assert [text.get_text() for text in ax.get_yticklabels()] == ["'\\n'", "' '", "$", "a"]
        assert [text.get_text() for text in ax.texts] == ["no lag is found"]


def test_where_there_are_many_symbols_those_without_a_lag_are_left_out_of_the_picture():
    """Fifty symbols, of which each of three is followed by itself; the others are drawn by chance."""
    rng = np.random.default_rng(0)
    x = [0]
    for u, other in zip(rng.random(20_000), rng.integers(50, size=20_000), strict=True):
        x.append(x[-1] if x[-1] < 3 and u < 0.4 else int(other))
    model = Bigram(2, transition="per_lag", context=True, background="labels").fit(np.array(x))
    assert set(model.lags_["context"].tolist()) == {0, 1, 2}
    ax = model.plot()
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0", "1", "2"]
    assert "47 without a lag" in ax.get_ylabel()
    assert "grey: the current symbol" in ax.get_xlabel()
    assert len(ax.patches) == 3


# ------------------------------------------------------------------------------------------------ recover


def test_columns_that_lack_a_position_are_marked():
    """Too few samples: what is missed is told from what is complete, and intervals know of it."""
    marked = {True: [], False: []}
    fine = []
    for seed in range(100):
        task = scb.Task.random(5, 500, 2, seed=seed)
        fit = scb.recover(scb.sample(task, 500, seed=seed + 1000), N=5)
        for k, (positions, interval) in enumerate(zip(fit.support, fit.intervals(), strict=True)):
            if positions.size:
                missed = bool(np.setdiff1d(task.support[k], positions).size)
                marked[missed].append(fit.incomplete[k])
                weights = task.Q[positions, k]
                fine.append(fit.incomplete[k] or ((interval[:, 0] <= weights) & (weights <= interval[:, 1])).all())
        assert fit.unexplained_ratio.shape == (5,)
        if fit.incomplete.any():
            assert "incomplete" in fit.report() or any(s.size == 0 for s in fit.support)
    assert len(marked[True]) >= 10
    assert np.mean(marked[True]) >= 0.8
    assert np.mean(marked[False]) <= 0.08
    assert np.mean(fine) >= 0.9  # 95 % of 120, less two and a half standard deviations


def test_the_limit_of_the_background_is_where_a_general_optimiser_finds_it():
    """L-BFGS over softmax coordinates, with the weight of one background held, knows nothing of EM or of profiles."""
    task = scb.Task.random(3, 20, 1, seed=3)
    batch = scb.sample(task, 150, seed=4)
    fit = scb.recover(batch, N=3)
    assert [s.size for s in fit.support] == [1, 1, 1]
    assert (fit.unexplained == 0).all()
    distribution = np.bincount(batch.label, minlength=3) / len(batch.label)
    token = batch.context[np.arange(150), np.array([s[0] for s in fit.support])[batch.last]]

    def highest(rest):
        def negative(theta):
            P = softmax(theta.reshape(3, 3), axis=0)
            r = np.where(batch.last == 1, rest, 0.0)
            return -np.log(r * distribution[batch.label] + (1 - r) * P[batch.label, token]).sum()

        return -minimize(negative, np.log(fit.V + 1e-3).ravel(), method="L-BFGS-B").fun

    limit = fit.rest_limit(1, 4.0, False)
    assert limit.weights[0] == pytest.approx(1 - limit.background)
    top = max(highest(rest) for rest in np.linspace(0, limit.background, 8))
    assert 2 * (top - highest(limit.background)) == pytest.approx(4.0, abs=0.2)


def test_intervals_of_the_weights():
    task = scb.Task.random(4, 100, 2, seed=1)
    batch = scb.sample(task, 1200, seed=2)
    fit = scb.recover(batch, N=4)
    for k, (narrow, wide) in enumerate(zip(fit.intervals(0.5), fit.intervals(0.99), strict=True)):
        weights = fit.A[fit.support[k], k]
        assert (wide[:, 0] <= narrow[:, 0]).all()
        assert (narrow[:, 0] <= weights).all()
        assert (weights <= narrow[:, 1]).all()
        assert (narrow[:, 1] <= wide[:, 1]).all()
    single = scb.recover(scb.sample(scb.Task.random(3, 100, 1, seed=1), 400, seed=2), N=3)
    for interval in single.intervals():  # a weight of 1.000 ± 0.000 has one, too
        assert 0.5 < interval[0, 0] < 0.999
        assert interval[0, 1] == 1
    assert all(np.isnan(x).all() for x in scb.recover(batch, N=4, method="spectral").intervals())
    with pytest.raises(ValueError, match="level = 2"):
        fit.intervals(2)


def test_where_samples_suffice_nothing_is_unexplained():
    task = scb.Task.random(3, 100, 2, seed=1)
    fit = scb.recover(scb.sample(task, 5000, seed=2), N=3)
    assert not fit.incomplete.any()
    assert (fit.unexplained == 0).all()
    assert (fit.unexplained_ratio < incomplete_from(len(fit.unexplained_ratio))).all()
    assert "incomplete" not in fit.report()


def test_a_saved_model_keeps_its_evidence(tmp_path):
    x = MTD.random(1).sample(5000, 1)
    for background in ("labels", "ngram"):
        model = Bigram(12, transition="shared", background=background).fit(x)
        model.save(tmp_path / "model")
        again = Bigram.load(tmp_path / "model")
        for name, column in model.summary().columns.items():
            np.testing.assert_array_equal(again.summary().columns[name], column)
        np.testing.assert_array_equal(again.background_weight_, model.background_weight_)
        np.testing.assert_array_equal(again.predict_proba(x[:50]), model.predict_proba(x[:50]))
        assert again.criterion_ == model.criterion_
    assert json.dumps(again.criterion_)


def test_partition_groups_are_complementary():
    data = windows_of_codes([np.arange(1000) % 3], 3, 5, context=True)
    chosen = np.arange(10) % 2 == 0
    halves = data.of_groups(chosen), data.of_groups(~chosen)
    assert sum(half.n for half in halves) == data.n
    np.testing.assert_allclose(halves[0].by_label + halves[1].by_label, data.by_label)
    assert isinstance(halves[0].partitions[0], Partition)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert halves[0].thinned(100).n <= 512


def test_models_are_compared_on_the_same_symbols():
    truth = MTD.random(1)
    x = truth.sample(12_000, 1)
    models = {f"up to {lag}": Bigram(lag, transition="shared").fit(x[:8000]) for lag in (1, 12)}
    found = scb.compare(models, x[8000:])
    assert found.columns["model"].tolist() == ["up to 12", "up to 1"]
    bits = {name: -model.score(x[8000:]) / np.log(2) for name, model in models.items()}
    np.testing.assert_allclose(found.columns["bits"], [bits["up to 12"], bits["up to 1"]])
    assert found.columns["difference"][1] > 3 * found.columns["error"][1] > 0
    assert "up to 12" in str(found)
    assert len(found.to_pandas()) == 2
    with pytest.raises(ValueError, match="at least 1"):
        scb.compare({}, x)
