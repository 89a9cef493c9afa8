"""The distribution of each window that a model of lags starts from: cross-fitted in the fit, from all data later; or another
model's.
"""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from scb.mixture.data import Data, Here
from scb.mixture.model import Mixture
from scb.mixture.partition import Partition
from scb.mixture.rows import RowTable, Slots
from scb.mixture.tuning import TUNING
from scb.mixture.windows import label_block
from scb.sequences.baselines.background import ModelBackground, RecentBackground, histories_of
from scb.sequences.baselines.counts import histories_in
from scb.sequences.baselines.crossfit import blocks_of
from scb.sequences.coding import windows_of_codes

GAP = -1


def sequences(seed, N=3):
    rng = np.random.default_rng(seed)
    found = [rng.integers(N, size=n) for n in (300, 1, 200, 2)]
    for x in found:
        for i in range(2, x.size):
            if rng.random() < 0.7:
                x[i] = (x[i - 1] + x[i - 2]) % N
    found[0][[20, 60, 61]] = GAP
    return found


def chosen(data):
    """(n, N): the background of each window."""
    return np.concatenate([part.background.distributions[part.background.which] for part in data.partitions])


def test_windows_have_the_labels_and_histories_of_their_sequences():
    x = sequences(0)
    data = windows_of_codes(x, 3, 6, context=True)
    found = histories_of(data.partitions[0], data.shape, 4)
    expected = histories_in(x, 3, 4)
    np.testing.assert_array_equal(found.history, expected.history)
    np.testing.assert_array_equal(found.label, expected.label)


@pytest.mark.parametrize("N", [2, 3])
def test_each_window_has_a_distribution_that_has_not_seen_it(N):
    data = windows_of_codes(sequences(1, N), N, 6, context=True)
    model = RecentBackground.fit(data)
    before = chosen(model.cross_fitted(data))
    np.testing.assert_allclose(before.sum(axis=1), 1)
    labels = histories_of(data.partitions[0], data.shape, model.model.counts.depth)
    at_label = before[np.arange(data.n), labels.label]
    blocks = blocks_of(labels, 0, data.n, len(model.cross_fit.blocks))
    by_fold = [fold.likelihoods(block) for fold, block in zip(model.cross_fit.folds, blocks, strict=True)]
    np.testing.assert_allclose(at_label, np.concatenate(by_fold))
    assert np.log(at_label).mean() == pytest.approx(model.cross_fit.score)
    after = chosen(model.attached(data))
    np.testing.assert_allclose(after, model.model.distributions(labels.history))
    assert np.log(after[np.arange(data.n), labels.label]).mean() > model.cross_fit.score  # it has seen them


