"""Paths and names of the code in pages become links to the line: `training/stages.py`, `geometry.mu_inner`, `scb.train`.

A public name with a page in the API reference leads there; everything else leads to a page with the highlighted source, which is
made for the files that some page mentions.
"""

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "scb"
PATH = re.compile(r"[\w./-]+\.(?:py|cu|cuh|mjs|toml|j2)")
NAME = re.compile(r"(?:scb\.)?[a-zA-Z_]\w*(?:\.[a-zA-Z_]\w*)+(?:\(\))?")


@cache
def lines_of(file: Path) -> dict[str, int]:
    """Line of every function, class, method and assigned name of a Python file."""
    found: dict[str, int] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.setdefault(prefix + node.name, node.lineno)
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(prefix + target.id, node.lineno)

    if file.suffix == ".py":
        visit(ast.parse(file.read_text()).body, "")
    return found


@cache
def find_file(text: str) -> Path | None:
    """The file that a path in a page means: from the root of the repository, or from src/scb."""
    for base in (ROOT, PACKAGE, ROOT / "src"):
        file = base / text.removeprefix("./")
        if file.is_file() and file.is_relative_to(ROOT):
            return file
    return None


@cache
def find_name(text: str) -> tuple[Path, int] | None:
    """File and line of a dotted name such as ``theory.expectations.population_loss``."""
    parts = text.removesuffix("()").removeprefix("scb.").split(".")
    for cut in range(len(parts), 0, -1):
        for file in (PACKAGE.joinpath(*parts[:cut]).with_suffix(".py"), PACKAGE.joinpath(*parts[:cut], "__init__.py")):
            if file.is_file():
                rest = ".".join(parts[cut:])
                if not rest:
                    return file, 1
                line = lines_of(file).get(rest)
                return (file, line) if line else None
    return None


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


def find_place(text: str) -> tuple[Path, int] | None:
    """File and line that a piece of inline code stands for, if it names one: a path, ``path:name``, or a dotted name."""
    path, _, name = text.partition(":")
    if PATH.fullmatch(path):
        file = find_file(path)
        if file is None:
            return None
        return file, lines_of(file).get(name, 1)
    return find_name(text) if NAME.fullmatch(text) else None


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
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": False}
