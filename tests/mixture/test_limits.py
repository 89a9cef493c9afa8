"""Few samples for each entry of P: cross-fitting, levels for all positions and columns together, and profiles near 0."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import softmax
from scipy.stats import binom, chi2, norm

import scb
from scb.mixture.cross_fit import CrossFit, _folds, _P_of_others
from scb.mixture.fit import background_ratios, incomplete_from
from scb.mixture.model import Mixture, weight_table
from scb.mixture.profile import _beside_boundary
from scb.mixture.samples_in import as_data
from scb.mixture.select import Selection
from scb.mixture.settle import settle
from scb.mixture.shared import SHARED_MATRIX, criterion
from scb.mixture.starts import from_scratch
from scb.mixture.tuning import TUNING
from scb.task.sampling import Batch


def permutation_task(N, T, seed):
    """Each token has one successor in four of five cases; two positions after each token."""
    rng = np.random.default_rng(seed)
    P = np.full((N, N), 0.2 / N)
    P[rng.permutation(N), np.arange(N)] += 0.8
    Q = np.zeros((T, N))
    for k in range(N):
        Q[rng.choice(T, 2, replace=False), k] = 0.5
    return scb.Task(P, Q)


def search_at(task, batch, support):
    """A search that stands at some positions, with P and weights fitted to them."""
    data = as_data(batch, task.N)
    q = weight_table([np.full(s.size, 1.0) for s in support], np.full(task.N, 0.05))
    mixture = Mixture(task.P, data.label_distribution, q)
    search = Selection(data, SHARED_MATRIX, list(support), mixture, np.zeros(task.N, np.intp))
    search.fit(search.rows())
    return search


def test_a_position_that_P_absorbs_is_seen_with_the_P_of_others():
    """2 samples for each entry of P: the fitted P explains the labels of a missed position, that of the other folds does not."""
    N = 40
    task = permutation_task(N, 60, seed=1)
    batch = scb.sample(task, 3000, seed=1)
    missed = (7, int(task.support[7][0]))
    support = [s[1:] if k == 7 else s for k, s in enumerate(task.support)]
    search = search_at(task, batch, support)
    crossed = CrossFit.from_search(search)
    assert crossed.revised() == ([missed], [])
    ratios = crossed.ratios()
    others = np.arange(N) != 7
    assert ratios[7] > incomplete_from(N) > ratios[others].max()
    fit = search.policy.fit(search.rows(), search.mixture)
    without = replace(fit.mixture, q=weight_table([q[1:][q[1:] > 0] for q in fit.mixture.q], np.zeros(N)))
    absorbed = background_ratios(search.rows(), search.policy.fit(search.rows(), without), search.data.counts / 3000)
    assert absorbed[7] < ratios[7] / 2


def test_a_position_that_neither_P_confirms_is_removed():
    """3.5 samples for each entry of P: EM over all positions adapts P to a false one."""
    rng = np.random.default_rng([33, 30_011, 10, 200])
    P = np.full((10, 10), 0.02)
    P[rng.permutation(10), np.arange(10)] += 0.8
    rng.choice(200, 2, replace=False)
    Q = np.zeros((200, 10))
    for k in range(10):
        Q[rng.choice(200, 2, replace=False), k] = rng.dirichlet([8.0, 8.0])
    task = scb.Task(P, Q)
    found = scb.recover(scb.sample(task, 350, seed=30_011), N=10)
    assert sum(s.size for s in found.support) >= 18
    assert all(np.isin(s, t).all() for s, t in zip(found.support, task.support, strict=True))


def test_the_P_of_others_does_not_depend_on_the_labels_of_a_fold():
    task = permutation_task(12, 30, seed=2)
    batch = scb.sample(task, 1000, seed=2)
    folds = _folds(np.bincount(batch.last, minlength=12))
    assert np.bincount(folds).min() >= 1
    other_labels = np.where(folds[batch.last] == 0, batch.label[::-1], batch.label)
    searches = [search_at(task, Batch(batch.context, batch.last, x), task.support) for x in (batch.label, other_labels)]
    at = searches[0].mixture
    mine, theirs = (_P_of_others(search.rows(), at, folds != 0) for search in searches)
    np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_allclose(mine.sum(axis=0), 1)
    assert (mine > 0).all()
    full = _P_of_others(searches[0].rows(), at, folds >= 0)
    assert np.abs(full - mine).max() > 1e-3


def test_few_samples_are_enough_where_P_has_many_entries():
    """1,500 samples for 625 entries of P: all positions, no false one, no false mark."""
    right = 0
    for seed in range(3):
        task = permutation_task(25, 40, seed=10 + seed)
        fit = scb.recover(scb.sample(task, 1500, seed=seed), N=25)
        right += all(np.array_equal(a, b) for a, b in zip(fit.support, task.support, strict=True))
        assert not fit.incomplete.any()
        for k, interval in enumerate(fit.intervals()):
            assert (interval[:, 0] < interval[:, 1]).all()
            assert (interval[:, 0] <= fit.A[fit.support[k], k]).all()
    assert right >= 2


def test_noise_has_no_positions():
    """1 to 3 samples for each entry of P: EM over all positions finds something that the P of others does not confirm."""
    for seed, N, n in ((0, 12, 200), (1, 10, 120), (2, 15, 400)):
        rng = np.random.default_rng(seed)
        batch = Batch(rng.integers(N, size=(n, 10)), rng.integers(N, size=n), rng.integers(N, size=n))
        assert sum(s.size for s in scb.recover(batch, N=N).support) == 0
        data = as_data(batch, N)
        search = Selection.from_initial(data, SHARED_MATRIX, from_scratch(data))
        settle(search)
        assert sum(s.size for s in search.support) > 0


def test_levels_are_those_of_all_positions_and_of_all_columns():
    for states in (2, 3, 20, 50):
        chance = chi2.sf(incomplete_from(states), 1) / 2
        assert states * chance == pytest.approx(0.05, rel=1e-6)
    for N, n in ((3, 60), (3, 3000), (20, 2000)):
        data = as_data(scb.sample(scb.Task.random(N, 40, 2, seed=0), n, seed=0), N)
        c = criterion(data)
        extended_bic = np.log(data.counts) + 2 * np.log(N * 40)
        chance = np.minimum(TUNING.false_position, TUNING.false_position_samples / data.counts)
        expected = np.minimum(norm.isf(chance / (N * 40)) ** 2, extended_bic)
        np.testing.assert_allclose(c, expected, rtol=1e-6)
        assert (c < extended_bic).all()


@pytest.mark.parametrize(("seed", "lowered_ends"), [(3, 0), (0, 2)])
def test_ends_near_zero_are_where_a_general_optimiser_finds_them(seed, lowered_ends):
    """L-BFGS over softmax coordinates with one entry held; a third of a label more on the entry, or on its complement."""
    task = scb.Task.random(3, 10, 2, seed=seed)
    batch = scb.sample(task, 2500, seed=seed)
    fit = scb.recover(batch, N=3)
    reach = fit.intervals().V
    tokens = np.array([batch.context[:, [s[j] for s in fit.support]][np.arange(2500), batch.last] for j in (0, 1)])
    near = np.argwhere((fit.V > 0) & (np.minimum(fit.V, 1 - fit.V) < 6 * fit.stderr.V))
    assert len(near) >= 2
    assert fit.V[tuple(near.T)].max() > 0.5

    def highest(entry, value, upwards):
        def negative(theta):
            P = softmax(theta[:9].reshape(3, 3), axis=0)
            if value is not None:
                column = np.where(np.arange(3) == entry[0], 0.0, P[:, entry[1]])
                P[:, entry[1]] = column * (1 - value) / column.sum()
                P[entry] = value
            q = 1 / (1 + np.exp(-theta[9:]))[batch.last]
            f = q * P[batch.label, tokens[0]] + (1 - q) * P[batch.label, tokens[1]]
            return -np.log(f).sum() - np.log(P[entry] if upwards else 1 - P[entry]) / 3

        weights = np.array([fit.A[s[0], k] for k, s in enumerate(fit.support)])
        start = np.r_[np.log(fit.V + 1e-4).ravel(), np.log(weights / (1 - weights))]
        return -minimize(negative, start, method="L-BFGS-B", options={"maxiter": 500}).fun

    lowered = 0
    for entry in map(tuple, near.tolist()):
        for upwards in (False, True):
            end = reach[entry][int(upwards)]
            if 0 < end < 1:
                fallen = 2 * (highest(entry, None, upwards) - highest(entry, end, upwards))
                left, room = (1 - end, 1 - fit.V[entry]) if upwards else (end, fit.V[entry])
                expected = fall_at(np.sqrt(left * room) / fit.stderr.V[entry])
                # Near 1 an interval reaches 1.96 standard errors at least.
                expected = expected if fit.V[entry] < 0.5 else max(fallen, expected)
                assert fallen == pytest.approx(expected, abs=0.2)
                lowered += expected < 3.5
    assert lowered == lowered_ends


def fall_at(mean):
    """The fall of twice the log-likelihood that an estimate of a mean, which is not negative, exceeds in 5 % of the cases."""
    if mean >= norm.isf(0.025):
        return norm.isf(0.025) ** 2

    def excess(root):
        return norm.sf(root) + norm.sf((mean**2 + root**2) / (2 * mean)) - 0.05

    return brentq(excess, norm.isf(0.1), norm.isf(0.025)) ** 2


def test_intervals_of_a_gaussian_mean_that_is_not_negative_hold_exactly_as_often_as_they_say():
    """A mean of 0, one near it and one far away; the distribution of the estimate is integrated."""
    noise = norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    for mean in (0.0, 0.05, 0.5, 1.0, 1.7, 2.5, 5.0):
        drawn = mean + noise
        fallen = noise**2 - np.minimum(drawn, 0.0) ** 2
        rare = _beside_boundary(fallen, np.full(drawn.size, mean))
        for level in (0.5, 0.9, 0.95, 0.99):
            assert (rare <= norm.isf((1 - level) / 2) ** 2).mean() == pytest.approx(level, abs=2e-5)
        if mean > 0:
            assert _beside_boundary(np.array([fall_at(mean)]), np.array([mean])) == pytest.approx(norm.isf(0.025) ** 2)


def test_an_entry_with_a_few_labels_is_covered_as_often_as_it_should_be():
    """All counts of a label, of 2,000: the intervals hold in 95 % of the cases, up to what counts allow for."""
    n = 2000
    context = np.c_[np.repeat([0, 1], n), np.random.default_rng(0).integers(2, size=2 * n)]
    last = np.arange(2 * n) // 2 % 2
    ends = np.empty((61, 2))
    for count in range(61):
        label = np.r_[np.arange(n) >= count, np.arange(n) % 2].astype(int)
        fit = scb.recover(Batch(context, last, label), N=2)
        assert fit.V[0, 0] == pytest.approx(count / n, abs=1e-6)
        ends[count] = n * fit.intervals().V[0, 0]
    distance = np.linspace(0.01, 5.5, 2000)
    expected = distance**2
    chance = binom.pmf(np.arange(61)[:, None], n, expected / n)
    inside = (ends[:, :1] <= expected) & (expected <= ends[:, 1:])
    held = (chance * inside).sum(axis=0)
    assert held[distance < 2].mean() == pytest.approx(0.96, abs=0.01)
    assert held[distance >= 2].mean() == pytest.approx(0.955, abs=0.01)
    assert held[expected >= 0.3].min() > 0.915


def test_complete_columns_of_flat_matrices_are_not_marked():
    """Where no entry of P is near 0, a sharper P and backgrounds in all columns predict the same; that says nothing of one."""
    marked = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        Q = np.zeros((30, 12))
        for k in range(12):
            Q[rng.choice(30, 2, replace=False), k] = 0.5
        task = scb.Task(rng.dirichlet(np.full(12, 3.0), 12).T, Q)
        fit = scb.recover(scb.sample(task, 30_000, seed=seed), N=12)
        assert [s.tolist() for s in fit.support] == [s.tolist() for s in task.support]
        marked += fit.incomplete.any()
    assert marked <= 1
