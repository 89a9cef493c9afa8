"""Training several heads: kernels against their twin, rules, recipes, the verdict, and reading the heads."""

import numpy as np
import pytest

import scb
from scb import Task
from scb.geometry import centred_square, function_distance
from scb.geometry.columns import column_sums
from scb.geometry.heads import stacked_columns
from scb.task.sampling import step_keys
from scb.training.engine import Composed, Fused
from scb.training.simulation import simulate
from scb.training.sources.population import Population
from scb.training.sources.sampled import Fresh, Reference
from truth import twins
from truth.enumeration import constrained_point

SIZES = [(3, 60, 2), (2, 40, 1), (7, 50, 3), (3, 1500, 3)]


def _task(N, T, heads):
    return Task.random(N, T, 2, seed=3, heads=heads)


def _point(task, seed=0):
    V, A = constrained_point(task, np.random.default_rng(seed), scale=0.05)
    return V, stacked_columns(A)


@pytest.mark.parametrize(("N", "T", "heads"), SIZES)
@pytest.mark.parametrize("batch_size", [5, 40])
def test_the_kernel_differentiates_as_its_twin(N, T, heads, batch_size):
    task = _task(N, T, heads)
    V, A = _point(task)
    fresh = Fresh(task)
    found = fresh(V, A, batch_size, np.uint64(11))
    loss, gV, gA = twins.mini_batch_gradient(np.uint64(11), fresh.sampler, batch_size, V, A)
    np.testing.assert_allclose(found.loss, loss / batch_size, atol=1e-12)
    np.testing.assert_allclose(found.V, gV / batch_size, atol=1e-12)
    np.testing.assert_allclose(found.A, gA / batch_size, atol=1e-12)


@pytest.mark.parametrize(("N", "T", "heads"), SIZES)
@pytest.mark.parametrize(
    "stage", [{"lam": 1e-3}, {"lam": 1e-3, "centred": True}, {"lam": scb.recipes.MeasuredNoise(2.0)}, {"projector": "mu"}]
)
def test_fused_steps_are_the_composed_ones(N, T, heads, stage):
    task = _task(N, T, heads)
    V, A = _point(task)
    stage = scb.Stage("2", 12, eta_V=0.05, eta_A=0.05, batch_size=20, **stage)
    one = Fused(task).take(V, A, task.mu, stage, 5, range(12))
    two = Composed(Fresh(task)).take(V, A, task.mu, stage, 5, range(12))
    np.testing.assert_allclose(one.V, two.V, atol=1e-11)
    np.testing.assert_allclose(one.A, two.A, atol=1e-11)
    np.testing.assert_allclose(column_sums(one.A), 1, atol=1e-12)
    np.testing.assert_allclose(one.V @ task.mu, np.broadcast_to(task.mu, one.V.shape[:-1]), atol=1e-12)


def test_samples_give_the_expected_gradients():
    task = _task(3, 12, 2)
    V, A = _point(task)
    exact = Population(task)(V, A, 0, np.uint64(0))
    for source in (Fresh(task), Reference(task)):
        gradients = [source(V, A, 4000, key) for key in step_keys(1, range(40))]
        for name in "VA":
            values = np.array([getattr(g, name) for g in gradients])
            error = (values.mean(axis=0) - getattr(exact, name)) / (values.std(axis=0, ddof=1) / np.sqrt(40))
            assert np.abs(error).max() < 5


def test_tuned_learns_the_function_and_the_heads():
    task = Task.random(3, 500, 2, seed=0, heads=2)
    run = scb.train(task, scb.recipes.tuned(task), seed=0, every=200)
    assert run.verdict == "learned"
    assert run.history["dist"][-1] < 0.05
    match = scb.metrics.match_heads(run.V, run.A, task)
    assert match.dist_V.max() < 0.1
    assert match.dist_A.max() < 0.1
    assert run.model.loss(scb.sample(task, 20_000, seed=1)) < 0.22
    assert "overlap" in str(run.summary())
    assert [axis.get_title() for axis in run.plot().axes][-1] == "singular values"


def test_spare_heads_die():
    task = Task.random(3, 500, 2, seed=0, heads=2)
    run = scb.train(task, scb.recipes.tuned(task, heads=3), seed=0, every=500)
    assert run.verdict == "learned"
    assert run.V.shape == (3, 3, 3)
    assert run.history["sigma_3"][-1] < 1e-6


def test_equal_heads_stay_at_the_saddle_and_the_verdict_says_so():
    task = Task.random(3, 200, 2, seed=0, heads=2)
    recipe = scb.recipes.sgd(task, start="equal", resolve_sign=False, steps=(400, 100), eta=0.05, projector="mu")
    run = scb.train(task, recipe, seed=0, every=100, source=Population(task))
    np.testing.assert_array_equal(run.V[0], run.V[1])
    assert run.history["loss"][-1] > scb.theory.heads.least_loss(task, heads=1) > 1.1 * scb.theory.heads.least_loss(task)
    assert run.verdict.startswith("too slow: singular value 2 of 2")


