"""The lab: the paper's experiment, live in the browser. One self-contained page, ``lab.html``, bundled from the sources beside it."""

from pathlib import Path

PAGE = Path(__file__).parent / "lab.html"
"""The bundled page."""
