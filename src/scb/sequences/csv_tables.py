"""A table from CSV: which character separates its columns, and whether its first row holds their
names.
"""

import csv
from typing import Any, BinaryIO

from scb.extras import wanted_for
from scb.inputs import InputError
from scb.sequences.tables import ColumnRoles

# Cells of a text table that are missing
NULLS = ["", "NA", "NaN", "nan", "null"]
# So much of a file decides how it is read
_HEAD = 1 << 16  # bytes


def read_csv(
    file: BinaryIO, delimiter: str | None, header: bool | None, roles: ColumnRoles
) -> tuple[Any, str]:
    """A table of Arrow and, where it is not obvious, how the table was read; options that are None
    are inferred from the first rows.
    """
    with wanted_for("a table"):
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

    head = file.read(_HEAD)
    file.seek(0)
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    if len(head) == _HEAD:
        lines = lines[:-1]
    said = ""
    if delimiter is None:
        delimiter = _delimiter(lines)
        said = "" if delimiter == "," else f"; columns between {delimiter!r}"
    if len(delimiter) != 1:
        raise InputError(f"{delimiter!r} cannot separate columns: it must be one character")
    rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    names = None
    if header is None and rows and _lacks_header(rows[0], rows[1:], roles):
        header = False
        said += "; no row of names (guessed: 'header' says otherwise), columns are '1', '2', …"
    if header is False and rows:
        names = [str(i + 1) for i in range(len(rows[0]))]
    try:
        table = arrow_csv.read_csv(
            file,
            read_options=arrow_csv.ReadOptions(column_names=names),
            convert_options=arrow_csv.ConvertOptions(null_values=NULLS, strings_can_be_null=True),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, ignore_empty_lines=False),
        )
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"it cannot be read as csv: {error}") from None
    # pandas writes its index as a column without a name
    if table.num_columns > 1 and table.column_names[0] == "":
        table = table.remove_column(0)
    return table, said


def _delimiter(lines: list[str]) -> str:
    """The character that cuts every line into the same number of columns, more than one; a comma if
    there is none.
    """
    for delimiter in ",;\t|":
        widths = {len(row) for row in csv.reader(lines, delimiter=delimiter) if row}
        if len(widths) == 1 and widths != {1}:
            return delimiter
    return ","


def _lacks_header(first: list[str], rest: list[list[str]], roles: ColumnRoles) -> bool:
    """Whether the first row is data: a cell of it occurs again below, or is a number above numbers.
    Three or more numbers in a row, such as years, are names.
    """
    if set(first) & set(filter(None, roles)) or not rest:
        return False
    numbers = [_number(cell) for cell in first]
    if len(first) > 2 and all(
        x is not None and x - (numbers[0] or 0) == i for i, x in enumerate(numbers)
    ):
        return False
    for i, cell in enumerate(first):
        below = [row[i] for row in rest if i < len(row)]
        numeric = numbers[i] is not None and all(
            _number(x) is not None for x in below if x not in NULLS
        )
        if cell and (cell in below or numeric):
            return True
    return False


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
