"""Sequences, and how they are read from a table: from a column of symbols and another column that
tells the sequences apart, or as one sequence from each row.

A table is a data frame of pandas or polars, or a table of Arrow. The result says how the table was
read. If it can be read in more than one way, an error says which argument decides.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from scb.arrays import AnyArray, Ints
from scb.extras import wanted_for
from scb.inputs import InputError, InputTypeError, shown
from scb.sequences.row_order import breaks, row_order, warn_of_disorder

Codes = Ints
Classes = AnyArray  # symbols, sorted
Arrays = dict[str, AnyArray]
NOT_SYMBOLS = "they must be integers, strings, booleans or floats, of one type"


@dataclass(frozen=True, repr=False)
class Sequences:
    r"""One or more sequences of symbols, as ``scb.read_sequences`` returns them.

    Iterating yields each sequence as a list, with None for missing symbols.

    Attributes
    ----------
    flat : (n,) array, list or column of Arrow
        The symbols of all sequences, one sequence after another.
    lengths : list of int
        The number of symbols in each sequence.
    many : bool
        Whether the source was a collection of sequences rather than a single sequence (possibly
        split by lengths).
    said : str, default ""
        A description of how a table or file was read.
    names : list, optional
        The names of the sequences, if the table has a column of them.
    rows : (n,) array, optional
        The row of the table that each symbol comes from.
    n_rows : int, default 0
        The number of rows of the table, if ``rows`` are given.
    separator : str, default " "
        The text between symbols when they are written out; it is empty if the symbols are
        characters.
    covariates : dict of lists, optional
        Columns whose values are known when a symbol is predicted, in the order of the input.

    Examples
    --------
    >>> from pathlib import Path
    >>> import scb
    >>> _ = Path("visits.csv").write_text("user,page\nann,home\nann,shop\nbob,home\n")
    >>> visits = scb.read_sequences("visits.csv", column="page", group="user")
    >>> print(visits.said)
    column 'page' in 2 sequences, one for each 'user', in the order of the rows
    >>> visits.names, list(visits)
    (['ann', 'bob'], [['home', 'shop'], ['home']])
    """

    flat: Any
    lengths: list[int]
    many: bool
    said: str = ""
    names: list[Any] | None = None
    rows: Codes | None = None
    n_rows: int = 0
    separator: str = " "
    covariates: dict[str, Any] | None = None

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.lengths)

    def __iter__(self) -> Iterator[list[Any]]:
        """The sequences, each a list of symbols, None where one is missing."""
        flat = self.flat.to_pylist() if hasattr(self.flat, "to_pylist") else list(self.flat)
        bounds = np.cumsum([0, *self.lengths]).tolist()
        return (flat[a:b] for a, b in pairwise(bounds))

    def _beside_input(self, values: AnyArray) -> AnyArray:
        """Values (n,) of the symbols in the order of the input; NaN for rows that were left out."""
        if self.rows is None:
            return values
        ordered = np.full(self.n_rows, np.nan)
        ordered[self.rows] = values
        return ordered

    def __repr__(self) -> str:
        number, symbols = len(self.lengths), sum(self.lengths)
        return f"Sequences({number:,} of them, {symbols:,} symbols: {self.said or 'as given'})"


def one_sequence(flat: Any, **about: Any) -> Sequences:
    """A single sequence of symbols."""
    return Sequences(flat, [len(flat)], many=False, **about)


def chained(lists: Sequence[Any], many: bool = True, **about: Any) -> Sequences:
    """Several sequences, each a list of symbols."""
    flat = [symbol for one in lists for symbol in one]
    return Sequences(flat, [len(one) for one in lists], many, **about)


def is_table(X: Any) -> bool:
    """Whether X is a data frame or a table: something with named columns."""
    return hasattr(X, "columns") or hasattr(X, "column_names")


def as_arrow(X: Any) -> Any:
    """A data frame or table as a table of Arrow, without the index of pandas."""
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
        raise InputTypeError(f"the symbols of X cannot be read ({error}): {NOT_SYMBOLS}") from None


class ColumnRoles(NamedTuple):
    """What the columns of a table are for."""

    # The symbols. If its cells are lists, each is a sequence
    column: str | None = None
    # Which sequence a row belongs to; rows of several sequences may be interleaved
    group: str | None = None
    # Sorts the rows of each sequence; without it they keep their order
    order: str | None = None


def sequences_in(
    table: Any, roles: ColumnRoles, gap: Any = None, covariates: Sequence[str] = ()
) -> Sequences:
    """Read sequences from a table of Arrow; after a pause of more than ``gap`` a new one begins.

    Without roles, a table with a single column is one sequence. If several columns have most
    symbols in common, each row is a sequence. If two columns do not, the one with at least twice as
    many distinct values names the sequences.
    """
    names = list(table.column_names)
    if table.num_rows == 0:
        raise InputError("the table has no rows")
    _require_different(names)
    for name in (*roles, *covariates):
        if name is not None and name not in names:
            raise InputError(
                f"there is no column {name!r}: the columns are {', '.join(map(str, names))}"
            )
    if covariates:
        sequences = sequences_in(table.drop_columns(list(covariates)), roles, gap)
        said = f"{sequences.said}; covariates: {', '.join(covariates)}"
        beside = {name: table[name] for name in covariates}
        return replace(sequences, covariates=beside, said=said)
    for name in names if roles.column is None else filter(None, roles):
        _require_symbols(name, table[name].type, lists=name not in (roles.group, roles.order))
    if gap is not None and roles.order is None:
        raise InputError(
            f"gap = {gap!r}: 'order' must name the column in which pauses are measured"
        )
    left = [name for name in names if name not in roles]
    guessed = ""
    if roles.column is None:
        if len(left) == 1:
            roles = roles._replace(column=left[0])
        elif left == names and _is_wide(table):
            return _wide(table)
        elif left == names and len(left) == 2 and (guess := _names_and_symbols(table)):
            roles = guess
            guessed = " (guessed: 'column' and 'group' say otherwise)"
        else:
            raise InputError(_ambiguous(table, left))
    if _is_list(table[roles.column].type):
        return _listed(table, roles)
    return _long(table, roles, guessed, gap)


def _require_different(names: list[str]) -> None:
    """InputError if two columns have the same name."""
    for name, times in Counter(names).items():
        if times > 1:
            raise InputError(f"there are {times} columns {name!r}: each must have a different name")


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


def _long(table: Any, roles: ColumnRoles, guessed: str, gap: Any) -> Sequences:
    """One symbol per row."""
    import pyarrow as pa

    column, group, order = roles
    rows, said = row_order(table, order)
    number, kinds = _sequence_numbers(table, group)
    if order is None:
        warn_of_disorder(table, tuple(roles), number)
    rows = rows[np.argsort(number[rows], kind="stable")]
    nameless = int((number < 0).sum())
    rows = rows[nameless:]  # −1 comes first
    if rows.size == 0:
        raise InputError(
            f"column {group!r} is empty: it must say to which sequence each row belongs"
        )
    begins = np.diff(number[rows]) != 0
    if gap is not None:
        begins |= breaks(table[order].take(pa.array(rows)), gap)
        said += f"; a new one begins after a pause of more than {gap}"
    firsts = np.concatenate([[0], 1 + np.flatnonzero(begins)])
    many = group is not None or firsts.size > 1
    if group is not None:
        said = f"in {firsts.size:,} sequences, one for each {group!r}{guessed}, {said}"
    elif many:
        said = f"in {firsts.size:,} sequences, {said}"
    else:
        said = f"is one sequence, {said}"
    if nameless:
        said += f"; {nameless:,} rows without a {group!r} were left out"
    in_order = group is None and order is None
    return Sequences(
        table[column] if in_order else table[column].take(pa.array(rows)),
        np.diff([*firsts, rows.size]).tolist(),
        many=many,
        said=f"column {column!r} {said}",
        names=None if group is None else [kinds[i] for i in number[rows[firsts]]],
        rows=None if in_order else rows,
        n_rows=table.num_rows,
    )


def _sequence_numbers(table: Any, group: str | None) -> tuple[Codes, list[Any]]:
    """(rows,): the number of the sequence that a row belongs to, −1 if it has no name; the names
    by number.
    """
    if group is None:
        return np.zeros(table.num_rows, np.int64), []
    encoded = table[group].combine_chunks().dictionary_encode()
    number = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return number.astype(np.int64), encoded.dictionary.to_pylist()


def _listed(table: Any, roles: ColumnRoles) -> Sequences:
    """Read a column with a whole sequence in each cell; a null cell is an empty sequence."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column, group, _ = roles  # cells are in order already
    cells = table[column].combine_chunks()
    cells = cells.chunk(0) if isinstance(cells, pa.ChunkedArray) else cells
    lengths = pc.list_value_length(cells).fill_null(0).to_pylist()  # pyright: ignore
    names = None if group is None else table[group].to_pylist()
    said = f"column {column!r}: each of its {len(lengths):,} cells is a sequence"
    return Sequences(cells.flatten(), lengths, many=True, said=said, names=names)


