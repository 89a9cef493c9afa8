"""Parameters of a sweep as they are written in TOML, checked against type annotations and ranges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import inf, isfinite
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

Parameters = dict[str, Any]

RANGES: dict[str, tuple[float, float]] = {
    "N": (2, 4096),
    "T": (1, inf),
    "sparsity": (1, inf),
    "samples": (1, inf),
    "overlap": (0, 1),
    "start_samples": (1, inf),
    "accuracy": (1e-4, 1),
}
"""Least and largest value."""


def checked(given: Parameters, hints: Mapping[str, Any], kind: str) -> Parameters:
    """The parameters as their types have them; ValueError for an unknown name, another type, or a value out of range."""
    found = {}
    for name, value in given.items():
        if name not in hints:
            raise ValueError(f"{name!r} means nothing to {kind}: it has {', '.join(sorted(hints))}")
        found[name] = fitted(name, value, hints[name])
        low, high = RANGES.get(name, (-inf, inf))
        if isinstance(found[name], int | float) and not low <= found[name] <= high:
            within = f"at least {low:g}" if high == inf else f"between {low:g} and {high:g}"
            raise ValueError(f"{name} = {value}: it must be {within}")
    if found.get("sparsity", 1) > found.get("T", inf):
        raise ValueError(f"sparsity = {found['sparsity']}: it must be at most T = {found['T']}")
    return found


def fitted(name: str, value: Any, hint: Any) -> Any:
    """The value, as the type has it (1 is 1.0 where a number is wanted), or a ValueError that says what is allowed."""
    try:
        return _fit(value, hint)
    except TypeError:
        raise ValueError(f"{name} = {json.dumps(value, default=str)}: it must be {_words(hint)}") from None


def _fit(value: Any, hint: Any) -> Any:
    origin = get_origin(hint)
    parts = get_args(hint)
    if origin in (Union, UnionType):
        for part in parts:
            try:
                return _fit(value, part)
            except TypeError:
                continue
    elif origin is Literal:
        if any(type(value) is type(part) and value == part for part in parts):
            return value
    elif origin is tuple:
        if type(value) is list:
            if parts[-1] is Ellipsis:
                parts = parts[:1] * len(value)
            if len(value) == len(parts):
                return [_fit(one, part) for one, part in zip(value, parts, strict=True)]
    elif hint is float:
        if type(value) in (int, float) and isfinite(value):
            return float(value)
    elif type(value) is hint:  # not isinstance: true is no integer here
        return value
    raise TypeError


def _words(hint: Any) -> str:
    """A type in words."""
    parts = [part for part in get_args(hint) if part is not type(None)]
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(json.dumps(part) for part in parts)
    if get_origin(hint) is tuple:
        count = "" if parts[-1] is Ellipsis else f"{len(parts)} "
        return f"a list of {count}values, each {_words(parts[0])}"
    if parts:
        return " or ".join(_words(part) for part in parts)
    return {int: "an integer", float: "a number", bool: "true or false", str: "text"}.get(hint, str(hint))
