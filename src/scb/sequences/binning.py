"""Numbers as symbols: bins with about the same number of values in each."""

from dataclasses import replace
from typing import Any

import numpy as np

from scb.arrays import Array
from scb.inputs import InputError
from scb.sequences.tables import Sequences


def binned(sequences: Sequences, bins: int) -> Sequences:
    """Sequences of numbers, each replaced by the median of its bin; None and NaN stay missing."""
    flat = [x for sequence in sequences for x in sequence]
    values = bin_medians(flat, bins)
    said = f"{sequences.said}; numbers in {bins} bins cut at quantiles, each named by its median"
    return replace(sequences, flat=values, said=said.removeprefix("; "))


def quantile_edges(numbers: Array, bins: int) -> Array:
    """Where numbers are cut into bins of about equal size; a bin includes its upper edge."""
    return np.unique(np.quantile(numbers, np.arange(1, bins) / bins))


def bin_medians(numbers: list[Any], bins: int) -> list[float | None]:
    """The median of the bin that each number falls into. Equal numbers share a bin."""
    try:
        values = np.array([np.nan if x is None else float(x) for x in numbers])
    except (TypeError, ValueError):
        raise InputError(f"bins = {bins}: the symbols must be numbers") from None
    known = values[~np.isnan(values)]
    if known.size == 0:
        raise InputError(f"bins = {bins}: there are no numbers")
    edges = quantile_edges(known, bins)
    place = np.searchsorted(edges, values, side="left")
    medians = {i: float(np.median(values[place == i])) for i in np.unique(place[~np.isnan(values)])}
    return [None if x != x else medians[i] for x, i in zip(values.tolist(), place, strict=True)]
