"""Many runs at once: each the one that ``train`` returns."""

import numba
import numpy as np
import pytest

import scb
from scb.inputs import InputError


@pytest.mark.parametrize("threads", [1, 2])
def test_each_run_is_the_one_alone(threads):
    tasks = [scb.Task.random(3, 300, 2, seed=seed) for seed in range(5)]
    recipes = [scb.recipes.paper(task, steps=(30, 20, 10), batch_size=size) for size, task in enumerate(tasks, start=60)]
    before = numba.get_num_threads()
    numba.set_num_threads(threads)
    try:
        runs = scb.train_many(tasks, recipes, range(5), judge_samples=200)
        assert numba.get_num_threads() == threads
    finally:
        numba.set_num_threads(before)
    for seed, run in enumerate(runs):
        alone = scb.train(tasks[seed], recipes[seed], seed, judge_samples=200)
        np.testing.assert_array_equal(run.A, alone.A)
        np.testing.assert_array_equal(run.V, alone.V)
        np.testing.assert_equal(run.history, alone.history)
        assert (run.verdict, run.samples, run.made_by) == (alone.verdict, alone.samples, alone.made_by)


def test_a_single_one_stands_for_all():
    task = scb.Task.random(3, 50, 2)
    recipe = scb.recipes.paper(task, steps=(5, 0, 0))
    runs = scb.train_many(task, recipe, [3, 4], judge=False)
    assert [run.seed for run in runs] == [3, 4]
    assert len(scb.train_many(task, recipe, judge=False)) == 1
    assert scb.train_many([], []) == []


def test_what_does_not_go_together_is_refused():
    tasks = [scb.Task.random(3, T, 2) for T in (50, 60)]
    recipes = [scb.recipes.paper(task, steps=(5, 0, 0)) for task in tasks]
    with pytest.raises(InputError, match="2 tasks, 3 seeds"):
        scb.train_many(tasks, recipes[0], [1, 2, 3])
    with pytest.raises(InputError, match=r"\(3, 50, 2\) and \(3, 60, 2\)"):
        scb.train_many(tasks, recipes, device="cuda")
    with pytest.raises(InputError, match="recipe"):
        scb.train_many(tasks, "paper")
    with pytest.raises(InputError, match="leave device out"):
        scb.train_many(tasks[0], scb.recipes.softmax(tasks[0]), device="cuda")
