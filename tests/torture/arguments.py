"""Arguments for the fuzzer: right ones by their types, and odd ones of every kind."""

from functools import cache
from typing import Any, Literal, get_args, get_origin

import numpy as np
from hypothesis import strategies as st

import scb
from scb.task import Task

TASK = Task.random(3, 6, 2)


@cache
def odd_arrays() -> list[Any]:
    masked = np.ma.array([1.0, 2.0], mask=[True, False])
    plain = [
        np.zeros(0),
        np.eye(3),
        np.full((3, 3), np.nan),
        np.eye(3) * 1j,
        np.array("x"),
        np.array(3),
        np.array([None, 1]),
        masked,
    ]
    return [*plain, np.arange(6).astype(">i4"), np.arange(27).reshape(3, 3, 3), np.array(["a", "b"]), np.full((3, 3), -1 / 3)]


ODD = st.one_of(
    st.sampled_from(
        [None, True, False, -1, 0, 1, 2, 2.5, -0.0, float("nan"), float("inf"), -float("inf"), 10**30, -(10**30), 1e300]
    ),
    st.sampled_from(
        ["", "x", "3", "[/b]", "$x_$", "\0", "\ud800", b"x", 1j, [], [1], [[1], 2], {}, {"a": 1}, (1, 2), object, range(3)]
    ),
    st.sampled_from([np.int64(3), np.float32(0.5), np.bool_(True), np.str_("x"), np.datetime64("2020-01-01"), np.uint8(200)]),
    st.deferred(lambda: st.sampled_from(odd_arrays())),
    st.integers(-5, 50),
    st.floats(-2, 2),
    st.text(max_size=3),
)


def typed(name: str, hint: Any) -> st.SearchStrategy[Any]:
    """Values that a type allows, small enough to be run."""
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) is tuple:
        parts = get_args(hint)
        return st.tuples(*(typed(name, part) for part in parts if part is not Ellipsis))
    if get_args(hint):
        return st.one_of([typed(name, part) for part in get_args(hint)])
    if hint is bool:
        return st.booleans()
    if hint is int:
        return st.integers(1, 8)
    if hint is float:
        return st.floats(0, 1)
    return st.sampled_from(["a", "uniform", None])


def likely(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly right, so that calls come far; sometimes odd."""
    return st.one_of(right, right, right, right, ODD)


SIZES = {"N": st.integers(2, 5), "T": st.integers(1, 12), "sparsity": st.integers(1, 3), "seed": st.integers(0, 9)}
LAWS = st.sampled_from([TASK.P, TASK.P.tolist(), np.asfortranarray(TASK.P), TASK.P.astype(np.float32), np.eye(3)])
ATTENTION = st.sampled_from([TASK.Q, TASK.Q.tolist(), np.full((6, 3), 1 / 6)])
TOKENS = st.one_of(st.lists(st.integers(0, 3), max_size=60), st.builds(lambda s: scb.generate(TASK, 60, s), st.integers(0, 5)))
SYMBOLS = st.one_of(
    st.lists(st.sampled_from("abc"), max_size=40),
    st.lists(st.sampled_from(["a", "b", None]), max_size=40),
    st.lists(st.lists(st.sampled_from([1, 2, 3]), max_size=9), max_size=5),
    st.lists(st.sampled_from([0.5, float("nan"), 2.0]), max_size=20),
)
