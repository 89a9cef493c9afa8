import numpy as np
import pytest

from scb import Task, generate, sample
from scb.kernels.random import continue_lags
from scb.task.sampling import Batch, closed_cumulative, independent_tokens
from truth import twins as reference
from truth.enumeration import WORLDS, World, tiny_task
from truth.statistics import assert_distribution


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("world", WORLDS[::3], ids=lambda w: f"N{w.task.N}T{w.task.T}")
def test_whole_outcomes_follow_the_enumerated_distribution(world, compiled):
    batch = sample(world.task, 200_000, seed=1, compiled=compiled)
    code = np.zeros(len(batch), dtype=int)
    exact = np.zeros(len(world), dtype=int)
    for column, truth in zip((*batch.context.T, batch.last, batch.label), (*world.context.T, world.last, world.label), strict=True):
        code, exact = code * world.task.N + column, exact * world.task.N + truth
    assert_distribution(np.bincount(code, minlength=len(world))[exact], world.probability)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("N", [3, 20, 300])
def test_tokens_last_and_label_follow_mu(N, compiled):
    task = Task.random(N, 200, 3, seed=1)
    batch = sample(task, 5000, seed=2, compiled=compiled)
    assert_distribution(np.bincount(batch.context.ravel(), minlength=N), task.mu)
    assert_distribution(np.bincount(batch.last, minlength=N), task.mu)
    assert_distribution(np.bincount(batch.label, minlength=N), task.mu)  # E over the context of Σ q P x = Pμ = μ


def test_the_chi_square_test_can_fail():
    task = Task.random(3, 200, 3, seed=1)
    batch = sample(task, 5000, seed=2)
    with pytest.raises(AssertionError):
        assert_distribution(np.bincount(batch.context.ravel(), minlength=3), task.mu[[1, 0, 2]])


@pytest.mark.parametrize(("N", "dtype"), [(2, np.uint8), (256, np.uint8), (257, np.uint16)])
def test_tokens_take_the_smallest_dtype(N, dtype):
    task = Task.random(N, 5, 1)
    batch = sample(task, 10)
    assert batch.context.dtype == batch.last.dtype == batch.label.dtype == dtype
    assert generate(task, 20).dtype == dtype


def test_samples_are_reproducible_and_do_not_depend_on_the_chunk():
    task = Task.random(5, 30, 2)
    one, two = (sample(task, 100, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.context, two.context)
    np.testing.assert_array_equal(one.label, two.label)
    assert not np.array_equal(one.context, sample(task, 100, seed=4).context)
    tokens, in_chunks = (independent_tokens(task.mu, 100, np.random.default_rng(3), chunk) for chunk in (100, 17))
    np.testing.assert_array_equal(in_chunks, tokens)


def test_generate_follows_the_exact_conditional_distribution():
    """On a tiny task, every window of T + 1 tokens recurs often: its next token must have the distribution of the model."""
    task = tiny_task(2, 3, seed=1)
    tokens = generate(task, 400_000, seed=1).astype(int)
    world = World.of(task)
    windows = np.lib.stride_tricks.sliding_window_view(tokens, task.T + 2)
    code = windows @ (2 ** np.arange(task.T + 1, -1, -1))
    for x in np.unique(world.context, axis=0):
        for k in range(2):
            base = np.r_[x, k, 0] @ (2 ** np.arange(task.T + 1, -1, -1))
            counts = [np.sum(code == base), np.sum(code == base + 1)]
            assert_distribution(counts, task.P[:, x] @ task.Q[:, k])


def test_generate_starts_with_iid_tokens():
    task = Task.random(3, 20_000, 2, seed=1)
    tokens = generate(task, 20_001, seed=1)
    assert_distribution(np.bincount(tokens, minlength=3), task.mu)
    pairs = np.bincount(3 * tokens[:-1:2].astype(int) + tokens[1::2], minlength=9)
    assert_distribution(pairs, np.outer(task.mu, task.mu))
    np.testing.assert_array_equal(generate(task, 5, seed=1), generate(task, 6, seed=1)[:5])
    assert generate(task, 0).shape == (0,)


def test_sequence_kernel_equals_its_twin():
    task = Task.random(6, 40, 3, seed=2)
    u = np.random.default_rng(0).random((3000, 2))
    q, P = closed_cumulative(task.weights), closed_cumulative(task.P)
    fast, plain = np.zeros(3041, dtype=np.uint8), np.zeros(3041, dtype=np.uint8)
    continue_lags(fast, 41, q, 41 - task.positions, P, np.zeros_like(task.positions), u)
    reference.continue_sequence(plain, 41, q, task.positions, P, u)
    np.testing.assert_array_equal(fast, plain)
    assert len(np.unique(fast)) == 6


def test_bad_input_is_named():
    task = Task.random(3, 5, 2)
    with pytest.raises(ValueError, match="n = -1"):
        sample(task, -1)
    with pytest.raises(ValueError, match="length = -1"):
        generate(task, -1)
    with pytest.raises(ValueError, match="must be \\(n, T\\), \\(n,\\), \\(n,\\)"):
        Batch(np.zeros((3, 5), np.uint8), np.zeros(2, np.uint8), np.zeros(3, np.uint8))
