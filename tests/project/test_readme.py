"""README is one screen that reads well as it is, and what it shows was printed and counted."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
sys.path.append(str(ROOT / "benchmarks"))

import readme  # noqa: E402


def test_it_is_short_and_has_no_comments():
    assert len(README.split()) <= 400
    assert "<!--" not in README
    assert len(re.findall(r"!\[", README)) == 1


def test_it_says_what_the_example_prints_and_how_the_claims_came_out():
    """python benchmarks/readme.py writes both."""
    assert readme.EXAMPLE.search(README)
    assert readme.CLAIMS.search(README)
    assert readme.filled(README) == README


def test_a_number_that_has_changed_is_seen():
    (lines,) = readme.CLAIMS.findall(README)
    for digits in set(re.findall(r"\d+", lines)):
        changed = re.sub(rf"\b{digits}\b", "99", lines, count=1)
        assert readme.filled(README.replace(lines, changed)) == README


def test_the_two_commands_are_targets_and_the_needs_are_those_of_the_package():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile
    assert "Python 3.11 or later, make and git" in README
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text()
