"""Pages that the build makes from the code: the names of the package, the commands; and redirects of old addresses."""

import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

from api_index import api_groups
from paper_pages import DOCS, write
from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature

MOVED = {"howto/index": "data", "explanation/index": "story"}  # old address → where a reader finds the same now
REDIRECT = (
    '<!doctype html><title>Moved</title><meta http-equiv="refresh" content="0; url={0}"><a href="{0}">This page has moved.</a>'
)

# ------------------------------------------------------------------------------------------------- names of the package


def write_api() -> None:
    """reference/api.md, from which autosummary makes a page for each name."""
    groups = api_groups()
    wanted = {name for names in groups.values() for name in names}
    for page in (DOCS / "reference" / "api").glob("*.rst"):
        if page.stem not in wanted:  # of an earlier build
            page.unlink()
    lines = ["# The Python interface", "", "[The notation](../paper/notation.md) explains the shapes and symbols.", ""]
    for heading, names in groups.items():
        lines += [f"## {heading}", "", "```{eval-rst}", ".. autosummary::", "   :toctree: api", "   :nosignatures:", ""]
        lines += [f"   {'' if heading == 'What these return' else '~'}{name}" for name in names]  # the heading has the rest
        lines += ["```", ""]
    write(DOCS / "reference" / "api.md", "\n".join(lines))


def write_commands() -> None:
    """reference/cli.md, from the commands themselves."""
    file = DOCS / "_ext" / "cli.py"
    spec = importlib.util.spec_from_file_location("docs_cli", file)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    write(DOCS / "reference" / "cli.md", module.page())


def write_all(app: Sphinx, config: object) -> None:
    """All made pages."""
    write_api()
    write_commands()


def spread_tutorials(app: Sphinx, docname: str, source: list[str]) -> None:
    """Let links to a tutorial's source, which lead somewhere in the repository, lead to its page.

    The gallery of tutorials loses its table of contents: each stands with its readers, in data.md or train.md.
    """
    if docname == "learn/index":
        source[0] = source[0].partition(".. toctree::")[0]
    elif not docname.startswith("learn/"):
        source[0] = re.sub(r"tutorials/(\d\d_\w+)\.py\)", r"learn/\1.rst)", source[0])


def write_redirects(app: Sphinx, exception: Exception | None) -> None:
    """Answer at the addresses of pages that are gone."""
    if exception is None and app.builder.format == "html":
        for old, new in MOVED.items():
            (Path(app.outdir) / f"{old}.html").write_text(REDIRECT.format("../" * old.count("/") + f"{new}.html"))


# ------------------------------------------------------------------------------------------------- the pages of these names


def skip_member(app: Sphinx, what: str, name: str, thing: object, skip: bool, options: object) -> bool | None:
    """Leave out what says nothing: metadata routing of scikit-learn, fields of a tuple by number, a class that is a default."""
    routing = re.fullmatch(r"set_\w+_request|get_metadata_routing", name)
    field = (getattr(thing, "__doc__", None) or "").startswith("Alias for field number")
    return True if routing or field or inspect.isclass(thing) else None


def sign(app: Sphinx, what: str, name: str, thing: Any, options: object, signature: str | None, returns: str | None):
    """Write a signature as one would call it; where PyTorch is a stand-in, a class of it has lost its own."""
    if signature == "(*args, **kwargs)" and inspect.isclass(thing):
        called = thing.__call__ if getattr(thing, "_is_protocol", False) else thing.__init__
        _, *parameters = inspect.signature(called).parameters.values()
        signature = stringify_signature(inspect.Signature(parameters), show_annotation=False)
    shown = re.sub(r"<class '[\w.]*?(\w+)'>", r"\1", signature or "").replace("<factory>", "…")
    return shown or None, returns


def setup(app: Sphinx) -> dict:
    """Called by Sphinx."""
    app.connect("config-inited", write_all)
    app.connect("source-read", spread_tutorials)
    app.connect("build-finished", write_redirects)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-signature", sign)
    return {"version": "1", "parallel_read_safe": True}
