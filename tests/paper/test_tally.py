"""The paper's claims are counted apart from ours: in the report, in the terminal, and at the head of the page of claims."""

import re
from pathlib import Path

import pytest

from scb.paper.claims.claim import Claim
from scb.paper.outcome import Answer, Outcome
from scb.paper.report import Judged, markdown_table, tally, write_report

PAGE = (Path(__file__).parents[2] / "docs" / "paper" / "claims.md").read_text()
FACTS = {"machine": "", "versions": {"scb": ""}, "date": "", "quick": True, "jobs": 0, "fresh": 0, "wall": "", "compute": ""}


def row(number, quote, answer):
    words = {"figure": "F1", "says": f"Says {number}.", "where": "here", "words": "", "quote": quote}
    outcome = Outcome.judged(answer)
    return Judged(number, Claim(f"claim-{number}", lambda a: outcome, **words), outcome, "")


@pytest.fixture
def judged():
    theirs = [row(1, "It works.", Answer.YES), row(2, "It always works.", Answer.NO), row(3, "Fast.", Answer.NO)]
    return [*theirs, row(4, "Rarely fails.", Answer.UNSURE), row(5, "", Answer.YES)]


def test_one_line_for_the_paper_and_one_for_us(judged):
    paper = "The paper's 4 claims: 1 holds as printed, 1 cannot be decided, 2 do not hold"
    assert tally(judged) == [paper, "Our own 1 claim: 1 holds as printed"]
    assert tally(judged[:1]) == ["The paper's 1 claim: 1 holds as printed"]
    assert tally([]) == []


def test_the_first_screen_of_the_report_counts_them_apart(judged, tmp_path):
    write_report(tmp_path / "report.html", judged, [], tmp_path, FACTS | {"tables": {}, "shipped": {}, "left_out": {}})
    page = (tmp_path / "report.html").read_text().partition("<section")[0]
    assert "The paper's 4 claims</h2>" in page
    assert re.findall(r"<b>(.) (\d)</b>", page) == [("✓", "1"), ("±", "0"), ("~", "0"), ("?", "1"), ("✗", "2")]
    assert "Our own 1 claim: 1 holds as printed." in page


def test_the_page_of_claims_begins_with_both(judged):
    head = markdown_table(judged).splitlines()[2:4]
    assert head == [f"- {line}." for line in tally(judged)]


def test_the_page_in_docs_counts_what_it_lists():
    theirs, ours = PAGE.partition("\n## The paper says\n")[2].split("\n## ")[:2]
    for owner, section in (("The paper's", theirs), ("Our own", ours)):
        marks = re.findall(r"^\| <a id=.*\[\d+\]\(figures/F\d+\.md#[\w-]+\) \|.*\| (.) [^|]* \|$", section, re.MULTILINE)
        (line,) = re.findall(rf"^- {owner} (\d+) claims: (.*)\.$", PAGE.partition("\n## ")[0], re.MULTILINE)
        assert int(line[0]) == len(marks)
        counts = [str(marks.count(mark)) for mark in "✓±~?✗" if mark in marks]
        assert re.findall(r"\d+", line[1]) == counts
