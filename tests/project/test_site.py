"""The documentation, as far as it can be checked without building it: numbers, links, tables on pages, settings of the lab."""

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import scb
from labtools import node
from scb.jobs.shipped import read_shipped, shipped
from scb.paper.registry import CLAIMS, ELSEWHERE, FIGURES, TABLES
from scb.paper.report import judge, markdown_section

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE = ("learn", "reference/api", "reference/cli.md", "_build")  # by the build; not in the repository
for folder in (DOCS, DOCS / "_ext", ROOT / "benchmarks"):
    sys.path.append(str(folder))

import paper_pages  # noqa: E402

import check_site  # noqa: E402
import places  # noqa: E402
import result_numbers  # noqa: E402
from claim_outcomes import read_outcomes  # noqa: E402


def pages():
    found = [path for path in sorted(DOCS.rglob("*.md")) if not path.relative_to(DOCS).as_posix().startswith(MADE)]
    assert len(found) > 40
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *found]


def test_every_number_on_a_page_is_the_one_in_the_results():
    asked = {page: result_numbers.IN_PAGE.findall(page.read_text()) for page in pages()}
    assert sum(map(len, asked.values())) > 200
    for page, numbers in asked.items():
        for words, shown in numbers:
            assert shown == result_numbers.evaluate(words), f"{page.name}: {words}"
            assert re.search(r"\d", shown), words
        # Markdown takes a line that begins with a comment for HTML, and leaves its links and stars as they are.
        assert not re.search(r"^\s*([-*>] +)?<!-- number", page.read_text(), re.M), page.name


def test_a_number_that_is_out_of_date_is_written_anew():
    page = "In <!-- number wrong-signs; count; T=5000, projector=mu -->no<!-- end --> of all runs."
    assert re.fullmatch(r"In <!-- number .+ -->[1-9]\d*<!-- end --> of all runs.", result_numbers.filled(page))


def test_a_number_that_cannot_be_had_is_an_error():
    for words in ("wrong-signs; sum nothing", "wrong-signs; count; T=1", "wrong-signs; value T", "wrong-signs; most T"):
        with pytest.raises(ValueError, match="wrong-signs"):
            result_numbers.evaluate(words)
    with pytest.raises(FileNotFoundError):
        result_numbers.evaluate("nothing.jsonl; count")


def test_the_site_is_built_with_the_versions_that_everything_else_runs_with():
    def pins(name):
        return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(), re.M))

    ours, site = pins("requirements.lock"), pins("requirements-docs.lock")
    both = ours.keys() & site.keys()
    assert len(both) > 30
    assert "sphinx" in site
    assert {name: ours[name] for name in both} == {name: site[name] for name in both}


def test_links_between_pages_lead_somewhere():
    """Files alone; anchors, and pages that are made, are followed in the built site by docs/check_site.py."""
    broken = []
    for page in pages():
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            path = (page.parent / link.partition("#")[0]).resolve()
            inside = path.is_relative_to(DOCS) and path.relative_to(DOCS).as_posix().startswith(MADE)
            if not re.match(r"[a-z]+:|#", link) and not inside and not path.exists():
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []


def test_every_page_stands_in_a_table_of_contents():
    listed = set()
    for page in DOCS.rglob("*.md"):
        for block in re.findall(r"```\{toctree\}(.*?)```", page.read_text(), re.S):
            names = [line.strip() for line in block.splitlines() if line.strip() and not line.strip().startswith(":")]
            listed |= {(page.parent / f"{name}.md").resolve() for name in names}
    left_out = [page for page in pages()[2:] if page not in listed and page != DOCS / "index.md"]
    assert left_out == []


def test_what_the_page_on_theory_names_is_there():
    """Functions and checks beside the formulas: a renamed one would lose its link without a word."""
    cells = [
        line.strip("|").split("|")[-2:]
        for line in (DOCS / "explanation" / "theory.md").read_text().splitlines()
        if line.startswith("| ")
    ]
    named = [text for row in cells for cell in row for text in re.findall(r"`([^`]+)`", cell)]
    assert len(named) > 50
    public = {f"scb.{name}" for name in scb.__all__}
    assert [text for text in named if text not in public and places.find_place(text) is None and not text.startswith("scb ")] == []


