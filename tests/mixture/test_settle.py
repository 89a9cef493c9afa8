"""The search for positions: how it ends where there is nothing to be found."""

import numpy as np
import pytest

import scb
from scb.mixture.em import maximise
from scb.mixture.rows import RowTable
from scb.mixture.select import Selection
from scb.mixture.settle import Search


def steps_and_lags(x, monkeypatch):
    """How many steps all fits of a search take, and what is found."""
    steps = []
    fit = Selection.fit

    def counted(*args):
        found = fit(*args)
        steps.append(len(found.path))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Selection, "fit", counted)
        model = scb.SparseContextualBigram(10, transition="shared", context=True, background="labels").fit(x)
    return sum(steps), model.lags_["lag"].tolist(), model.loglik_


@pytest.mark.parametrize("strength", [0.0, 0.3, 0.8])
def test_a_hopeless_climb_ends_early_and_nothing_else_changes(strength, monkeypatch):
    """Where even the whole gap would not pay for the matrix, the climb ends; what is found is the same."""
    rng = np.random.default_rng(0)
    x = rng.integers(4, size=3000)
    for t in np.flatnonzero(rng.random(3000) < strength):
        x[t] = (x[t - 3] + 1) % 4
    steps, *found = steps_and_lags(x, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(Search, "hopeless", lambda *_: False)
        all_steps, *expected = steps_and_lags(x, monkeypatch)
    assert found == expected
    assert (len(found[0]) > 0) == (strength > 0)
    assert steps < 0.7 * all_steps if strength == 0 else steps == all_steps


def test_a_lag_that_was_pruned_once_is_tried_again():
    """With 60 symbols as with fewer. Half of them look back by one symbol, the others by five; at least one lag must be found."""
    rng = np.random.default_rng(1)
    N = 60
    cumulative = rng.dirichlet(np.ones(N), N).cumsum(axis=1)
    x = rng.integers(N, size=10_000)
    for t in np.flatnonzero(rng.random(10_000) < 0.6):
        x[t] = min(N - 1, np.searchsorted(cumulative[x[t - (5 if x[t - 1] % 2 else 1)]], rng.random()))
    model = scb.SparseContextualBigram(10, transition="shared", context=False, background="labels").fit(x)
    assert set(model.lags_["lag"].tolist()) & {1, 5}
    assert set(model.lags_["lag"].tolist()) <= {1, 5}


def chain(N, n, seed):
    """A Markov chain of order 2, which is no mixture of lags."""
    rng = np.random.default_rng(seed)
    cumulative = rng.dirichlet(np.full(N, 0.1), (N, N)).cumsum(axis=2)
    x = rng.integers(N, size=n)
    for t in range(2, n):
        x[t] = min(N - 1, np.searchsorted(cumulative[x[t - 2], x[t - 1]], rng.random()))
    return x


def per_lag(context, **options):
    return scb.SparseContextualBigram(6, transition="per_lag", context=context, background="labels", **options)


@pytest.mark.parametrize(("N", "n", "seed"), [(6, 3000, 0), (6, 3000, 6), (8, 1500, 0)])
def test_what_the_search_takes_back_does_not_pay(N, n, seed, monkeypatch):
    """The lags at which it goes on have a lower BIC than those that it takes back, each fitted as lags that are given."""
    x = chain(N, n, seed)
    turns = []
    return_to = Selection.return_to

    def noted(self, stood):
        turns.append([sorted(self.data.T - t for _, t in at.all_pairs()) for at in (stood, self)])
        return return_to(self, stood)

    monkeypatch.setattr(Selection, "return_to", noted)
    per_lag(False).fit(x)
    assert turns
    for before, after in turns:
        kept, taken_back = (per_lag(False, lags=lags).fit(x).bic(x) for lags in (before, after))
        assert set(before) < set(after)
        assert kept < taken_back


@pytest.mark.parametrize("context", [True, False])
def test_what_is_computed_once_would_be_the_same_again(context, monkeypatch):
    """Where the search goes back and grows elsewhere, with or without states."""
    x = chain(8, 3000, 1 if context else 0)
    once = per_lag(context).fit(x)
    computed = []
    monkeypatch.setattr(Selection, "once", lambda self, name, compute: computed.append(name) or compute())
    again = per_lag(context).fit(x)
    assert computed
    assert once.loglik_ == again.loglik_
    assert (once.attention_ != again.attention_).nnz == 0


def test_a_current_symbol_alone_has_an_exact_ratio(monkeypatch):
    """Twice what the log-likelihood loses without it is the same if everything else is fitted again."""
    found = []
    dispensable = Search.dispensable

    def noted(self):
        rows = self.stood.rows
        mixture = self.selection.mixture
        loglik = rows.total(RowTable.evaluate, mixture).loglik
        for one in self.stood.removals:
            if one.is_exact:
                refit = maximise(rows, mixture.without(*one.slots[0]), tolerance=0.01)
                found.append((one.ratio, 2 * (loglik - refit.loglik)))
        return dispensable(self)

    monkeypatch.setattr(Search, "dispensable", noted)
    per_lag(True).fit(chain(12, 1500, 0))
    assert found
    ratio, refitted = np.array(found).T
    np.testing.assert_allclose(ratio, refitted, atol=0.5)
