"""Checks of user input (numbers, arrays, and options typed by a signature), and the class of all
errors that a user can correct.
"""

import operator
from collections.abc import Callable, Collection
from functools import wraps
from inspect import signature
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from scb.arrays import Array

F = TypeVar("F", bound=Callable[..., Any])


class InputError(ValueError):
    """An argument, option or file cannot be used.

    The message names the argument, quotes its value and says what would be accepted. An
    ``InputError`` is a ``ValueError``; the command line prints it as one line, without a traceback.

    Examples
    --------
    >>> import scb
    >>> scb.Task.random(N=3, T=40, sparsity=50)
    Traceback (most recent call last):
    scb.inputs.InputError: sparsity = 50: it must lie between 1 and T = 40
    """


class InputTypeError(InputError, TypeError):
    """The type of an argument cannot be used."""


class DamagedFileError(InputError):
    """A file is damaged or is not of the expected kind.

    No object is made from such a file, and the file is left unchanged.

    Examples
    --------
    >>> from pathlib import Path
    >>> import scb
    >>> scb.Task.random(3, 40, 2).save("task.npz")
    >>> content = Path("task.npz").read_bytes()
    >>> _ = Path("task.npz").write_bytes(content[:-100])  # what a full disk may leave
    >>> scb.Task.load("task.npz")
    Traceback (most recent call last):
    scb.inputs.DamagedFileError: task.npz is damaged, or not written by scb: it carries no digest
    """


# ------------------------------------------------------------------------------- numbers and arrays


_SEEDS = ("seed", "task_seed", "related_seed")  # any integer from 0 on
LARGEST = 10**12
"""Counts and sizes beyond this are mistakes: no array is that long."""


def shown(value: Any) -> str:
    """Return a value as text for a message, on one line and not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def integer(
    name: str, value: Any, low: int | None = None, where: str = "", high: int = LARGEST
) -> int:
    """Return the value as an int, or raise an InputError that names the argument.

    Parameters
    ----------
    name : str
        The name of the argument.
    value : Any
        A Python or NumPy integer, but not True or False.
    low : int, optional
        The smallest value that is allowed.
    where : str, optional
        The text that follows the value in the message.
    high : int, default 10**12
        The largest value that is allowed; seeds may be larger.

    Returns
    -------
    int

    Examples
    --------
    >>> from scb.inputs import integer
    >>> integer("steps", 0, low=1)
    Traceback (most recent call last):
    scb.inputs.InputError: steps = 0: it must be at least 1
    """
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        found = operator.index(value)
    except TypeError:
        raise InputError(f"{name} = {shown(value)}{where}: it must be an integer") from None
    if low is not None and found < low:
        raise InputError(f"{name} = {found}{where}: it must be at least {low}")
    if found > high and name not in _SEEDS:
        raise InputError(f"{name} = {found}{where}: it must be at most {high:,}")
    return found


def number(name: str, value: Any, low: float | None = None, where: str = "") -> float:
    """Return the value as a float, if it is a finite real number (of Python or NumPy, but not a
    truth value) and at least ``low``.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        raise InputError(f"{name} = {shown(value)}{where}: it must be a number")
    try:
        found = float(value)
    except OverflowError:
        found = np.inf
    if not isfinite(found):
        raise InputError(f"{name} = {shown(value)}{where}: it must be a finite number")
    if low is not None and found < low:
        raise InputError(f"{name} = {value}{where}: it must be at least {low:g}")
    return found


def unmasked(name: str, value: Any) -> Any:
    """Return the value, unless it is a masked array with masked entries."""
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.getmaskarray(value).any():
            raise InputError(
                f"{name} has {int(np.ma.count_masked(value))} masked entries: every entry must be"
                " known"
            )
        return value.data
    return value


