"""Every run ends with a verdict in words, from held-out samples alone; where the truth is known, it says the same."""

from dataclasses import replace

import numpy as np
import pytest

import scb
from scb.geometry import line_A, line_V
from scb.inputs import InputError
from scb.training.engine import step_keys
from scb.training.roundings import ResolveSign, ThresholdNormalize, ThresholdProject
from scb.training.simulation import simulate
from scb.training.sources.population import Population
from scb.training.sources.sampled import Dataset, Fresh
from scb.training.verdict import GOOD, Distance, Findings, HeldOut, by_truth, verdict_on

TASK = scb.Task.random(3, 200, 2, seed=1)
RUNS = {
    "tuned": (lambda: scb.recipes.tuned(TASK), GOOD),
    "transfer": (lambda: scb.recipes.transfer(TASK, TASK.related(0.6).P), GOOD),
    "sgd": (lambda: scb.recipes.sgd(TASK), "learned up to normalisation"),
    "short": (lambda: scb.recipes.paper(TASK, steps=(50, 50, 0)), "too slow"),
    "softmax": (lambda: scb.recipes.softmax(TASK), "too noisy"),
    "wild": (lambda: scb.recipes.sgd(TASK, eta=50.0, preconditioned=False), "diverged at step"),
}


def last(history):
    return {name: float(column[-1]) for name, column in history.items()}


@pytest.mark.parametrize("name", RUNS)
def test_every_recipe_ends_with_a_verdict_that_the_truth_confirms(name):
    make, expected = RUNS[name]
    run = scb.train(TASK, make(), seed=1, every=1000)
    word = run.verdict.partition(":")[0]
    assert word.startswith(expected)
    if run.diverged is None:
        assert word == by_truth(last(run.history)).partition(":")[0]


def test_a_mirror_image_is_told_without_the_truth():
    """The literal paper at T = 1,000: noise chooses the sign, and the verdict knows which it has chosen."""
    task = scb.Task.random(3, 1000, 2, seed=1)
    recipe = scb.recipes.paper(task, resolve_sign=False, eta=0.02, steps=(400, 100, 0))
    found = set()
    for seed in range(5):
        run = scb.train(task, recipe, seed=seed, every=1000)
        mirrored = run.history["alpha_A"][-1] < 0
        assert run.verdict.startswith("sign unresolved: ") == mirrored
        found.add(bool(mirrored))
    assert found == {True, False}


def test_held_out_samples_do_not_count_and_change_nothing():
    recipe = scb.recipes.paper(TASK, steps=(20, 20, 0))
    judged, plain = (scb.train(TASK, recipe, seed=1, judge=judge) for judge in (True, False))
    assert plain.verdict is None
    assert judged.verdict is not None
    assert judged.samples == plain.samples == 40 * 64
    np.testing.assert_array_equal(judged.A, plain.A)
    for name, column in plain.history.items():
        np.testing.assert_array_equal(judged.history[name], column)


def test_a_run_on_a_data_set_is_judged_by_samples_that_it_has_not_seen():
    """Thirty samples learned by heart are not learned."""
    recipe = scb.recipes.paper(TASK, eta=0.1, steps=(100, 200, 200), batch_size=30)
    run = scb.train(TASK, recipe, source=Dataset(scb.sample(TASK, 30)), every=1000)
    assert run.verdict != GOOD
    exact = scb.train(TASK, scb.recipes.paper(TASK, eta=0.1, steps=(200, 200, 200)), source=Population(TASK), every=1000)
    assert exact.verdict == GOOD
    assert exact.samples == 0


def test_a_simulation_is_judged_by_the_truth():
    assert by_truth(last(simulate(TASK, scb.recipes.paper(TASK, steps=(50, 50, 0))))).startswith("too slow: ")
    recipe = scb.recipes.paper(TASK, eta=0.01, steps=(600, 600, 500), batch_size=400, lam=1e-4, projector="mu")
    assert by_truth(last(simulate(TASK, recipe))) == GOOD


def test_few_samples_leave_it_undecided():
    near = Findings(share=1.0, signal=1.0, dist_V=Distance(0.04, 1.0), dist_A=Distance(0.01), dist_A_star=Distance(0.2, 1.0))
    assert verdict_on(near).startswith("undecided: ‖V − P‖ is about 0.04, and the held-out samples are too few")
    assert verdict_on(near._replace(dist_V=Distance(0.04, 1e-4))) == GOOD
    assert verdict_on(near._replace(dist_V=Distance(0.2, 1e-4))).startswith("too noisy: ‖V − P‖ is about 0.2")
    assert verdict_on(near._replace(share=3.0)).startswith("too noisy: ")


