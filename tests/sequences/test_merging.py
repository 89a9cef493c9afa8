"""Lags that share matrices: ``transition=`` as a number, and how many "auto" finds."""

import numpy as np
import pytest

import scb
from scb.inputs import InputError


def shared_lags(N: int, H: int, seed: int) -> tuple[scb.Task, dict[int, int]]:
    """A task in which each lag belongs to one head, and the head of each lag."""
    rng = np.random.default_rng(seed)
    positions = rng.permutation(9)[: 2 * H]
    which = np.stack([rng.choice(2 * H, 2, replace=False) for _ in range(N)], axis=1)
    heads = scb.Task.random(N, 9, 2, seed, heads=H).P
    weights = rng.dirichlet([9.0, 9.0], N).T
    task = scb.Task.sparse(heads, positions[which], weights, 9, which % H)
    return task, {10 - int(positions[i]): int(i % H) for i in np.unique(which)}


def groups_of(model: scb.SparseContextualBigram) -> set[frozenset[int]]:
    """Which lags have the same matrix."""
    same = {lag: P.tobytes() for lag, P in model.transition_.items()}
    return {frozenset(lag for lag in same if same[lag] == one) for one in same.values()}


@pytest.mark.parametrize(("N", "H", "seed"), [(3, 2, 0), (4, 3, 0)])
def test_lags_of_one_head_share_its_matrix(N: int, H: int, seed: int) -> None:
    task, heads = shared_lags(N, H, seed)
    x = scb.generate(task, 20_000, seed=seed)
    wanted = {frozenset(lag for lag in heads if heads[lag] == h) for h in set(heads.values())}
    assert len(wanted) < len(heads)
    options = {"context": True, "background": "labels"}
    model = scb.SparseContextualBigram(10, **options).fit(x)
    assert groups_of(model) == wanted
    by_number = scb.SparseContextualBigram(10, transition=len(wanted), **options).fit(x)
    assert groups_of(by_number) == wanted
    assert by_number.loglik_ == model.loglik_
    for lag, h in heads.items():
        # What is common to all columns, and the size, are weakly determined
        one, two = ((P - P.mean(axis=1, keepdims=True)).ravel() for P in (model.transition_[lag], task.P[h]))
        assert one @ two > 0.99 * np.linalg.norm(one) * np.linalg.norm(two)
    each = scb.SparseContextualBigram(10, transition="per_lag", **options).fit(x)
    assert each.loglik_ - 30 < model.loglik_ < each.loglik_ + 1
    assert model.bic(x) < each.bic(x)
    assert f"{len(wanted)} matrices for all lags" in str(model.summary())


def test_one_matrix_and_one_for_each_are_the_ends() -> None:
    task, _ = shared_lags(3, 2, 0)
    x = scb.generate(task, 4000, seed=0)
    options = {"context": True, "background": "labels"}
    for number, name in ((1, "shared"), (99, "per_lag")):
        pair = [scb.SparseContextualBigram(10, transition=t, **options).fit(x) for t in (number, name)]
        assert pair[0].loglik_ == pair[1].loglik_


@pytest.mark.parametrize("transition", [0, -1, 2.5, "two", True])
def test_a_number_of_matrices_is_a_positive_integer(transition: object) -> None:
    with pytest.raises(InputError, match="transition"):
        scb.SparseContextualBigram(5, transition=transition).fit([0, 1] * 20)  # type: ignore[arg-type]
