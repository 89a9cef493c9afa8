"""Warnings about values that are probably not symbols: numbers, and whole texts."""

import warnings

from scb.sequences.tables import Classes

# More distinct numbers than this are not symbols
_NUMBERS = 50


def warn_of_symbols(classes: Classes, n: int) -> None:
    """Warn if the n symbols look like measurements or like whole sequences."""
    kinds = len(classes)
    if classes.dtype.kind == "f" and kinds > _NUMBERS and (classes % 1 != 0).any():
        warnings.warn(
            f"X holds {kinds:,} different floats, and each counts as a separate symbol: "
            "scb.read_sequences with bins=5 (--bins 5) puts them into 5 bins",
            stacklevel=3,
        )
    elif classes.dtype.kind == "U" and 4 * kinds > 3 * n and min(map(len, classes.tolist())) > 1:
        warnings.warn(
            f"{kinds:,} of the {n:,} strings in X are different, and each counts as one symbol: "
            "pass [list(x) for x in X] for their characters, or [x.split() for x in X] for "
            "their words",
            stacklevel=3,
        )
