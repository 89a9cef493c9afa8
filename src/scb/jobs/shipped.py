"""Tables of the full run, which are shipped with the docs as text: each file has a line of facts, a
line of names, and one line per row.
"""

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from scb.files import SLOT, is_sealed, make_directory, read_regular, seal, write_atomically
from scb.inputs import DamagedFileError
from scb.jobs.table import Table

# Of NumPy's kinds; text read from a file is an object
TYPES = {"i": "int64", "f": "float64", "b": "bool", "U": "str", "O": "str"}


def write_shipped(directory: Path, name: str, table: Table, facts: dict[str, Any]) -> Path:
    """Write a table and facts about it as text to DIRECTORY/NAME.csv.

    Numbers are read back exactly, to the last bit.

    Parameters
    ----------
    directory : Path
        The folder, which is created if it does not exist.
    name : str
        The name of the table; a space becomes a hyphen in the name of the file.
    table : dict of (rows,) arrays
        The columns by name.
    facts : dict
        Facts about the table, which may be any JSON values.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from scb.jobs.shipped import read_shipped, write_shipped
    >>> with TemporaryDirectory() as folder:
    ...     given = {"T": np.array([10, 20])}
    ...     path = write_shipped(Path(folder), "two words", given, {"made": "by hand"})
    ...     table, facts = read_shipped(Path(folder), "two words")
    >>> path.name, table, facts["made"]
    ('two-words.csv', {'T': array([10, 20])}, 'by hand')
    """
    types = {column: TYPES[values.dtype.kind] for column, values in table.items()}
    text = io.StringIO()
    text.write(
        f"# {json.dumps(facts | {'table': name, 'types': types, 'digest': SLOT}, sort_keys=True)}\n"
    )
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(values.tolist() for values in table.values()), strict=True))
    path = _path(directory, name)
    make_directory(path.parent)
    write_atomically(path, seal(text.getvalue().encode()))
    return path


def read_shipped(directory: Path, name: str) -> tuple[Table, dict[str, Any]]:
    """Read a table that ``write_shipped`` wrote; raise a DamagedFileError if it was changed.

    Parameters
    ----------
    directory : Path
        The folder.
    name : str
        The name of the table.

    Returns
    -------
    tuple of dict
        The columns by name, each with one axis, and the facts.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from scb.jobs.shipped import read_shipped, write_shipped
    >>> with TemporaryDirectory() as folder:
    ...     path = write_shipped(Path(folder), "signs", {"right": np.array([True])}, {})
    ...     read_shipped(Path(folder), "signs")[0]
    {'right': array([ True])}
    """
    path = _path(directory, name)
    content = read_regular(path)
    # A file without a digest is accepted, because people may write one
    is_sealed(path, content)
    try:
        lines = content.decode().splitlines()
        facts = json.loads(lines[0].removeprefix("# "))
        facts.pop("digest", None)
        names, *rows = csv.reader(lines[1:])
        columns = zip(*rows, strict=True) if rows else ((),) * len(names)
        table = {
            name: _column(values, facts["types"][name])
            for name, values in zip(names, columns, strict=True)
        }
    except (IndexError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise DamagedFileError(
            f"{path} cannot be read ({error}): it must be a table of scb reproduce --full"
        ) from error
    return table, facts


def shipped(directory: Path, names: Iterable[str]) -> list[str]:
    """Return those of the given names for which a directory holds a table.

    Parameters
    ----------
    directory : Path
        The folder.
    names : iterable of str
        The names of tables.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from scb.jobs.shipped import copy_shipped, shipped, write_shipped
    >>> _ = write_shipped(Path("here"), "signs", {"right": np.array([True])}, {})
    >>> copy_shipped(Path("here"), Path("there"), ["signs"])
    >>> shipped(Path("there"), ["rates", "signs"])
    ['signs']
    """
    return [name for name in names if _path(directory, name).exists()]


def copy_shipped(source: Path, target: Path, names: Iterable[str]) -> None:
    """Copy tables from one directory to another.

    Parameters
    ----------
    source, target : Path
        The two folders; the target is created if it does not exist.
    names : iterable of str
        The names of the tables.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from scb.jobs.shipped import copy_shipped, write_shipped
    >>> _ = write_shipped(Path("here"), "signs", {"right": np.array([True])}, {})
    >>> copy_shipped(Path("here"), Path("there"), ["signs"])
    >>> Path("there/signs.csv").exists()
    True
    """
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        write_atomically(_path(target, name), _path(source, name).read_bytes())


def _path(directory: Path, name: str) -> Path:
    return directory / f"{name.replace(' ', '-')}.csv"


def _column(values: Iterable[str], kind: str) -> np.ndarray:
    if kind == "bool":
        return np.array([value == "True" for value in values], dtype=bool)
    return np.array(list(values), dtype=kind)
