"""Parameters of a sweep as they are written in TOML, checked against type annotations and ranges."""

from collections.abc import Mapping
from math import inf
from typing import Any

from scb.training.settings import fitted

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
