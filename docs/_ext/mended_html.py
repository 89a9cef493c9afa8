"""What the theme and MyST leave to be done.

Numbers in tables, anchors in headings, figures that open at full size, long names that can be broken.
"""

import re
from pathlib import PurePosixPath

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

ANCHOR = re.compile(r'<a id="([^"]+)">|</a>')
NUMBER = re.compile(r"\{number\}`[^`]*`")
LONG_IN_TABLE = 16  # characters of inline code that a narrow column may have to break
LONG = 24  # that a line on a narrow screen may have to break
JOINTS = re.compile(r"(?<=[./_:,=(])(?=\w)")  # where it may


def keep_numbers_whole(app: Sphinx, docname: str, source: list[str]) -> None:
    """Escape the bars of {number}`table | what | rows | format` in a row of a table, where a bare one ends the cell."""
    lines = source[0].split("\n")
    rows = [NUMBER.sub(lambda role: role[0].replace("|", r"\|"), line) if line.startswith("|") else line for line in lines]
    source[0] = "\n".join(rows)


def lift_anchors(app: Sphinx, doctree: nodes.document) -> None:
    """Make <a id="…"></a> in a heading an id of its section: in the table of contents of the page it would be a link to nowhere."""
    for title in doctree.findall(nodes.title):
        for raw in list(title.findall(nodes.raw)):
            tag = ANCHOR.fullmatch(raw.astext())
            if tag:
                title.parent["ids"] += [tag[1]] if tag[1] else []
                raw.parent.remove(raw)


def link_figures(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Let a picture in the text lead to its file: labels of a wide figure are small in the column of a page."""
    if app.builder.format != "html":
        return
    here = app.builder.get_target_uri(docname)
    for image in list(doctree.findall(nodes.image)):
        if image["uri"] in app.env.images and not isinstance(image.parent, nodes.reference):
            name = app.env.images[image["uri"]][1]
            file = relative_uri(here, str(PurePosixPath(app.builder.imagedir) / name))
            image.replace_self(nodes.reference("", "", image.deepcopy(), refuri=file, classes=["full-size"]))


def break_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Let long inline code break after a dot, a slash or an underscore, and nowhere else; shorter code in tables, too."""
    for literal in doctree.findall(nodes.literal):
        cell = literal.parent
        while cell is not None and not isinstance(cell, nodes.entry):
            cell = cell.parent
        text = literal.astext()
        parts = JOINTS.split(text)
        if len(parts) == 1 or len(text) < (LONG_IN_TABLE if cell else LONG):
            continue
        literal.clear()
        for part in parts[:-1]:
            literal += [nodes.Text(part), nodes.raw("", "<wbr>", format="html")]
        literal += nodes.Text(parts[-1])


def setup(app: Sphinx) -> dict:
    """Called by Sphinx."""
    app.connect("source-read", keep_numbers_whole)
    app.connect("doctree-read", lift_anchors, priority=400)  # before the tables of contents are gathered
    app.connect("doctree-resolved", link_figures)
    app.connect("doctree-resolved", break_names, priority=900)  # after code has become links
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