def test_mixed_heads_compute_the_function_and_are_not_called_learned():
    task = Task.random(4, 300, 2, seed=1, heads=2)
    U = task.P - task.mu[:, None]
    V = np.stack([U[0] + U[1], U[0] - U[1]]) / 2 + task.mu[:, None]
    A = scb.geometry.project(np.stack([task.Q[0] + task.Q[1], task.Q[0] - task.Q[1]]))
    from scb.training.head_verdict import HeadsHeldOut

    judge = HeadsHeldOut.sized(task.mu, task.singular_values, task.sparsity)
    keys = step_keys(0, range(2))
    assert judge(V, A, task.mu, Fresh(task), keys).verdict.startswith("heads mixed")
    assert judge(*scb.rotate_heads(V, A), task.mu, Fresh(task), keys).verdict == "learned"
    assert judge(task.P, 0.8 * task.Q + 0.2 / task.Q.size * task.N, task.mu, Fresh(task), keys).verdict.startswith("too noisy")


@pytest.mark.parametrize(("N", "heads"), [(3, 2), (4, 3), (10, 4)])
def test_rotation_reads_the_heads_of_any_gauge(N, heads):
    for seed in range(5):
        task = Task.random(N, 200, 3, seed=seed, heads=heads)
        rng = np.random.default_rng(seed)
        R = rng.normal(size=(heads, heads))
        A = np.tensordot(R, task.Q + rng.normal(scale=1e-3, size=task.Q.shape), axes=1)
        V = np.tensordot(np.linalg.inv(R).T, task.P - task.mu[:, None], axes=1) + task.mu[:, None]
        new_V, new_A = scb.rotate_heads(V, A)
        match = scb.metrics.match_heads(new_V, new_A, task)
        if task.singular_values[-1] > 0.2 * task.singular_values[0]:
            assert match.overlap.min() > 0.99
        np.testing.assert_allclose(column_sums(new_A), 1, atol=1e-12)
        np.testing.assert_allclose(new_V @ task.mu, np.broadcast_to(task.mu, (heads, N)), atol=1e-9)
        assert [centred_square(v, task.mu) > 0 for v in new_V]
        # The function is the same but for what the projection of the columns adds
        lacking = 1 - column_sums(np.tensordot(R, task.Q, axes=1))
        assert function_distance((new_V, new_A), (task.P, task.Q), task.mu) < 0.1 + np.abs(lacking).max()


def test_a_run_with_heads_is_saved_and_resumed_bit_for_bit(tmp_path):
    task = Task.random(3, 60, 2, seed=0, heads=2)
    recipe = scb.recipes.paper(task, steps=(20, 20, 0), lam=1e-3)
    whole = scb.train(task, recipe, seed=1, judge=False)

    class Stopped(Exception):
        pass

    def stop(run):
        if run.step == 30:
            raise Stopped

    with pytest.raises(Stopped):
        scb.train(task, recipe, seed=1, judge=False, checkpoint=tmp_path, checkpoint_every=10, callbacks=[stop])
    again = scb.train(task, recipe, seed=1, judge=False, checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(again.V, whole.V)
    np.testing.assert_array_equal(again.A, whole.A)
    assert list(again.history) == list(whole.history)
    np.testing.assert_array_equal(scb.Run.load(tmp_path).A, whole.A)


def test_spare_heads_are_set_aside_by_the_rotation():
    task = Task.random(4, 100, 2, heads=2)
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(2, 3))  # three heads that compute what two do
    U = np.einsum("gh,gnm->hnm", mix, task.P - task.mu[:, None])
    A = np.einsum("hg,gtk->htk", np.linalg.pinv(mix), task.Q)
    V, A = scb.rotate_heads(U + task.mu[:, None], A, task.mu, heads=2)
    assert scb.metrics.match_heads(V, A, task).overlap.min() > 1 - 1e-9
    assert not A[2].any()
    np.testing.assert_allclose(V[2], np.repeat(task.mu[:, None], 4, axis=1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda task: scb.recipes.tuned(task, heads=1), "heads = 1: the task has 2 heads, and each needs one"),
        (lambda task: scb.recipes.paper(task, start="spectral"), "start = 'spectral'"),
        (lambda task: scb.recipes.tuned(task, known=False), "known = False"),
        (lambda task: scb.train(task, scb.recipes.tuned(Task.random(3, 60, 2))), "the recipe trains 1 head(s), but the task has 2"),
        (lambda task: scb.train(task, scb.recipes.tuned(task), device="cuda"), "trains one head"),
        (lambda task: scb.rotate_heads(task.P, task.Q[0]), "they must be (H, N, N) and (H, T, N)"),
        (lambda task: scb.metrics.match_heads(task.P[:1], task.Q[:1], task), "V has 1 heads, the task 2"),
        (lambda task: scb.recipes.softmax(task), "one head"),
        (lambda task: scb.theory.noise.GradientNoise(task, task.P, task.Q), "one head"),
        (lambda task: scb.theory.information.cramer_rao(task, 100), "one head"),
        (lambda task: scb.geometry.population_projection(task, task.P, task.Q), "one head"),
        (lambda task: scb.star(task, task.Q), "one head"),
        (lambda task: simulate(task, scb.recipes.sgd(task)), "one head"),
        (lambda task: scb.rotate_heads(task.P, task.Q, heads=0), "heads = 0: it must be at least 1"),
    ],
)
def test_what_cannot_be_gets_one_clear_error(make, message):
    with pytest.raises(scb.InputError) as caught:
        make(Task.random(3, 60, 2, heads=2))
    assert message in str(caught.value)
