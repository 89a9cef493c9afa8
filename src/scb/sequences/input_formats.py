"""Sequences from files and data frames: CSV, TSV, Parquet, JSON lines, and text by character, word,
line or separator.

The ending of a file tells its kind; a file with an unknown ending is text. The result says how the
file was read.
"""

import json
from collections import Counter
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

from scb.extras import wanted_for
from scb.files import open_regular
from scb.inputs import InputError, coerced, file_path, integer, one_of, unreadable
from scb.sequences.tables import ColumnRoles, Sequences, as_arrow, is_table, sequences_in

By = Literal["char", "word", "line"]
OTHER = "<other>"
# Cells of a text table that are missing
NULLS = ["", "NA", "NaN", "nan", "null"]
JSON = (".jsonl", ".ndjson", ".json")
# The endings of files that are tables; all others are text
TABLES = (".csv", ".tsv", ".parquet", ".pq", *JSON)


def read_sequences(
    source: Any,
    *,
    column: str | None = None,
    group: str | None = None,
    order: str | None = None,
    by: By = "char",
    sep: str | None = None,
    top: int | None = None,
) -> Sequences:
    r"""Read sequences of symbols from a file or a data frame.

    The result can be passed as X to ``fit``, ``score`` and ``predict``.

    Parameters
    ----------
    source : str, path or data frame
        A file, or a data frame of pandas, polars or Arrow. Files whose names end in .csv, .tsv,
        .parquet, .jsonl or .json are tables; all others are text. In a .jsonl file, each line may
        also be an array, which is a sequence, or a single symbol.
    column : str, optional
        The column of a table that holds the symbols. If its cells are lists, each cell is a
        sequence.
    group : str, optional
        The column that tells which sequence a row belongs to.
    order : str, optional
        The column by which the rows of each sequence are sorted. By default they keep the order of
        the table.
    by : {"char", "word", "line"}, default "char"
        What counts as a symbol in a text: each character, each word or each line.
    sep : str, optional
        The separator of the columns of a .csv or .tsv file. For a text, the separator of symbols;
        each line is then a sequence.
    top : int, optional
        The number of most common symbols to keep; all others are replaced by ``"<other>"``. By
        default all are kept.

    Returns
    -------
    Sequences
        One sequence or several. Its attribute ``said`` describes how they were read, and ``names``
        has their names in the table. Iterating over it gives the sequences as lists of symbols.

    Raises
    ------
    InputError
        If the file cannot be read in this way, or if it can be read in more than one way. The
        message names the argument that settles it.

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
    roles = ColumnRoles(column, group, order)
    for name, value in {**roles._asdict(), "sep": sep}.items():
        coerced(name, value, str | None)
    if top is not None:
        integer("top", top, low=1)
    if is_table(source):
        sequences = sequences_in(as_arrow(source), roles)
    else:
        sequences = _from_file(file_path("source", source), roles, by, sep)
    return sequences if top is None else _most_common(sequences, top)


def _from_file(path: Path, roles: ColumnRoles, by: By, sep: str | None) -> Sequences:
    ending = path.suffix.lower()
    asked = [name for name, value in roles._asdict().items() if value is not None]
    if ending not in TABLES and asked:
        raise InputError(
            f"{asked[0]!r} is for tables, and {path} is read as text: .csv, .tsv, .parquet and"
            " .jsonl are tables"
        )
    if sep is not None and ending in TABLES and ending not in (".csv", ".tsv"):
        raise InputError(f"'sep' is for text and .csv, and {path} is neither")
    with open_regular(path) as file:
        try:
            if ending not in TABLES:
                return _text(file, by, sep)
            read = _json_lines(file, ending) if ending in JSON else _arrow_table(file, ending, sep)
            if not isinstance(read, Sequences):
                return sequences_in(read, roles)
            if asked:
                raise InputError(f"{asked[0]!r}: its lines are not objects with columns")
            return read
        except ValueError as error:
            raise InputError(f"{path}: {unreadable(error)}") from None


def _arrow_table(file: BinaryIO, ending: str, sep: str | None) -> Any:
    """A table of Arrow from CSV, TSV or Parquet."""
    with wanted_for("a table"):
        import pyarrow as pa
        from pyarrow import csv, parquet

    delimiter = _unescaped(sep) if sep is not None else {".tsv": "\t"}.get(ending, ",")
    if len(delimiter) != 1:
        raise InputError(f"{delimiter!r} cannot stand between columns: it must be one character")
    try:
        if ending in (".parquet", ".pq"):
            return parquet.read_table(file)
        nulls = csv.ConvertOptions(null_values=NULLS, strings_can_be_null=True)
        lines = csv.ParseOptions(delimiter=delimiter, ignore_empty_lines=False)
        return csv.read_csv(file, convert_options=nulls, parse_options=lines)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"it cannot be read as {ending[1:]}: {error}") from None


def _json_lines(file: BinaryIO, ending: str) -> Any:
    """A table of Arrow if the lines are objects; ``Sequences`` if they are arrays or symbols."""
    text = _decoded(file)
    lines = [text] if ending == ".json" else [line for line in text.splitlines() if line.strip()]
    items: Any = []
    try:
        for line in lines:
            items.append(json.loads(line))
    except (ValueError, RecursionError) as error:
        where = "" if ending == ".json" else f"line {len(items) + 1}: "
        raise InputError(f"it cannot be read as {ending[1:]}: {where}{unreadable(error)}") from None
    if ending == ".json":
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
        flat = [x for sequence in items for x in sequence]
        said = f"each of its {len(items):,} lines is a sequence"
        return Sequences(flat, [len(x) for x in items], many=True, said=said)
    return Sequences(items, [len(items)], many=False, said="each line is a symbol of one sequence")


def _unescaped(sep: str) -> str:
    """A separator with its escapes replaced: a shell passes \\t as two characters."""
    try:
        text = sep.encode("latin-1", "backslashreplace").decode("unicode_escape")
        text.encode()  # fails for half of a surrogate pair
    except UnicodeError:
        raise InputError(
            f"sep = {sep!r}: it must be characters, or an escape such as \\t"
        ) from None
    if not text:
        raise InputError("sep is empty: it must be at least one character")
    return text


def _decoded(file: BinaryIO) -> str:
    with TextIOWrapper(file, encoding="utf-8") as text:
        return text.read()


def _text(file: BinaryIO, by: By, sep: str | None) -> Sequences:
    """A text: one sequence, or one per line if symbols are separated."""
    text = _decoded(file)
    if sep is not None:
        sep = _unescaped(sep)
        lines = [
            [cell.strip() or None for cell in line.split(sep)]
            for line in text.splitlines()
            if line.strip()
        ]
        flat = [x for line in lines for x in line]
        lengths = [len(line) for line in lines]
        said = f"symbols between {sep!r}; each of the {len(lines):,} lines is a sequence"
    else:
        flat = {"char": lambda: list(text), "word": text.split, "line": text.splitlines}[by]()
        lengths = [len(flat)]
        names = {"char": "characters", "word": "words", "line": "lines"}
        said = f"text as one sequence of {names[by]}"
    if not flat:
        raise InputError("it is empty")
    return Sequences(flat, lengths, many=len(lengths) > 1, said=said)


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
