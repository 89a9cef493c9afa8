"""Sequences in tables: a column of symbols, of one sequence or of many that another column tells
apart; or a sequence in each row.

A table is whatever speaks Arrow: a frame of pandas or polars, a table of Arrow. What was done with
it is told in words, and where it can be meant in more than one way, an error says what to say.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scb.extras import wanted_for
from scb.inputs import InputError, InputTypeError, shown

# Times as many kinds that a column has if it holds the names of sequences rather than symbols
_DIFFERENT = 2
# Part of the kinds of each column that occur in others too, where columns are steps of one sequence
_COMMON = 0.5


@dataclass(frozen=True)
class Laid:
    """Sequences as they lay in a table."""

    flat: Any  # a column of Arrow, one sequence after the other
    lengths: list[int]  # of each sequence
    names: list[Any] | None  # of each sequence, where a column tells
    said: str  # how the table was read
    many: bool = True  # whether these are several sequences, and not one


def is_table(X: Any) -> bool:
    """Whether X is a frame or a table: something with named columns."""
    return hasattr(X, "columns") or hasattr(X, "column_names")


def as_arrow(X: Any) -> Any:
    """A frame or table as a table of Arrow, without pandas' index."""
    with wanted_for("a table"):
        import pyarrow as pa

    if isinstance(X, pa.Table | pa.RecordBatch):
        return pa.table(X)
    _require_different(list(getattr(X, "columns", ())))
    try:
        if hasattr(X, "to_arrow"):
            return X.to_arrow()
        return pa.Table.from_pandas(X, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputTypeError(
            f"X cannot be read ({error}): symbols must be integers, strings, booleans or floats, of one type"
        ) from None


class Columns(NamedTuple):
    """Which columns of a table say what."""

    # The symbols; where its cells are lists, each is a sequence
    column: str | None = None
    # To which sequence a row belongs; the rows of several may be mixed
    group: str | None = None
    # By what the rows of each sequence are sorted; without, they stay as they are
    order: str | None = None


def lay_out(table: Any, columns: Columns, option: str = "{}=") -> Laid:
    """Sequences from a table of Arrow; ``option`` is how a user says which columns are meant, for
    messages.

    Where it is not said, a table of one column is one sequence; if its columns have their symbols
    in common, each row is one; of two columns that have not, the one with far more kinds holds the
    names of the sequences.
    """
    names = list(table.column_names)
    if table.num_rows == 0:
        raise InputError("the table has no rows")
    _require_different(names)
    for name in columns:
        if name is not None and name not in names:
            raise InputError(f"there is no column {name!r}: there are {', '.join(map(str, names))}")
    for name in names if columns.column is None else filter(None, columns):
        _require_symbols(name, table[name].type, lists=name not in (columns.group, columns.order))
    left = [name for name in names if name not in columns]
    guessed = ""
    if columns.column is None:
        if len(left) == 1:
            columns = columns._replace(column=left[0])
        elif left == names and _is_wide(table):
            return _wide(table)
        elif left == names and len(left) == 2 and (found := _names_and_symbols(table)):
            columns = found
            guessed = (
                f" (guessed: {option.format('column')} and {option.format('group')} say otherwise)"
            )
        else:
            raise InputError(_ambiguous(table, left, option))
    if _is_list(table[columns.column].type):
        return _listed(table, columns)
    return _long(table, columns, guessed)


def _require_different(names: list[str]) -> None:
    """InputError if two columns have one name."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(
            f"there are {names.count(twice[0])} columns {twice[0]!r}: each must have a name of its own"
        )


def _require_symbols(name: str, kind: Any, lists: bool) -> None:
    """InputError if the cells of a column are neither symbols nor, where these are allowed, lists
    of symbols.
    """
    import pyarrow as pa

    inner = kind.value_type if (lists and _is_list(kind)) or pa.types.is_dictionary(kind) else kind
    if pa.types.is_nested(inner):
        wanted = "single values, or lists of them" if lists else "single values"
        raise InputError(
            f"column {name!r} has cells of type {shown(str(kind))}: they must be {wanted}"
        )


def _long(table: Any, columns: Columns, guessed: str) -> Laid:
    """One symbol a row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column, group, order = columns
    rows = np.arange(table.num_rows)
    sorted_by = "in the order of the rows"
    if order is not None:
        if table[order].null_count:
            raise InputError(
                f"column {order!r} has {table[order].null_count:,} empty cells: rows cannot be sorted by it"
            )
        keys = table.append_column("row of the table", pa.array(rows))
        try:
            by = [(order, "ascending"), ("row of the table", "ascending")]
            rows = pc.sort_indices(keys, sort_keys=by).to_numpy()  # pyright: ignore
        except (pa.ArrowTypeError, pa.ArrowNotImplementedError):
            kind = shown(str(table[order].type))
            raise InputError(
                f"column {order!r} has cells of type {kind}: rows cannot be sorted by it"
            ) from None
        sorted_by = f"sorted by {order!r}"
    values = table[column]
    if group is None:
        flat = values if order is None else values.take(pa.array(rows))
        return Laid(
            flat, [len(flat)], None, f"column {column!r} is one sequence, {sorted_by}", many=False
        )
    encoded = table[group].combine_chunks().dictionary_encode()
    of = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    rows = rows[np.argsort(of[rows], kind="stable")]
    nameless = int((of < 0).sum())
    rows = rows[nameless:]  # −1 comes first
    present, lengths = np.unique(of[rows], return_counts=True)
    if present.size == 0:
        raise InputError(
            f"column {group!r} is empty: it must say to which sequence each row belongs"
        )
    kinds = encoded.dictionary.to_pylist()
    said = f"column {column!r} in {present.size:,} sequences, one for each {group!r}{guessed}, {sorted_by}"
    if nameless:
        said += f"; {nameless:,} rows without a {group!r} were left out"
    return Laid(values.take(pa.array(rows)), lengths.tolist(), [kinds[i] for i in present], said)


def _listed(table: Any, columns: Columns) -> Laid:
    """A whole sequence in each cell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column, group, _ = columns
    cells = table[column].combine_chunks()
    cells = cells.chunk(0) if isinstance(cells, pa.ChunkedArray) else cells
    lengths = pc.list_value_length(cells).fill_null(0).to_pylist()  # pyright: ignore
    names = None if group is None else table[group].to_pylist()
    return Laid(
        cells.flatten(),
        lengths,
        names,
        f"column {column!r}: each of its {len(lengths):,} cells is a sequence",
    )


def _wide(table: Any) -> Laid:
    """A sequence in each row."""
    import pyarrow as pa

    columns = [table[name] for name in table.column_names]
    # Integers with gaps come as floats
    if any(pa.types.is_floating(column.type) for column in columns):
        columns = [column.cast(pa.float64()) for column in columns]
    flat = [x for row in zip(*(column.to_pylist() for column in columns), strict=True) for x in row]
    said = f"each of the {table.num_rows:,} rows is a sequence of {len(columns)} symbols, in the order of the columns"
    return Laid(pa.array(flat, from_pandas=True), [len(columns)] * table.num_rows, None, said)


def _kinds(column: Any) -> set[Any]:
    """The different values of a column, gaps left out."""
    return {x for x in column.unique().to_pylist() if x is not None and x == x}


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _is_wide(table: Any) -> bool:
    """Whether the columns have most of their symbols in common."""
    columns = [table[name] for name in table.column_names]
    if any(_is_list(column.type) for column in columns):
        return False
    kinds = [_kinds(column) for column in columns]
    if len({isinstance(next(iter(one)), str) for one in kinds if one}) > 1:
        return False
    times: dict[Any, int] = {}
    for one in kinds:
        for x in one:
            times[x] = times.get(x, 0) + 1
    return all(sum(times[x] > 1 for x in one) >= _COMMON * len(one) for one in kinds)


def _names_and_symbols(table: Any) -> Columns | None:
    """Of two columns, which one names the sequences and which one holds the symbols; None if that
    cannot be told.
    """
    first, second = table.column_names
    if _is_list(table[first].type) != _is_list(table[second].type):
        return Columns(first, second) if _is_list(table[first].type) else Columns(second, first)
    if _is_list(table[first].type):
        return None
    many = len(_kinds(table[first]))
    few = len(_kinds(table[second]))
    # a name for each row: then no sequence has two symbols
    if many == table.num_rows or few == table.num_rows:
        return None
    if many >= _DIFFERENT * few:
        return Columns(second, first)
    if few >= _DIFFERENT * many:
        return Columns(first, second)
    return None


def _ambiguous(table: Any, left: list[str], option: str) -> str:
    """What to say where a table can be read in more than one way."""
    about = ", ".join(
        f"{name} ({len(_kinds(table[name])):,} kinds)"
        for name in left
        if not _is_list(table[name].type)
    )
    say = f"say which one with {option.format('column')}, with {option.format('group')} to which sequence a row belongs"
    say += f", with {option.format('order')} what sorts rows"
    return f"which column holds the symbols? There are {about or ', '.join(left)}: {say}"
