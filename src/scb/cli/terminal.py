"""What commands print with: symbols, names of files and messages are shown as they are, never read as markup."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from scb.files import WriteError


def terminal(**options: Any) -> Console:
    """A console that takes nothing in a text for markup, an emoji or something to highlight; styles are given beside the text."""
    return Console(markup=False, emoji=False, highlight=False, **options)


@contextmanager
def interruptible(advice: str) -> Iterator[None]:
    """While this lasts, an interrupt, or a file that cannot be written, says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(advice) from None
    except WriteError as error:
        raise WriteError(f"{error}; {advice}") from error
