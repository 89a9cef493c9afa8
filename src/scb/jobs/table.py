"""Tidy tables, which jobs give and figures and claims read: their statistics, and how they are written to disk."""

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.extras import wanted_for
from scb.files import SLOT, make_directory, read_sealed, seal, to_json, warn_unless, write_atomically
from scb.inputs import DamagedFileError

Table = dict[str, NDArray[Any]]  # column name → array, all of one length


def concatenate(tables: Sequence[Table]) -> Table:
    """One table after the other."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def pick(table: Table, **equal: Any) -> Table:
    """The rows whose columns have these values."""
    mask = np.ones(len(next(iter(table.values()))), dtype=bool)
    for name, value in equal.items():
        mask &= table[name] == value
    return where(table, mask)


def where(table: Table, chosen: NDArray[Any]) -> Table:
    """The rows that a mask or an array of indices chooses."""
    return {name: column[chosen] for name, column in table.items()}


def at(table: Table, step: int | None = None) -> Table:
    """One row a replicate: the last one up to ``step``, or the last of all."""
    chosen = []
    for replicate in np.unique(table["replicate"]):
        mine = np.flatnonzero(table["replicate"] == replicate)
        if step is not None:
            mine = mine[table["step"][mine] <= step]
        chosen.append(mine[np.argmax(table["step"][mine])])
    return where(table, np.array(chosen))


def by_value(table: Table, x: str, y: str, statistic: Callable[..., Any] = np.median) -> tuple[NDArray[Any], NDArray[Any]]:
    """The values of x, ascending, and a statistic of y at each."""
    xs = np.unique(table[x])
    return xs, np.array([statistic(table[y][table[x] == value]) for value in xs])


def quartiles(table: Table, x: str, y: str) -> tuple[NDArray[Any], ...]:
    """The values of x, and the three quartiles of y at each."""
    xs, found = by_value(table, x, y, lambda ys: np.percentile(ys, (25, 50, 75)))
    return xs, *found.T


def values(table: Table, name: str) -> list[Any]:
    """The different values of a column, in the order in which they come."""
    return list(dict.fromkeys(table[name].tolist()))


def replicates(table: Table) -> int:
    """Over how many random tasks a table goes."""
    return len(np.unique(table["replicate"]))


def wilson(successes: NDArray[Any], trials: NDArray[Any], z: float = 1.96) -> tuple[NDArray[Any], NDArray[Any]]:
    """Wilson's interval for probabilities, 95 % unless z says otherwise; (0, 1) where nothing was tried."""
    n = np.asarray(trials, dtype=float)
    scale = n + z * z
    middle = (successes + z * z / 2) / scale
    with np.errstate(divide="ignore", invalid="ignore"):
        half = z / scale * np.sqrt(np.where(n > 0, successes * (n - successes) / n, 0.0) + z * z / 4)
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def write_table(path: Path, table: Table, facts: dict[str, Any]) -> None:
    """Write a table and its facts in one atomic step, sealed; the same table gives the same bytes."""
    with wanted_for("a table on disk"):
        import pyarrow as pa
        from pyarrow.parquet import write_table as write

    arrow = pa.table({name: _arrow(column) for name, column in table.items()})
    buffer = io.BytesIO()
    metadata = {"scb": to_json(facts, sort_keys=True), "digest": SLOT}
    write(arrow.replace_schema_metadata(metadata), buffer)
    make_directory(path.parent)
    write_atomically(path, seal(buffer.getvalue()))


def _arrow(column: NDArray[Any]) -> Any:
    """A column for Arrow, made of its bytes: ``pyarrow.array`` would load pandas first, where it is installed, for 0.3 s."""
    import pyarrow as pa

    if column.dtype.kind in "iuf":
        return pa.Array.from_buffers(
            pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(np.ascontiguousarray(column))]
        )
    if column.dtype.kind == "b":
        return pa.Array.from_buffers(pa.bool_(), len(column), [None, pa.py_buffer(np.packbits(column, bitorder="little"))])
    if column.dtype.kind != "U" and not all(isinstance(text, str) for text in column):
        return pa.array(column)
    texts = [text.encode() for text in column.tolist()]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(texts), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))])


def read_table(path: Path, columns: list[str] | None = None) -> tuple[Table, dict[str, Any]]:
    """A table that ``write_table`` wrote, or some of its columns, and its facts; DamagedFileError if it is not as written."""
    with wanted_for("a table on disk"):
        import pyarrow as pa
        from pyarrow.parquet import read_table as read

    content, sealed = read_sealed(path)
    try:
        arrow = read(pa.BufferReader(content), columns=columns, use_threads=False)
        facts = json.loads((arrow.schema.metadata or {})[b"scb"])
        table = {name: arrow[name].to_numpy() for name in arrow.column_names}
    except Exception as error:
        raise DamagedFileError(f"{path} is damaged, or no table of scb ({error})") from error
    warn_unless(sealed, path)
    return table, facts