@pytest.mark.parametrize("matrices", [1, 2])
def test_equal_windows_with_equal_backgrounds_are_one_row(monkeypatch, matrices):
    data = windows_of_codes([np.random.default_rng(0).integers(2, size=3000)], 2, 6, context=True)
    data = RecentBackground.fit(data).cross_fitted(data)
    slots = Slots(np.array([[-1, 2, 4], [-1, 5, -1]]), np.array([[0, 0, matrices - 1]] * 2), matrices)
    few = data.rows(slots)
    monkeypatch.setattr("scb.mixture.partition.TUNING", replace(TUNING, fewer_rows=0.0))
    whole = data.rows(slots)
    (table,), (all_rows,) = few.held, whole.held
    assert len(table.label) < 1000 < len(all_rows.label) == data.n
    rng = np.random.default_rng(1)
    at = Mixture(rng.dirichlet(np.ones(2), 2 * matrices).T, data.label_distribution, np.array([[0.2, 0.5, 0.3], [0.4, 0.6, 0.0]]))
    for a, b in zip(few.total(RowTable.evaluate, at), whole.total(RowTable.evaluate, at), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    as_they_are = data.partitions[0].rows(data.shape, slots, counted=False).likelihoods(at)
    counted, by_label = (rows.likelihoods(at)[rows.row_numbers] for rows in (table, all_rows))
    np.testing.assert_allclose(counted, as_they_are, rtol=1e-12)
    np.testing.assert_array_equal(by_label, as_they_are)
    assert (np.diff(all_rows.label) >= 0).all()


def test_labels_do_not_matter_after_the_fit():
    """Windows whose labels are not known yet have the same distribution."""
    x = sequences(2)
    data = windows_of_codes(x, 3, 6, context=True)
    model = RecentBackground.fit(data)
    (partition,) = data.partitions
    blind = Data.from_partitions(
        Here(), [Partition(partition.blocks, partition.last, 0 * partition.label)], data.shape, data.mu, independent=False
    )
    np.testing.assert_array_equal(chosen(model.attached(blind)), chosen(model.attached(data)))


def test_it_does_not_matter_how_windows_are_split():
    x = sequences(3)
    whole = windows_of_codes(x, 3, 5, context=True)
    parts = [Partition.from_blocks([label_block(some, 3, 5)]) for some in (x[:1], x[1:2], x[2:])]
    split = Data.from_partitions(Here(), parts, whole.shape, whole.mu, independent=False)
    one, many = RecentBackground.fit(whole), RecentBackground.fit(split)
    assert one.name == many.name
    np.testing.assert_allclose(chosen(one.cross_fitted(whole)), chosen(many.cross_fitted(split)), rtol=1e-12)
    np.testing.assert_allclose(chosen(one.attached(whole)), chosen(many.attached(split)), rtol=1e-12)


@pytest.mark.parametrize("seed", [4, 5])
def test_a_distribution_can_be_kept_in_arrays(seed):
    data = windows_of_codes(sequences(seed, 2 + seed), 2 + seed, 6, context=True)
    model = RecentBackground.fit(data)
    again = RecentBackground.from_arrays({name: array.copy() for name, array in model.arrays().items()})
    assert again.name == model.name
    np.testing.assert_array_equal(chosen(again.attached(data)), chosen(model.attached(data)))
    with pytest.raises(ValueError, match="fit it again"):
        again.cross_fitted(data)


def test_a_classifier_of_scikit_learn_is_asked_with_windows():
    x = sequences(6)[0][100:]
    symbols = np.array(["a", "b", "c"])
    rows = np.stack([x[i : len(x) - 2 + i] for i in range(2)], axis=1)
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(symbols[rows], symbols[x[2:]])
    data = windows_of_codes([x], 3, 2, context=True)
    background = ModelBackground(model, symbols)
    assert background.name == "Pipeline"
    said = chosen(background.attached(data))[1:]  # the first window has one symbol only
    np.testing.assert_allclose(said, model.predict_proba(symbols[rows]), atol=2e-4)


def test_symbols_that_a_model_does_not_know_have_something():
    class Partial:
        classes_ = ("b", "x")

        def predict_proba(self, X):
            return np.tile([0.6, 0.4], (len(X), 1))

    data = windows_of_codes([np.array([0, 1, 0, 1, 2, 1])], 3, 2, context=True)
    distributions = chosen(ModelBackground(Partial(), np.array(["a", "b", "c"])).attached(data))
    np.testing.assert_allclose(distributions[0], [0.4 / 3, 0.6 + 0.4 / 3, 0.4 / 3], atol=1e-3)
    np.testing.assert_allclose(distributions.sum(axis=1), 1)


def test_a_model_that_answers_with_something_else_is_refused():
    class Wrong:
        classes_ = ("a", "b")

        def predict_proba(self, X):
            return np.ones(3)

    data = windows_of_codes([np.array([0, 1, 0, 1])], 2, 2, context=True)
    with pytest.raises(ValueError, match=r"predict_proba returned shape \(3,\)"):
        ModelBackground(Wrong(), np.array(["a", "b"])).attached(data)
