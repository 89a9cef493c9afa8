"""Streams: the distribution of ``sample``, batches that depend on their number alone, and types that training loops want."""

import numpy as np
import pytest

from scb import Task, generate, sample, stream
from truth.enumeration import WORLDS
from truth.statistics import assert_distribution

TASK = Task.random(5, 30, 2, seed=1)


@pytest.mark.parametrize("world", WORLDS[::3], ids=lambda w: f"N{w.task.N}T{w.task.T}")
def test_whole_outcomes_follow_the_enumerated_distribution(world):
    batches = stream(world.task, batch_size=20_000, seed=3)
    code = np.zeros(0, dtype=int)
    for _ in range(10):
        batch = next(batches)
        one = np.zeros(len(batch), dtype=int)
        for column in (*batch.context.T, batch.last, batch.label):
            one = one * world.task.N + column
        code = np.append(code, one)
    exact = np.zeros(len(world), dtype=int)
    for column in (*world.context.T, world.last, world.label):
        exact = exact * world.task.N + column
    assert_distribution(np.bincount(code, minlength=len(world))[exact], world.probability)


def test_a_batch_depends_on_its_number_alone():
    one = stream(TASK, 16, seed=4)
    tokens = [next(one).tokens for _ in range(5)]
    assert one.step == 5
    np.testing.assert_array_equal(next(stream(TASK, 16, seed=4, start=3)).tokens, tokens[3])
    np.testing.assert_array_equal(one.at(1).tokens, tokens[1])
    np.testing.assert_array_equal(next(one).label, stream(TASK, 16, seed=4).at(5).label)
    assert not np.array_equal(tokens[0], tokens[1])
    assert not np.array_equal(tokens[0], stream(TASK, 16, seed=5).at(0).tokens)


@pytest.mark.parametrize("dtype", [None, np.int64, "int32", np.uint16])
def test_tokens_have_the_type_that_is_asked_for(dtype):
    batch = stream(TASK, 7, dtype=dtype).at(0)
    wanted = np.uint8 if dtype is None else np.dtype(dtype)
    assert batch.tokens.dtype == batch.label.dtype == batch.last.dtype == wanted
    np.testing.assert_array_equal(batch.tokens, stream(TASK, 7).at(0).tokens)


def test_the_tokens_of_a_sample_lie_side_by_side():
    batch = stream(TASK, 7).at(0)
    assert batch.tokens.shape == (7, 31)
    assert np.shares_memory(batch.tokens, batch.context)
    plain = sample(TASK, 7)
    np.testing.assert_array_equal(plain.tokens, np.column_stack((plain.context, plain.last)))
    np.testing.assert_array_equal(plain[2:4].tokens, plain.tokens[2:4])
    np.testing.assert_array_equal(batch[2:4].tokens, batch.tokens[2:4])


def test_many_sequences_at_once():
    some = generate(TASK, 100, seed=2, n=3)
    np.testing.assert_array_equal(generate(TASK, 100, seed=2, n=5)[:3], some)
    assert len(np.unique(some, axis=0)) == 3
    assert generate(TASK, 100, n=0).shape == (0, 100)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": float}, "integer type"),
        ({"batch_size": 0}, "batch_size = 0"),
        ({"batch_size": 2.5}, "batch_size = 2.5"),
        ({"start": -1}, "start = -1"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        stream(TASK, **options)
    with pytest.raises(ValueError, match="holds tokens up to 299"):
        stream(Task.random(300, 5, 1), dtype=np.uint8)
