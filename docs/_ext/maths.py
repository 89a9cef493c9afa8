"""Sub- and superscripts in the text of pages: α_V, ‖·‖_μ, x_{T+1}, T^1.89. Sources stay readable, and no MathJax is needed."""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.ext.autosummary import autosummary_table

GREEK = "α-ωΑ-Ω"
LETTER = r"(?<![A-Za-z_])(?:[A-Z]?[A-Za-zℓℝ∇𝓛𝒯Ĥ-ẟ]|prox)"  # alone, or after one capital: TK_Q
BASE = rf"(?:{LETTER}|[{GREEK}‖⟩\])0-9⁾∇²³])\u0302?"
SUB = rf"\{{[^}}]+\}}|noise|Tmp|[A-Za-z{GREEK}ℓ]{{1,2}}(?![A-Za-z_])|[0-9*]+"
SUP = r"\{[^}]+\}|\([^()]{1,12}\)|[+−-]?[0-9][0-9.]*[0-9]|[+−-]?[0-9½]|[A-Za-z](?![A-Za-z_])"
MARKED = re.compile(rf"(?P<base>{BASE})(?:_(?P<sub>{SUB})|\^(?P<sup>{SUP}))")
LEFT_ALONE = (nodes.literal, nodes.raw, nodes.term, nodes.FixedTextElement)  # a term is the name of a parameter


def pieces(text: str) -> list[nodes.Node]:
    """The text with what is marked turned into nodes; empty if nothing is marked."""
    found: list[nodes.Node] = []
    end = 0
    for match in MARKED.finditer(text):
        found.append(nodes.Text(text[end : match.start()] + match["base"]))
        kind = nodes.subscript if match["sub"] else nodes.superscript
        inner = (match["sub"] or match["sup"]).removeprefix("{").removesuffix("}")
        found.append(kind("", "", *(pieces(inner) or [nodes.Text(inner)])))  # e_{x_t} has a subscript in its subscript
        end = match.end()
    if found:
        found.append(nodes.Text(text[end:]))
    return found


def set_scripts(app: Sphinx, doctree: nodes.document) -> None:
    """Replace marked texts of a page, twice: x_t^(k) has a superscript after its subscript."""
    for text in list(doctree.findall(nodes.Text)):
        parent = text.parent
        while parent is not None and (isinstance(parent, autosummary_table) or not isinstance(parent, LEFT_ALONE)):
            parent = parent.parent
        made = pieces(text.astext()) if parent is None else []
        if made:
            text.parent.replace(text, _after_subscript(made))


def _after_subscript(made: list[nodes.Node]) -> list[nodes.Node]:
    """A text that begins with ^… right after a subscript becomes a superscript, too."""
    found: list[nodes.Node] = []
    for node in made:
        match = re.match(rf"\^({SUP})", node.astext()) if isinstance(node, nodes.Text) else None
        if match and found and isinstance(found[-1], nodes.subscript):
            found.append(nodes.superscript("", match[1].strip("{}")))
            node = nodes.Text(node.astext()[match.end() :])
        found.append(node)
    return found


def setup(app: Sphinx) -> dict:
    """Called by Sphinx."""
    app.connect("doctree-read", set_scripts, priority=400)  # before the titles are gathered for the tables of contents
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
