"""Packages that a plain installation does without, and what to say where one of them is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from scb.inputs import InputError


def install(extra: str) -> str:
    """The command that installs an extra; until scb is published, it works in a clone of the
    repository.
    """
    return f"pip install '.[{extra}]' in the clone"


INSTALL = {
    "matplotlib": install("report"),
    "jinja2": install("report"),
    "pyarrow": install("tables"),
    "dask": install("dask"),
    "distributed": install("dask"),
    "pandas": "pip install pandas",
}
"""Package → the command that installs it."""


class MissingExtraError(InputError, ImportError):
    """A package that is not part of a plain installation is missing; the message has the command
    that installs it.
    """


def require(what: str, *packages: str) -> None:
    """MissingExtraError unless all of the packages are installed; nothing is loaded."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtraError(f"{what} needs {package}: {INSTALL[package]}")


@contextmanager
def wanted_for(what: str) -> Iterator[None]:
    """Around imports: where one of the optional packages is missing, MissingExtraError says what it
    is wanted for.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in INSTALL:
            raise
        raise MissingExtraError(f"{what} needs {package}: {INSTALL[package]}") from None
