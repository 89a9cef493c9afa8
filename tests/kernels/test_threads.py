"""Kernels on several threads: the same bits on any number of them, for callers at the same time, and after errors."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, sleep

import numpy as np
import pytest

import scb
from scb.geometry import line_A, line_V
from scb.kernels import threads
from scb.kernels.step import fused
from scb.kernels.threads import await_turn, run_together
from scb.training.engine import Fused
from scb.training.stages import Stage

SOURCE = "import numba; from scb.kernels.threads import thread_count; {}print(thread_count())"


def take(task, seed, steps=4):
    """Steps of 200 samples; with T = 6,000 they have four shares."""
    stage = Stage("2", steps, 0.2, 0.1, 1e-3, 200)
    taken = Fused(task).take(line_V(task, 0.3), line_A(task, 0.3), task.mu, stage, seed, range(steps))
    return taken.V, taken.A, taken.loss


def assert_same(one, two):
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("N", [3, 40])
def test_bits_do_not_depend_on_the_number_of_threads(N, monkeypatch):
    task = scb.Task.random(N, 6000, 2)
    expected = [take(task, seed) for seed in range(3)]
    for count in (2, 3, 4, 2):
        monkeypatch.setattr(fused, "thread_count", lambda count=count: count)
        for seed in range(3):
            assert_same(take(task, seed), expected[seed])


def test_callers_at_the_same_time_do_not_meet(monkeypatch):
    task = scb.Task.random(3, 6000, 2)
    expected = [take(task, seed) for seed in range(6)]
    monkeypatch.setattr(fused, "thread_count", lambda: 2)
    with ThreadPoolExecutor(3) as pool:
        for taken, right in zip(pool.map(lambda seed: take(task, seed), range(6)), expected, strict=True):
            assert_same(taken, right)


def test_an_error_leaves_no_thread_behind_that_waits(monkeypatch):
    left = []

    def kernel(me, team):
        if me == 0:
            while not left:  # the helper is on its way
                pass
            raise ValueError("in the middle")
        left.append("came")
        assert not await_turn(me, team)
        left.append("went")

    with pytest.raises(ValueError, match="in the middle"):
        run_together(kernel, 2)
    monkeypatch.setattr(fused, "thread_count", lambda: 2)
    task = scb.Task.random(3, 6000, 2)
    two = take(task, 0)
    monkeypatch.undo()
    assert_same(two, take(task, 0))
    deadline = perf_counter() + 30
    while len(left) < 2 and perf_counter() < deadline:
        sleep(0.01)
    assert left == ["came", "went"]


def test_without_further_threads_the_caller_is_alone(monkeypatch):
    task = scb.Task.random(3, 6000, 2)
    expected = take(task, 0)

    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(fused, "thread_count", lambda: 4)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    threads._desk.close()
    assert_same(take(task, 0), expected)
    assert threads._desk.threads is None


@pytest.mark.parametrize(
    ("environment", "call", "count"),
    [
        ({"NUMBA_NUM_THREADS": "1"}, "", 1),
        ({"NUMBA_NUM_THREADS": "3"}, "", 3),
        ({"NUMBA_NUM_THREADS": "3"}, "numba.set_num_threads(2); ", 2),
        ({"OMP_NUM_THREADS": "1"}, "", 1),
        ({"NUMBA_NUM_THREADS": "2", "OMP_NUM_THREADS": "1"}, "", 2),
    ],
)
def test_the_users_number_of_threads_counts(environment, call, count):
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", SOURCE.format(call)], env=kept | environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == f"{count}\n", done.stderr
