"""What the theme and MyST leave to be done: anchors in headings, figures at full size, breaks in long names, names of toggles.

The lab, which is a page of its own, gets its way back to the site.
"""

import re
from pathlib import Path, PurePosixPath

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

from scb.lab import write_page

ANCHOR = re.compile(r'<a id="([^"]+)">|</a>')
LONG_IN_COLUMN = 16  # characters that a narrow column, or a title on a narrow screen, may have to break
LONG = 24  # characters that a line on a narrow screen may have to break
TOGGLE = '<summary><span class="toctree-toggle"'
NAMED_TOGGLE = '<summary aria-label="Pages below"><span class="toctree-toggle"'
# What the site's copy of the lab has in place of marks in its page: the way back, and the ways on.
LAB_LINKS = {
    "<!-- home -->": '<a href="index.html">← scb</a>',
    '<p id="links"></p>': '<p id="links"><a href="story.html">The story</a> · <a href="howto/lab.html">How to use the lab</a> · '
    '<a href="data.html">Use it on your data</a> · <a href="paper/index.html">The paper, claim by claim</a></p>',
}
JOINTS = re.compile(r"(?<=[/_:,=(])(?=\w)|(?<=\.)(?=\w{4})")  # where it may; not before the kind of a file


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
    """Let long words in code or in a title break after a slash or an underscore; in a table, shorter ones."""
    for code in [*doctree.findall(nodes.literal), *doctree.findall(nodes.title)]:
        cell = code.parent
        while cell is not None and not isinstance(cell, nodes.entry):
            cell = cell.parent
        narrow = isinstance(code, nodes.title) or cell is not None
        text = code.astext()
        parts = JOINTS.split(text)
        plain = len(code) == 1 and isinstance(code[0], nodes.Text)
        if not plain or max(map(len, text.split())) < (LONG_IN_COLUMN if narrow else LONG):
            continue
        code.clear()
        for part in parts[:-1]:
            code += [nodes.Text(part), nodes.raw("", "<wbr>", format="html")]
        code += nodes.Text(parts[-1])


def link_back(app: Sphinx, exception: Exception | None) -> None:
    """Write the site's copy of the lab, which leads to the first page and to others."""
    if exception is None and app.builder.format == "html":
        page = write_page(Path(app.outdir) / "lab.html")
        text = page.read_text(encoding="utf-8")
        for mark, links in LAB_LINKS.items():
            text = text.replace(mark, links)
        page.write_text(text, encoding="utf-8")


def name_toggles(app: Sphinx, exception: Exception | None) -> None:
    """Give the arrows in the menu, which the theme leaves without a name, one that screen readers can say."""
    if exception is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            if TOGGLE in text:
                page.write_text(text.replace(TOGGLE, NAMED_TOGGLE), encoding="utf-8")


def setup(app: Sphinx) -> dict:
    """Called by Sphinx."""
    app.connect("doctree-read", lift_anchors, priority=400)  # before the tables of contents are gathered
    app.connect("doctree-resolved", link_figures)
    app.connect("doctree-resolved", break_names, priority=900)  # after code has become links
    app.connect("build-finished", link_back)
    app.connect("build-finished", name_toggles)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