def blocks():
    """Every table between markers: the page, the file of its results, and what makes the table of them."""
    import algorithm
    import cluster
    import ensembles
    import held_out_tasks
    import limits
    import misspecified
    import recovery
    import sweeps

    found = {name: (page, held_out_tasks.KEPT / f"{name}.jsonl", made) for name, (page, _, made) in held_out_tasks.SECTIONS.items()}
    found["misspecified"] = ("explanation/misspecified.md", misspecified.KEPT, misspecified.table)
    pages = {algorithm: "explanation/algorithm.md", recovery: "explanation/recovery.md", ensembles: "paper/notation.md"}
    pages |= {limits: "explanation/recovery.md"} | dict.fromkeys((sweeps, cluster), "explanation/scale.md")
    for study, page in pages.items():
        for section, parts in study.SECTIONS.items():
            for name, made in parts.tables.items():
                assert name not in found
                found[name] = (page, study.KEPT / f"{section}.jsonl", made)
    return found


@pytest.mark.parametrize("name", blocks())
def test_a_table_on_a_page_is_that_of_its_results(name):
    from study import read

    page, kept, table = blocks()[name]
    shown = re.search(rf"<!-- table {re.escape(name)} -->\n(.*?)<!-- end -->", (DOCS / page).read_text(), re.S)
    assert shown is not None
    rows = read(kept)
    assert shown[1].splitlines() == (table(rows) if rows else [])


@pytest.mark.parametrize("study", ["algorithm", "recovery", "sweeps", "cluster", "ensembles"])
def test_what_a_study_keeps_are_its_cases_once_each(study):
    """Results of other cases would be averaged with them; a missing one is not what the page says was run."""
    from importlib import import_module

    from study import read

    module = import_module(study)
    for section, parts in module.SECTIONS.items():
        kept = [json.dumps(case, sort_keys=True) for case, _ in read(module.KEPT / f"{section}.jsonl")]
        assert sorted(kept) == sorted(json.dumps(case, sort_keys=True) for case in parts.cases), section


def test_the_scoreboard_and_the_pages_of_figures_are_made_from_the_outcomes_beside_them():
    assert [row.claim.id for row in read_outcomes(DOCS / "paper")] == [claim.id for claim in CLAIMS]
    made = paper_pages.paper_pages()
    kept = [DOCS / "paper" / "claims.md", *(DOCS / "paper" / "figures").glob("*.md")]
    assert {path.relative_to(DOCS / "paper").as_posix(): path.read_text() for path in kept} == made, "run benchmarks/pages.py"


def test_outcomes_are_those_of_the_shipped_tables():
    """Measured, control, settings and verdict of every claim that the shipped tables alone can judge."""
    found = {name: read_shipped(DOCS / "tables", name)[0] for name in shipped(DOCS / "tables", (*TABLES, *ELSEWHERE))}
    judged = [row for row in judge(list(FIGURES), found) if set(row.claim.uses) <= set(found)]
    assert len(judged) >= 30
    kept = {row.claim.id: row for row in read_outcomes(DOCS / "paper")}
    for row in judged:
        assert markdown_section(row) == markdown_section(kept[row.claim.id]), row.claim.id


def test_the_overview_of_baselines_has_the_numbers_of_their_table():
    kept = (ROOT / "benchmarks" / "sequence_baselines.md").read_text()
    block = re.search(r"<!-- table baselines -->\n(.*?)<!-- end -->", (DOCS / "explanation" / "examples.md").read_text(), re.S)[1]
    names, _, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.replace("*", "").splitlines()]
    sections = {part.partition("\n")[0].strip(): part.replace("*", "") for part in kept.split("\n## ")[1:]}
    assert len(lines) == len(sections) == 6
    for sequence, *cells in lines:
        for name, cell in zip(names[1:], cells, strict=True):
            bits, _, states = cell.partition(" ")
            model = f"HMM {states.strip('()')}" if states else name
            assert re.search(rf"^\| {re.escape(model)} \|[^|]*\| {bits} \|", sections[sequence], re.M), (sequence, model)


