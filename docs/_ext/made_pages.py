"""Pages that are made from the code: the figures of the paper, names of the package, commands; and redirects."""

import importlib.util
import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from api_index import api_groups
from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature

from result_numbers import claims
from scb.paper.entries import Experiment, PaperFigure
from scb.paper.registry import ELSEWHERE, FIGURES, TABLES, claims_for
from scb.paper.report import markdown_section

DOCS = Path(__file__).parents[1]
LITERAL = "run=resolveSign:0"  # Algorithm 1 as printed: the sign is not settled
LAB = {  # figure → what the address of the lab says: the settings of the figure, one task and one seed
    "F1": f"task.ensemble=dirichlet&{LITERAL}&run=lam:0.0001&run=recipe:sgd;resolveSign:0",
    "F3": f"task.ensemble=dirichlet&{LITERAL}&run=recipe:sgd;resolveSign:0",
    "F4": "task.ensemble=dirichlet&run=&run=recipe:sgd",
    "F6": f"task.N=10&{LITERAL}&run=recipe:sgd;resolveSign:0",
    "F7": "scene=transfer",
    "F8": "run=resolveSign:0;seed:3&run=resolveSign:0;seed:6",
    "F9": "scene=plateau",
    "F13": "task.N=10&task.ensemble=uniform&task.K_P=0.03&run=&run=recipe:sgd",
    "F14": "run=resolveSign:0;seed:3&run=resolveSign:0;projector:mu;seed:3",
    "F15": "task.T=400&task.K_P=0.4&run=recipe:tuned",
    "F16": "scene=noise",
    "F18": "task.T=59049&task.sparsity=1&run=resolveSign:0;batchSize:1024;eta:0.05/0.05/0.05;lam:0.001",
    "F20": "scene=transfer",
}
MOVED = {"howto/index": "data", "explanation/index": "story"}  # old address → where a reader finds the same now
REDIRECT = (
    '<!doctype html><title>Moved</title><meta http-equiv="refresh" content="0; url={0}"><a href="{0}">This page has moved.</a>'
)
NOT_IN_LAB = "The lab cannot show this figure: it trains the linear transformer on independent samples, and nothing else."

# ------------------------------------------------------------------------------------------------- the figures of the paper


def figure_page(name: str, figure: PaperFigure) -> str:
    """One figure: the picture, the button to the lab, the code, the settings, the claims that are judged beside it."""
    module, _, function = figure.drawn_by.partition(":")
    lines = [f"# {name}. {figure.title}", "", f"*In the paper: {figure.paper}.*", "", figure.see, ""]
    if (DOCS / "images" / f"{name}.png").exists():
        lines += [f"![{figure.title}](../../images/{name}.png)", ""]
    else:
        lines += [f"The picture is drawn by `scb reproduce --only {name}`.", ""]
    if name in LAB:
        link = f"../../lab.html#{LAB[name]}&play=1" if "scene" not in LAB[name] else f"../../lab.html#{LAB[name]}"
        lines += [f'<p><a class="lab-button" href="{link}">Open these settings in the lab</a></p>', ""]
    else:
        lines += [NOT_IN_LAB, ""]
    lines += [
        "## The code",
        "",
        f"Drawn by `paper/figures/{module}.py:{function}` from the tables below; the command is `scb reproduce --only {name}`.",
        "",
    ]
    for need in figure.needs:
        if need in ELSEWHERE:
            page = "[Real transformers](../../explanation/transformers.md)"
            lines.append(f"- **{need}**, made by `{ELSEWHERE[need]}`; settings: see {page}.")
            continue
        job = TABLES[need].job
        path = job.__module__.replace(".", "/").removeprefix("scb/")
        lines.append(f"- **{need}**, made by `{path}.py:{job.__name__}`; settings: {settings_of(TABLES[need])}.")
    lines += ["", "## The claims", ""]
    for number, claim in claims_for([name]).items():
        judge = f"`{claim.judge.__module__.replace('.', '/').removeprefix('scb/')}.py:{claim.judge.__name__}`"
        lacks = f"### {number}. {claim.says}\n\nNot on the page of claims yet.\n"
        section = markdown_section(claims()[claim.id]) if claim.id in claims() else lacks
        lines += [section.rstrip(), f"- **Judged by** {judge}", ""]
    return "\n".join(lines)


def settings_of(experiment: Experiment) -> str:
    """What an experiment varies, in words; of many combinations of several settings, the values that each of them takes."""
    said = []
    for names, values in experiment.settings.items():
        if names == "seeds":
            said.append("one seed" if values == 1 else f"{values} seeds")
        elif "," not in names:
            given = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
            said.append(f"{names} = {listed(given)}")
        elif len(values) <= 4:
            said.append(f"({names}) = " + " or ".join(f"({listed(one)})" for one in values))
        else:
            each = zip(names.split(", "), zip(*values, strict=True), strict=True)
            taken = [f"{name} = {listed(sorted(set(column)))}" for name, column in each]
            said.append(f"{len(values)} combinations of " + "; ".join(taken))
    return "; ".join(said)


def listed(values: Sequence[object]) -> str:
    """Numbers and words, one after the other; words have quotes, since some of them have a comma of their own."""
    numbers = [value if isinstance(value, str | bool) else f"{value:,}" for value in values]
    return ", ".join(f"“{said}”" if isinstance(value, str) else str(said) for said, value in zip(numbers, values, strict=True))


def write_figures() -> None:
    """paper/figures: a page for each figure, and their list."""
    folder = DOCS / "paper" / "figures"
    folder.mkdir(exist_ok=True)
    rows = [
        "# The figures",
        "",
        "Each page has the picture, the claims that are judged beside it, the settings, the code, and a link",
        "to the lab.",
        "",
    ]
    rows += ["::::{grid} 1 2 3 3", ":gutter: 3", ""]
    for name, figure in FIGURES.items():
        write(folder / f"{name}.md", figure_page(name, figure))
        picture = [f":img-top: ../../images/{name}.png"] if (DOCS / "images" / f"{name}.png").exists() else []
        rows += [f":::{{grid-item-card}} {name}. {figure.title}", *picture, f":link: {name}", ":link-type: doc", ""]
        rows += [f"In the paper: {figure.paper}", ":::", ""]
    rows.append("::::")
    rows += ["", "```{toctree}", ":hidden:", "", *FIGURES, "```", ""]
    write(folder / "index.md", "\n".join(rows))


# ------------------------------------------------------------------------------------------------- names of the package


def write_api() -> None:
    """reference/api.md, from which autosummary makes a page for each name."""
    groups = api_groups()
    wanted = {name for names in groups.values() for name in names}
    for page in (DOCS / "reference" / "api").glob("*.rst"):
        if page.stem not in wanted:  # of an earlier build
            page.unlink()
    lines = ["# The Python interface", "", "Shapes and symbols are those of [the notation](../paper/notation.md).", ""]
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


def write(path: Path, text: str) -> None:
    """Write a page, unless it is there as it is: Sphinx reads anew what has changed."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def write_all(app: Sphinx, config: object) -> None:
    """All made pages."""
    write_figures()
    write_api()
    write_commands()


def spread_tutorials(app: Sphinx, docname: str, source: list[str]) -> None:
    """Take the table of contents out of the gallery of tutorials: each stands with its readers, in data.md or train.md."""
    if docname == "learn/index":
        source[0] = source[0].partition(".. toctree::")[0]


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
