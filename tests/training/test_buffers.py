"""Arrays that an engine hands out: never overwritten while anyone can read them, and used again afterwards."""

import copy
import ctypes
import gc
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest

import scb
from scb.geometry import line_A, line_V
from scb.training.buffers import Buffers
from scb.training.engine import Fused
from scb.training.stages import Stage

TASK = scb.Task.random(3, 60, 2)
SHAPE = (60, 3)
HOLDERS = {
    "the array": lambda A: A,
    "a view": lambda A: A[5:, 1],
    "a view of a view": lambda A: A.T[1][3:][::2],
    "a reshaped view": lambda A: A.reshape(-1, order="F")[7:],
    "a view of another type": lambda A: A.T.view(np.uint64),
    "a view of another class": lambda A: A.view(np.matrix),
    "a memoryview": lambda A: memoryview(A),
    "a memoryview of a view": lambda A: memoryview(A[:, 2]),
    "a buffer": lambda A: np.frombuffer(memoryview(A.T).cast("B")),
    "a broadcast": lambda A: np.broadcast_to(A[:, :1], (60, 5)),
    "a sliding window": lambda A: np.lib.stride_tricks.sliding_window_view(A[:, 0], 4),
    "an iterator": lambda A: A.flat,
    "the base": lambda A: A.base,
    "DLPack": lambda A: np.from_dlpack(A),
    "a pointer": lambda A: A.ctypes.data_as(ctypes.POINTER(ctypes.c_double)),
}


def content(held):
    """What a holder sees, copied."""
    if isinstance(held, np.flatiter):
        return held.copy()
    if isinstance(held, memoryview):
        return np.frombuffer(held.tobytes())
    if isinstance(held, ctypes.POINTER(ctypes.c_double)):
        return np.array(held[:180])
    return np.array(held)


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_is_held_is_never_overwritten(holder):
    buffers = Buffers(SHAPE)
    A = buffers.copy(np.arange(180.0).reshape(SHAPE))
    held = HOLDERS[holder](A)
    before = content(held)
    del A
    gc.collect()
    others = [buffers.copy(np.full(SHAPE, -1.0)) for _ in range(4)]
    others = [buffers.copy(np.full(SHAPE, -2.0)) for _ in range(4)]
    np.testing.assert_array_equal(content(held), before)
    assert all((other == -2.0).all() for other in others)


@pytest.mark.parametrize("holder", HOLDERS)
def test_memory_comes_back_with_the_last_holder(holder):
    buffers = Buffers(SHAPE)
    A = buffers.copy(np.zeros(SHAPE))
    address = A.ctypes.data
    held = HOLDERS[holder](A)
    del A
    assert buffers.copy(np.ones(SHAPE)).ctypes.data != address
    assert buffers.copy(np.ones(SHAPE)).ctypes.data != address
    del held
    gc.collect()
    assert address in {A.ctypes.data for A in [buffers.copy(np.ones(SHAPE)) for _ in range(3)]}


def test_only_two_blocks_wait():
    buffers = Buffers(SHAPE)
    many = [buffers.copy(np.zeros(SHAPE)) for _ in range(6)]
    blocks = [weakref.ref(A.base._block) for A in many]
    many.clear()
    gc.collect()
    assert sum(block() is not None for block in blocks) == 2


def test_an_array_in_a_cycle_comes_back_when_the_cycle_is_collected():
    buffers = Buffers(SHAPE)
    cycle = {"A": buffers.copy(np.zeros(SHAPE))}
    address = cycle["A"].ctypes.data
    cycle["self"] = cycle
    del cycle
    gc.collect()
    assert buffers.copy(np.ones(SHAPE)).ctypes.data == address


def take(engine, seed):
    stage = Stage("2", 3, 0.2, 0.1, 1e-3)
    return engine.take(line_V(TASK, 0.3), line_A(TASK, 0.3), TASK.mu, stage, seed, range(3)).A


def test_an_answer_outlives_its_engine():
    engine = Fused(TASK)
    A = take(engine, 1)
    before = A.copy()
    gone = weakref.ref(engine)
    del engine
    gc.collect()
    assert gone() is None
    view = A[3:]
    del A
    np.testing.assert_array_equal(view, before[3:])
    del view


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda engine: pickle.loads(pickle.dumps(engine))])
def test_copies_of_an_engine_do_not_write_into_each_other(duplicate):
    engine = Fused(TASK)
    take(engine, 0)  # a block waits
    other = duplicate(engine)
    answers = [take(which, seed) for seed in range(3) for which in (engine, other)]
    expected = [take(Fused(TASK), seed) for seed in range(3) for _ in range(2)]
    for A, B in zip(answers, expected, strict=True):
        np.testing.assert_array_equal(A, B)
    assert len({A.ctypes.data for A in answers}) == 6
    assert len(pickle.dumps(engine._buffers)) < 200


def test_answers_pickle_and_copy_by_value():
    A = take(Fused(TASK), 1)
    for twin in (pickle.loads(pickle.dumps(A, protocol=5)), copy.copy(A), copy.deepcopy(A)):
        np.testing.assert_array_equal(twin, A)
        assert not np.shares_memory(twin, A)


def test_a_process_may_end_while_arrays_are_held():
    code = """
import numpy as np
from scb.training.buffers import Buffers
buffers = Buffers((4, 2))
A, view = buffers.copy(np.ones((4, 2))), buffers.copy(np.ones((4, 2)))[1:]
class Last:
    def __del__(self): assert A[0, 0] == view[0, 0] == 1
last = Last()
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