def boolean(name: str, value: Any) -> bool:
    """Return the value as a bool, if it is a bool of Python or NumPy."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} = {shown(value)}: it must be True or False")
    return bool(value)


def one_of(name: str, value: Any, allowed: Collection[str | None]) -> Any:
    """Return the value if it is allowed, or raise an InputError.

    Parameters
    ----------
    name : str
        The name of the argument.
    value : Any
        The value that was given.
    allowed : collection of str
        The values that are accepted, which may include None.

    Returns
    -------
    Any

    Examples
    --------
    >>> from scb.inputs import one_of
    >>> one_of("method", "magic", ("likelihood", "spectral"))
    Traceback (most recent call last):
    scb.inputs.InputError: method = 'magic': it must be one of 'likelihood', 'spectral'
    """
    if not (isinstance(value, str) or value is None) or value not in allowed:
        raise InputError(f"{name} = {shown(value)}: it must be {_choice(allowed)}")
    return value


def _choice(values: Collection[Any]) -> str:
    return f"one of {', '.join(map(repr, values))}"


def file_path(name: str, value: Any) -> Path:
    """Return the value as a path, if it can be one; an empty string is not the current folder."""
    try:
        if not (isinstance(value, str) and value == ""):
            return Path(value)
    except TypeError:
        raise InputTypeError(
            f"{name} = {shown(value)}: it must be the path of a file or directory"
        ) from None
    raise InputError(
        f"{name} = '': it must be the path of a file or directory ('.' is the current one)"
    )


def unreadable(error: ValueError | RecursionError) -> str:
    """Say what is wrong with a file that is not the text, JSON or TOML that it should be."""
    if isinstance(error, RecursionError):
        return "its values are nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"it is not text in UTF-8 ({error.reason} at byte {error.start})"
    return (
        "it has an integer of too many digits"
        if "set_int_max_str_digits" in str(error)
        else str(error)
    )


def real_array(name: str, value: Any, copy: bool = True) -> Array:
    """Return the given values as a float64 array of real numbers, none of which may be masked.
    Whether NaN and infinity are allowed is up to the caller.

    The array is new, unless ``copy`` is False and the given array can be used unchanged.
    """
    try:
        array = np.asarray(unmasked(name, value))
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is no array: {error}") from None
    if array.dtype.kind not in "biuf":
        kind = "complex numbers" if array.dtype.kind == "c" else f"values of dtype {array.dtype}"
        raise InputError(f"{name} holds {kind}: it must hold real numbers")
    return np.array(array, dtype=np.float64) if copy else np.asarray(array, dtype=np.float64)


def shaped_array(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Return a float64 array of this shape: the given array itself, if it can be used unchanged."""
    array = real_array(name, value, copy=False)
    if array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}: it must be {shape}")
    return array


# --------------------------------------------------------------------------- options by their types


_WORDS = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "text",
    type(None): "",
    dict: "a table",
}


def coerced(name: str, value: Any, hint: Any) -> Any:
    """Return the value converted to a type (1 becomes 1.0 for a float); if this is impossible,
    raise an InputError that says what is allowed.
    """
    found = _fits(value.tolist() if isinstance(value, np.generic | np.ndarray) else value, hint)
    if not found:
        raise InputError(f"{name} = {shown(value)}: it must be {_words(hint)}")
    return found[0]


def typed(function: F) -> F:
    """Return the function with its keyword arguments coerced to the types of its signature; an
    argument that does not fit is refused by name.
    """
    known = [
        name
        for name, parameter in signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]

    @wraps(function)
    def checked(*arguments: Any, **options: Any) -> Any:
        hints = get_type_hints(function)
        return function(
            *arguments,
            **{
                name: coerced(name, v, hints[name]) if name in known else v
                for name, v in options.items()
            },
        )

    return cast(F, checked)


def _fits(value: Any, hint: Any) -> list[Any]:
    """The value as the type has it, or none if it does not fit. Truth values are no numbers, and
    nothing is infinite.
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return [found for part in parts for found in _fits(value, part)][:1]
    if origin is Literal:
        return [part for part in parts if type(value) is type(part) and value == part]
    if origin is Callable:
        return [value] if callable(value) else []
    if origin is tuple:
        if type(value) not in (list, tuple):  # one value stands for as many equal ones as there are
            return [
                fit * len(parts) for fit in [_fits(value, parts[0])] if fit and len(set(parts)) == 1
            ]
        if parts[-1] is Ellipsis:  # as many as there are
            parts = parts[:1] * len(value)
        found = [fit for v, part in zip(value, parts, strict=False) for fit in _fits(v, part)]
        return [found] if len(found) == len(value) == len(parts) else []
    if hint is float:
        return [float(value)] if type(value) in (int, float) and _is_finite(value) else []
    return [value] if type(value) is hint else []


def _is_finite(value: int | float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # an int beyond all floats
        return False


def _words(hint: Any) -> str:
    """What a type allows, for people; objects that nobody can write down are passed over."""
    parts = get_args(hint)
    if get_origin(hint) is Callable:
        return ""
    if get_origin(hint) is Literal:
        return _choice(parts)
    if get_origin(hint) is tuple:
        if parts[-1] is Ellipsis:
            return f"a list of values, each {_words(parts[0])}"
        one = f"{_words(parts[0])}, or " if len(set(parts)) == 1 else ""
        return f"{one}a list of {len(parts)} values, each {_words(parts[0])}"
    if parts:
        return " or ".join(filter(None, map(_words, parts)))
    return _WORDS.get(hint, "")
