"""Sequences from files and frames: CSV, TSV, Parquet, JSON lines, text by character, word, line or
separator.

The kind of a file is told by its ending; everything unknown is text. ``scb fit`` and
``scb.read_sequences`` read by the same rules, and both say what they did.
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
from scb.sequences.symbols import Sequences
from scb.sequences.tables import Columns, as_arrow, is_table, lay_out

By = Literal["char", "word", "line"]
OTHER = "<other>"
NULLS = ["", "NA", "NaN", "nan", "null"]  # cells of a text table that are gaps
JSON = (".jsonl", ".ndjson", ".json")
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
    return read_with_options(source, Columns(column, group, order), by, sep, top, option="{}=")


def read_with_options(
    source: Any, columns: Columns, by: By, sep: str | None, top: int | None, option: str
) -> Sequences:
    """See ``read_sequences``; ``option`` is how the user who is told about it says an option."""
    one_of("by", by, get_args(By))
    for name, value in {**columns._asdict(), "sep": sep}.items():
        coerced(name, value, str | None)
    if top is not None:
        integer("top", top, low=1)
    if is_table(source):
        found = _from_table(as_arrow(source), columns, option)
    else:
        found = _from_file(file_path("source", source), columns, by, sep, option)
    return found if top is None else _common(found, top)


def _from_file(path: Path, columns: Columns, by: By, sep: str | None, option: str) -> Sequences:
    ending = path.suffix.lower()
    asked = [option.format(name) for name, value in columns._asdict().items() if value is not None]
    if ending not in TABLES and asked:
        raise InputError(
            f"{asked[0]} is for tables, and {path} is read as text: .csv, .tsv, .parquet and .jsonl are tables"
        )
    if sep is not None and ending in TABLES and ending not in (".csv", ".tsv"):
        raise InputError(f"{option.format('sep')} is for text and .csv, and {path} is neither")
    with open_regular(path) as file:
        try:
            if ending not in TABLES:
                return _text(file, by, sep)
            content = (
                _json_lines(file, ending) if ending in JSON else _arrow_table(file, ending, sep)
            )
            if not isinstance(content, Sequences):
                return _from_table(content, columns, option)
            if asked:
                raise InputError(f"{asked[0]}: its lines are no objects with columns")
            return content
        except ValueError as error:
            raise InputError(f"{path}: {unreadable(error)}") from None


def _from_table(table: Any, columns: Columns, option: str) -> Sequences:
    laid = lay_out(table, columns, option)
    return Sequences(laid.flat, laid.lengths, many=laid.many, said=laid.said, names=laid.names)


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
    """A table of Arrow from lines that are objects; ``Sequences`` from lines that are arrays or
    single symbols.
    """
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
        raise InputError("it holds no rows: an object or an array a line is wanted")
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
        return Sequences(
            flat,
            [len(x) for x in items],
            many=True,
            said=f"each of its {len(items):,} lines is a sequence",
        )
    return Sequences(items, [len(items)], many=False, said="each line is a symbol of one sequence")


def _unescaped(sep: str) -> str:
    """A separator as it is meant: a shell gives \\t as two characters."""
    try:
        found = sep.encode("latin-1", "backslashreplace").decode("unicode_escape")
        found.encode()  # half of a surrogate pair stands in no text
    except UnicodeError:
        raise InputError(
            f"sep = {sep!r}: it must be characters, or an escape such as \\t"
        ) from None
    if not found:
        raise InputError("sep is empty: it must be at least one character")
    return found


def _decoded(file: BinaryIO) -> str:
    with TextIOWrapper(file, encoding="utf-8") as text:
        return text.read()


def _text(file: BinaryIO, by: By, sep: str | None) -> Sequences:
    """A text: one sequence, or one a line where symbols are separated."""
    text = _decoded(file)
    if sep is not None:
        sep = _unescaped(sep)
        lines = [
            [cell.strip() or None for cell in line.split(sep)]
            for line in text.splitlines()
            if line.strip()
        ]
        flat = [x for line in lines for x in line]
        said = f"symbols between {sep!r}; each of the {len(lines):,} lines is a sequence"
        found = Sequences(flat, [len(line) for line in lines], many=len(lines) > 1, said=said)
    else:
        symbols = {"char": lambda: list(text), "word": text.split, "line": text.splitlines}[by]()
        names = {"char": "characters", "word": "words", "line": "lines"}
        found = Sequences(
            symbols, [len(symbols)], many=False, said=f"text as one sequence of {names[by]}"
        )
    if sum(found.lengths) == 0:
        raise InputError("it is empty")
    return found


def _common(sequences: Sequences, top: int) -> Sequences:
    """The sequences with all but the ``top`` most common symbols as ``OTHER``."""
    flat = [x for sequence in sequences for x in sequence]
    counts = Counter(x for x in flat if x is not None and x == x)
    names = {x: str(x) for x, _ in counts.most_common(top)} | {None: None}
    rare = sum(counts.values()) - sum(n for _, n in counts.most_common(top))
    said = f"{sequences.said}; {max(len(counts) - top, 0):,} kinds beyond the {top} most common, {rare:,} symbols, are {OTHER!r}"
    return replace(
        sequences, flat=[names.get(x, None if x != x else OTHER) for x in flat], said=said
    )
