"""The order of the rows of a table: they are sorted by a column, with breaks after pauses, and a
warning is issued if the rows seem to be in no order.
"""

import re
import warnings
from typing import Any

import numpy as np

from scb.arrays import AnyArray, Flags, Ints
from scb.inputs import InputError, shown

Ints = Ints

# Columns of these names, or of times, should be ascending
_TIMES = re.compile(r"(date[-_ ]?)?time([-_ ]?stamp)?|date|order|step|ts", re.IGNORECASE)
# Units of a pause, in seconds
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400}


def row_order(table: Any, order: str | None) -> tuple[Ints, str]:
    """The numbers of the rows, sorted by a column, and how they were sorted; ties keep their order.

    Text that holds numbers is sorted by the values of the numbers: 2 comes before 10.
    """
    rows = np.arange(table.num_rows)
    if order is None:
        return rows, "in the order of the rows"
    column = table[order]
    if column.null_count:
        raise InputError(
            f"column {order!r} has {column.null_count:,} empty cells: rows cannot be sorted by it"
        )
    keys, how = sort_keys(order, column)
    return np.argsort(keys, kind="stable"), f"sorted by {order!r}{how}"


def sort_keys(name: str, column: Any) -> tuple[AnyArray, str]:
    """(n,): the keys by which the rows are sorted, and a remark on text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([pa.array(column.to_pylist())])
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _text_keys(column.to_pylist())
    try:
        ranks = pc.rank(column, sort_keys="ascending", tiebreaker="dense")  # pyright: ignore
        return ranks.to_numpy(), ""
    except (pa.ArrowTypeError, pa.ArrowNotImplementedError):
        kind = shown(str(column.type))
        raise InputError(
            f"column {name!r} has cells of type {kind}: rows cannot be sorted by it"
        ) from None


def _text_keys(cells: list[str]) -> tuple[AnyArray, str]:
    """Text as numbers, or as text in which numbers count as such: 'day 2' before 'day 10'."""
    try:
        return np.array([float(cell) for cell in cells]), ", as numbers"
    except ValueError:
        parts = [re.split(r"(\d+)", cell) for cell in cells]
    keys = [tuple(int(x) if i % 2 else x for i, x in enumerate(part)) for part in parts]
    place = {key: i for i, key in enumerate(sorted(set(keys)))}
    return np.array([place[key] for key in keys], np.int64), ", as text"


def warn_of_disorder(table: Any, used: tuple[str | None, ...], number: Ints) -> None:
    """Warn if there is a column of times that the rows of some sequence (n,) do not follow."""
    import pyarrow as pa

    for name in table.column_names:
        column = table[name]
        timed = pa.types.is_temporal(column.type) or _TIMES.fullmatch(str(name))
        if name in used or not timed or column.null_count or pa.types.is_nested(column.type):
            continue
        keys, _ = sort_keys(name, column)
        rows = np.argsort(number, kind="stable")
        same = np.diff(number[rows]) == 0
        if (keys[rows][1:] < keys[rows][:-1])[same].any():
            warnings.warn(
                f"the rows are not in the order of column {name!r}: order={name!r} (--order "
                f"{name}) sorts them by it",
                stacklevel=2,
            )
            return


def breaks(order: Any, gap: Any) -> Flags:
    """(n − 1,): where a sorted column of numbers or times increases by more than a gap."""
    import pyarrow as pa

    column = order.combine_chunks()
    if pa.types.is_temporal(column.type):
        values = column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() / 1e6
        return np.diff(values) > seconds(gap)
    try:
        values = np.array([float(x) for x in column.to_pylist()])
        return np.diff(values) > float(gap)
    except (TypeError, ValueError):
        raise InputError(
            f"gap = {gap!r}: it needs an order column of numbers, or of times and a gap such as"
            " '30min'"
        ) from None


def seconds(gap: Any) -> float:
    """A pause such as '30min' or '2 h' in seconds; a bare number is seconds."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*(s|min|h|d)?\s*", str(gap))
    if match is None:
        raise InputError(f"gap = {gap!r}: it must be a time such as '45s', '30min', '2h' or '1d'")
    return float(match[1]) * _UNITS[match[2] or "s"]
