import numpy as np
import pytest

from scb import LinearTransformer, SoftmaxTransformer, Task, sample
from scb.contexts import scatter_scores, token_mass
from scb.task.sampling import Batch
from truth.enumeration import WORLDS, free_point


@pytest.mark.parametrize("kind", [LinearTransformer, SoftmaxTransformer])
@pytest.mark.parametrize("N", [2, 5])
def test_gradients_equal_central_differences(kind, N):
    task = Task.random(N, 12, 3, seed=1)
    rng = np.random.default_rng(0)
    parameters = list(free_point(task, rng))
    batch = sample(task, 50, seed=2)
    gradient = kind(*parameters).gradient(batch)
    assert gradient.loss == pytest.approx(kind(*parameters).loss(batch), abs=1e-14)
    for which, got in enumerate((gradient.V, gradient.A)):
        for index in np.ndindex(got.shape):
            values = []
            for shift in (1e-5, -1e-5):
                moved = [p.copy() for p in parameters]
                moved[which][index] += shift
                values.append(kind(*moved).loss(batch))
            assert got[index] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-6)


@pytest.mark.parametrize("world", WORLDS[::5], ids=lambda w: f"N{w.task.N}T{w.task.T}")
def test_loss_and_gradient_equal_the_definition_on_every_outcome(world):
    V, A = free_point(world.task, np.random.default_rng(1))
    gV, gA = world.gradients(V, A)
    for i, loss in enumerate(world.losses(V, A)):
        one = Batch(world.context[i : i + 1], world.last[i : i + 1], world.label[i : i + 1])
        got = LinearTransformer(V, A).gradient(one)
        np.testing.assert_allclose(got.loss, loss, atol=1e-12)
        np.testing.assert_allclose(got.V, gV[i], atol=1e-12)
        np.testing.assert_allclose(got.A, gA[i], atol=1e-12)


@pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"N{w.task.N}T{w.task.T}")
def test_the_tasks_model_predicts_the_true_distribution(world):
    prediction = world.task.model().predict(Batch(world.context, world.last, world.label))
    given = np.array([world.task.mu[x].prod() * world.task.mu[k] for x, k in zip(world.context, world.last, strict=True)])
    np.testing.assert_allclose(prediction[np.arange(len(world)), world.label] * given, world.probability, atol=1e-14)


def test_softmax_attention_is_a_distribution_and_survives_large_logits():
    W = np.array([[1000.0, 0.0], [999.0, 0.0], [-1000.0, 0.0]])
    a = SoftmaxTransformer(np.eye(2), W).attention
    np.testing.assert_allclose(a.sum(axis=0), 1)
    np.testing.assert_allclose(a[:, 0], [1 / (1 + np.exp(-1)), 1 / (1 + np.e), 0], atol=1e-12)
    np.testing.assert_allclose(a[:, 1], 1 / 3)


def test_chunks_do_not_change_the_result():
    task = Task.random(4, 30, 2, seed=1)
    V, A = free_point(task, np.random.default_rng(1))
    batch = sample(task, 40, seed=1)
    mass = token_mass(A, batch)
    np.testing.assert_allclose(token_mass(A, batch, chunk=100), mass, atol=1e-14)
    scores = scatter_scores(mass @ V, batch, task.T)
    np.testing.assert_allclose(scatter_scores(mass @ V, batch, task.T, chunk=100), scores, atol=1e-14)


def test_bad_shapes_are_named():
    with pytest.raises(ValueError, match="V has shape"):
        LinearTransformer(np.ones((2, 3)), np.ones((4, 2)))
    with pytest.raises(ValueError, match="A has shape \\(4, 3\\): it must be \\(T, 2\\)"):
        LinearTransformer(np.eye(2), np.ones((4, 3)))
    with pytest.raises(ValueError, match="W has shape"):
        SoftmaxTransformer(np.eye(2), np.ones((4, 3)))
    with pytest.raises(ValueError, match="the batch has T = 5 positions, the attention 4"):
        LinearTransformer(np.eye(2), np.ones((4, 2))).predict(sample(Task.random(2, 5, 1), 3))
