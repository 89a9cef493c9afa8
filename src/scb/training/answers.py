"""Checks of the values that a user's own rules, roundings, sources and stop conditions return."""

from collections.abc import Callable
from typing import Any

import numpy as np

from scb.arrays import Array
from scb.inputs import InputError, integer, shaped_array, shown
from scb.model import Gradient


def functions(name: str, value: Any, where: str = "") -> tuple[Callable[..., Any], ...]:
    """Return the value as a tuple, if it is a list or tuple of functions."""
    if not isinstance(value, list | tuple) or not all(map(callable, value)):
        raise InputError(f"{name} = {shown(value)}{where}: it must be a list or tuple of functions")
    return tuple(value)


def named(function: Any) -> str:
    """Return the name of a function or, if it is an object, the name of its class."""
    return getattr(function, "__qualname__", type(function).__qualname__)


def point(what: str, returned: Any, V: Array, A: Array) -> tuple[Array, Array]:
    """Return the (V, A) of a rule or rounding, after a check that the shapes have not changed."""
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise InputError(f"{what} returns {shown(returned)}: it must return V and A")
    new_V = shaped_array(f"the V that {what} returns", returned[0], V.shape)
    return new_V, shaped_array(f"the A that {what} returns", returned[1], A.shape)


def rounded(
    rounding: Callable[..., Any], V: Array, A: Array, mu: Array, stage: str
) -> tuple[Array, Array]:
    """Return the (V, A) of a rounding, which must be finite."""
    what = f"the rounding {named(rounding)} of stage {stage!r}"
    V, A = point(what, rounding(V, A, mu), V, A)
    if not (np.isfinite(V).all() and np.isfinite(A).all()):
        raise InputError(f"{what} returns NaN or infinity: all entries must be finite")
    return V, A


def gradient(source: Callable[..., Any], returned: Any, V: Array, A: Array) -> Gradient:
    """Return the gradient of a source, after a check of its shapes; it need not be finite."""
    what = f"the source {named(source)}"
    if not isinstance(returned, Gradient):
        raise InputError(f"{what} returns {shown(returned)}: it must return a scb.model.Gradient")
    for name, array, like in (("V", returned.V, V), ("A", returned.A, A)):
        shaped_array(f"the gradient of {name} that {what} returns", array, like.shape)
    if not isinstance(returned.loss, int | float | np.number):
        raise InputError(f"{what} returns the loss {shown(returned.loss)}: it must be a number")
    integer(f"the number of samples that {what} returns", returned.samples, low=0)
    return returned


def stopped(stop: Callable[..., Any], V: Array, A: Array, mu: Array, stage: str) -> bool:
    """Return whether the stop condition of a stage ends the stage."""
    returned = stop(V, A, mu)
    if not isinstance(returned, bool | np.bool_):
        raise InputError(
            f"the condition {named(stop)} of stage {stage!r} returns {shown(returned)}: "
            "it must return True or False"
        )
    return bool(returned)