def _wide(table: Any) -> Sequences:
    """A sequence in each row."""
    import pyarrow as pa

    columns = table.columns
    # Integers with gaps come as floats
    if any(pa.types.is_floating(column.type) for column in columns):
        columns = [column.cast(pa.float64()) for column in columns]
    said = (
        f"each of the {table.num_rows:,} rows is a sequence of {len(columns)} symbols, in the order"
        " of the columns"
    )
    rows = chained([*zip(*(column.to_pylist() for column in columns), strict=True)], said=said)
    return replace(rows, flat=pa.array(rows.flat, from_pandas=True))


def _kinds(column: Any) -> set[Any]:
    """The different values of a column, gaps left out."""
    return {x for x in column.unique().to_pylist() if x is not None and x == x}


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _is_wide(table: Any) -> bool:
    """Whether the columns have most of their symbols in common."""
    if any(_is_list(column.type) for column in table.columns):
        return False
    kinds = [_kinds(column) for column in table.columns]
    if len({isinstance(next(iter(one)), str) for one in kinds if one}) > 1:
        return False
    times = Counter(x for one in kinds for x in one)
    return all(2 * sum(times[x] > 1 for x in one) >= len(one) for one in kinds)


def _names_and_symbols(table: Any) -> ColumnRoles | None:
    """Which of two columns names the sequences, and which holds the symbols; None if that is not
    clear.
    """
    first, second = table.column_names
    lists = [name for name in (first, second) if _is_list(table[name].type)]
    if len(lists) == 2:
        return None
    if lists:
        return ColumnRoles(first, second) if lists == [first] else ColumnRoles(second, first)
    in_first, in_second = (len(_kinds(table[name])) for name in (first, second))
    # With another name in each row no sequence would have two symbols
    if table.num_rows in (in_first, in_second):
        return None
    if in_first >= 2 * in_second:
        return ColumnRoles(second, first)
    if in_second >= 2 * in_first:
        return ColumnRoles(first, second)
    return None


def _ambiguous(table: Any, left: list[str]) -> str:
    """The message if a table can be read in more than one way."""
    about = ", ".join(
        f"{name} ({len(_kinds(table[name])):,} kinds)"
        for name in left
        if not _is_list(table[name].type)
    )
    return (
        f"which column holds the symbols? There are {about or ', '.join(left)}: scb.read_sequences"
        " and scb fit take its name as 'column', the one that tells sequences apart as 'group', and"
        " the one that sorts rows as 'order'"
    )