def _hidden(weight):
    """A task whose last weight in every column is small, and the point at which training ends that has not seen it."""
    task = scb.Task.random(3, 300, 3, seed=4)
    Q = np.zeros((300, 3))
    for k in range(3):
        Q[task.support[k], k] = 0.6 * (1 - weight), 0.4 * (1 - weight), weight
    task = scb.Task(task.P, Q)
    A = np.where(weight < Q, Q, 0.0) / (1 - weight)
    V = task.mu[:, None] + (1 - weight) * (task.P - task.mu[:, None])
    return task, V, A


@pytest.mark.parametrize(("weight", "learned"), [(0.0, True), (0.02, True), (0.06, False), (0.1, False)])
def test_a_weight_that_does_not_stand_out_is_missed_by_its_mass(weight, learned):
    """V makes up for what A lacks, so that all gradients that are seen vanish: what tells is that V has less than K_P."""
    task, V, A = _hidden(weight)
    judge = HeldOut.sized(task.mu, task.K_P, 3)
    words = [judge(V, A, task.mu, Fresh(task), step_keys(seed, range(2))).verdict for seed in range(5)]
    assert sum(word == GOOD for word in words) >= 4 if learned else GOOD not in words


def test_a_V_that_makes_up_for_A_is_no_nearer_for_it():
    """A is a tenth too large, V as much too small: their gradients vanish in expectation, and K_P tells how far V is from P."""
    task = scb.Task.random(5, 300, 2, seed=4)
    A = 1 / 300 + 1.1 * (task.Q - 1 / 300)
    V = task.mu[:, None] + (task.P - task.mu[:, None]) / 1.1
    judge = HeldOut(100_000, task.K_P, 2)
    said = judge(V, A, task.mu, Fresh(task), step_keys(0, range(2)))
    assert said.dist_V == pytest.approx(np.sqrt(task.K_P) * (1 - 1 / 1.1), rel=0.05)


def test_more_samples_decide():
    task, V, A = _hidden(0.02)
    judge = HeldOut(1000, task.K_P, 3)
    words = []
    for batch_size in (500, 100_000):
        words.append(replace(judge, batch_size=batch_size)(V, A, task.mu, Fresh(task), step_keys(0, range(2))).verdict)
    assert words[0].startswith("undecided: ")
    assert words[0].endswith(": give more judge_samples")
    assert words[1] == GOOD


def test_the_number_of_held_out_samples_can_be_given():
    run = scb.train(TASK, scb.recipes.tuned(TASK), seed=1, every=1000, judge_samples=40)
    assert run.verdict.startswith("undecided: ")
    with pytest.raises(InputError, match="judge_samples = 1"):
        scb.train(TASK, scb.recipes.tuned(TASK), judge_samples=1)


class Elsewhere(np.ndarray):
    """An array that, like one of CuPy, is refused beside an array of NumPy, and answers NumPy's functions."""

    def __array_ufunc__(self, ufunc, method, *inputs, **rest):
        assert not any(type(x) is np.ndarray for x in inputs), f"{ufunc.__name__} of arrays in two places"
        rest = {name: tuple(x.view(np.ndarray) for x in value) if name == "out" else value for name, value in rest.items()}
        found = getattr(ufunc, method)(*(x.view(np.ndarray) if isinstance(x, Elsewhere) else x for x in inputs), **rest)
        return np.asarray(found).view(Elsewhere)

    def __array_function__(self, function, types, arguments, rest):
        mixed = any(type(x) is np.ndarray for x in arguments) and function is not np.asarray
        assert not mixed, f"{function.__name__} of arrays in two places"
        found = function(*(x.view(np.ndarray) if isinstance(x, Elsewhere) else x for x in arguments), **rest)
        return np.asarray(found).view(Elsewhere)


def test_what_is_done_to_A_on_a_gpu_never_mixes_its_arrays_with_those_here():
    """The verdict and the roundings, with an A that is elsewhere: the same numbers, and nothing is copied on the sly."""
    task = scb.Task.random(3, 300, 2, seed=0)
    V, A = line_V(task, 0.4), line_A(task, 0.4) + np.random.default_rng(0).normal(size=(300, 3)) * 1e-3
    fresh = Fresh(task)

    def source(V, A, batch_size, key):
        gradient = fresh(V, np.array(A.view(np.ndarray), order="F"), batch_size, key)
        return gradient._replace(A=gradient.A.view(Elsewhere))

    check = HeldOut(2000, task.K_P, task.sparsity)
    keys = step_keys(0, range(2))
    assert check(V, A.view(Elsewhere), task.mu, source, keys) == check(V, A, task.mu, fresh, keys)
    for rounding in (ResolveSign(), ThresholdProject(), ThresholdProject(0.01), ThresholdNormalize(0.01)):
        for point in (A, 2 / 300 - A):
            found = rounding(V, point.view(Elsewhere), task.mu)[1]
            assert type(found) is Elsewhere
            np.testing.assert_array_equal(found.view(np.ndarray), rounding(V, point, task.mu)[1])
