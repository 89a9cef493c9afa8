"""The scoreboard and the figures of the paper as pages, from docs/paper/claims.csv: ``python benchmarks/pages.py`` writes them."""

from collections.abc import Sequence
from pathlib import Path

from result_numbers import claims
from scb.paper.entries import Experiment, PaperFigure
from scb.paper.registry import ELSEWHERE, FIGURES, TABLES, claims_for
from scb.paper.report import markdown_section, markdown_table

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
    "F33": "scene=heads",
}
NOT_IN_LAB = "The lab cannot show this figure: it trains one layer on independent samples."


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
    lines += ["## The claims", ""]
    for number, claim in claims_for([name]).items():
        judge = f"`{claim.judge.__module__.replace('.', '/').removeprefix('scb/')}.py:{claim.judge.__name__}`"
        lacks = f"### {number}. {claim.says}\n\nNot on the page of claims yet.\n"
        section = markdown_section(claims()[claim.id]) if claim.id in claims() else lacks
        lines += [section.rstrip(), f"- **Judged by** {judge}", ""]
    lines += [
        "## The code",
        "",
        f"Drawn by `paper/figures/{module}.py:{function}` from the tables below; the command is `scb reproduce --only {name}`.",
        "",
    ]
    for need in figure.needs:
        if need in ELSEWHERE:
            page = "[the full tables](../../explanation/transformers-tables.md)"
            lines.append(f"- **{need}**, made by `{ELSEWHERE[need]}`; settings: see {page}.")
            continue
        job = TABLES[need].job
        path = job.__module__.replace(".", "/").removeprefix("scb/")
        lines.append(f"- **{need}**, made by `{path}.py:{job.__name__}`; settings: {settings_of(TABLES[need])}.")
    lines.append("")
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


def paper_pages() -> dict[str, str]:
    """The scoreboard, a page for each figure, and their list: path below docs/paper → text."""
    pages = {"claims.md": markdown_table(list(claims().values()), "figures/{figure}.md#{id}")}
    rows = [
        "# The figures",
        "",
        "Each page has the picture, the claims that are judged beside it, the settings, the code, and a link",
        "to the lab.",
        "",
    ]
    rows += ["::::{grid} 1 2 3 3", ":gutter: 3", ""]
    for name, figure in FIGURES.items():
        pages[f"figures/{name}.md"] = figure_page(name, figure)
        picture = [f":img-top: ../../images/{name}.png"] if (DOCS / "images" / f"{name}.png").exists() else []
        rows += [f":::{{grid-item-card}} [{name}. {figure.title}]({name}.md)", *picture, ""]
        rows += [f"In the paper: {figure.paper}", ":::", ""]
    rows.append("::::")
    pages["figures/index.md"] = "\n".join([*rows, "", "```{toctree}", ":hidden:", "", *FIGURES, "```", ""])
    return pages


def write_paper() -> None:
    """Write these pages, and remove those of figures that are gone."""
    pages = paper_pages()
    for path in (DOCS / "paper" / "figures").glob("*.md"):
        if f"figures/{path.name}" not in pages:
            path.unlink()
    for name, text in pages.items():
        write(DOCS / "paper" / name, text)


def write(path: Path, text: str) -> None:
    """Write a page, unless it is there as it is: Sphinx reads anew what has changed."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
