"""The lab: the paper's experiment, live in the browser. One page, ``lab.html``, bundled from the
sources beside it.
"""

import re
from pathlib import Path

PAGE = Path(__file__).parent / "lab.html"
"""The bundled page."""


def scenes() -> tuple[str, ...]:
    """Return the names of the scenes, in their order; ``lab.html#scene=NAME`` begins with one.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from scb.lab import scenes
    >>> scenes()[:2]
    ('task', 'plateau')
    """
    source = (PAGE.parent / "modules" / "scenes.mjs").read_text(encoding="utf-8")
    return tuple(re.findall(r'^ {4}id: "(\w+)"', source, re.MULTILINE))
