"""What commands print with: symbols, names of files and messages are shown as they are, never read as markup."""

from typing import Any

from rich.console import Console


def terminal(**options: Any) -> Console:
    """A console that takes nothing in a text for markup, an emoji or something to highlight; styles are given beside the text."""
    return Console(markup=False, emoji=False, highlight=False, **options)
