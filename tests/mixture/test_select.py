"""The search for positions: how it ends where there is nothing to be found."""

import numpy as np
import pytest

import scb
from scb.mixture.select import Selection


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
        patch.setattr(Selection, "hopeless", lambda *_: False)
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
