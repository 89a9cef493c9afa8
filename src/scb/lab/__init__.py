"""The lab shows the paper's experiment live in the browser.

The lab is a single page, which is bundled from the sources in this folder on demand.
"""

import re
from pathlib import Path
from tempfile import mkdtemp

SCENES = Path(__file__).parent / "modules" / "scenes.mjs"


def scenes() -> tuple[str, ...]:
    """Return the names of the scenes in order; ``lab.html#scene=NAME`` opens the lab at a scene.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from scb.lab import scenes
    >>> scenes()[:2]
    ('task', 'plateau')
    """
    return tuple(re.findall(r'^ {4}id: "(\w+)"', SCENES.read_text(encoding="utf-8"), re.MULTILINE))


def write_page(path: str | Path | None = None) -> Path:
    """Write the page as one HTML file that needs no other files.

    Parameters
    ----------
    path : str or Path, optional
        The file to write; by default, a file in a new temporary directory.

    Returns
    -------
    Path

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.lab import write_page
    >>> write_page(Path("lab.html")).read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    from scb.files import write_atomically
    from scb.lab.build import build

    target = Path(path or Path(mkdtemp(prefix="scb-lab-"), "lab.html"))
    write_atomically(target, build().encode())
    return target
