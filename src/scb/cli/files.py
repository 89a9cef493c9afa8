"""Sequences from files: CSV, Parquet, plain text by character or by word."""

from collections import Counter
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

OTHER = "<other>"
_NULLS = ["", "NA", "NaN", "nan", "null"]


class Column(NamedTuple):
    """Sequences of symbols, each a list or a column of Arrow, and how their symbols are joined when they are printed."""

    sequences: list[Any]
    separator: str


def read(path: Path, column: str | None, group: str | None, by: Literal["char", "word"], top: int | None) -> Column:
    """The sequences in a file; the kind is told by its ending, and everything unknown is text."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there, or not a file")
    ending = path.suffix.lower()
    separator = " "
    if ending in (".csv", ".tsv", ".parquet", ".pq"):
        sequences = _table(path, ending, column, group)
    else:
        for name, value in (("--column", column), ("--group", group)):
            if value is not None:
                raise ValueError(f"{name} is for tables, and {path} is read as text: only .csv, .tsv and .parquet are tables")
        sequences = [_text(path, by)]
        separator = "" if by == "char" else " "
    return Column(sequences if top is None else _common(sequences, top), separator)


def _text(path: Path, by: str) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8 ({error.reason} at byte {error.start})") from None
    symbols = list(text) if by == "char" else text.split()
    if not symbols:
        raise ValueError(f"{path} is empty")
    return symbols


def _table(path: Path, ending: str, column: str | None, group: str | None) -> list[Any]:
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        if ending in (".parquet", ".pq"):
            table = parquet.read_table(path)
        else:
            nulls = csv.ConvertOptions(null_values=_NULLS, strings_can_be_null=True)
            delimiter = csv.ParseOptions(delimiter="\t" if ending == ".tsv" else ",", ignore_empty_lines=False)
            table = csv.read_csv(path, convert_options=nulls, parse_options=delimiter)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} cannot be read as {ending[1:]}: {error}") from None
    names = ", ".join(table.column_names)
    if column is None:
        left = [name for name in table.column_names if name != group]
        if len(left) != 1:
            raise ValueError(f"{path} has the columns {names}: say which one with --column")
        column = left[0]
    for name in (column, group):
        if name is not None and name not in table.column_names:
            raise ValueError(f"{path} has no column {name!r}: it has {names}")
    if table.num_rows == 0:
        raise ValueError(f"{path} has no rows")
    values = table[column]
    if group is None:
        return [values]
    of = table[group].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    order = np.argsort(of, kind="stable")
    bounds = np.flatnonzero(np.diff(of[order])) + 1
    return [values.take(pa.array(rows)).combine_chunks() for rows in np.split(order, bounds)]


def _common(sequences: list[Any], top: int) -> list[list[Any]]:
    """The sequences with all but the ``top`` most common symbols of the file as ``OTHER``."""
    symbols = [s.to_pylist() if hasattr(s, "to_pylist") else s for s in sequences]
    counts = Counter(x for s in symbols for x in s if x is not None)
    names = {x: str(x) for x, _ in counts.most_common(top)} | {None: None}
    return [[names.get(x, OTHER) for x in s] for s in symbols]
