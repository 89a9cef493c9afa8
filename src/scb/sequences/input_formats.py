"""Sequences from files and data frames: CSV, TSV, Parquet, JSON lines, FASTA, and text by
character, word, line or separator.

The ending of a file's name tells its kind; a file with an unknown ending is text. The result says
how the file was read.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, get_args

from scb.extras import wanted_for
from scb.inputs import InputError, coerced, file_path, integer, one_of, unreadable
from scb.sequences.binning import binned
from scb.sequences.csv_tables import read_csv
from scb.sequences.file_kinds import TABLES, Kind, kind_of, opened_bytes
from scb.sequences.tables import (
    ColumnRoles,
    Sequences,
    as_arrow,
    chained,
    is_table,
    one_sequence,
    sequences_in,
)
from scb.sequences.texts import By, read_fasta, read_text, unescaped

OTHER = "<other>"


def read_sequences(
    source: Any,
    *,
    column: str | None = None,
    group: str | None = None,
    order: str | None = None,
    by: By = "char",
    sep: str | None = None,
    top: int | None = None,
    kind: Kind | None = None,
    header: bool | None = None,
    gap: float | str | None = None,
    bins: int | None = None,
    covariates: str | Sequence[str] = (),
) -> Sequences:
    r"""Read sequences of symbols from a file or a data frame.

    The result can be passed as X to ``fit``, ``score`` and ``predict``.

    Parameters
    ----------
    source : str, path or data frame
        A file, "-" for standard input, or a data frame of pandas, polars or Arrow. Files whose
        names end in .csv, .tsv, .parquet, .jsonl or .json are tables, and those ending in .fasta,
        .fa, .fna or .faa are FASTA; all others are text. Any file may be compressed with gzip. A
        line of a .jsonl file may also be an array, which is read as a sequence, or a single symbol.
    column : str, optional
        The column of a table that holds the symbols. If its cells are lists, each cell is a
        sequence.
    group : str, optional
        The column that tells which sequence a row belongs to.
    order : str, optional
        The column by which the rows of each sequence are sorted. By default, the rows keep the
        order of the table. Text that holds numbers is sorted by the values of the numbers, so 2
        comes before 10.
    by : {"char", "word", "line"}, default "char"
        What counts as a symbol in a text: each character, each word or each line.
    sep : str, optional
        The separator of the columns of a .csv or .tsv file. By default, the separator is a comma,
        semicolon, tab or vertical bar, whichever splits all rows into the same number of columns.
        In a text, symbols are separated by ``sep``, and each line is a sequence. With an empty
        separator, each character is a symbol.
    top : int, optional
        The number of most common symbols to keep; all others are replaced by ``"<other>"``. By
        default all are kept.
    kind : {"csv", "tsv", "parquet", "jsonl", "json", "fasta", "text"}, optional
        The kind of file. By default, the ending of the file name decides.
    header : bool, optional
        Whether the first row of a .csv or .tsv file holds the names of the columns. By default, the
        first row is taken to hold names unless it looks like the rows below it. Columns without
        names are called "1", "2", and so on.
    gap : float or str, optional
        The longest pause, measured in the column ``order``, within a sequence. After a longer
        pause, a new sequence begins. For times, the gap is a text such as "45s", "30min", "2h" or
        "1d".
    bins : int, optional
        The number of bins for symbols that are numbers. Bins are cut at quantiles, so all bins hold
        about the same number of symbols, and each number is replaced by the median of its bin.
    covariates : str or sequence of str, optional
        The columns of a table whose values are known when a symbol is predicted, as a list of names
        or as a text with commas between the names. ``fit`` and ``score`` take these columns from
        the result.

    Returns
    -------
    Sequences
        One or more sequences. The attribute ``said`` describes how they were read, and ``names``
        holds the names of the sequences in the table. Iterating over the result yields the
        sequences as lists of symbols.

    Raises
    ------
    InputError
        If the file cannot be read with these arguments, or can be read in more than one way. The
        message names the argument that decides how to read the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> import scb
    >>> _ = Path("song.txt").write_text("la la la di\nla di la\n")
    >>> [sequence for sequence in scb.read_sequences("song.txt", sep=" ")]
    [['la', 'la', 'la', 'di'], ['la', 'di', 'la']]
    >>> scb.read_sequences("song.txt", by="word").said
    'text as one sequence of words'
    """
    one_of("by", by, get_args(By))
    one_of("kind", kind, (None, *get_args(Kind)))
    roles = ColumnRoles(column, group, order)
    for name, value in {**roles._asdict(), "sep": sep}.items():
        coerced(name, value, str | None)
    coerced("header", header, bool | None)
    if top is not None:
        integer("top", top, low=1)
    if isinstance(covariates, str):
        covariates = list(filter(None, covariates.split(",")))
    beside = [coerced("covariates", name, str) for name in covariates]
    if is_table(source):
        sequences = sequences_in(as_arrow(source), roles, gap, beside)
    else:
        path = file_path("source", source)
        sequences = _read_file(path, kind or kind_of(path), roles, by, sep, header, gap, beside)
    if bins is not None:
        sequences = binned(sequences, integer("bins", bins, low=2))
    return sequences if top is None else _most_common(sequences, top)


def _read_file(
    path: Path,
    kind: Kind,
    roles: ColumnRoles,
    by: By,
    sep: str | None,
    header: bool | None,
    gap: float | str | None,
    covariates: Sequence[str],
) -> Sequences:
    """The sequences in a file; an InputError if an option is for files of another kind."""
    asked = {**roles._asdict(), "header": header, "gap": gap, "covariates": covariates or None}
    named = [name for name, value in asked.items() if value is not None]
    if kind not in TABLES and named:
        raise InputError(
            f"{named[0]!r} is for tables, but {path} is read as {kind}: pass "
            "'kind' if it is a table; .csv, .tsv, .parquet and .jsonl are tables"
        )
    if sep is not None and kind not in ("csv", "tsv", "text"):
        raise InputError(f"'sep' is for text and .csv, but {path} is neither")
    with opened_bytes(path) as file:
        try:
            if kind == "fasta":
                return read_fasta(_decoded(file))
            if kind == "text":
                return read_text(_decoded(file), by, sep)
            table, said = _table_in(file, kind, sep, header, roles)
            if not isinstance(table, Sequences):
                sequences = sequences_in(table, roles, gap, covariates)
                return replace(sequences, said=sequences.said + said)
            if any(roles) or covariates:
                raise InputError("'column': its lines are not objects with columns")
            return table
        except ValueError as error:
            raise InputError(f"{path}: {unreadable(error)}") from None


def _table_in(
    file: BinaryIO, kind: Kind, sep: str | None, header: bool | None, roles: ColumnRoles
) -> tuple[Any, str]:
    """A table of Arrow, or ``Sequences`` in JSON; and, where it is not obvious, how it was read."""
    if kind == "parquet":
        return _parquet(file), ""
    if kind in ("jsonl", "json"):
        return _json_lines(file, kind), ""
    delimiter = "\t" if kind == "tsv" else None
    if sep is not None:
        delimiter = unescaped(sep)
    return read_csv(file, delimiter, header, roles)


def _parquet(file: BinaryIO) -> Any:
    with wanted_for("a table"):
        import pyarrow as pa
        from pyarrow import parquet

    try:
        return parquet.read_table(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"it cannot be read as parquet: {error}") from None


def _json_lines(file: BinaryIO, kind: str) -> Any:
    """A table of Arrow if the lines are objects; ``Sequences`` if they are arrays or symbols."""
    text = _decoded(file)
    lines = [text] if kind == "json" else [line for line in text.splitlines() if line.strip()]
    items: Any = []
    try:
        for line in lines:
            items.append(json.loads(line))
    except (ValueError, RecursionError) as error:
        where = "" if kind == "json" else f"line {len(items) + 1}: "
        raise InputError(f"it cannot be read as {kind}: {where}{unreadable(error)}") from None
    if kind == "json":
        (items,) = items
    if not isinstance(items, list) or not items:
        raise InputError("it holds no rows: each line must be an object or an array")
    kinds = {dict if isinstance(x, dict) else list if isinstance(x, list) else None for x in items}
    if len(kinds) > 1:
        raise InputError(
            "it mixes objects, arrays and single values: all lines must be of one kind"
        )
    if kinds == {dict}:
        with wanted_for("a table"):
            import pyarrow as pa
        try:
            return pa.Table.from_pylist(items)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(f"its objects do not make a table: {error}") from None
    if kinds == {list}:
        return chained(items, said=f"each of its {len(items):,} lines is a sequence")
    return one_sequence(items, said="each line is a symbol of one sequence")


def _decoded(file: BinaryIO) -> str:
    with TextIOWrapper(file, encoding="utf-8") as text:
        return text.read()


def _most_common(sequences: Sequences, top: int) -> Sequences:
    """The sequences, with all but the ``top`` most common symbols replaced by ``OTHER``."""
    flat = [x for sequence in sequences for x in sequence]
    counts = Counter(x for x in flat if x is not None and x == x)
    common = counts.most_common(top)
    names = {x: str(x) for x, _ in common} | {None: None}
    rare = sum(counts.values()) - sum(times for _, times in common)
    kinds = max(len(counts) - top, 0)
    said = (
        f"{sequences.said}; {kinds:,} kinds beyond the {top} most common, {rare:,} symbols, are"
        f" {OTHER!r}"
    )
    return replace(
        sequences, flat=[names.get(x, None if x != x else OTHER) for x in flat], said=said
    )
