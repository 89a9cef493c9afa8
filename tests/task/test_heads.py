"""Tasks with several heads: their parts, samples, files and errors."""

import numpy as np
import pytest

import scb
from scb import Task
from scb.task import ENSEMBLES
from scb.task.chains import sinkhorn
from truth.enumeration import World, tiny_heads

MU = np.array([0.5, 0.3, 0.2])
P2 = np.stack([sinkhorn(np.random.default_rng(seed).exponential(size=(3, 3)) + 0.1, MU) / MU for seed in (0, 1)])
Q2 = np.zeros((2, 4, 3))
Q2[0, 1] = [0.25, 0.5, 1.0]
Q2[1, 1] = [0.75, 0.0, 0.0]
Q2[1, 3] = [0.0, 0.5, 0.0]


def test_parts_of_a_task_with_heads():
    task = Task(P2, Q2)
    assert (task.heads, task.N, task.T, task.sparsity) == (2, 3, 4, 2)
    np.testing.assert_allclose(task.mu, MU, atol=1e-12)
    np.testing.assert_array_equal(task.Q, Q2)
    assert [s.tolist() for s in task.support] == [[1], [1, 3], [1]]
    np.testing.assert_array_equal(task.positions, [[1, 1, 1], [1, 3, 0]])
    np.testing.assert_array_equal(task.owners, [[0, 0, 0], [1, 1, 0]])
    A = np.random.default_rng(0).normal(size=(2, 4, 3))
    np.testing.assert_allclose(task.inner_Q(A), np.sum(A * Q2 * task.mu), atol=1e-15)
    assert task == Task.sparse(P2, task.positions, task.weights, 4, task.owners)
    assert "heads=2" in repr(task)


def test_one_head_with_an_axis_of_its_own_is_the_task_without_it():
    assert Task(P2[:1], Q2.sum(axis=0)[None]) == Task(P2[0], Q2.sum(axis=0))


@pytest.mark.parametrize("ensemble", ENSEMBLES)
def test_random_heads_share_their_stationary_distribution_and_deal_the_positions(ensemble):
    task = Task.random(4, 30, 3, seed=2, ensemble=ensemble, heads=3)
    assert task.P.shape == (3, 4, 4)
    assert task.Q.shape == (3, 30, 4)
    assert np.abs(task.P @ task.mu - task.mu).max() < 1e-12
    assert np.bincount(task.owners.ravel()).tolist() == [4, 4, 4]
    one = Task.random(4, 30, 3, seed=2, ensemble=ensemble)
    np.testing.assert_array_equal(task.P[0], one.P)
    # The heads together have the positions and weights of the task with one head
    np.testing.assert_array_equal(task.Q.sum(axis=0), one.Q)
    assert Task.random(4, 30, 3, seed=2, ensemble=ensemble, heads=1) == one


def test_wanted_contrast_holds_for_every_head():
    task = Task.random(4, 30, 3, heads=2, K_P=0.2)
    np.testing.assert_allclose([scb.geometry.centred_square(P, task.mu) for P in task.P], 0.2, atol=1e-9)


@pytest.mark.parametrize("compiled", [False, True])
def test_samples_have_the_distribution_of_enumeration(compiled):
    task = tiny_heads(3, 2, 2, 0)
    world = World.of(task)
    n = 200_000
    batch = scb.sample(task, n, seed=1, compiled=compiled)
    counts = np.zeros((3, 3, 3, 3))
    np.add.at(counts, (*batch.context.T, batch.last, batch.label), 1)
    expected = np.zeros_like(counts)
    expected[(*world.context.T, world.last, world.label)] = n * world.probability
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi_square - 80) < 5 * np.sqrt(2 * 80)


def test_streams_and_sequences_draw_labels_by_their_heads():
    # Head 0 copies, head 1 goes on by one: tokens tell which head has spoken.
    P = np.stack([np.eye(3) * 0.997 + 0.001, np.roll(np.eye(3), 1, axis=0) * 0.997 + 0.001])
    Q = np.zeros((2, 2, 3))
    Q[0, 0] = [1, 1, 0]
    Q[1, 1] = [0, 0, 1]
    task = Task(P, Q)
    batch = next(scb.stream(task, 20_000, seed=0))
    wanted = np.where(batch.last == 2, (batch.context[:, 1] + 1) % 3, batch.context[:, 0])
    assert (batch.label == wanted).mean() > 0.995
    x = scb.generate(task, 20_000, seed=0).astype(int)
    wanted = np.where(x[2:-1] == 2, (x[1:-2] + 1) % 3, x[:-3])
    assert (x[3:] == wanted).mean() > 0.995


def test_a_file_keeps_the_heads(tmp_path):
    task = Task.random(4, 30, 3, heads=2)
    task.save(tmp_path / "task.npz")
    assert Task.load(tmp_path / "task.npz") == task


def test_check_has_singular_values_in_the_place_of_the_contrast():
    task = Task.random(4, 1000, 2, heads=2)
    report = task.check()
    assert list(report) == ["a", "b", "c", "d", "e"]
    np.testing.assert_allclose(report["e"].measured, task.singular_values[1] / task.singular_values[0])
    alike = Task(np.stack([task.P[0], task.P[0]]), task.Q)
    assert not alike.check()["e"].holds
    assert not alike.check()["c"].holds


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Task(np.stack([P2[0], np.full((3, 3), 1 / 3)]), Q2), "P[1] and P[0] have different stationary distributions"),
        (lambda: Task(P2, Q2 * 0.9), "column 0 of Q, over all heads, sums to 0.9: every column must sum to 1"),
        (lambda: Task(P2, Q2[0]), "Q has shape (4, 3), but P has H = 2 heads: Q must be (H, T, N)"),
        (lambda: Task(P2, Q2[[0, 1, 1]]), "Q has shape (3, 4, 3), but P has H = 2 heads"),
        (lambda: Task(P2[0], Q2), "Q has shape (2, 4, 3): it must be a matrix"),
        (lambda: Task(P2[None], Q2), "P has shape (1, 2, 3, 3): it must be a matrix, or one for each head"),
        (lambda: Task(P2[:, :2], Q2), "P has shape (2, 2, 3): it must be square"),
        (lambda: Task.sparse(P2, [[0, 1, 2]], np.ones((1, 3)), 4), "owners has shape ()"),
        (lambda: Task.sparse(P2, [[0, 1, 2]], np.ones((1, 3)), 4, [[0, 1, 2]]), "owners holds a head outside [0, 1]"),
        (lambda: Task.random(2, 9, 2, heads=2), "heads = 2: with N = 2 and sparsity = 2 there can be at most"),
        (lambda: Task.random(3, 9, 2, heads=0), "heads = 0"),
        (lambda: scb.LinearTransformer(P2, Q2[0]), "A has shape (4, 3): it must be (2, T, 3) to go with V"),
        (lambda: scb.SoftmaxTransformer(P2, Q2), "V has shape (2, 3, 3): it must be square, (N, N)"),
    ],
)
def test_what_cannot_be_gets_one_clear_error(make, message):
    with pytest.raises(scb.InputError) as caught:
        make()
    assert message in str(caught.value)
