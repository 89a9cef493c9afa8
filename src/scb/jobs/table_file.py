"""Tables on disk, as Parquet or, where pyarrow is not installed, as JSON."""

import io
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.extras import MissingExtraError, wanted_for
from scb.files import (
    SLOT,
    make_directory,
    read_json,
    read_sealed,
    seal,
    to_json,
    write_atomically,
)
from scb.inputs import DamagedFileError, InputError
from scb.jobs.table import Table

ENDINGS = (".parquet", ".json")
"""How the names of tables on disk may end."""
ENDING = ENDINGS[find_spec("pyarrow") is None]
"""How the names of tables written here end."""


def write_table(path: Path, table: Table, facts: dict[str, Any]) -> None:
    """Write a table and facts about it atomically; the same table always produces the same bytes.

    Parameters
    ----------
    path : Path
        The file, whose ending decides between Parquet and JSON. A name without an ending gets the
        ending of Parquet or, where pyarrow is not installed, that of JSON.
    table : dict of (rows,) arrays
        The columns by name.
    facts : dict
        Facts about the table, which may be any JSON values.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from scb.jobs.table_file import read_table, write_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "errors.parquet"
    ...     write_table(path, {"T": np.array([10, 20])}, {"made": "by hand"})
    ...     read_table(path)
    ({'T': array([10, 20])}, {'made': 'by hand'})
    """
    path = path if path.suffix else path.with_suffix(ENDING)
    content = (_json if path.suffix == ".json" else _parquet)(table, facts)
    make_directory(path.parent)
    write_atomically(path, seal(content))


def _json(table: Table, facts: dict[str, Any]) -> bytes:
    """Columns with their types; all that is no number is an object, as Arrow gives it back."""
    columns = {
        name: [column.dtype.str if column.dtype.kind in "iufb" else "O", column]
        for name, column in table.items()
    }
    return to_json({"columns": columns, "facts": facts, "digest": SLOT}).encode()


def _parquet(table: Table, facts: dict[str, Any]) -> bytes:
    with wanted_for("a table on disk"):
        import pyarrow as pa
        from pyarrow.parquet import write_table as write

    arrow = pa.table({name: _arrow(column) for name, column in table.items()})
    buffer = io.BytesIO()
    metadata = {"scb": to_json(facts, sort_keys=True), "digest": SLOT}
    write(arrow.replace_schema_metadata(metadata), buffer)
    return buffer.getvalue()


def _arrow(column: NDArray[Any]) -> Any:
    """A column for Arrow, made of its bytes: ``pyarrow.array`` would first load pandas."""
    import pyarrow as pa

    if column.dtype.kind in "iuf":
        return pa.Array.from_buffers(
            pa.from_numpy_dtype(column.dtype),
            len(column),
            [None, pa.py_buffer(np.ascontiguousarray(column))],
        )
    if column.dtype.kind == "b":
        return pa.Array.from_buffers(
            pa.bool_(), len(column), [None, pa.py_buffer(np.packbits(column, bitorder="little"))]
        )
    if column.dtype.kind != "U" and not all(isinstance(text, str) for text in column):
        return pa.array(column)
    texts = [text.encode() for text in column.tolist()]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(texts), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    )


def read_table(path: Path, columns: list[str] | None = None) -> tuple[Table, dict[str, Any]]:
    """Read a table that ``write_table`` wrote, or some of its columns, and its facts."""
    plain = path.suffix == ".json"
    content: Any = read_json(path) if plain else read_sealed(path)
    try:
        return (_from_json if plain else _from_parquet)(content, columns)
    except MissingExtraError:
        raise
    except Exception as error:
        raise DamagedFileError(f"{path} is damaged, or no table of scb ({error})") from error


def _from_json(content: Any, columns: list[str] | None) -> tuple[Table, dict[str, Any]]:
    names = content["columns"] if columns is None else columns
    table = {name: _column(*content["columns"][name]) for name in names}
    if len({column.shape for column in table.values()}) > 1:
        raise InputError("its columns are not of one length")
    return table, dict(content["facts"])


def _column(kind: str, values: list[Any]) -> NDArray[Any]:
    if np.dtype(kind).kind not in "iufbO" or any(isinstance(cell, list | dict) for cell in values):
        raise InputError(f"a column of type {kind!r} must hold numbers or texts")
    return np.array(values, kind)


def _from_parquet(content: bytes, columns: list[str] | None) -> tuple[Table, dict[str, Any]]:
    with wanted_for("a table on disk"):
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile

    # A thread of Arrow that frees ``content`` while Python shuts down would abort the process
    arrow = ParquetFile(pa.BufferReader(content)).read(columns, use_threads=False)
    facts = json.loads((arrow.schema.metadata or {})[b"scb"])
    if nested := [field.name for field in arrow.schema if pa.types.is_nested(field.type)]:
        raise InputError(f"the cells of column {nested[0]!r} are lists")
    return {name: arrow[name].to_numpy() for name in arrow.column_names}, facts
