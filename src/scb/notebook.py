"""Pieces of HTML for notebooks. Text that comes from data is escaped, and colours follow the
notebook's theme.
"""

import base64
import sys
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_CELL = "padding:.15em .7em;text-align:{side};border:0;white-space:nowrap"


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, which can show and replace HTML."""
    # A notebook has loaded IPython; nothing else should.
    if "IPython" not in sys.modules:
        return False
    from IPython.core.getipython import get_ipython  # pyright: ignore[reportMissingImports]

    return type(get_ipython()).__name__ == "ZMQInteractiveShell"


def text(words: str) -> str:
    """Return a paragraph."""
    return f'<p style="margin:.3em 0">{escape(words)}</p>'


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[int] = ()) -> str:
    """Return a table of texts; the columns whose numbers are in ``left`` are aligned left, and all
    others are aligned right.
    """
    sides = ["left" if i in set(left) else "right" for i in range(len(headings))]
    written = [_row("th", headings, sides)]
    written += [_row("td", row, sides) for row in rows]
    return f'<table style="border-collapse:collapse;margin:.3em 0">{"".join(written)}</table>'


def _row(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    filled = [
        f'<{tag} style="{_CELL.format(side=side)}">{escape(cell)}</{tag}>'
        for cell, side in zip(cells, sides, strict=True)
    ]
    return f"<tr>{''.join(filled)}</tr>"


def picture(figure: Any, alt: str) -> str:
    """Return a figure that is embedded in the page."""
    data = base64.b64encode(figure._repr_png_()).decode()
    style = "max-width:100%;background:#fff"
    return f'<img style="{style}" alt="{escape(alt)}" src="data:image/png;base64,{data}">'
