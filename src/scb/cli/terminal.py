"""The console of the commands. Symbols, file names and messages are shown literally and are never
interpreted as markup or control codes.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from scb.files import WriteError

# Control characters other than tabs and line ends; characters that change the writing direction.
_ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Return the text with the codes that a terminal would obey written out, as in ``\\x1b``."""
    return _ACTIVE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class _SafeConsole(Console):
    """A console that writes out control characters wherever they occur: in lines, cells of tables
    and progress messages.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        if isinstance(renderable, Text) and _ACTIVE.search(renderable.plain):
            renderable = Text(visible(renderable.plain), style=renderable.style)
        return iter(super().render(renderable, options))


def terminal(**options: Any) -> Console:
    """Return a console that shows text literally, without markup, emoji or highlighting."""
    return _SafeConsole(markup=False, emoji=False, highlight=False, **options)


@contextmanager
def interruptible(advice: str) -> Iterator[None]:
    """Provide a context in which an interrupt, or a file that cannot be written, says how to
    continue.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(advice) from None
    except WriteError as error:
        raise WriteError(f"{error}; {advice}") from error
