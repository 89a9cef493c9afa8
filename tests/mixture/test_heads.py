"""Several heads from samples: their number, positions and matrices."""

import numpy as np
import pytest

import scb


@pytest.fixture(scope="module")
def task():
    return scb.Task.random(4, 100, 2, seed=4, heads=2)


@pytest.fixture(scope="module")
def batch(task):
    return scb.sample(task, 10_000, seed=0)


@pytest.mark.parametrize("heads", [2, "auto"])
def test_recover_finds_heads_and_positions(task, batch, heads):
    found = scb.recover(batch, heads=heads)
    assert found.V.shape == (2, 4, 4)
    assert found.A.shape == (2, 100, 4)
    for ours, theirs in zip(found.support, task.support, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    match = scb.metrics.match_heads(found.V, found.A, task)
    assert match.overlap.min() > 0.99
    assert match.dist_V.max() < 0.1
    assert match.dist_A.max() < 0.1
    assert (np.diff(found.path) > -1e-6).all()
    # The maximum is above the truth
    truth = task.model().predict(batch)[np.arange(len(batch)), batch.label]
    assert found.loglik >= np.log(truth).sum()
    assert "(head " in found.report()
    assert "2 heads" in repr(found)
    assert found.model.loss(batch) < 1.02 * task.model().loss(batch)


def test_standard_errors_are_the_spread_of_the_estimates(task):
    squares: dict[str, list[float]] = {"V": [], "A": []}
    for seed in range(10):
        found = scb.recover(scb.sample(task, 6000, seed=seed), heads=2)
        order = scb.metrics.match_heads(found.V, found.A, task).order
        for name, truth in (("V", task.P), ("A", task.Q)):
            errors = getattr(found.stderr, name)[order]
            free = errors > 0
            squares[name] += list(np.square((getattr(found, name)[order] - truth)[free] / errors[free]))
    # 40 independent weights in A: a mean square is 1 ± 0.22
    assert 0.4 < np.mean(squares["A"]) < 1.7
    assert 0.7 < np.mean(squares["V"]) < 1.4


def test_one_head_is_one_to_the_bic():
    task = scb.Task.random(4, 100, 2, seed=4)
    found = scb.recover(scb.sample(task, 10_000, seed=0), heads="auto")
    assert found.V.shape == (4, 4)
    for ours, theirs in zip(found.support, task.support, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("data", "heads", "message"),
    [
        (lambda batch: [batch], 2, "several heads can be recovered only from a Batch"),
        (lambda batch: batch, 10, "heads = 10: with N = 4 there can be at most 9"),
        (lambda batch: batch, 0, "heads = 0"),
        (lambda batch: batch, "some", "heads = 'some'"),
    ],
)
def test_what_cannot_be_gets_one_clear_error(batch, data, heads, message):
    with pytest.raises(scb.InputError) as caught:
        scb.recover(data(batch), heads=heads)
    assert message in str(caught.value)