def test_the_lab_understands_the_settings_of_every_figure():
    scenes = {text.removeprefix("scene=") for text in paper_pages.LAB.values() if text.startswith("scene=")}
    state = ROOT / "src" / "scb" / "lab" / "modules"
    script = f"""
import {{ parseState }} from {json.dumps((state / "state.mjs").as_uri())};
import {{ SCENES }} from {json.dumps((state / "scenes.mjs").as_uri())};
const found = {json.dumps([*paper_pages.LAB.values(), "run=batch_size:64"])}.map((hash) => parseState(hash).problems);
console.log(JSON.stringify([found, SCENES.map((scene) => scene.id)]));
"""
    done = subprocess.run([node(), "--input-type=module", "-e", script], capture_output=True, text=True, check=True, timeout=60)
    problems, known = json.loads(done.stdout)
    assert problems[:-1] == [[]] * len(paper_pages.LAB)
    assert len(problems[-1]) == 1  # a name that it does not know
    assert scenes <= set(known)


@pytest.mark.parametrize(
    "name",
    [
        "howto/change-lambda",
        "howto/resolve-the-sign",
        "howto/resume-a-run",
        "howto/recover",
        "howto/fit-a-parquet-file",
        "howto/streams",
        "howto/cross-validation",
        "explanation/recovery",
    ],
)
def test_the_python_of_a_page_runs(name, tmp_path, monkeypatch):
    """Block after block in one namespace."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = {"user": np.repeat(np.arange(300), 40), "time": np.tile(np.arange(40), 300), "page": rng.choice(list("abc"), 12_000)}
    pyarrow.parquet.write_table(pyarrow.table(rows), "visits.parquet")
    scope: dict = {}
    found = re.findall(r"```python\n(.*?)```", (DOCS / f"{name}.md").read_text(), re.S)
    assert found
    for block in found:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a short run has not learned its task
            exec(block, scope)


def test_the_check_of_the_built_site_notices_what_is_wrong(tmp_path, capsys):
    def root(name):
        return "../" * name.count("/")

    def problems(*addresses):
        return check_site.problems(tmp_path, addresses)

    def write(name, body):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<nav><a href='{root(name)}lab.html'>menu</a></nav><article id='top'>{body}</article>")

    answers = [(name, words) for name, words in check_site.QUESTIONS.values()]
    for name, words in answers:
        write(name, f"<p>{words}</p>")
    write(
        "index.html",
        "".join(f"<a href='{name}'>x</a>" for name, _ in answers) + "<a href='#top'>x</a><a href='https://x.org/y'>x</a>",
    )
    (tmp_path / "lab.html").write_text("")
    assert problems() == ["lab.html: no link to index.html"]
    (tmp_path / "lab.html").write_text("<a href='index.html'>back</a>")
    assert problems() == []
    (tmp_path / "apart.html").write_text("<p>no menu</p>")
    assert problems() == ["apart.html: no link to lab.html"]
    (tmp_path / "apart.html").write_text("<meta http-equiv='refresh' content='0; url=index.html'><a href='index.html'>moved</a>")
    assert problems("apart.html") == []
    (tmp_path / "apart.html").write_text("<meta http-equiv='refresh' content='0; url=gone.html'><a href='gone.html'>moved</a>")
    assert problems("apart.html") == ["apart.html: gone.html does not exist"]
    (tmp_path / "apart.html").unlink()
    assert problems("apart.html") == ["apart.html: this address was given out, and no longer answers"]
    write("question.html", "<h1>How do I ask?</h1>")
    assert problems() == ["question.html: its title begins as others do"]
    (tmp_path / "question.html").unlink()
    name, words = answers[0]
    write(name, "something else")
    assert len(problems()) == 1
    write(name, f"{words}<a href='nothing.html'>x</a><a href='../index.html#nothing'>x</a><img src='no.png'>")
    assert len(problems()) == 3
    write(name, f"{words} {{number}}`table | what` and **bold** and <code>[text](link) {{role}}`x`</code>")
    assert [line.partition(": ")[2] for line in problems()] == ["'{number}`table | what` and **bold** and ' is left over"]
    write(name, f"{words} **bold** Alias for field number 3")
    assert len(problems()) == 2
    write(name, words)
    write("index.html", "<a href='one.html'>x</a>")
    write("one.html", "<a href='two.html'>x</a>")
    write("two.html", "".join(f"<a href='{name}'>x</a>" for name, _ in answers))
    assert len(problems()) == len(answers)
    capsys.readouterr()
