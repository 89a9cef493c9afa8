"""The picture of a sample: what is in the repository is what the script makes, and it shows what was drawn."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import scb
from scb.paper.report import write_report
from scb.picture import ALT, AT, CONTEXT, LETTERS, SAMPLE_SEED, SAMPLES, TASK_SEED, XMLNS, main, strip_picture

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.append(str(ROOT / "benchmarks"))
SVG = "{http://www.w3.org/2000/svg}"


def parts(turn, name):
    """The group of a turn that has this class."""
    return next(group for group in turn.iter(f"{SVG}g") if group.get("class") == name)


def letters(group):
    """The tokens in a group from left to right: where and which."""
    drawn = [text for text in group.iter(f"{SVG}text") if text.get("class") == "in"]
    return dict(sorted((float(text.get("x")), text.text) for text in drawn))


def ring(group):
    """Which place of the strip is ringed."""
    (rect,) = (rect for rect in group.iter(f"{SVG}rect") if rect.get("class") == "line")
    return round(float(rect.get("x")) / AT.pitch)


@pytest.mark.parametrize("name", ["strip.svg", "strip-still.svg"])
def test_the_files_are_what_the_script_makes(name, tmp_path, capsys):
    main(str(tmp_path))
    kept = (IMAGES / name).read_bytes()
    assert kept == (tmp_path / name).read_bytes(), "run `make pictures` and commit docs/images"
    assert len(kept) < 500_000
    assert capsys.readouterr().out.count("wrote") == 2


@pytest.mark.parametrize("name", [path.stem.removeprefix("finding-") for path in IMAGES.glob("finding-*.svg")])
def test_the_findings_are_drawn_from_the_results_on_disk(name):
    from landing import FINDINGS

    kept = (IMAGES / f"finding-{name}.svg").read_text(encoding="utf-8")
    assert kept == FINDINGS[name](), "run `make pictures` and commit docs/images"
    assert ElementTree.fromstring(kept).get("aria-label")


def test_it_comes_first_wherever_a_newcomer_begins(tmp_path):
    """README, the site's first page, the first tutorial and the report; the lab follows a sample of its own."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.startswith(f"# scb: Sparse Contextual Bigrams\n\n![{ALT}](docs/images/strip.svg)\n")
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"images/[\w-]+\.svg", index) == [
        "images/strip.svg",
        *(f"images/finding-{name}.svg" for name in ("mirror", "metre", "price")),
    ]
    tutorial = (ROOT / "docs" / "tutorials" / "01_the_paper_in_ten_minutes.py").read_text(encoding="utf-8")
    assert tutorial.index(".. image:: /images/strip.svg") < 150
    facts = dict.fromkeys(("jobs", "compute", "machine", "date", "wall", "fresh"), "")
    write_report(
        tmp_path / "report.html",
        judged=[],
        figures=[],
        images=tmp_path,
        facts=facts | {"versions": {"scb": "0"}, "quick": True, "left_out": {}, "tables": {}, "shipped": {}},
    )
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert report.index("<h1>") < report.index(strip_picture()) < report.index("<section")


def test_the_picture_shows_what_was_sampled():
    """Tokens, the position that the last one chooses, the odds and the next token, for three samples of one task."""
    task = scb.Task.random(N=3, T=CONTEXT, sparsity=1, seed=TASK_SEED, ensemble="dirichlet")
    batch = scb.sample(task, SAMPLES, seed=SAMPLE_SEED)
    turns = [g for g in ElementTree.fromstring(strip_picture()).iter(f"{SVG}g") if "turn" in (g.get("class") or "").split()]
    assert len(turns) == len(set(batch.last.tolist())) == 3
    chosen = []
    for turn, context, last, label in zip(turns, batch.context, batch.last, batch.label, strict=True):
        expected = "".join(LETTERS[token] for token in (*context, last, label))
        assert "".join(letters(turn).values()) == expected
        assert ring(parts(turn, "last")) == CONTEXT
        chosen.append(ring(parts(turn, "found")))
        assert chosen[-1] == task.support[last][0]
        column = task.P[:, context[chosen[-1]]]
        bars = [r for r in turn.iter(f"{SVG}rect") if r.get("class") == "bar"]
        assert [float(bar.get("height")) for bar in bars] == pytest.approx(82 * column, abs=0.06)
        shares = [text.text for text in parts(turn, "odds").iter(f"{SVG}text")][::2]
        assert shares == [f"{share:.0%}" for share in column]
        start = float(re.search(r"--from:(-?[\d.]+)px", parts(turn, "next").get("style"))[1])
        assert max(letters(turn)) + start == AT.bars[label]
    assert len(set(chosen)) == 3


def test_it_stands_alone_and_is_kind_to_readers():
    text = strip_picture()
    assert f'aria-label="{ALT}"' in text
    assert not re.search(r"href|url\(|<script", text)
    assert text.count("http") == text.count(XMLNS) == 1
    for word in ("prefers-reduced-motion:no-preference", "prefers-color-scheme:dark"):
        assert word in text
    still = strip_picture(animated=False)
    assert "animation" not in still
    assert still.count('class="turn') == 1
    assert ElementTree.fromstring(still).get("viewBox").startswith("0 0 720")
