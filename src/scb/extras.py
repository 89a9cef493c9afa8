"""Packages that a plain installation lacks, and the message when one of them is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from scb.inputs import InputError


def install(extra: str) -> str:
    """Return the command that installs an extra; until scb is published, it is run in a clone."""
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
    """A package that is not part of a plain installation is missing.

    The message gives the command that installs the package.

    Examples
    --------
    >>> import scb
    >>> from scb.extras import MissingExtraError
    >>> issubclass(MissingExtraError, scb.InputError)
    True
    """


def require(what: str, *packages: str) -> None:
    """Raise a MissingExtraError unless all of the packages are installed; nothing is loaded.

    Parameters
    ----------
    what : str
        The feature that needs the packages, for the message.
    *packages : str
        The names of the packages.

    Examples
    --------
    >>> from scb.extras import require
    >>> require("this example", "matplotlib")
    """
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtraError(f"{what} needs {package}: {INSTALL[package]}")


@contextmanager
def wanted_for(what: str) -> Iterator[None]:
    """Provide a context for imports in which a missing optional package raises a MissingExtraError
    that says what needs the package.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in INSTALL:
            raise
        raise MissingExtraError(f"{what} needs {package}: {INSTALL[package]}") from None
