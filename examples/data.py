"""The files that the examples read. They lie inside installed packages; nothing is fetched when an example runs.

The packages are in ``examples/requirements.lock``. They are installed without what they depend on, and never imported: only their
files are read.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path


class MissingData(RuntimeError):
    """A package that an example takes its data from is not installed."""


def read(package: str, name: str) -> str:
    """The text of the file ``name`` that ``package`` has installed."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        raise MissingData(f"the data lie in the package {package}, which is not installed: run `make examples`") from None
    for file in files:
        if file.as_posix() == name:
            return Path(str(file.locate())).read_text(encoding="utf-8")
    raise MissingData(f"{package} {metadata.version(package)} has no file {name}: run `make examples` for the right version")
