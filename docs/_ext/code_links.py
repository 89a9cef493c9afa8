"""Paths and names of the code in pages become links to the line: `training/stages.py`, `geometry.mu_inner`, `scb.train`.

A public name with a page in the API reference leads there; everything else leads to a page with the highlighted source, which is
made for the files that some page mentions.
"""

from collections.abc import Mapping
from pathlib import Path

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

from places import NAME, ROOT, find_place


def page_of(file: Path) -> str:
    """Name of the page that shows a file."""
    return "code/" + file.relative_to(ROOT).as_posix()


def link_literals(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn inline code that names something of the project into a link."""
    if app.builder.format != "html":
        return
    objects = app.env.domains.python_domain.objects
    shown: set[str] = app.env.code_pages  # type: ignore[attr-defined]
    for literal in list(doctree.findall(nodes.literal)):
        if isinstance(literal.parent, nodes.reference):
            continue
        text = literal.astext()
        target = None
        full = public_name(text, objects)
        if full:
            entry = objects[full]
            target = make_refnode(app.builder, docname, entry.docname, entry.node_id, literal.deepcopy(), full)
        else:
            place = find_place(text)
            if place:
                file, line = place
                shown.add(str(file.relative_to(ROOT)))
                uri = app.builder.get_relative_uri(docname, page_of(file))
                target = nodes.reference("", "", literal.deepcopy(), refuri=f"{uri}#L-{line}", internal=True)
        if target is not None:
            target["classes"].append("code-link")
            literal.replace_self(target)


def public_name(text: str, objects: Mapping[str, object]) -> str | None:
    """The full name of what has a page in the reference: `scb.train(task, …)`, `Task.random`, `scb.recipes.tuned`."""
    bare = text.split("(")[0]
    if not NAME.fullmatch(bare):
        return None
    candidates = (bare, f"scb.{bare}", bare.replace("scb.recipes.", "scb.training.recipes."))
    return next((name for name in candidates if name in objects), None)


def source_pages(app: Sphinx):
    """A page for each file that is mentioned somewhere."""
    for name in sorted(app.env.code_pages):  # type: ignore[attr-defined]
        file = ROOT / name
        formatter = HtmlFormatter(linenos="inline", anchorlinenos=True, lineanchors="L", wrapcode=True)
        body = highlight(file.read_text(), get_lexer_for_filename(name if file.suffix in {".py", ".toml"} else "x.c"), formatter)
        context = {"title": name, "body": f"<h1>{name}</h1>{body}", "parents": [], "sidebars": []}
        yield page_of(file), context, "page.html"


def setup(app: Sphinx) -> dict:
    """Called by Sphinx."""
    app.connect("builder-inited", lambda app: setattr(app.env, "code_pages", getattr(app.env, "code_pages", set())))
    app.connect("doctree-resolved", link_literals)
    app.connect("html-collect-pages", source_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}  # references are resolved in one process
